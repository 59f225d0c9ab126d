"""What a database's schema is, as a plain value that can be compared: for tests that two schemas are the same.

The engine's own catalogue is read, never the SQL that made it, except for SQLite's CHECK constraints and partial
indexes, which SQLite keeps only as text. A name that the engine made up by itself (a constraint's, an automatic
index's) is no part of the value, and neither is the order of columns.
"""

import re
import sqlite3
from collections.abc import Iterator

import asyncpg
import msgspec


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column; `default` and `generated` are the engine's own spelling."""

    type: str
    nullable: bool
    default: str | None = None
    generated: str | None = None


class Index(msgspec.Struct, frozen=True, kw_only=True):
    """An index that was made as such; `predicate` is the WHERE of a partial one, `definition` all of it as text."""

    columns: tuple[str, ...]
    unique: bool = False
    predicate: str | None = None
    valid: bool = True
    definition: str


class ForeignKey(msgspec.Struct, frozen=True, kw_only=True):
    """A reference to another table's key."""

    columns: tuple[str, ...]
    table: str
    referenced: tuple[str, ...]


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table with all that it enforces; `options` are what its storage was asked for."""

    columns: dict[str, Column]
    primary_key: tuple[str, ...] = ()
    uniques: frozenset[tuple[str, ...]] = frozenset()
    checks: frozenset[str] = frozenset()
    foreign_keys: frozenset[ForeignKey] = frozenset()
    indexes: dict[str, Index] = {}
    triggers: dict[str, str] = {}
    options: frozenset[str] = frozenset()

    def unique_keys(self) -> Iterator[tuple[str, ...]]:
        """Yield the columns of everything that keeps two rows apart: primary key, constraints, unique indexes."""
        if self.primary_key:
            yield self.primary_key
        yield from sorted(self.uniques)
        yield from (index.columns for index in self.indexes.values() if index.unique)


POSTGRES_TABLES = """
SELECT oid, relname, coalesce(reloptions, '{}') AS options, pg_get_partkeydef(oid) AS partition
FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
"""
POSTGRES_COLUMNS = """
SELECT attname AS name, format_type(atttypid, atttypmod) AS type, NOT attnotnull AS nullable,
       pg_get_expr(adbin, adrelid) AS default, attidentity::text || attgenerated::text AS generated
FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped
"""
# contype n is NOT NULL, which from version 18 on is a constraint of its own; the column says it already.
POSTGRES_CONSTRAINTS = """
SELECT contype::text AS kind, pg_get_expr(conbin, conrelid) AS expression,
       confrelid::regclass::text AS referenced_table,
       ARRAY(SELECT attname::text FROM unnest(conkey) WITH ORDINALITY AS key (number, place)
             JOIN pg_attribute ON attrelid = conrelid AND attnum = number ORDER BY place) AS columns,
       ARRAY(SELECT attname::text FROM unnest(confkey) WITH ORDINALITY AS key (number, place)
             JOIN pg_attribute ON attrelid = confrelid AND attnum = number ORDER BY place) AS referenced
FROM pg_constraint
WHERE conrelid = $1 AND contype <> 'n'
"""
POSTGRES_INDEXES = """
SELECT indexrelid::regclass::text AS name, indisunique AS unique, indisvalid AS valid,
       pg_get_expr(indpred, indrelid) AS predicate, pg_get_indexdef(indexrelid) AS definition,
       ARRAY(SELECT pg_get_indexdef(indexrelid, place, true) FROM generate_series(1, indnkeyatts) AS place) AS columns
FROM pg_index
WHERE indrelid = $1 AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND conrelid = indrelid)
"""
POSTGRES_TRIGGERS = """
SELECT tgname AS name, pg_get_triggerdef(oid) AS definition
FROM pg_trigger
WHERE tgrelid = $1 AND NOT tgisinternal
"""

SQLITE_OBJECTS = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT GLOB 'sqlite_*'"


async def describe_postgres(connection: "asyncpg.Connection[asyncpg.Record]") -> dict[str, Table]:
    """Describe every table of the current schema by name."""
    tables = await connection.fetch(POSTGRES_TABLES)
    return {table["relname"]: await _postgres_table(connection, table) for table in tables}


def describe_sqlite(connection: sqlite3.Connection) -> dict[str, Table]:
    """Describe every table by name."""
    cursor = connection.cursor()
    cursor.row_factory = sqlite3.Row
    objects = cursor.execute(SQLITE_OBJECTS).fetchall()
    return {row["name"]: _sqlite_table(cursor, row["name"], objects) for row in objects if row["type"] == "table"}


async def _postgres_table(connection: "asyncpg.Connection[asyncpg.Record]", table: asyncpg.Record) -> Table:
    """Describe one table of PostgreSQL."""
    oid = table["oid"]
    constraints = await connection.fetch(POSTGRES_CONSTRAINTS, oid)

    def keys(kind: str) -> Iterator[tuple[str, ...]]:
        return (tuple(row["columns"]) for row in constraints if row["kind"] == kind)

    return Table(
        columns={
            row["name"]: Column(
                type=row["type"], nullable=row["nullable"], default=row["default"], generated=row["generated"] or None
            )
            for row in await connection.fetch(POSTGRES_COLUMNS, oid)
        },
        primary_key=next(keys("p"), ()),
        uniques=frozenset(keys("u")),
        checks=frozenset(row["expression"] for row in constraints if row["kind"] == "c"),
        foreign_keys=frozenset(
            ForeignKey(
                columns=tuple(row["columns"]), table=row["referenced_table"], referenced=tuple(row["referenced"])
            )
            for row in constraints
            if row["kind"] == "f"
        ),
        indexes={
            row["name"]: Index(
                columns=tuple(row["columns"]),
                unique=row["unique"],
                predicate=row["predicate"],
                valid=row["valid"],
                definition=row["definition"],
            )
            for row in await connection.fetch(POSTGRES_INDEXES, oid)
        },
        triggers={row["name"]: row["definition"] for row in await connection.fetch(POSTGRES_TRIGGERS, oid)},
        options=frozenset([*table["options"], *([table["partition"]] if table["partition"] else [])]),
    )


def _sqlite_table(cursor: sqlite3.Cursor, name: str, objects: list[sqlite3.Row]) -> Table:
    """Describe one table of SQLite."""
    sql = {row["name"]: row["sql"] for row in objects if row["tbl_name"] == name}
    columns = cursor.execute("SELECT * FROM pragma_table_xinfo(?)", (name,)).fetchall()
    # origin: pk is the primary key's own index, u a UNIQUE of the table, c an index that was made as such.
    indexes = cursor.execute('SELECT name, "unique", origin, partial FROM pragma_index_list(?)', (name,)).fetchall()
    keys = {
        row["name"]: tuple(
            column["name"] or "(expression)" for column in cursor.execute(f'PRAGMA index_info("{row["name"]}")')
        )
        for row in indexes
    }
    (option,) = cursor.execute("SELECT wr, strict FROM pragma_table_list(?) WHERE schema = 'main'", (name,)).fetchall()
    return Table(
        columns={
            row["name"]: Column(
                type=row["type"].lower(),
                nullable=not row["notnull"] and not row["pk"],
                default=row["dflt_value"],
                generated=str(row["hidden"]) if row["hidden"] else None,
            )
            for row in columns
        },
        primary_key=tuple(row["name"] for row in sorted(columns, key=lambda row: int(row["pk"])) if row["pk"]),
        uniques=frozenset(keys[row["name"]] for row in indexes if row["origin"] == "u"),
        checks=frozenset(check_expressions(sql[name])),
        foreign_keys=frozenset(_sqlite_foreign_keys(cursor, name)),
        indexes={
            row["name"]: Index(
                columns=keys[row["name"]],
                unique=bool(row["unique"]),
                predicate=_predicate(sql[row["name"]]) if row["partial"] else None,
                definition=" ".join(sql[row["name"]].split()),
            )
            for row in indexes
            if row["origin"] == "c"
        },
        triggers={row["name"]: row["sql"] for row in objects if row["type"] == "trigger" and row["tbl_name"] == name},
        options=frozenset(
            word for word, given in (("without rowid", option["wr"]), ("strict", option["strict"])) if given
        ),
    )


def _sqlite_foreign_keys(cursor: sqlite3.Cursor, name: str) -> Iterator[ForeignKey]:
    """Describe what a table of SQLite refers to."""
    rows = cursor.execute("SELECT * FROM pragma_foreign_key_list(?) ORDER BY id, seq", (name,)).fetchall()
    for number in dict.fromkeys(row["id"] for row in rows):
        parts = [row for row in rows if row["id"] == number]
        yield ForeignKey(
            columns=tuple(row["from"] for row in parts),
            table=parts[0]["table"],
            referenced=tuple(row["to"] for row in parts if row["to"] is not None),
        )


def check_expressions(sql: str) -> Iterator[str]:
    """Yield the expression of every CHECK in a CREATE TABLE, its blanks made single."""
    # Comments first, so that no word in them counts; a quoted text is taken whole, so that no bracket in it counts.
    tokens = re.findall(r"'(?:[^']|'')*'|\"[^\"]*\"|\w+|\s+|[^\w\s]", re.sub(r"--[^\n]*", "", sql))
    place = 0
    while place < len(tokens):
        place += 1
        if tokens[place - 1].upper() == "CHECK":
            start = tokens.index("(", place)
            place = _closing(tokens, start)
            yield " ".join("".join(tokens[start + 1 : place]).split())


def _closing(tokens: list[str], start: int) -> int:
    """Return the place of the bracket that closes the one at `start`."""
    depth = 0
    for place in range(start, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[place], 0)
        if depth == 0:
            return place
    raise ValueError("a bracket is not closed")


def _predicate(sql: str) -> str:
    """Return the WHERE of a CREATE INDEX, its blanks made single."""
    return " ".join(re.split(r"\bWHERE\b", sql, maxsplit=1, flags=re.IGNORECASE)[1].split())

"""One SQL text for both engines: how a shared statement is written, and how it is compiled.

A text is PostgreSQL's SQL with named parameters:

    :name                                  a value
    x IN {name: type}, x NOT IN {…}        a set of values
    FROM {name: column type, …} AS g       a set of rows; a column of the type `place` numbers them from 1
    next_id(table)                         the number that the next new row of a table gets, in the order of the set
    today()                                the present day, UTC
    no_bytes()                             an empty value of a column of bytes
    /* indexed by name */                  the index that SQLite is to take

A set of rows travels as one JSON text, which both engines unpack faster than the drivers send arrays. `JOIN table AS t
ON condition` always means: for each row so far, look up the rows of `table`, in the order written. Neither engine may
choose another order, because both would choose badly: PostgreSQL knows nothing of a set's size, and SQLite has no
statistics. So a statement begins with its set. For SQLite some words are spelled differently or left out, see
`_SQLITE_WORDS`.

`CROSS JOIN LATERAL (SELECT x AS value ...) AS h` gives for each row so far the values of a sub-select that reads it.
SQLite has no such join, but a table-valued function takes an argument from the tables before it: there the values are
put into one JSON array, which `json_each` unpacks under the same name.

Words and parameters are found by regular expressions, so a text literal must not contain any of them. A file is read
and a statement compiled when it is first used. Knows no driver.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final

import msgspec

from clarion.adapters.stores.query import Query, load
from clarion.errors import BrokenInvariant

PLACE: Final = "place"

# Each type of a set's column: its name on PostgreSQL, and how SQLite reads the value out of JSON.
_TYPES: Final[Mapping[str, tuple[str, str]]] = {
    "text": ("text", "{}"),
    "guid": ("uuid", "{}"),
    "whole": ("bigint", "{}"),
    "truth": ("boolean", "{}"),
    "instant": ("timestamptz", "{}"),
    "date": ("date", "{}"),
    "duration": ("interval", "{}"),
    "bytes": ("bytea", "clarion_bytes({})"),
}

_PARAMETER: Final = re.compile(
    r"""
      (?P<operator>(?:NOT\ )?IN)\ \{(?P<values>\w+):\ (?P<type>\w+)\}
    | \{\s*(?P<rows>\w+):(?P<columns>[^{}]+)\}\ AS\ (?P<alias>\w+)
    | (?<![:\w]):(?P<value>[a-z]\w*)
    """,
    re.VERBOSE,
)

_JOIN: Final = re.compile(
    r"\b(?P<left>LEFT )?JOIN (?P<table>\w+) AS (?P<alias>\w+)(?:\s+/\* indexed by \w+ \*/)?\s+ON\s+"
)
_LATERAL: Final = "CROSS JOIN LATERAL "
_NEXT_CLAUSE: Final = re.compile(
    r"\b(?:CROSS JOIN|LEFT JOIN|JOIN|WHERE|ORDER BY|GROUP BY|LIMIT|RETURNING|UNION|ON CONFLICT|FOR)\b"
)

_POSTGRES_WORDS: Final = (
    (re.compile(r"\bnext_id\((\w+)\)"), r"nextval(pg_get_serial_sequence('\1', 'id'))"),
    (re.compile(r"\btoday\(\)"), "CAST(now() AT TIME ZONE 'UTC' AS date)"),
    (re.compile(r"\bno_bytes\(\)"), "CAST('' AS bytea)"),
)

_SQLITE_WORDS: Final = (
    (
        re.compile(r"\bnext_id\((\w+)\)"),
        r"(SELECT coalesce(max(q.seq), 0) FROM sqlite_sequence AS q WHERE q.name = '\1') + row_number() OVER ()",
    ),
    (re.compile(r"\btoday\(\)"), "date(clarion_now() / 1000000, 'unixepoch')"),
    (re.compile(r"\bno_bytes\(\)"), "x''"),
    (re.compile(r"\s+OVERRIDING SYSTEM VALUE"), ""),
    (re.compile(r"\b(?:now|clock_timestamp)\(\)"), "clarion_now()"),
    (re.compile(r"(?<!LEFT )(?<!CROSS )\bJOIN\b"), "CROSS JOIN"),  # SQLite keeps the order of a cross join
    (re.compile(r"\s+FOR (?:NO KEY )?(?:UPDATE|SHARE)(?: OF \w+)?(?: SKIP LOCKED)?"), ""),  # it has one writer
    (re.compile(r' COLLATE "C"'), ""),  # its only order of text
    (re.compile(r"\bctid\b"), "rowid"),
    (re.compile(r"/\* indexed by (\w+) \*/"), r"INDEXED BY \1"),  # it has no statistics to choose by
)


class Column(msgspec.Struct, frozen=True):
    """One column of a set."""

    name: str
    type: str


class Parameter(msgspec.Struct, frozen=True):
    """What a statement is given under a name: a value, or a set with these columns; of a set of values there is one."""

    name: str
    columns: tuple[Column, ...] = ()
    is_rows: bool = False

    @property
    def sent(self) -> tuple[Column, ...]:
        """The columns whose values are sent: the engine counts places by itself."""
        return tuple(column for column in self.columns if column.type != PLACE)


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """One statement, why it is as it is, its parameters in PostgreSQL's order, and its text for each engine."""

    name: str
    reason: str
    parameters: tuple[Parameter, ...]
    postgres: str
    sqlite: str


class Statements(Mapping[str, Statement]):
    """The named statements of one `.sql` file of a package: this one, or that of an engine for its own."""

    def __init__(self, file: str, *, package: str = __package__) -> None:
        """Read nothing yet."""
        self._file = file
        self._package = package
        self._compiled: dict[str, Statement] = {}

    @cached_property
    def _queries(self) -> dict[str, Query]:
        return load(self._package, self._file)

    def __getitem__(self, name: str) -> Statement:
        """Give a statement, compiled the first time it is asked for."""
        found = self._compiled.get(name)
        if found is None:
            found = self._compiled[name] = compiled(self._queries[name])
        return found

    def __iter__(self) -> Iterator[str]:
        """Go through the names."""
        return iter(self._queries)

    def __len__(self) -> int:
        """Count the statements."""
        return len(self._queries)


def compiled(query: Query) -> Statement:
    """Compile one text for both engines."""
    parameters = _parameters(query)
    numbers = {name: number for number, name in enumerate(parameters, start=1)}

    def for_postgres(found: re.Match[str]) -> str:
        if found["value"]:
            return f"${numbers[found['value']]}"
        if found["values"]:
            operator = "= ANY" if found["operator"] == "IN" else "<> ALL"
            return f"{operator} (${numbers[found['values']]}::{_TYPES[found['type']][0]}[])"
        return _unpacked(parameters[found["rows"]], number=numbers[found["rows"]], alias=found["alias"])

    def for_sqlite(found: re.Match[str]) -> str:
        if found["value"]:
            return f":{found['value']}"
        parameter = parameters[found["values"] or found["rows"]]
        reads = [
            _TYPES[column.type][1].format(f"g.value ->> {number}") if column.type != PLACE else "g.key + 1"
            for number, column in enumerate(parameter.columns)
        ]
        rows = f"FROM json_each(:{parameter.name}) AS g"
        if found["values"]:
            return f"{found['operator']} (SELECT {reads[0]} {rows})"
        named = ", ".join(f"{read} AS {column.name}" for read, column in zip(reads, parameter.columns, strict=True))
        return f"(SELECT {named} {rows}) AS {found['alias']}"

    postgres = _PARAMETER.sub(for_postgres, _with_fixed_joins(query.sql))
    for pattern, spelled in _POSTGRES_WORDS:
        postgres = pattern.sub(spelled, postgres)
    sqlite = _PARAMETER.sub(for_sqlite, _without_laterals(query.sql))
    for pattern, spelled in _SQLITE_WORDS:
        sqlite = pattern.sub(spelled, sqlite)
    return Statement(
        name=query.name,
        reason=query.reason,
        parameters=tuple(parameters.values()),
        postgres=postgres,
        sqlite=sqlite,
    )


def _unpacked(parameter: Parameter, *, number: int, alias: str) -> str:
    """Have PostgreSQL unpack a set of rows; JSON knows no bytes, so they come in base64."""
    names = [column.name for column in parameter.columns]
    in_base64 = {column.name for column in parameter.columns if column.type == "bytes"}
    types = ", ".join(
        f"{column.name} {'text' if column.name in in_base64 else _TYPES[column.type][0]}" for column in parameter.sent
    )
    rows = f"json_to_recordset(${number}::json) AS {alias} ({types})"
    if parameter.sent != parameter.columns:
        unpacked = f"json_to_recordset(${number}::json) AS ({types})"
        rows = f"ROWS FROM ({unpacked}) WITH ORDINALITY AS {alias} ({', '.join(names)})"
    if not in_base64:
        return rows
    read = ", ".join(f"decode({name}, 'base64') AS {name}" if name in in_base64 else name for name in names)
    return f"(SELECT {read} FROM {rows}) AS {alias}"  # noqa: S608  our own words


def _parameters(query: Query) -> dict[str, Parameter]:
    """Find the parameters of a text by name, in the order in which they first appear."""
    parameters: dict[str, Parameter] = {}
    for found in _PARAMETER.finditer(query.sql):
        if found["columns"]:
            columns = tuple(_column(query, *written.split()) for written in found["columns"].split(","))
        else:
            columns = (_column(query, "value", found["type"]),) if found["values"] else ()
        parameter = Parameter(found["value"] or found["values"] or found["rows"], columns, is_rows=bool(found["rows"]))
        if any(column.type == PLACE for column in columns[:-1]):
            raise BrokenInvariant(f"the set {parameter.name!r} of {query.name} has its place before another column")
        if parameters.setdefault(parameter.name, parameter) != parameter:
            raise BrokenInvariant(f"{query.name} uses the name {parameter.name!r} for two different parameters")
    if "{" in _PARAMETER.sub("", query.sql):
        raise BrokenInvariant(f"{query.name} has a set that is not written as {{name: column type, …}} AS alias")
    return parameters


def _column(query: Query, *words: str) -> Column:
    """Read the declaration of one column: its name and its type."""
    match words:
        case [name, type_] if type_ in _TYPES or type_ == PLACE:
            return Column(name, type_)
        case _:
            raise BrokenInvariant(f"{query.name} declares {' '.join(words)!r}, which is no column with a known type")


def _with_fixed_joins(sql: str) -> str:
    """Turn each join into a lateral sub-select that PostgreSQL cannot reorder: OFFSET 0 keeps it from merging one."""
    for found in reversed(list(_JOIN.finditer(sql))):
        end = _end_of_condition(sql, found.end())
        condition = sql[found.end() : end].rstrip()
        looked_up = (
            f"(SELECT * FROM {found['table']} AS {found['alias']} WHERE {condition} OFFSET 0) AS {found['alias']}"  # noqa: S608  our own words
        )
        join = f"LEFT JOIN LATERAL {looked_up} ON true" if found["left"] else f"CROSS JOIN LATERAL {looked_up}"
        sql = f"{sql[: found.start()]}{join}\n{sql[end:]}".rstrip()
    return sql


def _without_laterals(sql: str) -> str:
    """Have SQLite unpack the values of each sub-select that reads the rows before it."""
    pieces = sql.split(_LATERAL)
    for place, piece in enumerate(pieces[1:], start=1):
        end = _end_of_parentheses(piece)
        values = f"SELECT json_group_array(v.value) FROM {piece[:end]} AS v"  # noqa: S608  our own words
        pieces[place] = f"json_each(({values})){piece[end:]}"
    return "CROSS JOIN ".join(pieces)


def _end_of_parentheses(text: str) -> int:
    """Find the end of the parentheses that a text begins with."""
    depth = 0
    for place, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return place + 1
    return len(text)


def _end_of_condition(sql: str, start: int) -> int:
    """Find where a join's condition ends: before the next clause, or before the parenthesis around the whole."""
    depth = 0
    for place in range(start, len(sql)):
        depth += {"(": 1, ")": -1}.get(sql[place], 0)
        if depth < 0 or (depth == 0 and _NEXT_CLAUSE.match(sql, place)):
            return place
    return len(sql)

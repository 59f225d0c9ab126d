"""The schema itself, read from both engines' catalogues: tenants apart, months in keys, steps that only add."""

import contextlib
import re
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import asyncpg
import msgspec
import pytest

from clarion.adapters.stores.migration import HISTORY
from clarion.adapters.stores.migration.history import OUTSIDE
from clarion.adapters.stores.migration.upgrade_postgres import outside_statements
from clarion.testing.schema import Column, ForeignKey, Index, Table, describe_postgres, describe_sqlite
from tests.unit.test_state_checks import STATES
from tests.unit.test_state_checks import schema as read_steps

# Tables that belong to the database and not to a tenant, each with its reason.
WITHOUT_TENANT = {
    "alembic_version": "the ledger of the schema itself",
    "schema_info": "one row about the schema itself",
    "schema_step": "one row for each file of the schema's steps",
    "store_clock": "one row: the latest instant that this database has handed out (SQLite only)",
    "event_turn": "one row: behind which tenant the next claim of events begins",
    "worker": "one row for each process that works, for all tenants",
}

# Primary keys that no caller can choose: the engine numbers the rows. Everything else that is unique starts with the
# tenant, or inserting one tenant's key would tell another that it exists (X-03, I-02).
NUMBERED = {
    "automation_scheduler",
    "automation_job",
    "notification_job",
    "notification_scheduler",
    "messaging_job",
    "address_version",
    "person_version",
    "user_message",
    "flow",
    "outgoing_message",
    "entity_event",
}

# Keys that no caller can choose either: a number that the engine gave to the row above, or chance.
WITHOUT_CHOICE = {
    ("transition", ("bucket", "outgoing_id", "version")): "lines of one numbered row",
    ("delivery_attempt", ("bucket", "outgoing_id", "attempt")): "attempts of one numbered row",
    ("inbox_state", ("bucket", "user_message_id")): "what was made of one numbered row",
    ("api_key", ("key_id",)): "random, and looked up to learn the tenant",
}

# States that a column repeats from the row that a CHECK holds to them: a new state changes that one table alone.
REPEATED = {
    ("flow_count", "status"): "the state of the rows that it counts",
    ("transition", "from_status"): "the state that the row had",
    ("transition", "to_status"): "the state that the row got",
    ("webhook_event", "status"): "the state that the provider's event is evidence for",
}

# Rows that retention drops by the month; their keys outlive no partition.
DROPPED_BY_MONTH = {"user_message", "outgoing_message", "outgoing_key"}


@pytest.fixture(params=["postgresql", "sqlite"])
async def schema(request: pytest.FixtureRequest) -> dict[str, Table]:
    """The whole schema on one engine."""
    if request.param == "sqlite":
        path: Path = request.getfixturevalue("migrated_sqlite_path")
        with contextlib.closing(sqlite3.connect(path)) as connection:
            return describe_sqlite(connection)
    return await postgres_schema(request.getfixturevalue("migrated_postgres_url"))


async def postgres_schema(url: str) -> dict[str, Table]:
    connection = await asyncpg.connect(url)
    try:
        return await describe_postgres(connection)
    finally:
        await connection.close()


def offenders(schema: dict[str, Table]) -> list[str]:
    """List what does not start with the tenant and has no excuse."""
    found = []
    for name, table in schema.items():
        if name in WITHOUT_TENANT:
            continue
        if (tenant := table.columns.get("tenant_id")) is None or tenant.nullable:
            found.append(f"{name} has no tenant")
        numbered = table.primary_key if name in NUMBERED and table.primary_key in {("id",), ("bucket", "id")} else None
        found += [
            f"{name} {key}"
            for key in table.unique_keys()
            if key[0] != "tenant_id" and key != numbered and (name, key) not in WITHOUT_CHOICE
        ]
        found += [f"{name} refers {key.columns}" for key in table.foreign_keys if key.columns[0] != "tenant_id"]
    return found


def test_every_table_and_every_unique_key_starts_with_the_tenant(schema: dict[str, Table]) -> None:
    assert offenders(schema) == []


def test_the_exceptions_name_only_what_exists(schema: dict[str, Table]) -> None:
    assert schema.keys() >= NUMBERED | (WITHOUT_TENANT.keys() - {"store_clock"})
    assert all(key in schema[name].unique_keys() for name, key in WITHOUT_CHOICE)


def test_a_number_that_stands_for_a_row_is_chosen_by_the_engine(schema: dict[str, Table]) -> None:
    for name in NUMBERED:
        number = schema[name].columns["id"]
        # An identity that refuses a given value on PostgreSQL; the rowid on SQLite, which has no such refusal.
        assert (number.type, number.generated) in {("bigint", "a"), ("integer", None)}, name


def test_the_catalogue_finds_each_kind_of_offender() -> None:
    tenant = Column(type="text", nullable=False)
    other = Column(type="text", nullable=False)
    columns = {"tenant_id": tenant, "name": other}
    unique = Index(columns=("name",), unique=True, definition="CREATE UNIQUE INDEX ...")
    reference = ForeignKey(columns=("name",), table="customer", referenced=("name",))
    assert offenders(
        {
            "a": Table(columns={"name": other}),
            "b": Table(columns={"tenant_id": Column(type="text", nullable=True)}),
            "c": Table(columns=columns, primary_key=("id",)),
            "d": Table(columns=columns, uniques=frozenset({("name", "tenant_id")})),
            "e": Table(columns=columns, indexes={"e_name": unique}),
            "f": Table(columns=columns, foreign_keys=frozenset({reference})),
            "flow": Table(columns=columns, primary_key=("name",)),
        }
    ) == [
        "a has no tenant",
        "b has no tenant",
        "c ('id',)",
        "d ('name', 'tenant_id')",
        "e ('name',)",
        "f refers ('name',)",
        "flow ('name',)",
    ]


def test_every_column_with_a_state_is_held_to_the_state_tables_or_repeats_one_that_is(schema: dict[str, Table]) -> None:
    found = {
        (name, column)
        for name, table in schema.items()
        for column in table.columns
        if column.endswith("status") or column == "gate"
    }
    assert found == STATES.keys() | REPEATED.keys()


def test_rows_that_retention_drops_carry_their_month_in_every_key(schema: dict[str, Table]) -> None:
    for name in DROPPED_BY_MONTH & schema.keys():
        assert not schema[name].columns["bucket"].nullable
        keys = [key for key in schema[name].unique_keys() if key != ("id",)]  # SQLite drops no partitions
        assert keys
        assert all("bucket" in key for key in keys), name


def test_every_index_is_valid(schema: dict[str, Table]) -> None:
    assert [name for table in schema.values() for name, index in table.indexes.items() if not index.valid] == []


# What differs between the two engines, and all of it. PostgreSQL's spelling, then SQLite's for the same.
ONLY_ON_POSTGRES = {"outgoing_key": "what a message is found by; SQLite has it on the message (decision 0021)"}
COMPUTED = {"s", "2"}  # stored on PostgreSQL, computed by SQLite when it is read; SQLite does not tell the expression
ONLY_ON_SQLITE = {"store_clock": "a server has a clock of its own"}
PARTITIONED_LATER = {"user_message", "outgoing_message"}  # primary key (bucket, id) on PostgreSQL, (id) on SQLite
SPELLINGS = [
    (r"::(text|integer|smallint|bigint)\b", ""),
    (r' COLLATE "C"', ""),  # SQLite compares bytes anyway
    (r"\bNOT on_support_hold\b", "on_support_hold = 0"),
    (r"^false$", "0"),
    (r"^true$", "1"),
    (r"^now\(\)$", ""),  # SQLite's clock is a function of the program, which no default can call
    (r"octet_length\((\w+)\)", r"length(CAST(\1 AS blob))"),
    (r"(\w+) ~ '\^\[0-9a-f\]\{32\}\$'", r"length(\1) = 32 AND \1 NOT GLOB '*[^0-9a-f]*'"),
    (
        r"tenant_id ~ '\^\[a-z0-9\]\[a-z0-9-\]\{0,62\}\$'",
        "length(tenant_id) BETWEEN 1 AND 63 AND tenant_id NOT GLOB '*[^a-z0-9-]*' AND tenant_id NOT GLOB '-*'",
    ),
    (r"^only_row$", "only_row = 1"),
]


def as_on_sqlite(expression: str | None) -> str:
    """Spell an expression of PostgreSQL as SQLite has it; none is the empty one."""
    for ours, theirs in SPELLINGS:
        expression = re.sub(ours, theirs, expression or "")
    return " ".join((expression or "").split())


def without_brackets(condition: str | None) -> str:
    """PostgreSQL puts brackets around every part of a condition that it shows."""
    return re.sub(r"[()]", "", condition or "")


def comparable(table: Table, *, spell: Callable[[str | None], str]) -> dict[str, object]:
    """What must be the same on both engines, apart from types."""
    return {
        "columns": {
            name: (column.nullable, "" if column.generated in COMPUTED else spell(column.default))
            for name, column in table.columns.items()
        },
        "unique": table.uniques,
        "foreign": {(key.columns, key.table) for key in table.foreign_keys},
        "indexes": {
            name: (tuple(map(spell, index.columns)), index.unique, without_brackets(spell(index.predicate)))
            for name, index in table.indexes.items()
        },
    }


async def test_both_engines_have_the_same_tables_columns_keys_and_indexes(
    migrated_postgres_url: str, migrated_sqlite_path: Path
) -> None:
    server = await postgres_schema(migrated_postgres_url)
    with contextlib.closing(sqlite3.connect(migrated_sqlite_path)) as connection:
        file = describe_sqlite(connection)
    assert server.keys() - ONLY_ON_POSTGRES.keys() == file.keys() - ONLY_ON_SQLITE.keys()
    keys, message = server.pop("outgoing_key"), server["outgoing_message"]
    server["outgoing_message"] = msgspec.structs.replace(
        message,
        uniques=message.uniques | {keys.primary_key},
        indexes={**message.indexes, "outgoing_message_message": keys.indexes.pop("outgoing_key_message")},
    )
    assert not keys.uniques
    assert not keys.indexes
    for name, table in server.items():
        assert comparable(table, spell=as_on_sqlite) == comparable(file[name], spell=lambda text: text or ""), name
        expected = ("bucket", "id") if name in PARTITIONED_LATER else file[name].primary_key
        assert table.primary_key == expected, name


def test_both_engines_have_the_same_checks() -> None:
    """The steps are read as text: PostgreSQL shows a CHECK in other words than those it was given."""
    server, file = read_steps("postgres"), read_steps("sqlite")
    for name in file.keys() - ONLY_ON_SQLITE.keys():
        ours = Counter(as_on_sqlite(condition) for condition in server[name])
        # A boolean is a number here, and says so.
        theirs = Counter(c for c in (" ".join(c.split()) for c in file[name]) if not c.endswith(" IN (0, 1)"))
        assert ours == theirs, name


POSTGRES_STEPS = sorted(path.name for path in (HISTORY.folder / "postgres").glob("*.sql"))


@pytest.mark.parametrize("name", POSTGRES_STEPS)
def test_an_index_built_concurrently_is_dropped_first(name: str) -> None:
    sql = HISTORY.sql("postgres", name)
    if not sql.startswith(OUTSIDE):
        assert "CONCURRENTLY" not in sql
        return
    statements = list(outside_statements(sql))
    for drop, create in zip(statements[::2], statements[1::2], strict=True):
        built = re.match(r"CREATE (?:UNIQUE )?INDEX CONCURRENTLY (\w+) ", create)
        assert built, create
        assert drop == f"DROP INDEX CONCURRENTLY IF EXISTS {built[1]}"


@pytest.mark.parametrize("name", POSTGRES_STEPS)
@pytest.mark.parametrize("engine", ["postgres", "sqlite"])
def test_a_step_adds_and_takes_nothing_away(name: str, engine: str) -> None:
    sql = (HISTORY.folder / engine / name).read_text()
    taken = r"\b(DROP\s+(TABLE|COLUMN|CONSTRAINT|TYPE)|RENAME|ALTER\s+COLUMN|DELETE\s+FROM|TRUNCATE|COMMIT|ROLLBACK)\b"
    assert re.search(taken, re.sub(r"--[^\n]*", "", sql), flags=re.IGNORECASE) is None


def test_every_step_has_its_twin_on_the_other_engine() -> None:
    assert sorted(path.name for path in (HISTORY.folder / "sqlite").glob("*.sql")) == POSTGRES_STEPS
    assert sorted({name[:4] for name in POSTGRES_STEPS}) == list(HISTORY.revisions)


async def test_the_description_of_postgresql_sees_what_differs(postgres_url: str) -> None:
    connection = await asyncpg.connect(postgres_url)
    await connection.execute("CREATE TABLE job (a integer)")
    seen = [await describe_postgres(connection)]
    for change in (
        "ALTER TABLE job ADD COLUMN b text",
        "ALTER TABLE job ALTER COLUMN b SET NOT NULL",
        "ALTER TABLE job ALTER COLUMN b SET DEFAULT 'x'",
        "ALTER TABLE job ALTER COLUMN b TYPE varchar(3)",
        "ALTER TABLE job ADD CHECK (a > 1)",
        "ALTER TABLE job ADD UNIQUE (b)",
        "ALTER TABLE job ADD PRIMARY KEY (a)",
        "CREATE INDEX job_b ON job (b)",
        "DROP INDEX job_b; CREATE INDEX job_b ON job (b DESC)",
        "DROP INDEX job_b; CREATE INDEX job_b ON job (b) WHERE a > 2",
        "CREATE TABLE other (a integer REFERENCES job)",
        "ALTER TABLE job SET (fillfactor = 70)",
    ):
        await connection.execute(change)
        seen.append(await describe_postgres(connection))
        assert seen[-1] not in seen[:-1], change
    await connection.close()


def test_the_description_of_sqlite_sees_what_differs() -> None:
    seen = []
    for made in (
        "CREATE TABLE job (a integer)",
        "CREATE TABLE job (a integer, b text)",
        "CREATE TABLE job (a integer, b blob)",
        "CREATE TABLE job (a integer, b text NOT NULL)",
        "CREATE TABLE job (a integer, b text DEFAULT 'x')",
        "CREATE TABLE job (a integer PRIMARY KEY, b text)",
        "CREATE TABLE job (a integer, b text UNIQUE)",
        "CREATE TABLE job (a integer, b text CHECK (b IN (')', 'x')))",
        "CREATE TABLE job (a integer, b text CHECK (b IN (')', 'y')))",
        "CREATE TABLE job (a integer, b text REFERENCES other (b))",
        "CREATE TABLE job (a integer, b text) STRICT",
        "CREATE TABLE job (a integer PRIMARY KEY, b text) WITHOUT ROWID",
        "CREATE TABLE job (a integer, b text); CREATE INDEX job_b ON job (b)",
        "CREATE TABLE job (a integer, b text); CREATE UNIQUE INDEX job_b ON job (b)",
        "CREATE TABLE job (a integer, b text); CREATE INDEX job_b ON job (b) WHERE a > 1",
        "CREATE TABLE job (a integer, b text); CREATE INDEX job_b ON job (b) WHERE a > 2",
        "CREATE TABLE job (a integer, b text); CREATE INDEX job_b ON job (lower(b))",
        "CREATE TABLE job (a integer, b text); CREATE TRIGGER t AFTER DELETE ON job BEGIN SELECT 1; END",
    ):
        with contextlib.closing(sqlite3.connect(":memory:")) as connection:
            connection.executescript(made)
            seen.append(describe_sqlite(connection))
        assert seen[-1] not in seen[:-1], made


def test_checks_are_found_whatever_brackets_and_comments_surround_them() -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(
            """CREATE TABLE job (
              a text CHECK (a <> 'check (it)'),  -- a CHECK (in a comment)
              b text,
              CHECK ((a IS NULL)
                     OR (b IS NULL))
            )"""
        )
        checks = describe_sqlite(connection)["job"].checks
    assert checks == {"a <> 'check (it)'", "(a IS NULL) OR (b IS NULL)"}

"""May this program use this database? Asked by a store when it opens and by a migration before it begins.

The answer depends on what is read from the database (which tables there are, `alembic_version`, `schema_info`,
`schema_step`) and on this program's version and steps. Nothing is written, and nothing is cached: a newer program may
migrate at any time.
"""

import contextlib
import re
import sqlite3

import asyncpg
import msgspec

import clarion
from clarion.adapters.stores.migration.failure import postgres_failures, sqlite_failures
from clarion.adapters.stores.migration.history import HISTORY, Engine, History
from clarion.errors import ProgramTooOld, SchemaEdited, SchemaMissing, SchemaOutdated, SchemaUnknown

VERSION = re.compile(r"(\d+)(?:\.(\d+))?(?:\.(\d+))?")

LEDGER = "alembic_version"
INFO = "schema_info"
STEPS = "schema_step"

# Tables of an extension (PostGIS brings some) are nobody's schema. Only the schema that our names resolve to counts.
POSTGRES_TABLES = """
SELECT relname
FROM pg_class
WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
  AND relkind IN ('r', 'p')
  AND NOT EXISTS (
    SELECT FROM pg_depend
    WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e'
  )
"""
SQLITE_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*'"
REVISIONS = "SELECT version_num FROM alembic_version"
MIN_PROGRAM = "SELECT min_program FROM schema_info"
CHECKSUMS = "SELECT file, checksum FROM schema_step"


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a database says about itself."""

    tables: frozenset[str]
    revisions: tuple[str, ...] = ()
    min_programs: tuple[str, ...] = ()
    checksums: dict[str, str] = {}


async def check_postgres(
    connection: "asyncpg.Connection[asyncpg.Record]",
    *,
    store: str = "URL",
    program: str = clarion.__version__,
    history: History = HISTORY,
) -> None:
    """Return if this program may use the database, else raise; `store` is what the hint tells to migrate."""
    with postgres_failures(store):
        found = await read_postgres(connection)
    _require_current(found, engine="postgres", store=store, program=program, history=history)


def check_sqlite(
    connection: sqlite3.Connection,
    *,
    store: str = "URL",
    program: str = clarion.__version__,
    history: History = HISTORY,
) -> None:
    """Return if this program may use the database, else raise; `store` is what the hint tells to migrate."""
    with sqlite_failures(store):
        found = read_sqlite(connection)
    _require_current(found, engine="sqlite", store=store, program=program, history=history)


async def read_postgres(connection: "asyncpg.Connection[asyncpg.Record]") -> Found:
    """Read what a PostgreSQL database says about itself."""
    tables = frozenset(row[0] for row in await connection.fetch(POSTGRES_TABLES))
    revisions: tuple[str, ...] = ()
    min_programs: tuple[str, ...] = ()
    checksums: dict[str, str] = {}
    if LEDGER in tables:
        revisions = tuple(row[0] for row in await connection.fetch(REVISIONS))
    if INFO in tables:
        # Without the column it is another application's table of that name.
        with contextlib.suppress(asyncpg.UndefinedColumnError):
            min_programs = tuple(row[0] for row in await connection.fetch(MIN_PROGRAM))
    if min_programs and STEPS in tables:
        checksums = {row[0]: row[1] for row in await connection.fetch(CHECKSUMS)}
    return Found(tables=tables, revisions=revisions, min_programs=min_programs, checksums=checksums)


def read_sqlite(connection: sqlite3.Connection) -> Found:
    """Read what an SQLite database says about itself."""
    cursor = connection.cursor()
    cursor.row_factory = None  # the connection is a store's and may shape its rows otherwise
    tables = frozenset(name for (name,) in cursor.execute(SQLITE_TABLES))
    revisions: tuple[str, ...] = ()
    min_programs: tuple[str, ...] = ()
    checksums: dict[str, str] = {}
    if LEDGER in tables:
        revisions = tuple(name for (name,) in cursor.execute(REVISIONS))
    if INFO in tables and "min_program" in {row[1] for row in cursor.execute("PRAGMA table_info(schema_info)")}:
        min_programs = tuple(version for (version,) in cursor.execute(MIN_PROGRAM))
    if min_programs and STEPS in tables:
        checksums = dict(cursor.execute(CHECKSUMS).fetchall())
    return Found(tables=tables, revisions=revisions, min_programs=min_programs, checksums=checksums)


def revision_for(found: Found, *, engine: Engine, store: str, program: str, history: History) -> str | None:
    """Return the revision of a database that this program may migrate, None for an empty one, else raise."""
    if not found.revisions and not found.tables - {LEDGER}:
        return None  # an empty ledger alone is what an interrupted first migration leaves
    if len(found.revisions) != 1 or len(found.min_programs) != 1 or not VERSION.match(found.min_programs[0]):
        raise SchemaUnknown(
            "the database holds tables that are not Clarion's, or not in a form this program knows",
            hint=f"give an empty database or Clarion's own; {store} is left as it was",
        )
    if _release(program) < _release(found.min_programs[0]):
        raise ProgramTooOld(
            f"the database asks for Clarion {found.min_programs[0]} or newer and this is {program}",
            hint="update this program; others that are new enough go on working",
        )
    (revision,) = found.revisions
    for file, expected in history.checksums(engine, until=revision).items():
        if found.checksums.get(file) != expected:
            raise SchemaEdited(
                f"{store} was made by another version of Clarion (its {file} differs) and cannot be brought up to date",
                hint="run clarion migrate with another CLARION_HOME or --store, which makes a new database; for a "
                "demo, remove its folder and start it again",
            )
    return revision


def _require_current(found: Found, *, engine: Engine, store: str, program: str, history: History) -> None:
    """Raise unless the database has every table that this program's SQL names."""
    revision = revision_for(found, engine=engine, store=store, program=program, history=history)
    if revision is None:
        raise SchemaMissing("the database is empty", hint=f"run: clarion migrate --store {store}")
    # A revision that is not in our history is a newer program's, and its min_program has just allowed us.
    if revision in history.revisions and revision != history.head:
        raise SchemaOutdated(
            f"the database is at schema revision {revision} and this program needs {history.head}",
            hint=f"run: clarion migrate --store {store}",
        )


def _release(version: str) -> tuple[int, ...]:
    """Return the numbers to compare a version by: 0.1 is 0.1.0, and a mark after them (dev, rc) does not count."""
    numbers = VERSION.match(version)
    return tuple(int(number or 0) for number in numbers.groups()) if numbers else ()

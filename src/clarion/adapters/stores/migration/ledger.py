"""Alembic as the ledger: which steps are ahead, one after the other, each written down with what it did.

This is the only module that knows alembic and SQLAlchemy, and it is imported only when something is migrated: the two
take half a second. Steps are handed what they need; alembic's `op` and `context` are process-wide and would mix up two
migrations that run at once. How a step's SQL reaches an engine stands in `upgrade_postgres` and `upgrade_sqlite`.
"""

import contextlib
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TypeAlias, cast

import asyncpg
import sqlalchemy
from alembic.runtime.migration import MigrationContext, MigrationStep, RevisionStep
from alembic.script import ScriptDirectory
from sqlalchemy.engine import AdaptedConnection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import StaticPool

from clarion.adapters.stores.migration.history import History, checksum

Postgres: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


class Step:
    """The step that is being applied on PostgreSQL, as the code that runs its SQL sees it."""

    def __init__(self, context: MigrationContext) -> None:
        """Take the step that `context` is at, whichever that is."""
        self._context = context

    @property
    def _connection(self) -> sqlalchemy.Connection:
        """The connection that the ledger itself writes on; the context exchanges it outside a transaction."""
        return cast("sqlalchemy.Connection", self._context.connection)

    def begin(self) -> None:
        """See that the step's transaction is open: the wrapper begins it with a first statement of its own."""
        self._connection.exec_driver_sql("SELECT 1")

    def execute(self, sql: str) -> None:
        """Run SQL on the driver's own connection, which takes a file of many statements at once."""
        driver = cast("AdaptedConnection", self._connection.connection.dbapi_connection)
        driver.run_async(lambda connection: connection.execute(sql))

    def is_in_transaction(self) -> bool:
        """Say whether the driver has a transaction open."""
        return cast("Postgres", self._connection.connection.driver_connection).is_in_transaction()

    def outside_transaction(self) -> contextlib.AbstractContextManager[None]:
        """Commit what was done and leave the transaction for the length of a block."""
        return self._context.autocommit_block()


# Runs the file of this name and returns its text.
RunSql = Callable[[Step, str], str]

# A file that is run again after an interrupted step replaces its line.
KEEP_CHECKSUM = sqlalchemy.text(
    "INSERT INTO schema_step (file, checksum) VALUES (:file, :checksum) "
    "ON CONFLICT (file) DO UPDATE SET checksum = excluded.checksum"
)


@contextlib.contextmanager
def wrap_sqlite(connection: sqlite3.Connection) -> Iterator[sqlalchemy.Connection]:
    """Give alembic a connection that is ours; it is rolled back at the start of the block and stays open after it."""
    engine = sqlalchemy.create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
    with _driver_errors(), engine.connect() as wrapped:
        yield wrapped


async def upgrade_postgres(
    connect: Callable[[], Awaitable[Postgres]], *, history: History, target: str, run_sql: RunSql
) -> None:
    """Apply every step up to `target` on a connection of their own, each in one transaction."""
    engine = create_async_engine("postgresql+asyncpg://", async_creator=connect)
    with _driver_errors():
        try:
            async with engine.connect() as wrapped:
                await wrapped.run_sync(partial(upgrade, history=history, target=target, run_sql=run_sql))
        finally:
            await engine.dispose()


def upgrade(connection: sqlalchemy.Connection, *, history: History, target: str, run_sql: RunSql) -> None:
    """Apply every step up to `target`: in the transaction that the connection is in, else in one each."""
    script = ScriptDirectory(str(history.folder))

    def ahead(current: tuple[str, ...], _context: MigrationContext) -> list[RevisionStep]:
        revisions = reversed(list(script.iterate_revisions(target, current, implicit_base=True)))
        return [MigrationStep.upgrade_from_script(script.revision_map, revision) for revision in revisions]

    context = MigrationContext.configure(connection, opts={"fn": ahead, "transaction_per_migration": True})

    def run_step(name: str, /) -> None:
        try:
            sql = run_sql(Step(context), name)
        except (asyncpg.PostgresError, sqlite3.Error) as error:
            error.add_note(name)  # the engine does not know which file its statement came from
            raise
        # In the transaction that writes the revision down.
        cast("sqlalchemy.Connection", context.connection).execute(
            KEEP_CHECKSUM, {"file": name, "checksum": checksum(sql)}
        )

    context.run_migrations(run_step=run_step)


@contextlib.contextmanager
def _driver_errors() -> Iterator[None]:
    """Let out what the driver raised: SQLAlchemy wraps it, on asyncpg in a second wrapper of its own."""
    try:
        yield
    except DBAPIError as error:
        original = error.orig.__cause__ if error.orig is not None else None
        raise original or error.orig or error from None

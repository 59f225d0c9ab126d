"""SQLite in memory as the store of tests: the real adapter, run inline, without a file, a thread or a wait.

It is as fast to make as a dictionary (the schema is copied, not built), takes its time from a clock that the test sets,
and is gone with its connection. `StandIn` gives a test a way around it, to read and to overwrite rows.
"""

import sqlite3
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from uuid import UUID

from clarion.adapters.stores.sqlite import InlineRunner, SqliteStore
from clarion.adapters.stores.sqlite.core import SqliteCore
from clarion.adapters.stores.sqlite.location import MEMORY, Location
from clarion.adapters.stores.sqlite.session import Session
from clarion.ports.clock import Clock
from clarion.testing.clock import ManualClock
from clarion.testing.contracts.sql_rows import EPOCH_AT, Row, SqlRows


def memory_store(clock: Clock) -> SqliteStore:
    """Open a store in memory that holds nothing; close it as any other."""
    return _opened(clock)[0]


class SqliteDatabase:
    """A connection to an SQLite database, for `SqlRows`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Take a connection of the test's own to a file, or the store's where the database has no other."""
        self._connection = connection

    async def fetch(self, sql: str, parameters: Sequence[object]) -> list[Row]:
        """Run one statement with parameters $1, $2, … and return its rows."""
        cursor = self._connection.execute(sql.replace("$", "?"), parameters)  # which numbers parameters alike
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def written(self, value: object) -> object:
        """Write instants as microseconds, and what SQLite has no type for as text."""
        match value:
            case datetime():
                return (value - EPOCH_AT) // timedelta(microseconds=1)
            case date() | UUID():
                return str(value)
            case _:
                return value


class StandIn(SqlRows):
    """A store in memory and the way around it: a `StoreHarness`."""

    tenant_id = "acme"

    def __init__(self, clock: ManualClock | None = None) -> None:
        """Open a store that holds nothing."""
        self.clock = clock or ManualClock()
        self.store, connection = _opened(self.clock)
        super().__init__(SqliteDatabase(connection))

    async def now(self) -> datetime:
        """Read the clock."""
        return self.clock.now()

    async def elapse(self, by: timedelta) -> None:
        """Advance the clock."""
        self.clock.advance(by)


def _opened(clock: Clock) -> tuple[SqliteStore, sqlite3.Connection]:
    """Open a store here and now, which an inline runner allows, and give its only connection too."""
    session = Session(Location.parse(MEMORY), clock=clock)
    core = SqliteCore(session)
    core.open()
    return SqliteStore(core, runner=InlineRunner()), session.connection

"""SQLite in memory as the store of tests: the real adapter, run inline, without a file, a thread or a wait.

It is as fast to make as a dictionary (the schema is copied, not built), takes its time from a clock that the test sets,
and is gone with its connection. It has a way around the ports too, to read and to overwrite rows.
"""

import sqlite3
import weakref
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


class SqliteInMemory(SqliteStore, SqlRows):
    """A store that holds nothing yet, and the way around it: `rows`, `overwrite`, `remove`.

    A test derives from it where a method must do something else. It is closed when nobody holds it any more.
    """

    def __init__(self, clock: Clock) -> None:
        """Open a database here and now, which an inline runner allows."""
        session = Session(Location.parse(MEMORY), clock=clock)
        core = SqliteCore(session)
        core.open()
        SqliteStore.__init__(self, core, runner=InlineRunner())
        SqlRows.__init__(self, SqliteDatabase(session.connection))
        weakref.finalize(self, session.connection.close)


class StandIn:
    """A store in memory as a contract suite asks for it: a `StoreHarness`."""

    tenant_id = "acme"

    def __init__(self, clock: ManualClock | None = None) -> None:
        """Open a store that holds nothing."""
        self.clock = clock or ManualClock()
        self.store = SqliteInMemory(self.clock)
        self.overwrite, self.remove, self.rows = self.store.overwrite, self.store.remove, self.store.rows

    async def now(self) -> datetime:
        """Read the clock."""
        return self.clock.now()

    async def elapse(self, by: timedelta) -> None:
        """Advance the clock."""
        self.clock.advance(by)

"""A PostgreSQL store whose clock stands until the test moves it, so that its instants can be compared with another's.

Functions of our own hide `now()` and `clock_timestamp()` from every statement, and from the defaults of columns.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from itertools import count
from typing import Final

import asyncpg

from clarion.adapters.stores.postgres import PostgresStore, open_store
from clarion.testing.clock import START_AT, ManualClock
from clarion.testing.contracts.sql_rows import Row, SqlRows

_TENANTS: Final = count(1)

LEFT_TO_DO: Final = (
    "outgoing_message",
    "notification_scheduler",
    "automation_scheduler",
    "webhook_event",
    "support_case",
    "inbox_state",
    "entity_event",
    "reminder_setting",
    "repair",
    "report_subscription",
)
"""Tables that workers look into for what there is to do, of whichever tenant."""

SET_CLOCK: Final = """
CREATE SCHEMA set_clock;
CREATE TABLE set_clock.clock (at timestamptz NOT NULL);
CREATE FUNCTION set_clock.now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT at FROM set_clock.clock';
CREATE FUNCTION set_clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT at FROM set_clock.clock';
DO $$
DECLARE found record;
BEGIN
  FOR found IN
    SELECT c.table_name, c.column_name
    FROM information_schema.columns AS c
    WHERE c.table_schema = 'public' AND c.column_default LIKE '%now()'
  LOOP
    EXECUTE format('ALTER TABLE public.%I ALTER %I SET DEFAULT set_clock.now()', found.table_name, found.column_name);
  END LOOP;
  EXECUTE format('ALTER DATABASE %I SET search_path = public, set_clock, pg_catalog', current_database());
END
$$;
"""


class PostgresDatabase:
    """A connection to PostgreSQL as `SqlRows` asks for it."""

    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        """Ask over this connection."""
        self._connection = connection

    async def fetch(self, sql: str, parameters: Sequence[object]) -> list[Row]:
        """Run one statement and commit it."""
        return [dict(row) for row in await self._connection.fetch(sql, *parameters)]

    def written(self, value: object) -> object:
        """Give a value as the driver takes it, which is as it is."""
        return value


class SetHarness(SqlRows):
    """A store on a database whose clock is set, and the way around it."""

    clock = None

    def __init__(self, store: PostgresStore, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        """Serve a store and a connection to its database."""
        super().__init__(PostgresDatabase(connection))
        self._connection = connection
        self.store = store
        self.tenant_id = f"tenant-{next(_TENANTS)}"

    async def now(self) -> datetime:
        """Tell what time it is for the store."""
        now_at: datetime = await self._connection.fetchval("SELECT at FROM set_clock.clock")
        return now_at

    async def elapse(self, by: timedelta) -> None:
        """Let time pass for the store."""
        await self._connection.execute("UPDATE set_clock.clock SET at = at + $1", by)

    async def empty_queue(self) -> None:
        """Take away what is left to do."""
        for table in LEFT_TO_DO:
            await self._connection.execute(f"DELETE FROM {table}")  # noqa: S608  our own names


@asynccontextmanager
async def open_set_clock(url: str) -> AsyncIterator[SetHarness]:
    """Set the clock of a migrated database, and open a store on it."""
    setting = await asyncpg.connect(url)
    await setting.execute(SET_CLOCK)
    await setting.execute("INSERT INTO set_clock.clock VALUES ($1)", START_AT)
    await setting.close()  # the clock is hidden from those who connect from now on
    connection = await asyncpg.connect(url)
    store = await open_store(url, clock=ManualClock())
    try:
        yield SetHarness(store, connection)
    finally:
        await store.close()
        await connection.close()

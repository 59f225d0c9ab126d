"""PostgreSQL compared with SQLite: whatever is done, both answer and hold the same, to the microsecond.

So that instants can be compared at all, this PostgreSQL has a clock that the test sets: functions of our own hide
`now()` and `clock_timestamp()` from every statement, and from the defaults of columns.
"""

from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta
from itertools import count

import asyncpg
import pytest
import pytest_asyncio

from clarion.adapters.stores.postgres import PostgresStore, open_store
from clarion.testing.clock import START_AT, ManualClock
from clarion.testing.contracts.comparison import ComparisonContract
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.sql_rows import SqlRows
from clarion.testing.postgres import PostgresServer
from tests.contract.test_comparison import Planted, later
from tests.contract.test_store_postgres import PostgresDatabase

TENANTS = count(1)

SET_CLOCK = """
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


class SetHarness(SqlRows):
    """A PostgreSQL store whose clock stands until the test moves it."""

    clock = None

    def __init__(self, store: PostgresStore, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        super().__init__(PostgresDatabase(connection))
        self._connection = connection
        self.store = store
        self.tenant_id = f"tenant-{next(TENANTS)}"

    async def now(self) -> datetime:
        now_at: datetime = await self._connection.fetchval("SELECT at FROM set_clock.clock")
        return now_at

    async def elapse(self, by: timedelta) -> None:
        await self._connection.execute("UPDATE set_clock.clock SET at = at + $1", by)

    async def empty_queue(self) -> None:
        for table in ("outgoing_message", "notification_scheduler", "webhook_event", "support_case"):
            await self._connection.execute(f"DELETE FROM {table}")  # noqa: S608  our own names


@pytest.fixture(scope="module")
def url(postgres_server: PostgresServer, postgres_template: str) -> Iterator[str]:
    with postgres_server.database(template=postgres_template) as url:
        yield url


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(url: str) -> AsyncIterator[SetHarness]:
    setting = await asyncpg.connect(url)
    await setting.execute(SET_CLOCK)
    await setting.execute("INSERT INTO set_clock.clock VALUES ($1)", START_AT)
    await setting.close()
    connection = await asyncpg.connect(url)
    store = await open_store(url, clock=ManualClock())
    yield SetHarness(store, connection)
    await store.close()
    await connection.close()


@pytest.mark.asyncio(loop_scope="module")
class TestTwoEngines(ComparisonContract):
    WITHIN = timedelta()

    @pytest_asyncio.fixture(loop_scope="module")
    async def harness(self, engine: SetHarness) -> StoreHarness:
        await engine.empty_queue()
        return engine

    async def test_a_wrong_delay_on_one_engine_is_seen(self, harness: SetHarness) -> None:
        """As every planted bug is: see test_comparison.py."""
        sound = harness.store
        harness.store = Planted(sound, "record_outgoing", later)  # type: ignore[assignment]  # has all its methods
        try:
            with pytest.raises(AssertionError, match=r"due_at: .* against .* from now"):
                await self.test_any_work_on_messages_comes_to_the_same_as_on_sqlite(harness)
        finally:
            harness.store = sound

"""The store contract on a real PostgreSQL server.

One database and one open store serve all of it, each test with a tenant of its own: opening a pool for every test
would take as long as the tests themselves.
"""

from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta
from itertools import count

import asyncpg
import pytest
import pytest_asyncio

from clarion.adapters.stores.postgres import PostgresStore, open_store
from clarion.testing.clock import ManualClock
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pipeline import PipelineContract
from clarion.testing.contracts.set_clock import LEFT_TO_DO, PostgresDatabase
from clarion.testing.contracts.sql_rows import SqlRows
from clarion.testing.contracts.store import StoreContract
from clarion.testing.postgres import PostgresServer
from tests.contract.attempts import AttemptContract

TENANTS = count(1)

INSTANTS = {
    "outgoing_message": (
        "due_at",
        "lease_until",
        "expires_at",
        "cancel_at",
        "settle_at",
        "first_unknown_at",
        "created_at",
    ),
    "notification_scheduler": ("due_at", "lease_until", "created_at", "scheduled_at", "moved_at"),
    "automation_scheduler": ("scheduled_at", "next_retry_at", "run_now_at", "lease_until", "created_at"),
    "transition": ("at",),
    "delivery_attempt": ("at",),
    "webhook_event": ("received_at", "look_at", "applied_at"),
    "support_case": ("first_seen_at", "last_seen_at"),
    "worker": ("started_at", "seen_at"),
    "user_message": ("created_at", "expires_at"),
    "inbox_state": ("seen_at", "read_at", "archived_at", "expires_at"),
    "entity_event": ("due_at", "lease_until", "created_at"),
    "source_record": ("changed_at",),
    "reminder_setting": ("plan_at", "changed_at"),
    "repair": ("watermark_at", "round_at", "due_at", "next_at"),
    "report_subscription": ("plan_at", "changed_at"),
    "inbox_count": ("all_seen_at", "all_read_at", "all_archived_at"),
}


class PostgresHarness(SqlRows):
    clock = None

    def __init__(self, store: PostgresStore, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        super().__init__(PostgresDatabase(connection))
        self._connection = connection
        self.store = store
        self.tenant_id = f"tenant-{next(TENANTS)}"

    async def now(self) -> datetime:
        now_at: datetime = await self._connection.fetchval("SELECT clock_timestamp()")
        return now_at

    async def elapse(self, by: timedelta) -> None:
        """Move every instant of the queue back: for the store that is as if time had passed."""
        for table, columns in INSTANTS.items():
            changes = ", ".join(f"{column} = {column} - $1::interval" for column in columns)
            await self._connection.execute(f"UPDATE {table} SET {changes}", by)  # noqa: S608  our own names

    async def empty_queue(self) -> None:
        """Take away what other tests left to do, for workers claim across tenants."""
        for table in LEFT_TO_DO:
            await self._connection.execute(f"DELETE FROM {table}")  # noqa: S608  our own names


@pytest.fixture(scope="module")
def database_url(postgres_server: PostgresServer, postgres_template: str) -> Iterator[str]:
    with postgres_server.database(template=postgres_template) as url:
        yield url


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def store(database_url: str) -> AsyncIterator[PostgresStore]:
    store = await open_store(database_url, clock=ManualClock())
    yield store
    await store.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def connection(database_url: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


@pytest.mark.asyncio(loop_scope="module")
class TestPostgresStore(StoreContract):
    @pytest.fixture
    def harness(self, store: PostgresStore, connection: "asyncpg.Connection[asyncpg.Record]") -> StoreHarness:
        return PostgresHarness(store, connection)


@pytest_asyncio.fixture(loop_scope="module")
async def emptied(store: PostgresStore, connection: "asyncpg.Connection[asyncpg.Record]") -> PostgresHarness:
    harness = PostgresHarness(store, connection)
    await harness.empty_queue()
    return harness


@pytest.mark.asyncio(loop_scope="module")
class TestPostgresPipeline(PipelineContract):
    @pytest.fixture
    def harness(self, emptied: PostgresHarness) -> StoreHarness:
        return emptied


@pytest.mark.asyncio(loop_scope="module")
class TestPostgresAttempts(AttemptContract):
    @pytest.fixture
    def harness(self, emptied: PostgresHarness) -> StoreHarness:
        return emptied

"""The store contract on a real PostgreSQL server.

One database and one open store serve all of it, each test with a tenant of its own: opening a pool for every test
would take as long as the tests themselves.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import count

import asyncpg
import pytest
import pytest_asyncio

from clarion.adapters.stores.postgres import PostgresStore, open_store
from clarion.testing.clock import ManualClock
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.store import StoreContract
from clarion.testing.postgres import PostgresServer
from tests.contract.harness import Row, SqlRows

TENANTS = count(1)


class PostgresDatabase:
    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        self._connection = connection

    async def fetch(self, sql: str, parameters: Sequence[object]) -> list[Row]:
        return [dict(row) for row in await self._connection.fetch(sql, *parameters)]

    def written(self, value: object) -> object:
        return value


class PostgresHarness(SqlRows):
    clock = None

    def __init__(self, store: PostgresStore, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        super().__init__(PostgresDatabase(connection))
        self.store = store
        self.tenant_id = f"tenant-{next(TENANTS)}"


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

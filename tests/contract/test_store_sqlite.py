"""The store contract on SQLite: a file behind its writer thread, and a database in memory that runs inline."""

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from datetime import date, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from clarion.adapters.stores.sqlite import InlineRunner, SqliteStore, open_store
from clarion.testing.clock import ManualClock
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pipeline import PipelineContract
from clarion.testing.contracts.queue_oracle import QueueOracleContract
from clarion.testing.contracts.store import StoreContract
from tests.contract.harness import EPOCH_AT, Row, SqlRows


class SqliteDatabase:
    """A connection of the test's own to the file, or the store's where the database has no other."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def fetch(self, sql: str, parameters: Sequence[object]) -> list[Row]:
        cursor = self._connection.execute(sql.replace("$", "?"), parameters)  # which numbers parameters alike
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def written(self, value: object) -> object:
        match value:
            case datetime():
                return (value - EPOCH_AT) // timedelta(microseconds=1)
            case date() | UUID():
                return str(value)
            case _:
                return value


class SqliteHarness(SqlRows):
    tenant_id = "acme"

    def __init__(self, store: SqliteStore, clock: ManualClock, connection: sqlite3.Connection) -> None:
        super().__init__(SqliteDatabase(connection))
        self.store = store
        self.clock = clock

    async def now(self) -> datetime:
        return self.clock.now()

    async def elapse(self, by: timedelta) -> None:
        self.clock.advance(by)


@pytest.fixture
async def file(migrated_sqlite_path: Path) -> AsyncIterator[StoreHarness]:
    """A file behind its writer thread."""
    clock = ManualClock()
    store = await open_store(f"sqlite:///{migrated_sqlite_path}", clock=clock)
    with closing(sqlite3.connect(migrated_sqlite_path, isolation_level=None)) as connection:
        yield SqliteHarness(store, clock, connection)
    await store.close()


@pytest.fixture
async def memory() -> AsyncIterator[StoreHarness]:
    """A database in memory that runs inline."""
    clock = ManualClock()
    store = await open_store("sqlite://:memory:", clock=clock, runner=InlineRunner())
    opened = store._core._session._opened
    assert opened is not None
    yield SqliteHarness(store, clock, opened[0])
    await store.close()


class TestSqliteFile(StoreContract):
    @pytest.fixture
    def harness(self, file: StoreHarness) -> StoreHarness:
        return file


class TestSqliteFilePipeline(PipelineContract):
    @pytest.fixture
    def harness(self, file: StoreHarness) -> StoreHarness:
        return file


class TestSqliteInMemory(StoreContract):
    @pytest.fixture
    def harness(self, memory: StoreHarness) -> StoreHarness:
        return memory


class TestSqliteInMemoryPipeline(PipelineContract, QueueOracleContract):
    @pytest.fixture
    def harness(self, memory: StoreHarness) -> StoreHarness:
        return memory

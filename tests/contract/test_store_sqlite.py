"""The store contract on SQLite: a file behind its writer thread, as programs run it.

The database in memory that tests run inline is the same adapter over the same statements. It is held to the file by
random operations, after each of which every answer and every row is the same on both.
"""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from clarion.adapters.stores.sqlite import SqliteStore, open_store
from clarion.testing.clock import ManualClock
from clarion.testing.contracts.comparison import ComparisonContract
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pipeline import PipelineContract
from clarion.testing.contracts.sql_rows import SqlRows
from clarion.testing.contracts.store import StoreContract
from clarion.testing.store import SqliteDatabase
from tests.contract.attempts import AttemptContract


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


class TestSqliteFile(StoreContract):
    @pytest.fixture
    def harness(self, file: StoreHarness) -> StoreHarness:
        return file


class TestSqliteFilePipeline(PipelineContract):
    @pytest.fixture
    def harness(self, file: StoreHarness) -> StoreHarness:
        return file


class TestSqliteFileAttempts(AttemptContract):
    @pytest.fixture
    def harness(self, file: StoreHarness) -> StoreHarness:
        return file


class TestSqliteFileCompared(ComparisonContract):
    """A file and its writer thread come to the same as a database in memory that runs inline."""

    WITHIN = timedelta()
    EXAMPLES = 15  # the same text on the same engine: what may differ is the thread and the file

    @pytest.fixture
    def harness(self, file: StoreHarness) -> StoreHarness:
        return file

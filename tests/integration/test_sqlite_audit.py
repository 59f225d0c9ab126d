"""Acts and their entries on SQLite: where the entry cannot be written, the act is undone with it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from clarion.adapters.stores.sqlite import open_store
from clarion.errors import ClarionError
from clarion.testing.clock import ManualClock
from clarion.testing.contracts.auditing import DEEDS, Arrange, log_of, worded
from tests.contract.test_store_sqlite import SqliteHarness

JAM = "CREATE TRIGGER jam BEFORE INSERT ON audit_log BEGIN SELECT RAISE(ABORT, 'the log is full'); END"


@pytest.fixture
def connection(migrated_sqlite_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(migrated_sqlite_path, isolation_level=None)) as connection:
        yield connection


@pytest.mark.parametrize("arrange", DEEDS)
async def test_an_act_whose_entry_cannot_be_written_leaves_neither(
    migrated_sqlite_path: Path, connection: sqlite3.Connection, arrange: Arrange
) -> None:
    clock = ManualClock()
    store = await open_store(f"sqlite:///{migrated_sqlite_path}", clock=clock)
    harness = SqliteHarness(store, clock, connection)
    deed = await arrange(harness)
    before = len(await log_of(harness))
    connection.execute(JAM)
    with pytest.raises(ClarionError):
        await deed.do(store, "kim")
    connection.execute("DROP TRIGGER jam")
    assert await log_of(harness, after=before) == []
    assert await deed.do(store, "sam")
    assert [worded(entry) for entry in await log_of(harness, after=before)] == [("sam", *deed[1:])]
    await store.close()

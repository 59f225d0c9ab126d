"""The API on a store that fails for real: a problem that says what to do, and the same key goes through afterwards."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from clarion.adapters.stores import postgres, sqlite
from clarion.testing.clock import ManualClock
from clarion.testing.postgres import postgres_server
from tests.integration.api_harness import WELCOME, ApiHarness, problem
from tests.integration.sqlite_look import connection_of

LARGE = WELCOME | {"data": {"name": "Sam", "note": "Sam" * 15_000}}
"""Larger than what a full database has left in its last pages."""

KEY = {"idempotency-key": "signup-42"}

Trouble = Callable[[sqlite.SqliteStore, Path], AbstractContextManager[None]]


@contextmanager
def locked(_: sqlite.SqliteStore, path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


@contextmanager
def full(store: sqlite.SqliteStore, _: Path) -> Iterator[None]:
    connection_of(store).execute("PRAGMA max_page_count = 1")  # as many as there are, which is more
    yield
    connection_of(store).execute("PRAGMA max_page_count = 100000")


@contextmanager
def read_only(store: sqlite.SqliteStore, _: Path) -> Iterator[None]:
    connection_of(store).execute("PRAGMA query_only = ON")
    yield
    connection_of(store).execute("PRAGMA query_only = OFF")


@pytest.mark.parametrize(
    "trouble, code, says",
    [
        (locked, "store-busy", "nothing was stored; try again in a moment"),
        (full, "store-full", "whoever runs this installation has to repair it"),
        (read_only, "store-read-only", "whoever runs this installation has to repair it"),
    ],
)
async def test_a_file_that_takes_nothing_is_said_and_the_same_key_sends_once_when_it_does_again(
    migrated_sqlite_path: Path, trouble: Trouble, code: str, says: str
) -> None:
    clock = ManualClock()
    store = await sqlite.open_store(
        f"sqlite:///{migrated_sqlite_path}", clock=clock, runner=sqlite.InlineRunner(), busy_timeout=timedelta()
    )
    api = ApiHarness(store=store, clock=clock)
    await api.seed()
    async with api.client() as client:
        with trouble(store, migrated_sqlite_path):
            for _ in range(2):
                answer = await client.post("/v1/notifications", json=LARGE, headers=KEY)
                assert (answer.status_code, problem(answer)["code"]) == (503, code)
                assert says in problem(answer)["detail"]
                assert int(answer.headers["retry-after"]) >= 1
            assert (await client.get("/v1/types")).status_code == 200
        assert (await client.post("/v1/notifications", json=LARGE, headers=KEY)).json()["repeated"] is False
        await api.line.drain()
        assert len(api.provider.calls) == 1
    await store.close()


async def test_a_server_that_is_down_is_said_and_the_same_key_sends_once_when_it_is_back() -> None:
    clock = ManualClock()
    with postgres_server() as server:
        await postgres.migrate(server.url)
        store = await postgres.open_store(server.url, clock=clock)
        api = ApiHarness(store=store, clock=clock)
        await api.seed()
        async with api.client() as client:
            await api.sent()
            server.stop()
            for _ in range(2):
                answer = await client.post("/v1/notifications", json=WELCOME, headers=KEY)
                assert (answer.status_code, problem(answer)["code"]) == (503, "store-unreachable")
                assert "try again with the same Idempotency-Key" in problem(answer)["detail"]
                assert "retry-after" in answer.headers
            server.start()
            assert (await client.post("/v1/notifications", json=WELCOME, headers=KEY)).json()["repeated"] is False
            await api.line.drain()
            assert len(api.provider.calls) == 2  # the one before, and this one once
        await store.close()

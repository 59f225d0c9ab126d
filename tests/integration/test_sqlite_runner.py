"""The runners: one work after the other in one thread, and what becomes of a work whose caller goes away."""

import asyncio
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from clarion.adapters.stores.sqlite import InlineRunner, Runner, SqliteStore, WriterThread, open_store
from clarion.domain.ensured import Outcome
from clarion.errors import BrokenInvariant, SchemaMissing
from clarion.testing import factories
from clarion.testing.clock import ManualClock
from tests.integration.sqlite_look import connection_of

WAIT_MAX = 30
"""Seconds until a test that waits for something which never comes fails instead of hanging."""


class Lost(Exception):
    """What a work of a test raises."""


def fail() -> None:
    raise Lost


@pytest.mark.parametrize("runner", [InlineRunner(), WriterThread()], ids=["inline", "thread"])
async def test_a_runner_gives_back_what_its_work_returns_or_raises(runner: Runner) -> None:
    assert await runner.run(lambda: 7) == 7
    with pytest.raises(Lost):
        await runner.run(fail)
    assert await runner.run(lambda: 8) == 8
    await runner.close()


async def test_a_writer_thread_is_one_thread_and_keeps_the_order() -> None:
    runner, order, threads = WriterThread(), list[int](), set[int]()

    def work(n: int) -> None:
        order.append(n)
        threads.add(threading.get_ident())

    await asyncio.gather(*(runner.run(lambda n=n: work(n)) for n in range(100)))  # type: ignore[misc]  # mypy cannot infer a lambda's default
    await runner.close()
    assert order == list(range(100))
    assert len(threads) == 1
    assert threads != {threading.get_ident()}


async def test_a_canceled_caller_leaves_the_work_that_has_begun_to_its_end_and_drops_the_one_that_waits() -> None:
    runner, began, may_end, done = WriterThread(), threading.Event(), threading.Event(), list[str]()

    def first() -> None:
        began.set()
        may_end.wait(WAIT_MAX)
        done.append("first")

    async with asyncio.TaskGroup() as group:
        running = group.create_task(runner.run(first))
        waiting = group.create_task(runner.run(lambda: done.append("second")))
        assert await asyncio.get_running_loop().run_in_executor(None, began.wait, WAIT_MAX)
        running.cancel()
        waiting.cancel()
        await asyncio.wait([running, waiting])  # until then the second work may still begin
        may_end.set()
    await runner.run(lambda: done.append("third"))
    await runner.close()
    assert done == ["first", "third"]


async def test_an_ensure_whose_caller_went_away_is_found_by_the_next_one(migrated_sqlite_path: Path) -> None:
    store = await open_store(f"sqlite:///{migrated_sqlite_path}", clock=ManualClock())
    began = threading.Event()
    await store._runner.run(lambda: tell_when_it_begins(store, began))
    async with asyncio.TaskGroup() as group:
        caller = group.create_task(store.ensure_user_messages(factories.TENANT, [factories.user_message()]))
        assert await asyncio.get_running_loop().run_in_executor(None, began.wait, WAIT_MAX)
        caller.cancel()
    (answer,) = await store.ensure_user_messages(factories.TENANT, [factories.user_message()])
    assert answer.outcome is Outcome.FOUND
    await store.close()


def tell_when_it_begins(store: SqliteStore, began: threading.Event) -> None:
    """Set the event when the store begins its next transaction."""
    connection_of(store).set_trace_callback(lambda statement: began.set() if statement == "BEGIN IMMEDIATE" else None)


async def test_a_closed_store_ends_its_thread_and_is_not_used_again(migrated_sqlite_path: Path) -> None:
    store = await open_store(f"sqlite:///{migrated_sqlite_path}", clock=ManualClock())
    assert writer_threads()
    await store.close()
    assert not writer_threads()
    with pytest.raises(BrokenInvariant, match="used after it was closed"):
        await store.find_tenant_keys(factories.TENANT)


async def test_a_store_that_cannot_be_opened_leaves_no_thread_behind(tmp_path: Path) -> None:
    with pytest.raises(SchemaMissing):
        await open_store(f"sqlite:///{tmp_path}/none.db", clock=ManualClock())
    assert not writer_threads()


async def test_opening_that_is_canceled_leaves_no_thread_behind(migrated_sqlite_path: Path) -> None:
    with closing(sqlite3.connect(migrated_sqlite_path, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")  # opening waits for it
        opening = asyncio.Event()

        async def open_it() -> None:
            opening.set()
            await open_store(f"sqlite:///{migrated_sqlite_path}", clock=ManualClock())

        async with asyncio.TaskGroup() as group:
            task = group.create_task(open_it())
            await opening.wait()
            task.cancel()
            holder.execute("ROLLBACK")
        assert not writer_threads()


def writer_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("clarion-sqlite")]

"""Commits that several methods share: who is in one, who goes first, and what one of them cannot do to the others."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

from clarion.adapters.stores.query import Query
from clarion.adapters.stores.shared.queue.ledger import change_counts
from clarion.adapters.stores.shared.store import Urgency
from clarion.adapters.stores.shared.transaction import finished
from clarion.adapters.stores.sqlite import SqliteStore, WriterThread, open_store
from clarion.adapters.stores.sqlite.session import Transaction
from clarion.domain.ensured import Outcome
from clarion.domain.outgoing import OutgoingStatus
from clarion.errors import BrokenInvariant, InvalidInput, StoreBusy, StoreFull
from clarion.testing import factories
from clarion.testing.clock import ManualClock
from tests.integration.sqlite_campaign import of_one_campaign
from tests.integration.sqlite_look import Counted, connection_of

TENANT = factories.TENANT
T = TypeVar("T")

WAIT_MAX = 30
"""Seconds until a test that waits for something which never comes fails instead of hanging."""


@pytest.fixture
async def store(migrated_sqlite_path: Path) -> AsyncIterator[SqliteStore]:
    url = f"sqlite:///{migrated_sqlite_path}"
    opened = await open_store(url, clock=ManualClock(), busy_timeout=timedelta())
    yield opened
    await opened.close()


@asynccontextmanager
async def gathered(store: SqliteStore) -> AsyncIterator[Counted]:
    """Hold the store's thread up while the block asks for things, then let it find all of them waiting.

    What the thread runs from then on is counted.
    """
    began, may_go, statements = threading.Event(), threading.Event(), Counted()

    def hold_up() -> None:
        began.set()
        may_go.wait(WAIT_MAX)
        connection_of(store).set_trace_callback(statements.note)

    async with asyncio.TaskGroup() as group:
        group.create_task(store._runner.run(hold_up, urgency=Urgency.OUTCOME))
        assert await asyncio.get_running_loop().run_in_executor(None, began.wait, WAIT_MAX)
        yield statements
        may_go.set()


async def ask(store: SqliteStore, *asked: Coroutine[Any, Any, T]) -> list["asyncio.Task[T]"]:
    """Start coroutines and let each of them come to where it waits for the thread."""
    runner = store._runner
    assert isinstance(runner, WriterThread)
    before = len(runner._waiting)
    tasks = [asyncio.get_running_loop().create_task(one) for one in asked]
    await asyncio.sleep(0)  # a turn of the event loop, in which each of them starts
    assert len(runner._waiting) == before + len(tasks)
    return tasks


async def made(store: SqliteStore, n: int) -> Outcome:
    (answer,) = await store.ensure_user_messages(TENANT, [factories.user_message(n)])
    return answer.outcome


async def test_fifty_methods_that_wait_share_one_commit_with_a_savepoint_each(store: SqliteStore) -> None:
    async with gathered(store) as statements:
        tasks = await ask(store, *(made(store, n) for n in range(50)))
    assert await asyncio.gather(*tasks) == [Outcome.CREATED] * 50
    assert statements.frame[0] == "BEGIN IMMEDIATE"
    assert statements.frame[-1] == "COMMIT"
    assert statements.frame[1:-1] == ["SAVEPOINT part", "RELEASE part"] * 50
    assert len(statements.clock) == 1
    assert len(statements.shared) == 1, "one mark of the clock for all of them"


async def test_one_method_that_waits_alone_needs_no_savepoint(store: SqliteStore) -> None:
    async with gathered(store) as statements:
        (task,) = await ask(store, made(store, 1))
    assert await task is Outcome.CREATED
    assert statements.frame == ["BEGIN IMMEDIATE", "COMMIT"]


def too_long(store: SqliteStore) -> Coroutine[Any, Any, object]:
    """An ensure of which the first row could be made and the second is refused by the schema."""
    rows = [factories.user_message(1000), factories.user_message(1001, row_key="x" * 513)]
    return store.ensure_user_messages(TENANT, rows)


def not_text(store: SqliteStore) -> Coroutine[Any, Any, object]:
    """An ensure that is refused before any statement."""
    return store.ensure_user_messages(TENANT, [factories.user_message(event_type="end\0less")])


def unknown_parent(store: SqliteStore) -> Coroutine[Any, Any, object]:
    """An ensure that finds out after its inserts that it must not make them."""

    async def ensure() -> object:
        items = [factories.outgoing_item(factories.messaging_job(7), factories.address_version(1, id=1))]
        return await store.ensure_outgoing_messages(TENANT, items)

    return ensure()


@pytest.mark.parametrize(
    "failing, kind",
    [(too_long, BrokenInvariant), (not_text, InvalidInput), (unknown_parent, InvalidInput)],
    ids=["by the schema", "by the codec", "by the verdict"],
)
@pytest.mark.parametrize("place", [0, 10, 20])
async def test_an_error_in_one_of_many_hurts_nobody_else(
    store: SqliteStore,
    failing: Callable[[SqliteStore], Coroutine[Any, Any, object]],
    kind: type[Exception],
    place: int,
) -> None:
    async with gathered(store) as statements:
        before = await ask(store, *(made(store, n) for n in range(place)))
        (guilty,) = await ask(store, failing(store))
        behind = await ask(store, *(made(store, n) for n in range(place, 20)))
    with pytest.raises(kind):
        await guilty
    assert await asyncio.gather(*before, *behind) == [Outcome.CREATED] * 20
    assert statements.frame.count("COMMIT") == 1
    assert await made(store, 1000) is Outcome.CREATED, "nothing of the one that failed was kept"
    flows = await store.read(lambda transaction: transaction.rows(sql("SELECT * FROM flow")))
    assert flows == []


def sql(text: str) -> Query:
    return Query(name="test", reason="test", sql=text)


def orphan(transaction: Transaction) -> None:
    """Write a row that SQLite refuses only when the commit ends, whoever else is in it."""
    transaction.rows(sql("PRAGMA defer_foreign_keys = ON"))
    transaction.rows(sql("INSERT INTO tenant_key VALUES ('nobody', 'data', 1, x'00', clarion_now())"))


async def test_a_commit_that_is_refused_fails_for_the_one_who_is_to_blame(store: SqliteStore) -> None:
    async with gathered(store) as statements:
        tasks = await ask(store, *(made(store, n) for n in range(5)))
        (guilty,) = await ask(store, store.write(orphan, urgency=Urgency.SOON))
        tasks += await ask(store, *(made(store, n) for n in range(5, 10)))
    with pytest.raises(BrokenInvariant, match="FOREIGN KEY"):
        await guilty
    assert await asyncio.gather(*tasks) == [Outcome.CREATED] * 10
    assert statements.frame.count("BEGIN IMMEDIATE") == 1 + 11, "together, and then each by itself"


async def test_a_full_disk_fails_for_the_one_who_needs_the_space(store: SqliteStore) -> None:
    large = [factories.user_message(n, content=factories.BYTES * 16) for n in range(100, 300)]
    ((pages,),) = await store.read(lambda transaction: transaction.rows(sql("PRAGMA page_count")))
    await store.read(lambda transaction: transaction.rows(sql(f"PRAGMA max_page_count = {pages + 20}")))
    async with gathered(store):
        tasks = await ask(store, *(made(store, n) for n in range(5)))
        (guilty,) = await ask(store, store.ensure_user_messages(TENANT, large))
        tasks += await ask(store, *(made(store, n) for n in range(5, 10)))
    with pytest.raises(StoreFull):
        await guilty
    assert await asyncio.gather(*tasks) == [Outcome.CREATED] * 10


async def test_a_file_that_is_locked_is_busy_for_all_who_wait_at_once(
    store: SqliteStore, migrated_sqlite_path: Path
) -> None:
    with closing(sqlite3.connect(migrated_sqlite_path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        async with gathered(store) as statements:
            tasks = await ask(store, *(made(store, n) for n in range(10)))
        results = await asyncio.gather(*tasks, return_exceptions=True)
        other.execute("ROLLBACK")
    assert {type(result) for result in results} == {StoreBusy}
    assert len(statements.frame) == 1, "they did not wait for the lock one after the other"


async def test_urgent_methods_go_first_and_the_others_in_the_order_asked(store: SqliteStore) -> None:
    order: list[str] = []

    def note(name: str) -> Callable[[Transaction], None]:
        return lambda _: order.append(name)

    async with gathered(store):
        for name, urgency in (
            ("sweep", Urgency.LATER),
            ("ensure", Urgency.SOON),
            ("claim", Urgency.CLAIM),
            ("ensure again", Urgency.SOON),
            ("record", Urgency.OUTCOME),
            ("pause", Urgency.OUTCOME),
        ):
            await ask(store, store.write(note(name), urgency=urgency))
    await store.write(note("last"), urgency=Urgency.LATER)
    assert order == ["record", "pause", "claim", "ensure", "ensure again", "sweep", "last"]


async def test_a_stream_of_urgent_methods_does_not_keep_another_waiting_for_as_long_as_it_lasts(
    store: SqliteStore,
) -> None:
    order: list[str] = []

    def note(name: str) -> Callable[[Transaction], None]:
        return lambda _: order.append(name)

    async with gathered(store):
        await ask(store, store.write(note("rows of a campaign"), urgency=Urgency.LATER))
        requests = [store.write(note("request"), urgency=Urgency.SOON) for _ in range(1200)]
        await ask(store, *requests)
    await store.write(note("last"), urgency=Urgency.LATER)
    assert 100 < order.index("rows of a campaign") <= 500


async def test_a_read_does_not_wait_for_the_writes_that_wait(store: SqliteStore) -> None:
    order: list[str] = []
    async with gathered(store):
        (write,) = await ask(store, store.write(lambda _: order.append("write"), urgency=Urgency.OUTCOME))
        read = asyncio.get_running_loop().create_task(store.read(lambda _: order.append("read")))
        await asyncio.sleep(0)
    await asyncio.gather(write, read)
    assert order == ["read", "write"]


async def test_nobody_is_answered_before_the_commit(store: SqliteStore) -> None:
    ran, may_end = threading.Event(), threading.Event()

    def second(_: Transaction) -> None:
        ran.set()
        may_end.wait(WAIT_MAX)

    async with gathered(store):
        (first,) = await ask(store, made(store, 1))
        (slow,) = await ask(store, store.write(second, urgency=Urgency.SOON))
    assert await asyncio.get_running_loop().run_in_executor(None, ran.wait, WAIT_MAX)
    assert not first.done(), "its work is done, and not yet on disk"
    may_end.set()
    assert await first is Outcome.CREATED
    await slow


async def test_a_commit_takes_no_further_method_after_a_thousand_rows(store: SqliteStore) -> None:
    def rows(start: int) -> Coroutine[Any, Any, object]:
        return store.ensure_address_versions(TENANT, [factories.address_version(n) for n in range(start, start + 600)])

    async with gathered(store) as statements:
        tasks = await ask(store, *(rows(start) for start in (0, 600, 1200)))
    await asyncio.gather(*tasks)
    assert statements.frame == [
        *("BEGIN IMMEDIATE", "SAVEPOINT part", "RELEASE part", "SAVEPOINT part", "RELEASE part", "COMMIT"),
        *("BEGIN IMMEDIATE", "COMMIT"),
    ]


async def test_what_a_failed_method_counted_is_not_counted(store: SqliteStore) -> None:
    items = await of_one_campaign(store, 3)

    def fail(transaction: Transaction) -> None:
        finished(change_counts(transaction, {(TENANT, 1, OutgoingStatus.CREATED, ""): 100}))
        raise InvalidInput("no", field="test", hint="none")

    async with gathered(store):
        tasks = await ask(store, store.ensure_outgoing_messages(TENANT, items))
        (guilty,) = await ask(store, store.write(fail, urgency=Urgency.SOON))
    with pytest.raises(InvalidInput):
        await guilty
    await asyncio.gather(*tasks)
    assert await store.read(lambda transaction: transaction.rows(sql("SELECT n FROM flow_count"))) == [(3,)]


async def test_a_method_whose_caller_went_away_is_dropped_while_it_waits(store: SqliteStore) -> None:
    async with gathered(store):
        tasks = await ask(store, *(made(store, n) for n in range(3)))
        tasks[1].cancel()
        await asyncio.wait([tasks[1]])
    assert await tasks[0] is Outcome.CREATED
    assert await tasks[2] is Outcome.CREATED
    assert await made(store, 1) is Outcome.CREATED

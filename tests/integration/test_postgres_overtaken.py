"""A caller on PostgreSQL that others overtake again and again: it begins anew until it has all of its rows.

Every time before it writes, somebody else commits a part of what it is about to write; more often than a transaction is
tried that the server breaks off.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import asyncpg
import pytest

from clarion.adapters.stores.postgres import Patience, PostgresStore, open_store
from clarion.adapters.stores.postgres.session import ATTEMPTS_MAX
from clarion.domain.ensured import Outcome
from clarion.domain.guard import JobEntry
from clarion.domain.outgoing import OutgoingItem
from clarion.errors import StoreBusy
from clarion.testing import factories as make
from clarion.testing.clock import ManualClock
from tests.integration.watched_connection import Connection, Gate, done_or_blocked, watched

TENANT = make.TENANT
TIMES = ATTEMPTS_MAX + 3
INSERTS_MESSAGES = "INSERT INTO outgoing_message"
OF_COMMIT = 5  # the statement that ends a set of new messages: begin, flows, parents, insert, commit
LOCKS_OCCURRENCES = "FOR UPDATE OF s"

Others = Iterator[Callable[[], Awaitable[Any]]]


@asynccontextmanager
async def overtaken_store(url: str, words: str, others: Others, **patience: Any) -> AsyncIterator[PostgresStore]:
    """Open a store that others overtake, one each time before it sends a statement with these words."""

    async def before(_: Connection, query: str) -> None:
        if words in query and (other := next(others, None)) is not None:
            await other()

    store = await open_store(url, clock=ManualClock(), patience=Patience(**patience), connection_class=watched(before))
    yield store
    await store.close()


@pytest.fixture
async def store(migrated_postgres_url: str) -> AsyncIterator[PostgresStore]:
    store = await open_store(migrated_postgres_url, clock=ManualClock())
    yield store
    await store.close()


async def prepared(store: PostgresStore, count: int) -> list[OutgoingItem]:
    job = make.notification_job()
    await store.ensure_notification_jobs(TENANT, [JobEntry(job=job)])
    versions = await store.ensure_address_versions(TENANT, [make.address_version(n) for n in range(count + 1)])
    first, *items = make.outgoing_items(job, [version.record for version in versions])
    await store.ensure_outgoing_messages(TENANT, [first])  # which makes the flow that all of them wait in
    return items


async def test_who_is_overtaken_by_many_makers_of_messages_finds_theirs_and_makes_the_rest(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    """Each of the others has made its message and not yet committed it when the first comes to the same key."""
    items = await prepared(store, TIMES + 1)
    gate, patience = Gate(), Patience(plans=timedelta(hours=1))
    observer = await asyncpg.connect(migrated_postgres_url)
    second = await open_store(
        migrated_postgres_url, clock=ManualClock(), patience=patience, connection_class=watched(gate.before)
    )
    async with asyncio.TaskGroup() as group:

        async def meet(item: OutgoingItem) -> None:
            gate.close_before(OF_COMMIT)
            other = group.create_task(second.ensure_outgoing_messages(TENANT, [item]))
            await gate.reached_by(other)
            assert gate.passed[-1] == "COMMIT;"
            group.create_task(commit_when_waited_for(other))

        async def commit_when_waited_for(other: "asyncio.Task[Any]") -> None:
            assert await done_or_blocked(other, observer=observer)
            gate.open()

        others = iter([partial(meet, item) for item in items[:TIMES]])
        async with overtaken_store(migrated_postgres_url, INSERTS_MESSAGES, others) as first:
            answers = await first.ensure_outgoing_messages(TENANT, items)
    await second.close()
    await observer.close()
    assert [answer.outcome for answer in answers] == [Outcome.FOUND] * TIMES + [Outcome.CREATED]
    assert next(others, None) is None


async def test_who_is_overtaken_by_many_new_send_times_gives_its_own_in_the_end(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    await store.ensure_automation_schedulers(TENANT, [make.automation_scheduler()])
    rows = [make.automation_scheduler(local_time=f"10:{minute:02}") for minute in range(TIMES)]
    others = iter([lambda row=row: store.ensure_automation_schedulers(TENANT, [row]) for row in rows])
    async with overtaken_store(migrated_postgres_url, LOCKS_OCCURRENCES, others) as first:
        (answer,) = await first.ensure_automation_schedulers(TENANT, [make.automation_scheduler(local_time="11:00")])
    assert (answer.outcome, answer.record.local_time, answer.record.version) == (Outcome.FOUND, "11:00", TIMES + 2)


async def test_who_is_overtaken_for_longer_than_a_lock_is_waited_for_is_told_so(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    await store.ensure_automation_schedulers(TENANT, [make.automation_scheduler()])
    rows = (make.automation_scheduler(local_time=f"10:{minute % 60:02}") for minute in range(100_000))
    others = (lambda row=row: store.ensure_automation_schedulers(TENANT, [row]) for row in rows)
    patience = {"lock": timedelta(milliseconds=1)}
    async with overtaken_store(migrated_postgres_url, LOCKS_OCCURRENCES, others, **patience) as first:
        with pytest.raises(StoreBusy, match=rf"changed the same rows {ATTEMPTS_MAX} times before us"):
            await first.ensure_automation_schedulers(TENANT, [make.automation_scheduler(local_time="11:00")])


async def test_of_many_callers_with_overlapping_messages_all_succeed(store: PostgresStore) -> None:
    """Each has some messages in common with each other one, so that it can lose to every one of them."""
    items = await prepared(store, 60)
    sets = [items[start : start + 40][:: 1 if start % 2 else -1] for start in range(0, 20, 2)]
    answers = await asyncio.gather(*(store.ensure_outgoing_messages(TENANT, one) for one in sets))
    created = [answer.record.rk for one in answers for answer in one if answer.outcome is Outcome.CREATED]
    assert len(created) == len(set(created)) == 58
    assert {answer.outcome for one in answers for answer in one} == {Outcome.CREATED, Outcome.FOUND}

"""The hold against the cancel: a batch that is being inserted makes a cancel wait, and after a cancel nothing is made.

Each batch holds its scheduler row FOR SHARE in the transaction that inserts it (domain.md, Cancel).
"""

import asyncio
from collections.abc import AsyncIterator

import pytest

from clarion.adapters.stores.postgres import PostgresStore
from clarion.domain.ensured import Outcome
from clarion.domain.guard import JobEntry
from clarion.domain.outgoing import OutgoingBatch
from clarion.errors import Superseded
from clarion.testing import factories as make
from tests.integration.race import Race, open_race
from tests.integration.watched_connection import done_or_blocked

CLAIM = "UPDATE notification_scheduler SET status = 'Processing', due_at = NULL, lease_until = now(), version = 2"
CANCEL = "UPDATE notification_scheduler SET status = 'Canceled', lease_until = NULL, version = version + 1"
CANCEL_ALL = "UPDATE outgoing_message SET cancel_at = now()"


@pytest.fixture
async def race(migrated_postgres_url: str) -> AsyncIterator[Race]:
    async with open_race(migrated_postgres_url) as race:
        yield race


async def held_batch(race: Race, size: int = 3) -> OutgoingBatch:
    """Store a job whose scheduler row a worker holds, and make a batch for it."""
    job = make.notification_job()
    await race.second.ensure_notification_jobs("acme", [JobEntry(job=job)])
    (scheduler,) = await race.second.ensure_notification_schedulers("acme", [make.scheduler_of(job)])
    await race.other.execute(CLAIM)
    addresses = await race.second.ensure_address_versions("acme", [make.address_version(n) for n in range(size)])
    return make.outgoing_batch(job, [one.record for one in addresses], hold=(scheduler.record.id, 2))


async def count_made(store: PostgresStore, batch: OutgoingBatch) -> int | None:
    """Ensure a batch and count its answers; None where the worker was told to stop."""
    try:
        return len(await store.ensure_outgoing_messages("acme", batch))
    except Superseded:
        return None


async def rows(race: Race) -> int:
    count: int = await race.observer.fetchval("SELECT count(*) FROM outgoing_message")
    return count


async def test_a_cancel_waits_for_a_batch_that_is_being_inserted_and_then_reaches_all_its_rows(race: Race) -> None:
    batch = await held_batch(race)
    race.gate.close_before(5)  # after BEGIN, flows, insert and read: before COMMIT
    async with asyncio.TaskGroup() as group:
        ensuring = group.create_task(race.first.ensure_outgoing_messages("acme", batch))
        await race.gate.reached_by(ensuring)
        assert race.gate.passed[-1] == "COMMIT;"
        canceling = group.create_task(race.other.execute(CANCEL))
        assert await done_or_blocked(canceling, observer=race.observer)
        race.gate.open()
    assert [answer.outcome for answer in ensuring.result()] == [Outcome.CREATED] * 3
    assert canceling.result() == "UPDATE 1"
    assert await race.other.execute(CANCEL_ALL) == "UPDATE 3"


@pytest.mark.parametrize("n", range(1, 4))
async def test_a_cancel_before_the_insert_is_seen_by_it(race: Race, n: int) -> None:
    batch = await held_batch(race)
    race.gate.close_before(n)
    async with asyncio.TaskGroup() as group:
        ensuring = group.create_task(count_made(race.first, batch))
        await race.gate.reached_by(ensuring)
        assert await race.other.execute(CANCEL) == "UPDATE 1"
        race.gate.open()
    assert ensuring.result() is None
    assert await rows(race) == 0
    assert await race.observer.fetchval("SELECT count(*) FROM flow") == 0


@pytest.mark.parametrize("end, made", [("COMMIT", 0), ("ROLLBACK", 3)])
async def test_an_insert_waits_for_a_cancel_that_is_not_yet_committed(race: Race, end: str, made: int) -> None:
    batch = await held_batch(race)
    await race.other.execute("BEGIN")
    assert await race.other.execute(CANCEL) == "UPDATE 1"
    async with asyncio.TaskGroup() as group:
        ensuring = group.create_task(count_made(race.second, batch))
        assert await done_or_blocked(ensuring, observer=race.observer)
        await race.other.execute(end)
    assert ensuring.result() == (made or None)
    assert await rows(race) == made


async def test_two_batches_of_one_worker_hold_its_row_side_by_side(race: Race) -> None:
    batch = await held_batch(race, size=4)
    halves = [
        make.outgoing_batch(make.notification_job(), [], items=batch.items[n::2], hold=batch.hold) for n in (0, 1)
    ]
    # The flow is there: the first two batches of a flow do wait for each other.
    await race.second.ensure_outgoing_messages(
        "acme", make.outgoing_batch(make.notification_job(), [], items=batch.items[:1], hold=batch.hold)
    )
    meeting = await race.meet(
        "acme",
        lambda store: store.ensure_outgoing_messages("acme", halves[0]),
        lambda store: store.ensure_outgoing_messages("acme", halves[1]),
        stop_before=5,
    )
    assert not meeting.waited
    assert await rows(race) == 4


async def test_a_batch_that_is_all_there_takes_no_hold_and_makes_no_cancel_wait(race: Race) -> None:
    batch = await held_batch(race)
    await race.second.ensure_outgoing_messages("acme", batch)
    race.gate.close_before(5)
    async with asyncio.TaskGroup() as group:
        ensuring = group.create_task(race.first.ensure_outgoing_messages("acme", batch))
        await race.gate.reached_by(ensuring)
        canceling = group.create_task(race.other.execute(CANCEL))
        assert not await done_or_blocked(canceling, observer=race.observer)
        race.gate.open()
    assert [answer.outcome for answer in ensuring.result()] == [Outcome.FOUND] * 3

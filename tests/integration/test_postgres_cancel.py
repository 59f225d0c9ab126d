"""The hold against the cancel: messages that are being inserted make a cancel wait, and after a cancel none is made.

Each set holds its scheduler rows FOR SHARE in the transaction that inserts it (docs/explanation/cancel.md). The cancel
is the store's own: it waits at the scheduler row, and then calls off every message that it finds.
"""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.guard import JobEntry
from clarion.domain.identity import Lane
from clarion.domain.inbox import UserMessage
from clarion.domain.notification import Stage
from clarion.domain.outgoing import OutgoingItem, OutgoingMessage
from clarion.ports.ensure import Hold
from clarion.testing import factories as make
from tests.integration.race import Race, open_race
from tests.integration.watched_connection import done_or_blocked

LEASE = timedelta(minutes=1)


@pytest.fixture
async def race(migrated_postgres_url: str) -> AsyncIterator[Race]:
    async with open_race(migrated_postgres_url) as race:
        yield race


async def held_items(race: Race, size: int = 3) -> list[OutgoingItem]:
    """Store a job whose scheduler row a worker holds, and make messages of it."""
    job = make.notification_job()
    await race.second.ensure_notification_jobs("acme", [JobEntry(job=job, scheduler=make.scheduler_of(job))])
    (claim,) = await race.second.claim_stage(Stage.SCHEDULE, lanes=tuple(Lane), limit=10, lease=LEASE)
    addresses = await race.second.ensure_address_versions("acme", [make.address_version(n) for n in range(size)])
    hold = (claim.scheduler.id, claim.scheduler.version)
    return make.outgoing_items(job, [one.record for one in addresses], hold=hold)


def outcomes(answers: list[Ensured[OutgoingMessage]]) -> list[Outcome]:
    return [answer.outcome for answer in answers]


async def statuses(race: Race) -> list[str]:
    return [row["status"] for row in await race.observer.fetch("SELECT status FROM outgoing_message ORDER BY id")]


async def cancel(race: Race) -> bool:
    return await race.second.cancel_job("acme", make.notification_job().guid, actor="sam")


async def test_a_cancel_waits_for_a_set_that_is_being_inserted_and_then_reaches_all_its_rows(race: Race) -> None:
    items = await held_items(race)
    race.gate.close_before(6)  # after BEGIN, looking for flows, making them, parents and insert: before COMMIT
    async with asyncio.TaskGroup() as group:
        ensuring = group.create_task(race.first.ensure_outgoing_messages("acme", items))
        await race.gate.reached_by(ensuring)
        assert race.gate.passed[-1] == "COMMIT;"
        canceling = group.create_task(cancel(race))
        assert await done_or_blocked(canceling, observer=race.observer)
        race.gate.open()
    assert outcomes(ensuring.result()) == [Outcome.CREATED] * 3
    assert canceling.result() is True
    assert await statuses(race) == ["Canceled"] * 3


@pytest.mark.parametrize("n", range(1, 6))
async def test_a_cancel_before_the_insert_is_seen_by_it(race: Race, n: int) -> None:
    items = await held_items(race)
    race.gate.close_before(n)
    async with asyncio.TaskGroup() as group:
        ensuring = group.create_task(race.first.ensure_outgoing_messages("acme", items))
        await race.gate.reached_by(ensuring)
        assert await cancel(race)
        race.gate.open()
    assert outcomes(ensuring.result()) == [Outcome.SUPERSEDED] * 3
    assert await statuses(race) == []


@pytest.mark.parametrize("end, made", [("COMMIT", 0), ("ROLLBACK", 3)])
async def test_an_insert_waits_for_a_cancel_that_is_not_yet_committed(race: Race, end: str, made: int) -> None:
    items = await held_items(race)
    await race.other.execute("BEGIN")
    await race.other.execute("UPDATE notification_scheduler SET status = 'Canceled', lease_until = NULL")
    async with asyncio.TaskGroup() as group:
        ensuring = group.create_task(race.second.ensure_outgoing_messages("acme", items))
        assert await done_or_blocked(ensuring, observer=race.observer)
        await race.other.execute(end)
    assert outcomes(ensuring.result()) == [Outcome.CREATED if made else Outcome.SUPERSEDED] * 3
    assert await statuses(race) == ["Created"] * made


async def test_of_several_jobs_in_one_set_only_the_canceled_one_gets_no_messages(race: Race) -> None:
    kept = await held_items(race, size=1)
    other = make.notification_job(2)
    await race.second.ensure_notification_jobs("acme", [JobEntry(job=other, scheduler=make.scheduler_of(other))])
    (claim,) = await race.second.claim_stage(Stage.SCHEDULE, lanes=tuple(Lane), limit=10, lease=LEASE)
    (address,) = await race.second.ensure_address_versions("acme", [make.address_version(0)])
    hold = (claim.scheduler.id, claim.scheduler.version)
    lost = make.outgoing_items(other, [address.record], hold=hold)
    assert await race.second.cancel_job("acme", other.guid, actor="sam")
    answers = await race.second.ensure_outgoing_messages("acme", [*lost, *kept])
    assert outcomes(answers) == [Outcome.SUPERSEDED, Outcome.CREATED]
    assert await statuses(race) == ["Created"]


async def test_two_sets_of_one_worker_hold_its_row_side_by_side(race: Race) -> None:
    items = await held_items(race, size=4)
    # The flow is there: the first two sets of a flow do wait for each other.
    await race.second.ensure_outgoing_messages("acme", items[:1])
    meeting = await race.meet(
        "acme",
        lambda store: store.ensure_outgoing_messages("acme", items[1::2]),
        lambda store: store.ensure_outgoing_messages("acme", items[::2]),
        stop_before=4,
    )
    assert not meeting.waited
    assert len(await statuses(race)) == 4


async def test_a_set_that_is_all_there_takes_no_hold_and_makes_no_cancel_wait(race: Race) -> None:
    items = await held_items(race)
    await race.second.ensure_outgoing_messages("acme", items)
    race.gate.close_before(5)
    async with asyncio.TaskGroup() as group:
        ensuring = group.create_task(race.first.ensure_outgoing_messages("acme", items))
        await race.gate.reached_by(ensuring)
        canceling = group.create_task(cancel(race))
        assert not await done_or_blocked(canceling, observer=race.observer)
        race.gate.open()
    assert outcomes(ensuring.result()) == [Outcome.FOUND] * 3
    assert await statuses(race) == ["Canceled"] * 3


async def held_lines(race: Race) -> tuple[list[UserMessage], dict[tuple[str, ...], Hold]]:
    """Store a job whose scheduler row a worker holds, and make lines of it for two inboxes."""
    (item, *_) = await held_items(race)
    assert item.hold is not None
    lines = [make.user_message(n) for n in (1, 2)]
    return lines, {line.key: item.hold for line in lines}


async def inbox_rows(race: Race) -> int:
    return int(await race.observer.fetchval("SELECT count(*) FROM user_message"))


async def test_a_cancel_waits_for_inbox_rows_that_are_being_inserted(race: Race) -> None:
    lines, holds = await held_lines(race)
    race.gate.close_before(6)  # after BEGIN, insert, read, and entering them into two tables: before COMMIT
    async with asyncio.TaskGroup() as group:
        ensuring = group.create_task(race.first.ensure_user_messages("acme", lines, holds=holds))
        await race.gate.reached_by(ensuring)
        assert race.gate.passed[-1] == "COMMIT;"
        canceling = group.create_task(cancel(race))
        assert await done_or_blocked(canceling, observer=race.observer)
        race.gate.open()
    assert [answer.outcome for answer in ensuring.result()] == [Outcome.CREATED] * 2
    assert canceling.result() is True


@pytest.mark.parametrize("end, made", [("COMMIT", 0), ("ROLLBACK", 2)])
async def test_inbox_rows_wait_for_a_cancel_that_is_not_yet_committed(race: Race, end: str, made: int) -> None:
    lines, holds = await held_lines(race)
    await race.other.execute("BEGIN")
    await race.other.execute("UPDATE notification_scheduler SET status = 'Canceled', lease_until = NULL")
    async with asyncio.TaskGroup() as group:
        ensuring = group.create_task(race.second.ensure_user_messages("acme", lines, holds=holds))
        assert await done_or_blocked(ensuring, observer=race.observer)
        await race.other.execute(end)
    outcome = Outcome.CREATED if made else Outcome.SUPERSEDED
    assert [answer.outcome for answer in ensuring.result()] == [outcome] * 2
    assert await inbox_rows(race) == made

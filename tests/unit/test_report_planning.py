"""From a subscription that is put to its next run, and on: planned, handed over by the due worker, planned again."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from clarion.domain.automation import AutomationScheduler, AutomationStatus
from clarion.domain.messaging import MessagingJob
from clarion.domain.report import ReportSubscription
from clarion.producers.due import Due
from clarion.producers.hand_over import Reminders
from clarion.producers.records import Records
from clarion.producers.report_planning import LOOK_AGAIN, SubscriptionPlanning
from clarion.producers.sources import Sources
from clarion.sealing.traces import Traces
from clarion.testing.factories import guid
from tests.unit.pipeline_line import TENANT
from tests.unit.test_reports import NOW, Dying, Killed, Town, subscription

MINUTE = timedelta(minutes=1)


@pytest.fixture
async def town(tmp_path: Path) -> Town:
    town = Town(at=NOW - 5 * MINUTE)  # a run is due at NOW
    await town.open(tmp_path)
    return town


def planning(store: Any) -> SubscriptionPlanning:
    return SubscriptionPlanning(subscriptions=store, store=store, facts=store)


def due(town: Town) -> Due:
    store: Any = town.store
    reminders = Reminders(
        settings=store,
        facts=store,
        jobs=store,
        sources=Sources(Records(store, town.keyring)),
        sends=town.sends,
        dispatcher=town.dispatcher,
    )
    return Due(
        store=store,
        sources=store,
        facts=store,
        reminders=reminders,
        reports=town.runs(),
        dispatcher=town.dispatcher,
        traces=Traces(blobs=town.blobs, keyring=town.keyring),
        clock=town.clock,
    )


async def put(town: Town, said: ReportSubscription) -> None:
    await town.store.put_subscription(TENANT, said, actor="sam")


async def runs(town: Town) -> list[tuple[str, AutomationStatus]]:
    """Say when each run is due, in minutes from NOW, and where it stands."""
    rows = sorted(await town.rows(AutomationScheduler), key=lambda row: row.scheduled_at)
    return [(f"{row.scheduled_at:%m-%d %H:%M}", row.status) for row in rows]


async def test_a_subscription_is_planned_handed_over_and_planned_again_week_by_week(town: Town) -> None:
    await put(town, subscription())
    assert await planning(town.store).step() == 1
    assert await planning(town.store).step() == 0
    assert await runs(town) == [("11-23 07:00", AutomationStatus.PENDING)]
    for mails in (1, 2):
        town.clock.advance(timedelta(days=7) if mails > 1 else timedelta(minutes=6))
        worker = due(town)
        while await worker.step():
            pass
        await town.drain()
        assert len(town.mail.calls) == mails
    assert await runs(town) == [
        ("11-23 07:00", AutomationStatus.COMPLETED),
        ("11-30 07:00", AutomationStatus.COMPLETED),
        ("12-07 07:00", AutomationStatus.PENDING),
    ]


async def test_a_change_replaces_the_run_that_waits_and_switching_off_leaves_none(town: Town) -> None:
    await put(town, subscription())
    await planning(town.store).step()
    await put(town, subscription(rule="0 9 * * *"))
    await planning(town.store).step()
    changed = [("11-23 07:00", AutomationStatus.DEACTIVATED), ("11-23 08:00", AutomationStatus.PENDING)]
    assert await runs(town) == changed
    await put(town, subscription(active=False))
    await planning(town.store).step()
    assert {status for _, status in await runs(town)} == {AutomationStatus.DEACTIVATED}
    town.clock.advance(LOOK_AGAIN * 2)
    assert await planning(town.store).step() == 0
    await put(town, subscription())
    await planning(town.store).step()
    assert (await runs(town))[-1] == ("11-30 07:00", AutomationStatus.PENDING)


async def test_behind_a_run_that_a_person_canceled_the_next_one_is_planned(town: Town) -> None:
    await put(town, subscription())
    await planning(town.store).step()
    (row,) = await town.rows(AutomationScheduler)
    assert await town.store.deactivate_occurrence(TENANT, row.scheduler_key, actor="sam", reason="a holiday")
    assert await planning(town.store).step() == 0
    town.clock.advance(LOOK_AGAIN)
    assert await planning(town.store).step() == 1
    assert (await runs(town))[-1] == ("11-30 07:00", AutomationStatus.PENDING)


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_planning_that_is_killed_at_any_call_is_done_by_the_next_worker(town: Town, is_late: bool) -> None:
    for lives in range(10):
        await put(town, subscription(name=f"Weekly {lives}"))
        store: Any = Dying(town.store, [lives], is_late=is_late)
        try:
            await planning(store).step()
        except Killed:
            town.clock.advance(MINUTE + timedelta(seconds=1))  # the lease
            await planning(town.store).step()
            assert [status for _, status in await runs(town)] == [AutomationStatus.PENDING]
        else:
            break
    assert lives >= 3
    assert await town.rows(MessagingJob) == []


async def test_a_rule_of_a_newer_program_keeps_no_other_subscription_waiting(town: Town) -> None:
    await put(town, subscription(rule="FREQ=LUNAR"))
    await put(town, subscription(guid=guid(9, "subscription")))
    assert await planning(town.store).step() == 2
    assert await runs(town) == [("11-23 07:00", AutomationStatus.PENDING)]

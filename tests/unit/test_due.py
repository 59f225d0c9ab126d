"""The worker of due occurrences: claims, hands over, and writes how each ended; once, whoever is lost."""

import asyncio
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from clarion.domain.automation import AutomationScheduler, AutomationStatus
from clarion.domain.due import DUE_LEASE, DispatchResult, DueOutcome, read_result
from clarion.domain.occurrence import ReportRun, Timing, occurrence_row
from clarion.domain.planning import EndReason
from clarion.domain.reminder import DateRule
from clarion.domain.report import ReportSubscription
from clarion.domain.source import SourceFacts
from clarion.domain.support import SupportKind
from clarion.errors import Conflict, Gone, InvalidInput, PluginFailed
from clarion.ports.automation import DueClaim
from clarion.ports.reporting import Handed, NotHanded
from clarion.ports.source import SubscriptionRecord
from clarion.producers.due import REPORTS_MAX, Due
from clarion.sealing.traces import Traces
from tests.unit.crowd import Killed
from tests.unit.due_house import BY_DATE, DUE_ON, House, boat_due
from tests.unit.pipeline_line import TENANT

WEEKLY = ReportSubscription(
    guid=UUID(int=77), name="Weekly", report="deliveries", rule="FREQ=WEEKLY", tz_id="UTC", notification_type="boat-due"
)


class Reports:
    """Writes no report: answers what a test says."""

    def __init__(self, answer: Handed | NotHanded | Exception, may_go_on: asyncio.Event) -> None:
        self.answer = answer
        self.may_go_on = may_go_on

    async def run(self, claim: DueClaim, record: SubscriptionRecord, *, now: object) -> Handed | NotHanded:
        await self.may_go_on.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Worker(House):
    """A house with a worker, over the store's own claims."""

    answer: Handed | NotHanded | Exception = NotHanded(reason=EndReason.RUN_MISSED)
    subscriptions: Mapping[UUID, ReportSubscription] = {WEEKLY.guid: WEEKLY}

    def __init__(self, *boats: SourceFacts, **given: Any) -> None:
        super().__init__(*boats, **given)
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.traces = Traces(blobs=self.line.blobs, keyring=self.line.keyring)

    def due(self) -> Due:
        """Make a worker of this house."""
        return Due(
            store=self.line.store,
            sources=self,  # type: ignore[arg-type]  # of a store these methods
            facts=self.line.store,
            reminders=self.reminders,
            reports=Reports(self.answer, self.may_go_on),
            dispatcher=self.line.dispatcher,
            traces=self.traces,
            clock=self.line.clock,
        )

    async def find_subscription(self, tenant_id: str, guid: UUID) -> SubscriptionRecord | None:
        if guid not in self.subscriptions:
            return None
        return SubscriptionRecord(
            subscription=self.subscriptions[guid], version=1, changed_by="test", changed_at=self.line.clock.now()
        )

    async def plan(self, *sources: str, **changes: Any) -> None:
        """Store occurrences that are due now."""
        rows = [msgspec.structs.replace(self.claim(one).row, **AS_NEW, **changes) for one in sources]
        await self.line.store.ensure_automation_schedulers(TENANT, rows)

    async def plan_report(self, *, period: timedelta = timedelta(), key: str | None = None) -> None:
        """Store a run of a report that is due now, named by a time from now on."""
        at = self.line.clock.now()
        what = ReportRun(
            subscription=WEEKLY.guid, period_start_at=at + period, recurring=True, notification_type="boat-due"
        )
        row = occurrence_row(what, timing=Timing.at_once(at, "UTC"), correlation_id="c")
        row = msgspec.structs.replace(row, scheduler_key=key or row.scheduler_key)
        await self.line.store.ensure_automation_schedulers(TENANT, [row])

    async def rows(self) -> list[AutomationScheduler]:
        """Return the occurrences by their source."""
        found = await self.line.store.rows(TENANT, AutomationScheduler)
        return sorted(found, key=lambda row: (row.source, row.scheduled_at))


AS_NEW: Mapping[str, Any] = {"status": AutomationStatus.PENDING, "version": 1}


async def drained(*workers: Due) -> None:
    """Let workers step side by side until none has anything to do."""
    while any(await asyncio.gather(*(worker.step() for worker in workers))):
        pass


async def test_what_is_due_is_handed_over_and_what_is_not_due_waits(tmp_path: Path) -> None:
    house = await Worker(boat_due("b1"), boat_due("b2")).open(tmp_path)
    await house.plan("b1")
    await house.plan("b2", scheduled_at=house.line.clock.now() + timedelta(hours=1))
    await drained(house.due())
    done, waiting = await house.rows()
    assert (done.status, waiting.status) == (AutomationStatus.COMPLETED, AutomationStatus.PENDING)
    (job,) = await house.jobs()
    result = read_result(done.dispatch_result)
    assert result is not None
    assert (result.job, result.row_key) == (job.guid, done.scheduler_key)
    (line,) = await house.line.store.list_history(TENANT, UUID(done.primary_entity), limit=10)
    assert (line.kind, line.subject) == ("handed_over", done.scheduler_key)
    house.line.clock.advance(timedelta(hours=1))
    await drained(house.due())
    assert len(await house.jobs()) == 2


async def test_two_workers_on_the_same_rows_hand_each_over_once(tmp_path: Path) -> None:
    house = await Worker(*(boat_due(f"b{n}") for n in range(9))).open(tmp_path)
    await house.plan(*(f"b{n}" for n in range(9)))
    await drained(house.due(), house.due())
    assert {row.status for row in await house.rows()} == {AutomationStatus.COMPLETED}
    assert len(await house.jobs()) == 9


@pytest.mark.parametrize("lost_at", ["ensure_automation_jobs", "ensure_notification_jobs", "finish_due"])
@pytest.mark.parametrize("after_it", [False, True])
async def test_what_a_killed_worker_left_is_handed_over_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost_at: str, after_it: bool
) -> None:
    house = await Worker().open(tmp_path)
    await house.plan("b1")
    whole = getattr(house.line.store, lost_at)

    async def lost(*given: Any, **named: Any) -> Any:
        if after_it:
            await whole(*given, **named)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(house.line.store, lost_at, lost)
        with pytest.raises((Killed, asyncio.CancelledError)):  # who waits for a killed gathering is canceled
            await drained(house.due())
    house.line.clock.advance(DUE_LEASE)
    await house.line.store.rescue_due(limit=10)
    house.line.clock.advance(timedelta(minutes=5))
    await drained(house.due())
    (row,), (job,) = await house.rows(), await house.jobs()
    assert row.status is AutomationStatus.COMPLETED
    assert job.row_key == row.scheduler_key


async def test_a_plugin_that_hangs_keeps_no_other_waiting(tmp_path: Path) -> None:
    house = await Worker().open(tmp_path)

    async def hang(*_: object) -> Mapping[str, SourceFacts]:
        await asyncio.Event().wait()
        raise AssertionError

    house.harbour.load = hang  # type: ignore[method-assign, assignment]
    await house.plan("b1")
    await house.plan_report()
    worker = house.due()
    await worker.step()
    boat, report = sorted(await house.rows(), key=lambda row: row.source_type)
    assert (boat.status, report.status) == (AutomationStatus.PROCESSING, AutomationStatus.COMPLETED)
    await drained(worker)
    boat, _ = sorted(await house.rows(), key=lambda row: row.source_type)
    assert (boat.status, boat.retry_count) == (AutomationStatus.PENDING, 1)
    assert "did not answer" in (boat.failure_reason or "")


async def test_what_a_person_has_to_mend_is_on_hold_with_a_case_and_goes_on_when_it_is_released(tmp_path: Path) -> None:
    house = await Worker().open(tmp_path / "1", text="{{ boat.colour }}")
    await house.plan("b1")
    await drained(house.due())
    (row,) = await house.rows()
    (case,) = await house.line.store.list_support_cases(TENANT, limit=10)
    assert (row.on_support_hold, case.kind) == (True, SupportKind.HOLD)
    await house.publish(tmp_path / "2", text="{{ boat.name }}")
    await house.line.store.release_occurrence(TENANT, row.scheduler_key, actor="sam", reason="mended")
    await drained(house.due())
    assert [one.status for one in await house.rows()] == [AutomationStatus.COMPLETED]


async def test_what_follows_in_a_chain_waits_as_soon_as_the_one_before_it_is_over(tmp_path: Path) -> None:
    yearly = msgspec.structs.replace(BY_DATE, rule=DateRule(field="inspected_on", yearly=True))
    house = await Worker(boat_due(on=date(2020, 1, 15)), settings=[yearly]).open(tmp_path)
    await house.plan("b1")
    await drained(house.due())
    over, following = await house.rows()
    assert (over.status, over.target_date) == (AutomationStatus.COMPLETED, DUE_ON)
    assert (following.status, following.target_date) == (AutomationStatus.PENDING, date(2028, 1, 15))


@pytest.mark.parametrize(
    "answer, status, reason",
    [
        (
            Handed(dispatch_result=DispatchResult(outcome=DueOutcome.HANDED_OVER).text),
            AutomationStatus.COMPLETED,
            None,
        ),
        (NotHanded(reason=EndReason.NO_RECIPIENTS), AutomationStatus.COMPLETED, EndReason.NO_RECIPIENTS),
        (NotHanded(reason=EndReason.RUN_MISSED), AutomationStatus.COMPLETED, EndReason.RUN_MISSED),
        (
            NotHanded(reason=EndReason.SUBSCRIPTION_CHANGED),
            AutomationStatus.DEACTIVATED,
            EndReason.SUBSCRIPTION_CHANGED,
        ),
        (PluginFailed("the plugin raised", hint="mend it"), AutomationStatus.PENDING, None),
    ],
)
async def test_a_run_of_a_report_ends_as_who_writes_it_says(
    tmp_path: Path, answer: Handed | NotHanded | Exception, status: AutomationStatus, reason: EndReason | None
) -> None:
    house = await Worker().open(tmp_path)
    house.answer = answer
    await house.plan_report()
    await drained(house.due())
    (row,) = await house.rows()
    result = read_result(row.dispatch_result)
    assert row.status is status
    assert (result.reason if result is not None else None) == reason
    assert row.retry_count == (status is AutomationStatus.PENDING)


@pytest.mark.parametrize(
    "answer, key",
    [
        (Conflict("another report is stored there", hint="look"), None),
        (Gone("its report is purged", hint="look"), None),
        (None, f"report-subscription:{WEEKLY.guid}:scheduled:some-day"),
    ],
)
async def test_a_run_that_fails_for_good_is_followed_all_the_same(
    tmp_path: Path, answer: Exception | None, key: str | None
) -> None:
    house = await Worker().open(tmp_path)
    house.answer = answer or house.answer
    await house.plan_report(key=key)
    await drained(house.due())
    failed, following = await house.rows()
    assert (failed.status, following.status) == (AutomationStatus.FAILED, AutomationStatus.PENDING)
    assert timedelta() < following.scheduled_at - failed.scheduled_at <= timedelta(days=7)
    (case,) = await house.line.store.list_support_cases(TENANT, limit=10)
    assert case.kind is SupportKind.DEAD_LETTER


async def test_a_run_on_hold_keeps_its_chain_waiting_and_goes_on_when_it_is_released(tmp_path: Path) -> None:
    house = await Worker().open(tmp_path)
    house.answer = InvalidInput("its type is not published", field="notification_type", hint="publish it")
    await house.plan_report()
    await drained(house.due())
    (row,) = await house.rows()
    assert (row.status, row.on_support_hold) == (AutomationStatus.PENDING, True)
    house.answer = NotHanded(reason=EndReason.NO_RECIPIENTS)
    await house.line.store.release_occurrence(TENANT, row.scheduler_key, actor="sam", reason="published")
    await drained(house.due())
    (row,) = await house.rows()
    assert row.status is AutomationStatus.COMPLETED


async def test_a_report_whose_turn_does_not_come_goes_back_and_counts_no_retry(tmp_path: Path) -> None:
    house = await Worker().open(tmp_path)
    house.may_go_on.clear()
    for n in range(REPORTS_MAX + 1):
        await house.plan_report(period=timedelta(hours=n))
    worker = house.due()
    await worker.step()
    house.line.clock.advance(DUE_LEASE / 2)
    house.may_go_on.set()
    while not worker.idle:
        worker.stop()
        await worker.step()
    rows = await house.rows()
    assert [row.status for row in rows].count(AutomationStatus.COMPLETED) == REPORTS_MAX
    (waiting,) = [row for row in rows if row.status is AutomationStatus.PENDING]
    assert (waiting.retry_count, waiting.on_support_hold) == (0, False)
    assert "waits its turn" in (waiting.failure_reason or "")
    await drained(house.due())
    assert {row.status for row in await house.rows()} == {AutomationStatus.COMPLETED}


async def test_a_run_of_a_subscription_that_is_gone_is_deactivated(tmp_path: Path) -> None:
    house = await Worker().open(tmp_path)
    house.subscriptions = {}
    await house.plan_report()
    await drained(house.due())
    (row,) = await house.rows()
    assert (row.status, row.end_reason) == (AutomationStatus.DEACTIVATED, EndReason.SUBSCRIPTION_INACTIVE)


async def test_a_worker_that_is_stopped_claims_nothing_more(tmp_path: Path) -> None:
    house = await Worker().open(tmp_path)
    await house.plan("b1")
    worker = house.due()
    worker.stop()
    assert await worker.step() == 0
    assert worker.idle
    (row,) = await house.rows()
    assert row.status is AutomationStatus.PENDING

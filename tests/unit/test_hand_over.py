"""What becomes of reminders that have fallen due: once, as things are then, and each by itself."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from clarion.domain.audience import Addressee
from clarion.domain.automation import AutomationJob, AutomationStatus
from clarion.domain.due import DispatchResult, DueOutcome, Named, read_result
from clarion.domain.entity_event import HistoryKind
from clarion.domain.identity import Channel, Identity
from clarion.domain.key import FiringPolicy
from clarion.domain.occurrence import DateTrigger, ThresholdTrigger
from clarion.domain.person import BusinessUnit
from clarion.domain.planning import EndReason
from clarion.domain.recipient import Target
from clarion.domain.reminder import DateRule, ThresholdRule
from clarion.domain.setting import SettingChange
from clarion.ports.automation import DueEnd
from clarion.ports.reminding import Delivery
from tests.unit.due_house import BY_DATE, DUE_ON, KIM, SAM, Harbour, House, boat_due
from tests.unit.pipeline_line import STAFF, TENANT
from tests.unit.plugin_house import ENTITY

DAILY = ThresholdRule(metric="leaks", value=2, policy=FiringPolicy.ONCE_PER_DAY)


def result(end: DueEnd) -> DispatchResult:
    found = read_result(end.dispatch_result)
    assert found is not None
    return found


async def test_a_due_reminder_is_one_notification_for_whom_its_setting_names(tmp_path: Path) -> None:
    house = await House().open(tmp_path)
    claim = house.claim()
    (end,) = await house.hand_over(claim)
    (job,) = await house.jobs()
    assert (end.to, end.version) == (AutomationStatus.COMPLETED, 2)
    assert (job.partition_key, job.row_key, job.event_type) == (str(ENTITY), claim.row.scheduler_key, "boat-due")
    assert result(end) == DispatchResult(
        outcome=DueOutcome.HANDED_OVER,
        job=job.guid,
        partition_key=job.partition_key,
        row_key=job.row_key,
        notification_type="boat-due",
        template_version=1,
        named_by=Named.SETTING,
    )
    assert end.line is not None
    assert (end.line.kind, end.line.entity_guid) == (HistoryKind.HANDED_OVER, ENTITY)
    assert await house.received() == ["sms", "user:1", "user:2"]
    (trace,) = await house.line.store.rows(TENANT, AutomationJob)
    assert trace.row_key == claim.row.scheduler_key


async def test_whoever_takes_the_claim_of_a_lost_worker_comes_to_the_same_job(tmp_path: Path) -> None:
    house = await House().open(tmp_path)
    (first,) = await house.hand_over(house.claim())
    house.settings = [msgspec.structs.replace(BY_DATE, active=False)]  # nothing asks for it now, but it was handed over
    (again,) = await house.hand_over(house.claim(retry_count=1, version=4))
    assert (again.to, result(again).job) == (AutomationStatus.COMPLETED, result(first).job)
    assert len(await house.jobs()) == 1


async def test_recipients_channels_and_templates_that_changed_after_the_plan_are_simply_used(tmp_path: Path) -> None:
    house = await House().open(tmp_path / "1")
    house.harbour.to = [SAM]
    planned = [house.claim(), house.claim("b2")]
    house.harbour.boats["b2"] = boat_due("b2")
    house.harbour.to, house.harbour.how = [KIM], Delivery(channels=(Channel.INBOX,), data={"pier": "7"})
    await house.publish(tmp_path / "2", text="{{ boat.name }} lies at {{ pier }}")
    ends = await house.hand_over(*planned)
    assert [(result(end).named, result(end).named_by, result(end).template_version) for end in ends] == [
        (1, Named.PROVIDER, 2)
    ] * 2
    assert await house.received() == ["user:2", "user:2"]


async def test_a_setting_changed_in_what_its_key_has_not_is_simply_used(tmp_path: Path) -> None:
    house = await House().open(tmp_path)
    planned = house.claim()
    house.settings = [msgspec.structs.replace(BY_DATE, inbox_only=True, send_time="18:00", name="Renamed")]
    (end,) = await house.hand_over(planned)
    assert result(end).inbox_only
    assert await house.received() == ["user:1", "user:2"]


async def test_a_plugin_names_up_to_a_thousand(tmp_path: Path) -> None:
    house = await House().open(tmp_path)
    house.harbour.to = [Target(identity=Identity.user(f"u{n}")) for n in range(1000)]
    (end,) = await house.hand_over(house.claim())
    assert result(end).named == 1000


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"settings": []}, EndReason.REMINDER_SETTING_INACTIVE),
        ({"settings": [msgspec.structs.replace(BY_DATE, active=False)]}, EndReason.REMINDER_SETTING_INACTIVE),
        ({"boats": {}}, EndReason.SOURCE_NO_LONGER_VALID),
        ({"boats": {"b1": boat_due(active=False)}}, EndReason.SOURCE_NO_LONGER_VALID),
        ({"boats": {"b1": boat_due(on=date(2026, 2, 1))}}, EndReason.SOURCE_CHANGED),
    ],
)
async def test_what_is_no_longer_asked_for_is_deactivated(
    tmp_path: Path, change: dict[str, Any], reason: EndReason
) -> None:
    house = await House().open(tmp_path)
    claim = house.claim()
    house.settings = change.get("settings", house.settings)
    house.harbour.boats = change.get("boats", house.harbour.boats)
    (end,) = await house.hand_over(claim)
    assert (end.to, end.reason, end.next) == (AutomationStatus.DEACTIVATED, reason, None)
    assert result(end) == DispatchResult(outcome=DueOutcome.SKIPPED, reason=reason)
    assert await house.jobs() == []


async def test_another_input_under_the_same_key_waits_for_a_person(tmp_path: Path) -> None:
    house = await House().open(tmp_path)
    claim = house.claim()
    house.harbour.boats["b1"] = boat_due(business_unit=UUID(int=5))
    (end,) = await house.hand_over(claim)
    assert (end.to, end.hold) == (AutomationStatus.PENDING, True)
    assert end.failure_reason == "it was planned for another business unit"
    assert await house.jobs() == []


@pytest.mark.parametrize("recipients", [(), (Addressee(group=UUID(int=404)),), (Addressee(unit=True),), None])
async def test_what_is_for_nobody_is_completed_as_skipped(
    tmp_path: Path, recipients: tuple[Addressee, ...] | None
) -> None:
    house = await House(settings=[msgspec.structs.replace(BY_DATE, recipients=recipients)]).open(tmp_path)
    (end,) = await house.hand_over(house.claim())
    assert (end.to, end.reason) == (AutomationStatus.COMPLETED, EndReason.NO_RECIPIENTS)
    assert result(end).reason is EndReason.NO_RECIPIENTS
    assert end.line is not None
    assert end.line.kind is HistoryKind.SKIPPED
    assert await house.jobs() == []


async def test_a_plugin_that_names_nobody_means_nobody(tmp_path: Path) -> None:
    house = await House().open(tmp_path)
    house.harbour.to = []
    (end,) = await house.hand_over(house.claim())
    assert result(end).reason is EndReason.NO_RECIPIENTS


async def test_a_setting_may_leave_it_to_its_type_whom_it_tells_and_that_may_be_off(tmp_path: Path) -> None:
    house = await House(settings=[msgspec.structs.replace(BY_DATE, recipients=None)]).open(tmp_path)
    change = SettingChange(recipients=(Addressee(group=STAFF),))
    await house.line.store.put_setting(TENANT, "boat-due", None, change, actor="test")
    (end,) = await house.hand_over(house.claim())
    assert result(end).named_by is Named.TYPE
    assert await house.received() == ["sms", "user:1", "user:2"]
    await house.line.store.set_type_enabled(TENANT, "boat-due", enabled=False, actor="test")
    house.harbour.boats["b2"] = boat_due("b2")
    (off,) = await house.hand_over(house.claim("b2"))
    assert (off.to, result(off).reason) == (AutomationStatus.COMPLETED, EndReason.NOTIFICATION_TYPE_OFF)


@pytest.mark.parametrize("retry_count, minutes", [(0, 5), (1, 15), (2, 60)])
async def test_what_raises_is_tried_again_later_each_time_and_its_neighbours_are_handed_over(
    tmp_path: Path, retry_count: int, minutes: int
) -> None:
    house = await House(boat_due("b1"), boat_due("b2")).open(tmp_path)
    house.harbour.breaks = {"b1"}
    broken, whole = await house.hand_over(house.claim("b1", retry_count=retry_count), house.claim("b2"))
    assert (broken.to, broken.delay, broken.hold) == (AutomationStatus.PENDING, timedelta(minutes=minutes), False)
    assert "RuntimeError" in (broken.failure_reason or "")
    assert whole.to is AutomationStatus.COMPLETED


@pytest.mark.parametrize(
    "declared, approved, delay", [(True, False, None), (False, True, None), (True, True, timedelta(days=1))]
)
async def test_what_does_not_pass_is_held_unless_a_long_runner_is_declared_and_approved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, declared: bool, approved: bool, delay: timedelta | None
) -> None:
    monkeypatch.setattr(Harbour, "long_runner", declared)
    house = await House(settings=[msgspec.structs.replace(BY_DATE, long_runner=approved)]).open(tmp_path)
    house.harbour.breaks = {"load"}
    (end,) = await house.hand_over(house.claim(retry_count=3))
    assert (end.to, end.delay, end.hold) == (AutomationStatus.PENDING, delay, delay is None)


async def test_what_somebody_has_to_mend_first_waits_on_hold_with_the_precise_reason(tmp_path: Path) -> None:
    house = await House().open(tmp_path, text="{{ boat.colour }}")
    (end,) = await house.hand_over(house.claim())
    assert end.hold
    assert "boat.colour" in (end.failure_reason or "")
    house.settings = [msgspec.structs.replace(BY_DATE, notification_type="not-published")]
    await house.line.store.set_type_enabled(TENANT, "boat-due", enabled=True, actor="test")
    (missing,) = await house.hand_over(house.claim())
    assert missing.hold
    assert "there is no notification type 'not-published'" in (missing.failure_reason or "")


async def test_a_row_that_cannot_be_read_fails_by_itself(tmp_path: Path) -> None:
    house = await House(boat_due("b1"), boat_due("b2")).open(tmp_path)
    broken, whole = await house.hand_over(house.claim("b1", target_date=None), house.claim("b2"))
    assert (broken.to, whole.to) == (AutomationStatus.FAILED, AutomationStatus.COMPLETED)


async def test_after_a_yearly_reminder_a_later_year_waits(tmp_path: Path) -> None:
    yearly = msgspec.structs.replace(BY_DATE, rule=DateRule(field="inspected_on", yearly=True))
    unit = BusinessUnit(guid=ENTITY, name="North", tz_id="Europe/Vienna")
    boat = boat_due(on=date(2020, 1, 15), business_unit=unit.guid)
    house = await House(boat, settings=[yearly]).open(tmp_path)
    await house.line.store.put_business_unit(TENANT, unit)
    (end,) = await house.hand_over(house.claim(unit=unit.guid))
    assert end.to is AutomationStatus.COMPLETED
    assert end.next is not None
    assert end.next.target_date in (date(2027, 1, 15), date(2028, 1, 15))
    assert (end.next.tz_id, end.next.scheduled_at.hour) == ("Europe/Vienna", 8)
    again = house.claim(unit=unit.guid, scheduler_key=f"{house.claim().row.scheduler_key}:retry:1")
    (rerun,) = await house.hand_over(again)
    assert (rerun.to, rerun.next) == (AutomationStatus.COMPLETED, None)
    assert len(await house.jobs()) == 2


async def test_a_daily_threshold_goes_on_the_next_day_while_it_is_met(tmp_path: Path) -> None:
    house = await House(settings=[msgspec.structs.replace(BY_DATE, rule=DAILY)]).open(
        tmp_path, text="{{ boat.name }}: {{ reminder.value }}"
    )
    trigger = ThresholdTrigger(
        metric="leaks", value=2, firing_policy=FiringPolicy.ONCE_PER_DAY, scope="all", local_date=DUE_ON
    )
    (end,) = await house.hand_over(house.claim(trigger=trigger))
    assert end.next is not None
    assert end.next.scheduled_at == datetime(2026, 1, 16, 9, tzinfo=UTC)
    content = msgspec.structs.replace(house.harbour.boats["b1"].content, metrics={"leaks": 1})
    house.harbour.boats["b1"] = boat_due(content=content)
    (over,) = await house.hand_over(house.claim("b1", trigger))
    assert (over.reason, over.next) == (EndReason.THRESHOLD_NO_LONGER_MET, None)


async def test_an_offset_is_told_as_the_days_before(tmp_path: Path) -> None:
    setting = msgspec.structs.replace(BY_DATE, rule=DateRule(field="inspected_on", offsets=(7,)))
    house = await House(boat_due(on=date(2026, 1, 22)), settings=[setting]).open(tmp_path)
    trigger = DateTrigger(target_date=date(2026, 1, 22), offset_days=7)
    (end,) = await house.hand_over(house.claim(trigger=trigger))
    assert end.to is AutomationStatus.COMPLETED

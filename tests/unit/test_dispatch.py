"""The Ensure contracts as callers meet them, over SQLite in memory and memory blobs.

What every store does with a set is proven by the store contract; here stands what dispatch itself adds: keys derived,
private parts sealed, payloads compared, blobs written before rows, bad input refused.
"""

import asyncio
import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any

import msgspec
import pytest

from clarion.dispatch.gathering import BYTES_MAX
from clarion.dispatch.request import (
    Direct,
    FromAutomation,
    FromCampaign,
    FromEvent,
    Trace,
)
from clarion.domain import key
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.guard import JobEntry
from clarion.domain.identity import Channel, Identity, Lane
from clarion.domain.key import FiringPolicy
from clarion.domain.notification import ArtifactType, NotificationJob, NotificationScheduler
from clarion.domain.occurrence import ThresholdTrigger
from clarion.domain.recipient import Target
from clarion.errors import InvalidInput, InvalidKey
from tests.unit.dispatch_harness import (
    DRAFT,
    EMPLOYEE,
    ENTITY,
    SOURCE_AT,
    UNIT,
    DispatchHarness,
    direct,
    reminder,
    report,
)


def pending(**changes: Any) -> NotificationScheduler:
    row = NotificationScheduler(
        artifact_type=ArtifactType.NOTIFICATION_JOB,
        artifact_pk="user:7",
        artifact_rk="a job",
        event_type="welcome",
        lane=Lane.NORMAL,
        correlation_id="c-1",
    )
    return msgspec.structs.replace(row, **changes)


async def test_the_same_key_and_payload_give_the_first_callers_coordinates(harness: DispatchHarness) -> None:
    first = await harness.job()
    again = await harness.job(source_at=SOURCE_AT + timedelta(minutes=5))
    assert (first.outcome, again.outcome) == (Outcome.CREATED, Outcome.FOUND)
    assert again.record == first.record
    assert first.record.row_key == key.manual_job_rk(created_at=SOURCE_AT, job_guid=first.record.guid)


@pytest.mark.parametrize(
    "change",
    [
        {"data": {"name": "Kim"}},
        {"to": (Target(identity=Identity.user("8")),)},
        {"event_type": "goodbye"},
        {"entity": ("child", ENTITY)},
        {"template_key": "other"},
        {"template_version": 2},
        {"lane": Lane.NORMAL},
        {"not_before_at": SOURCE_AT},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_the_same_key_with_another_payload_is_a_conflict_and_makes_nothing(
    harness: DispatchHarness, change: dict[str, object]
) -> None:
    await harness.job()
    answer = await harness.job(**change)
    assert answer.outcome is Outcome.CONFLICT
    assert "payload_hash" in answer.differing
    assert len(await harness.store.rows("school", NotificationJob)) == 1
    (case,) = await harness.store.list_support_cases("school")
    assert case.case_id == answer.case_id


async def test_what_the_urgency_came_to_is_no_other_payload(harness: DispatchHarness) -> None:
    await harness.job()
    answer = await harness.job(resolved_lane=Lane.CRITICAL, actor="someone")
    assert answer.outcome is Outcome.FOUND


@pytest.mark.parametrize("year", [1, 1969, 9999])
async def test_a_due_time_that_no_engine_could_give_back_is_refused(harness: DispatchHarness, year: int) -> None:
    """F-50: a row that cannot be read holds up the queue, so none is stored."""
    due_at = SOURCE_AT.replace(year=year)
    with pytest.raises(InvalidInput, match="outside of the years 1970 to 9998") as refused:
        await harness.dispatcher.ensure_notification_scheduler("school", [pending(due_at=due_at)])
    assert refused.value.field == "due_at"
    assert not await harness.store.rows("school", NotificationScheduler)


async def test_a_job_that_is_put_off_for_too_long_is_refused_and_one_that_is_late_is_due_at_once(
    harness: DispatchHarness,
) -> None:
    """F-50 again, for a time that a caller gives."""
    with pytest.raises(InvalidInput, match="outside of the years 1970 to 9998"):
        await harness.job(not_before_at=SOURCE_AT.replace(year=9999))
    assert not await harness.store.rows("school", NotificationJob)
    for year in (1, 1969):
        await harness.job(
            origin=Direct(operation="send", idempotency_key=str(year)), not_before_at=SOURCE_AT.replace(year=year)
        )
    assert len({row.due_at for row in await harness.store.rows("school", NotificationScheduler)}) == 1


async def test_a_send_without_a_key_takes_the_guid_that_the_door_minted(harness: DispatchHarness) -> None:
    answer = await harness.job(origin=Direct(operation="send", minted_guid=DRAFT))
    assert answer.record.guid == DRAFT
    assert answer.record.row_key.endswith(str(DRAFT))


@pytest.mark.parametrize(
    "origin",
    [Direct(operation="send"), Direct(operation="send", idempotency_key="a", minted_guid=DRAFT)],
)
async def test_a_send_with_neither_or_both_names_is_refused(harness: DispatchHarness, origin: Direct) -> None:
    with pytest.raises(InvalidInput, match="either an idempotency key or a minted guid"):
        await harness.job(origin=origin)


@pytest.mark.parametrize(
    "changes, partition_key",
    [
        ({"entity": ("child", ENTITY)}, str(ENTITY)),
        ({}, "user:7"),
        ({"to": (Target(identity=Identity.employee(EMPLOYEE)),)}, f"employee:{EMPLOYEE}"),
        ({"to": (Target(identity=Identity.group(UNIT)),)}, f"group:{UNIT}"),
    ],
)
async def test_history_opens_at_the_entity_or_else_at_the_recipient(
    harness: DispatchHarness, changes: dict[str, object], partition_key: str
) -> None:
    assert (await harness.job(**changes)).record.partition_key == partition_key


async def test_a_bare_address_opens_its_history_under_a_hash_and_several_recipients_under_the_job(
    harness: DispatchHarness,
) -> None:
    target = Target(identity=Identity.address("sam@example.com"), channel=Channel.EMAIL)
    one = await harness.job(to=(target,))
    assert one.record.partition_key.startswith("address:")
    assert "sam" not in one.record.partition_key
    both = await harness.job(origin=Direct(operation="send", idempotency_key="two"), to=(target, *direct().to))
    assert both.record.partition_key == str(both.record.guid)


async def test_a_retried_producer_that_read_its_data_anew_is_no_conflict(harness: DispatchHarness) -> None:
    origin = FromAutomation(occurrence=reminder())
    first = await harness.job(origin=origin, data={"days_left": 30}, to=())
    again = await harness.job(origin=origin, data={"days_left": 29}, to=())
    assert (first.outcome, again.outcome) == (Outcome.CREATED, Outcome.FOUND)
    assert again.record.payload == first.record.payload


async def test_each_producer_has_its_place(harness: DispatchHarness) -> None:
    due = await harness.job(origin=FromAutomation(occurrence=reminder()))
    assert due.record.partition_key == str(ENTITY)
    assert due.record.row_key == due.record.automation_key == "reminder:first-aid:certificate:c-9:expiry:2026-06-01:30"
    run = await harness.job(origin=FromAutomation(occurrence=report()))
    assert (run.record.partition_key, run.record.row_key) == (
        str(ENTITY),
        f"report-subscription:{ENTITY}:scheduled:20260301T083000Z",
    )
    sent = await harness.job(origin=FromCampaign(business_unit=UNIT, campaign=DRAFT))
    assert (sent.record.partition_key, sent.record.row_key) == (f"{UNIT}_Campaign", str(DRAFT))
    event = FromEvent(event_type="incident:new", event_guid=DRAFT)
    told = await harness.job(origin=event, entity=("child", ENTITY))
    assert told.record.row_key == f"incident%3Anew:{DRAFT}:welcome"
    assert told.record.partition_key == str(ENTITY)


async def test_an_event_without_its_entity_is_refused(harness: DispatchHarness) -> None:
    with pytest.raises(InvalidInput, match="name the event's entity"):
        await harness.job(origin=FromEvent(event_type="incident", event_guid=DRAFT))


async def test_a_history_anchor_has_no_scheduler_row_of_its_own_until_it_is_asked_for(harness: DispatchHarness) -> None:
    job = (await harness.job(scheduled=False)).record
    assert not await harness.store.rows("school", NotificationScheduler)
    row = pending(artifact_pk=job.partition_key, artifact_rk=job.row_key)
    (created,) = await harness.dispatcher.ensure_notification_scheduler("school", [row])
    (found,) = await harness.dispatcher.ensure_notification_scheduler("school", [row])
    assert (created.outcome, found.outcome) == (Outcome.CREATED, Outcome.FOUND)
    assert created.record.key == ("NotificationJob", job.partition_key, job.row_key, "welcome")


async def test_an_occurrence_keeps_its_key_and_input_when_only_its_time_changes(harness: DispatchHarness) -> None:
    (first,) = await harness.dispatcher.ensure_automation_scheduler("school", [reminder()])
    later = reminder(scheduled_at=SOURCE_AT + timedelta(hours=2), tz_id="Europe/London", local_time="10:30")
    (moved,) = await harness.dispatcher.ensure_automation_scheduler("school", [later])
    assert moved.outcome is Outcome.FOUND
    assert moved.record.input_hash == first.record.input_hash
    assert moved.record.scheduled_at == later.scheduled_at
    (trace,) = await harness.dispatcher.ensure_automation_job("school", [reminder()])
    assert trace.record.row_key == first.record.scheduler_key


async def test_an_occurrence_of_another_unit_under_the_same_key_is_a_conflict(harness: DispatchHarness) -> None:
    await harness.dispatcher.ensure_automation_scheduler("school", [reminder()])
    other = msgspec.structs.replace(reminder().what, business_unit=DRAFT)
    (answer,) = await harness.dispatcher.ensure_automation_scheduler("school", [reminder(what=other)])
    assert answer.outcome is Outcome.CONFLICT
    assert set(answer.differing) == {"business_unit", "input_hash"}


async def test_thresholds_reports_and_reruns_have_keys_of_their_own(harness: DispatchHarness) -> None:
    daily = ThresholdTrigger(
        metric="booked",
        value=0.9,
        firing_policy=FiringPolicy.ONCE_PER_DAY,
        scope="room-1",
        local_date=date(2026, 3, 1),
    )
    occurrences = [
        reminder(what=msgspec.structs.replace(reminder().what, trigger=daily)),
        report(),
        report(period_start_at=None, manual_run=DRAFT),
        reminder(rerun=1),
    ]
    answers = await harness.dispatcher.ensure_automation_scheduler("school", occurrences)
    assert [answer.record.scheduler_key for answer in answers] == [
        "reminder:first-aid:certificate:c-9:expiry:threshold:booked:0.9:OncePerDay:room-1:2026-03-01",
        f"report-subscription:{ENTITY}:scheduled:20260301T083000Z",
        f"report-subscription:{ENTITY}:manual:{DRAFT}",
        "reminder:first-aid:certificate:c-9:expiry:2026-06-01:30:retry:1",
    ]


@pytest.mark.parametrize("change", [{"manual_run": DRAFT}, {"period_start_at": None}])
async def test_a_report_run_is_of_a_period_or_by_hand_and_not_both(
    harness: DispatchHarness, change: dict[str, object]
) -> None:
    with pytest.raises(InvalidInput, match="period_start_at or manual_run"):
        await harness.dispatcher.ensure_automation_scheduler("school", [report(**change)])


@pytest.mark.parametrize(
    "changes, field",
    [
        ({"event_type": ""}, "event_type"),
        ({"event_type": "x" * 201}, "event_type"),
        ({"event_type": 7}, "event_type"),
        ({"source_at": datetime(2026, 3, 1)}, "source_at"),  # noqa: DTZ001  (naive on purpose)
        ({"to": tuple(direct().to) * 1001}, "to"),
        ({"template_version": 0}, "template_version"),
        ({"lane": "urgent"}, "lane"),
        ({"trace": Trace(correlation_id="")}, "trace.correlation_id"),
        ({"trace": Trace(correlation_id="c", traceparent="nonsense")}, "trace.traceparent"),
        ({"data": {"long": "x" * 70_000}}, "data"),
        ({"data": {"when": object()}}, "JobRequest"),
    ],
)
async def test_bad_input_is_one_error_that_names_its_field_and_nothing_is_stored(
    harness: DispatchHarness, changes: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await harness.job(**changes)
    assert refused.value.field == field
    assert not re.search(r"Expected|Invalid|unsupported|`", refused.value.message)  # a library's words
    assert not await harness.store.rows("school", NotificationJob)


async def test_a_key_that_grows_too_long_says_what_to_shorten(harness: DispatchHarness) -> None:
    long = msgspec.structs.replace(reminder().what, source="s" * 200, setting="t" * 200)
    with pytest.raises(InvalidKey, match="shorten"):
        await harness.dispatcher.ensure_automation_scheduler("school", [reminder(what=long)])


async def test_an_unknown_tenant_is_refused(harness: DispatchHarness) -> None:
    with pytest.raises(InvalidInput, match="no tenant 'nobody'"):
        await harness.dispatcher.ensure_notification_job("nobody", [direct()])


async def test_large_sends_that_come_together_are_stored_in_sets_that_are_written_soon(
    harness: DispatchHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    ensure = harness.store.ensure_notification_jobs

    async def measured(tenant_id: str, items: Sequence[JobEntry]) -> list[Ensured[NotificationJob]]:
        sizes.append(sum(len(item.job.payload or b"") for item in items))
        return await ensure(tenant_id, items)

    monkeypatch.setattr(harness.store, "ensure_notification_jobs", measured)
    large = {"name": "x" * 60_000}
    asked = [direct(origin=Direct(operation="send", idempotency_key=f"k{n}"), data=large) for n in range(40)]
    told = await asyncio.gather(*(harness.dispatcher.accept_notification_job("school", one) for one in asked))
    assert [one.outcome for one in told] == [Outcome.CREATED] * 40
    assert len(sizes) < 40
    assert max(sizes) <= BYTES_MAX

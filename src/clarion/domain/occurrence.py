"""Occurrences: what falls due, spelled out field by field, and the row that waits for it. Pure.

What InputHash covers is the occurrence itself; send time, zone, template, channels and recipients are read again when
it is due, so that a pending row stays stable while they change. The dispatcher and the planner both make their rows
here, so that an event, a retry, a repair and a hand-over arrive at the same key and the same hash.
"""

from datetime import date, datetime, time
from typing import Annotated, Any, Self, assert_never
from uuid import UUID

import msgspec

from clarion.domain import key
from clarion.domain.automation import INPUT_FIELDS, AutomationScheduler, AutomationType, TriggerType
from clarion.domain.fingerprint import Fingerprint
from clarion.domain.key import FiringPolicy
from clarion.domain.local_time import TZDATA_VERSION, local_date, to_utc
from clarion.errors import InvalidInput

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
_EdgeNo = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
_Instant = Annotated[datetime, msgspec.Meta(tz=True)]


class DateTrigger(msgspec.Struct, frozen=True, kw_only=True, tag="date"):
    """Due so many days before a date."""

    target_date: date
    offset_days: Annotated[int, msgspec.Meta(ge=-3660, le=3660)]  # ten years either way


class ThresholdTrigger(msgspec.Struct, frozen=True, kw_only=True, tag="threshold"):
    """Due when a metric meets a value; the policy says how often, and which field tells two firings apart."""

    metric: _Name
    value: float | None
    firing_policy: FiringPolicy
    scope: _Name
    local_date: date | None = None
    edge_no: _EdgeNo | None = None


class Reminder(msgspec.Struct, frozen=True, kw_only=True, tag="reminder"):
    """One occurrence of a reminder setting at one source."""

    setting: _Name
    source_type: _Name
    source: _Name
    trigger_key: _Name
    trigger: DateTrigger | ThresholdTrigger
    primary_entity: UUID
    business_unit: UUID | None = None
    notification_type: _Name


class ReportRun(msgspec.Struct, frozen=True, kw_only=True, tag="report"):
    """One run of a report subscription: of a period, or by hand; `recurring` where its rule plans more than one."""

    subscription: UUID
    period_start_at: _Instant | None = None
    manual_run: UUID | None = None
    recurring: bool = False
    business_unit: UUID | None = None
    notification_type: _Name


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """When an occurrence is due, and the local time that this was reckoned from."""

    scheduled_at: datetime
    local_date: date | None = None
    local_time: str | None = None
    tz_id: str | None = None
    tzdata_version: str | None = None

    @classmethod
    def at_local(cls, day: date, at: time, tz_id: str) -> Self:
        """Reckon from a local date and time of day."""
        return cls(
            scheduled_at=to_utc(day, at, tz_id),
            local_date=day,
            local_time=f"{at:%H:%M}",
            tz_id=tz_id,
            tzdata_version=TZDATA_VERSION,
        )

    @classmethod
    def at_once(cls, now: datetime, tz_id: str) -> Self:
        """Say that it is due now; it has no time of day, so that nothing moves it."""
        return cls(scheduled_at=now, local_date=local_date(now, tz_id), tz_id=tz_id, tzdata_version=TZDATA_VERSION)


def occurrence_row(
    what: Reminder | ReportRun,
    *,
    timing: Timing,
    rerun: int | None = None,
    correlation_id: str,
    traceparent: str | None = None,
) -> AutomationScheduler:
    """Make the row that waits for an occurrence to fall due."""
    given = _input(what)
    return AutomationScheduler(
        scheduler_key=occurrence_key(what, rerun=rerun),
        input_hash=Fingerprint.of({name: given.get(name) for name in INPUT_FIELDS}),
        key_version=key.KEY_VERSION,
        correlation_id=correlation_id,
        traceparent=traceparent,
        **msgspec.structs.asdict(timing),
        **given,
    )


def occurrence_key(what: Reminder | ReportRun, *, rerun: int | None = None) -> str:
    """Name an occurrence; a deliberate re-run of a completed one has a key of its own."""
    first = _first_run_key(what)
    return first if rerun is None else key.retry_key(scheduler_key=first, n=rerun)


def primary_entity(what: Reminder | ReportRun) -> UUID:
    """Tell where an occurrence's history opens."""
    match what:
        case Reminder(primary_entity=entity):
            return entity
        case ReportRun(subscription=subscription):
            return subscription
        case _:
            assert_never(what)


def _input(what: Reminder | ReportRun) -> dict[str, Any]:
    """Spell out what an occurrence is, field by field; Any, because the fields' types differ."""
    match what:
        case Reminder(trigger=trigger):
            return {
                "automation_type": AutomationType.REMINDER,
                "setting": what.setting,
                "source_type": what.source_type,
                "source": what.source,
                "trigger_key": what.trigger_key,
                "business_unit": what.business_unit and str(what.business_unit),
                "primary_entity": str(what.primary_entity),
                "notification_type": what.notification_type,
                **_trigger(trigger),
            }
        case ReportRun(subscription=subscription):
            by_hand = what.manual_run is not None
            return {
                "automation_type": AutomationType.REPORT_SUBSCRIPTION,
                "trigger_type": _run_trigger(what),
                "setting": str(subscription),
                "source_type": "report-subscription",
                "source": str(subscription),
                "trigger_key": "manual" if by_hand else "scheduled",
                "business_unit": what.business_unit and str(what.business_unit),
                "primary_entity": str(subscription),
                "notification_type": what.notification_type,
            }
        case _:
            assert_never(what)


def _run_trigger(run: ReportRun) -> TriggerType:
    if run.manual_run is not None:
        return TriggerType.MANUAL_RUN
    return TriggerType.RECURRING if run.recurring else TriggerType.SCHEDULED_RUN


def _trigger(trigger: DateTrigger | ThresholdTrigger) -> dict[str, Any]:
    match trigger:
        case DateTrigger(target_date=target_date, offset_days=offset_days):
            return {"trigger_type": TriggerType.DATE_BASED, "target_date": target_date, "offset_days": offset_days}
        case ThresholdTrigger(value=value):
            return {
                "trigger_type": TriggerType.THRESHOLD_CONDITION,
                "metric": trigger.metric,
                "threshold_value": key.threshold_value(value=value, firing_policy=trigger.firing_policy),
                "firing_policy": trigger.firing_policy.value,
                "scope": trigger.scope,
            }
        case _:
            assert_never(trigger)


def _first_run_key(what: Reminder | ReportRun) -> str:
    match what:
        case Reminder(trigger=DateTrigger() as trigger):
            return key.date_reminder_key(
                setting=what.setting,
                source_type=what.source_type,
                source=what.source,
                trigger_key=what.trigger_key,
                target_date=trigger.target_date,
                offset_days=trigger.offset_days,
            )
        case Reminder(trigger=ThresholdTrigger() as trigger):
            return key.threshold_reminder_key(
                setting=what.setting,
                source_type=what.source_type,
                source=what.source,
                trigger_key=what.trigger_key,
                metric=trigger.metric,
                value=trigger.value,
                firing_policy=trigger.firing_policy,
                scope=trigger.scope,
                local_date=trigger.local_date,
                edge_no=trigger.edge_no,
            )
        case ReportRun(period_start_at=period_start_at, manual_run=None) if period_start_at is not None:
            return key.report_scheduled_key(subscription_guid=what.subscription, period_start_at=period_start_at)
        case ReportRun(period_start_at=None, manual_run=manual_run) if manual_run is not None:
            return key.report_manual_key(subscription_guid=what.subscription, manual_run_guid=manual_run)
        case _:
            raise InvalidInput(
                "a run of a report is either of a period or by hand",
                field="what",
                hint="give period_start_at or manual_run, and not both",
            )

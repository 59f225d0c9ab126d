"""Stored occurrences: what a row that has fallen due is an occurrence of, read back from its columns and its key.

The other way than `occurrence`, which makes the row. Pure.
"""

from datetime import date, datetime
from typing import assert_never
from uuid import UUID

from clarion.domain import key
from clarion.domain.automation import AutomationScheduler, AutomationType, TriggerType
from clarion.domain.key import FiringPolicy
from clarion.domain.occurrence import DateTrigger, Reminder, ReportRun, ThresholdTrigger
from clarion.errors import BrokenInvariant


def occurrence_of(row: AutomationScheduler) -> tuple[Reminder | ReportRun, int | None]:
    """Say what a row is an occurrence of, and which deliberate re-run of it."""
    first, rerun = key.read_first_run(row.scheduler_key)
    parts = first.split(":")
    match row.automation_type:
        case AutomationType.REMINDER:
            return _reminder(row, parts), rerun
        case AutomationType.REPORT_SUBSCRIPTION:
            return _report(row, parts), rerun
        case _:
            assert_never(row.automation_type)


def _reminder(row: AutomationScheduler, parts: list[str]) -> Reminder:
    return Reminder(
        setting=row.setting,
        source_type=row.source_type,
        source=row.source,
        trigger_key=row.trigger_key,
        trigger=_trigger(row, parts),
        primary_entity=UUID(row.primary_entity),
        business_unit=_guid(row.business_unit),
        notification_type=row.notification_type,
    )


def _trigger(row: AutomationScheduler, parts: list[str]) -> DateTrigger | ThresholdTrigger:
    """Read what makes it due; the local date or the number of the edge is the last part of its key alone."""
    if row.target_date is not None and row.offset_days is not None:
        return DateTrigger(target_date=row.target_date, offset_days=row.offset_days)
    if row.metric is None or row.firing_policy is None or row.scope is None:
        raise BrokenInvariant("an occurrence of a reminder has neither a date nor a metric")
    policy = FiringPolicy(row.firing_policy)
    return ThresholdTrigger(
        metric=row.metric,
        value=None if row.threshold_value is None else float(row.threshold_value),
        firing_policy=policy,
        scope=row.scope,
        local_date=date.fromisoformat(parts[-1]) if policy is FiringPolicy.ONCE_PER_DAY else None,
        edge_no=int(parts[-1]) if policy is FiringPolicy.FALSE_TO_TRUE else None,
    )


def _report(row: AutomationScheduler, parts: list[str]) -> ReportRun:
    by_hand = row.trigger_type is TriggerType.MANUAL_RUN
    return ReportRun(
        subscription=UUID(row.setting),
        period_start_at=None if by_hand else datetime.fromisoformat(parts[-1]),
        manual_run=UUID(parts[-1]) if by_hand else None,
        recurring=row.trigger_type is TriggerType.RECURRING,
        business_unit=_guid(row.business_unit),
        notification_type=row.notification_type,
    )


def _guid(text: str | None) -> UUID | None:
    return None if text is None else UUID(text)

"""The rows of an occurrence: the one that waits for it to fall due, and its trace. Pure.

What InputHash covers is the occurrence itself; send time, zone, template, channels and recipients are read again when
it is due, so that a pending row stays stable while they change.
"""

from typing import Any, assert_never
from uuid import UUID

from clarion.dispatch.request import DateTrigger, Occurrence, Reminder, ReportRun, ThresholdTrigger
from clarion.domain import key
from clarion.domain.automation import INPUT_FIELDS, AutomationJob, AutomationScheduler, AutomationType, TriggerType
from clarion.domain.fingerprint import Fingerprint
from clarion.errors import InvalidInput


def automation_scheduler(occurrence: Occurrence) -> AutomationScheduler:
    """Make the row that waits for an occurrence to fall due."""
    given = _input(occurrence.what)
    return AutomationScheduler(
        scheduler_key=scheduler_key(occurrence),
        input_hash=Fingerprint.of({name: given.get(name) for name in INPUT_FIELDS}),
        scheduled_at=occurrence.scheduled_at,
        local_date=occurrence.local_date,
        local_time=occurrence.local_time,
        tz_id=occurrence.tz_id,
        tzdata_version=occurrence.tzdata_version,
        key_version=key.KEY_VERSION,
        correlation_id=occurrence.trace.correlation_id,
        traceparent=occurrence.trace.traceparent,
        **given,
    )


def automation_job(occurrence: Occurrence) -> AutomationJob:
    """Make the trace of an occurrence."""
    scheduler = automation_scheduler(occurrence)
    return AutomationJob(
        partition_key=key.automation_job_pk(entity_guid=primary_entity(occurrence)),
        row_key=key.automation_job_rk(scheduler_key=scheduler.scheduler_key),
        automation_type=scheduler.automation_type,
        notification_type=scheduler.notification_type,
        input_hash=scheduler.input_hash,
        key_version=scheduler.key_version,
        correlation_id=scheduler.correlation_id,
        traceparent=scheduler.traceparent,
    )


def scheduler_key(occurrence: Occurrence) -> str:
    """Name an occurrence; a deliberate re-run of a completed one has a key of its own."""
    first = _first_run_key(occurrence.what)
    return first if occurrence.rerun is None else key.retry_key(scheduler_key=first, n=occurrence.rerun)


def primary_entity(occurrence: Occurrence) -> UUID:
    """Tell where an occurrence's history opens."""
    match occurrence.what:
        case Reminder(primary_entity=entity):
            return entity
        case ReportRun(subscription=subscription):
            return subscription
        case _:
            assert_never(occurrence.what)


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
                "trigger_type": TriggerType.MANUAL_RUN if by_hand else TriggerType.SCHEDULED_RUN,
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

"""The rows of an occurrence: the one that waits for it to fall due, and its trace. Pure.

What InputHash covers is the occurrence itself; send time, zone, template, channels and recipients are read again when
it is due, so that a pending row stays stable while they change.
"""

from typing import Any, assert_never

from clarion.dispatch import coordinates
from clarion.dispatch.request import DateTrigger, Occurrence, Reminder, ReportRun, ThresholdTrigger
from clarion.domain import key, part
from clarion.domain.automation import INPUT_FIELDS, AutomationJob, AutomationScheduler, AutomationType, TriggerType
from clarion.domain.fingerprint import Fingerprint


def automation_scheduler(occurrence: Occurrence) -> AutomationScheduler:
    """Make the row that waits for an occurrence to fall due."""
    given = _input(occurrence.what)
    return AutomationScheduler(
        scheduler_key=coordinates.scheduler_key(occurrence),
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
        partition_key=key.automation_job_pk(entity_guid=coordinates.primary_entity(occurrence)),
        row_key=key.automation_job_rk(scheduler_key=scheduler.scheduler_key),
        automation_type=scheduler.automation_type,
        notification_type=scheduler.notification_type,
        input_hash=scheduler.input_hash,
        key_version=scheduler.key_version,
        correlation_id=scheduler.correlation_id,
        traceparent=scheduler.traceparent,
    )


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
                "threshold_value": None if value is None else part.number(value, field="value"),
                "firing_policy": trigger.firing_policy.value,
                "scope": trigger.scope,
            }
        case _:
            assert_never(trigger)

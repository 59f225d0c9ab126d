"""The rows of an occurrence that somebody asks for: the one that waits for it to fall due, and its trace. Pure.

A row that has fallen due is read back into the occurrence that it was made of.

What an occurrence is, its key and its hash live in `domain/occurrence.py`.
"""

from clarion.dispatch.request import Occurrence, Trace
from clarion.domain import key
from clarion.domain.automation import AutomationJob, AutomationScheduler
from clarion.domain.occurrence import Timing, occurrence_key, occurrence_row, primary_entity
from clarion.domain.stored_occurrence import occurrence_of


def automation_scheduler(occurrence: Occurrence) -> AutomationScheduler:
    """Make the row that waits for an occurrence to fall due."""
    return occurrence_row(
        occurrence.what,
        timing=Timing(
            scheduled_at=occurrence.scheduled_at,
            local_date=occurrence.local_date,
            local_time=occurrence.local_time,
            tz_id=occurrence.tz_id,
            tzdata_version=occurrence.tzdata_version,
        ),
        rerun=occurrence.rerun,
        correlation_id=occurrence.trace.correlation_id,
        traceparent=occurrence.trace.traceparent,
    )


def automation_job(occurrence: Occurrence) -> AutomationJob:
    """Make the trace of an occurrence."""
    scheduler = automation_scheduler(occurrence)
    return AutomationJob(
        partition_key=key.automation_job_pk(entity_guid=primary_entity(occurrence.what)),
        row_key=key.automation_job_rk(scheduler_key=scheduler.scheduler_key),
        automation_type=scheduler.automation_type,
        notification_type=scheduler.notification_type,
        input_hash=scheduler.input_hash,
        key_version=scheduler.key_version,
        correlation_id=scheduler.correlation_id,
        traceparent=scheduler.traceparent,
    )


def stored_occurrence(row: AutomationScheduler) -> Occurrence:
    """Read an occurrence back from the row that waited for it."""
    what, rerun = occurrence_of(row)
    return Occurrence(
        what=what,
        scheduled_at=row.scheduled_at,
        local_date=row.local_date,
        local_time=row.local_time,
        tz_id=row.tz_id,
        tzdata_version=row.tzdata_version,
        rerun=rerun,
        trace=Trace(correlation_id=row.correlation_id, traceparent=row.traceparent),
    )


def scheduler_key(occurrence: Occurrence) -> str:
    """Name an occurrence; a deliberate re-run of a completed one has a key of its own."""
    return occurrence_key(occurrence.what, rerun=occurrence.rerun)

"""The read side, in plain dicts: timelines, histories, uncertain sends, cases and how much work waits."""

from uuid import UUID

from clarion.domain.inbox import UserMessage
from clarion.domain.notification import NotificationJob, NotificationScheduler
from clarion.domain.outgoing import DUE, OutgoingMessage, OutgoingStatus
from clarion.domain.support import SupportCase, SupportStatus
from clarion.domain.timeline import AttemptLine, EventLine, JobTimeline, OutgoingTimeline, TransitionLine
from clarion.ports.insights import Gauge, JobLine, UncertainLine
from clarion.testing.memory import moving, tracking
from clarion.testing.memory.moving import Row
from clarion.testing.memory.record import Transition, WebhookEvent
from clarion.testing.memory.tables import Tables


def find_job_timeline(tables: Tables, tenant_id: str, guid: UUID) -> JobTimeline | None:
    """Return everything about a job by its guid, or None."""
    job = next((job for job in tables.of(tenant_id, NotificationJob).values() if job.guid == guid), None)
    if job is None:
        return None
    scheduler = _scheduler(tables, tenant_id, job)
    inbox = [row for row in tables.of(tenant_id, UserMessage).values() if row.job_row_key == job.row_key]
    sent = [row for row in moving.rows(tables) if row.tenant_id == tenant_id and row.message.pk == job.row_key]
    return JobTimeline(
        job=job,
        created_at=tables.created_at(tenant_id, NotificationJob, job.key),
        scheduler=scheduler,
        scheduler_at=tables.created_at(tenant_id, NotificationScheduler, scheduler.key) if scheduler else None,
        scheduled_at=tables.scheduled.get(scheduler.id or 0) if scheduler else None,
        moved_at=tables.moved.get(scheduler.id or 0) if scheduler else None,
        inbox=tuple((tables.created_at(tenant_id, UserMessage, row.key), row) for row in inbox),
        outgoing=tuple(_outgoing_timeline(tables, row) for row in sent),
    )


def find_job_of_message(tables: Tables, tenant_id: str, message_id: UUID) -> UUID | None:
    """Return the guid of the job that a message belongs to, or None."""
    parents = [row.pk for row in tables.of(tenant_id, OutgoingMessage).values() if row.message_id == message_id]
    parents += [row.job_row_key for row in tables.of(tenant_id, UserMessage).values() if row.message_id == message_id]
    jobs = tables.of(tenant_id, NotificationJob).values()
    return next((job.guid for job in jobs if job.row_key in parents or job.message_id == message_id), None)


def list_jobs(tables: Tables, tenant_id: str, partition_key: str, *, after: str, limit: int) -> list[JobLine]:
    """List a partition's jobs in the order of their row keys, behind `after`."""
    jobs = [
        job
        for job in tables.of(tenant_id, NotificationJob).values()
        if job.partition_key == partition_key and job.row_key.encode() > after.encode()
    ]
    lines = []
    for job in sorted(jobs, key=lambda job: job.row_key.encode())[:limit]:
        scheduler = _scheduler(tables, tenant_id, job)
        lines.append(
            JobLine(
                guid=job.guid,
                row_key=job.row_key,
                event_type=job.event_type,
                source_at=job.source_at,
                created_at=tables.created_at(tenant_id, NotificationJob, job.key),
                scheduler_status=scheduler.status if scheduler else None,
            )
        )
    return lines


def list_uncertain(tables: Tables, tenant_id: str, *, after: int, limit: int) -> list[UncertainLine]:
    """List rows in `Uncertain` in the order of their ids, behind `after`."""
    uncertain = [
        row
        for row in moving.rows(tables)
        if row.tenant_id == tenant_id and row.status is OutgoingStatus.UNCERTAIN and row.id > after
    ]
    return [
        UncertainLine(
            id=row.id,
            message_id=row.message.message_id,
            channel=row.message.channel,
            account=row.entry.account,
            version=row.message.version,
            reason=row.entry.reason,
            since_at=[line.at for line in _lines(tables, row) if line.from_status is not OutgoingStatus.UNCERTAIN][-1],
        )
        for row in uncertain[:limit]
    ]


def list_support_cases(
    tables: Tables, tenant_id: str, *, status: SupportStatus | None, after: UUID | None, limit: int
) -> list[SupportCase]:
    """List a tenant's cases in the order of their ids, starting behind `after`."""
    cases = sorted(tables.of(tenant_id, SupportCase).values(), key=lambda case: str(case.case_id))
    wanted = [case for case in cases if status in (None, case.status) and str(case.case_id) > str(after or "")]
    return wanted[:limit]


def measure(tables: Tables) -> Gauge:
    """Measure the work of all tenants; a row whose time has not come does not wait."""
    now = tables.now()
    pending = [row.due_at for _, row in tables.everywhere(NotificationScheduler) if row.due_at is not None]
    stages = [now - due_at for due_at in pending if due_at <= now]
    sent = list(moving.rows(tables))
    due = [row.entry.due_at for row in sent if row.status in DUE and row.entry.due_at is not None]
    outgoing = [now - due_at for due_at in due if due_at <= now]
    cases = [case for _, case in tables.everywhere(SupportCase) if case.status is SupportStatus.OPEN]
    return Gauge(
        stages_waiting=len(stages),
        oldest_stage_seconds=max(stages).total_seconds() if stages else 0.0,
        outgoing_waiting=len(outgoing),
        oldest_outgoing_seconds=max(outgoing).total_seconds() if outgoing else 0.0,
        sending=sum(row.status is OutgoingStatus.SENDING for row in sent),
        uncertain=sum(row.status is OutgoingStatus.UNCERTAIN for row in sent),
        open_support_cases=len(cases),
    )


def _scheduler(tables: Tables, tenant_id: str, job: NotificationJob) -> NotificationScheduler | None:
    """Find the scheduler row of a job."""
    schedulers = tables.of(tenant_id, NotificationScheduler).values()
    return next((row for row in schedulers if row.artifact_rk == job.row_key), None)


def _outgoing_timeline(tables: Tables, row: Row) -> OutgoingTimeline:
    """Gather what happened to one row."""
    events = [
        event
        for event in tables.of(row.tenant_id, WebhookEvent).values()
        if (found := tracking.row_of(tables, row.tenant_id, event)) and found.id == row.id
    ]
    return OutgoingTimeline(
        id=row.id,
        bucket=row.message.bucket,
        pk=row.message.pk,
        rk=row.message.rk,
        message_id=row.message.message_id,
        channel=row.message.channel,
        status=row.status,
        version=row.message.version,
        attempts=row.entry.attempts,
        reason=row.entry.reason,
        account=row.entry.account,
        provider_message_id=row.entry.provider_message_id,
        due_at=row.entry.due_at,
        cancel_at=row.entry.cancel_at,
        cancel_actor=tables.cancelers.get(row.id),
        created_at=tables.created_at(row.tenant_id, OutgoingMessage, row.message.key),
        transitions=tuple(
            TransitionLine(
                version=line.version,
                from_status=line.from_status,
                to_status=line.to_status,
                at=line.at,
                actor=line.actor,
                reason=line.reason,
            )
            for line in _lines(tables, row)
        ),
        tries=tuple(
            AttemptLine(
                attempt=one.attempt,
                account=one.account,
                status=one.status,
                provider_message_id=one.provider_message_id,
                reason=one.reason,
                latency_ms=one.latency_ms,
                at=one.at,
            )
            for one in moving.attempts(tables, row)
        ),
        events=tuple(
            EventLine(
                account=event.account,
                event_id=event.event_id,
                status=event.status,
                happened_at=event.happened_at,
                received_at=event.received_at,
                applied_at=event.applied_at,
            )
            for event in events
        ),
    )


def _lines(tables: Tables, row: Row) -> list[Transition]:
    """Give a row's transitions in their order."""
    lines = [line for line in tables.of(row.tenant_id, Transition).values() if line.outgoing_id == row.id]
    return sorted(lines, key=lambda line: line.version)

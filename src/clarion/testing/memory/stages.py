"""Stages: pending jobs taken under a lease, finished by version, rescued when their worker is gone."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from uuid import UUID

import msgspec

from clarion.domain import act, trouble
from clarion.domain.claim import StageClaim, StageResult
from clarion.domain.identity import Lane
from clarion.domain.notification import (
    NOTIFICATION_SCHEDULER,
    ArtifactType,
    NotificationJob,
    NotificationScheduler,
    NotificationStatus,
    Stage,
)
from clarion.testing.memory.catalog import append_audit
from clarion.testing.memory.tables import Tables


def claim_stage(
    tables: Tables, stage: Stage, *, lanes: Sequence[Lane], limit: int, lease: timedelta
) -> list[StageClaim]:
    """Take due pending jobs of a stage, urgent lanes first, oldest first within a lane."""
    now = tables.now()
    due = [
        (list(Lane).index(row.lane), row.due_at, row.id or 0, tenant_id, row, job)
        for tenant_id, row in tables.everywhere(NotificationScheduler)
        if row.status is NotificationStatus.READY and row.stage is stage and row.lane in lanes
        if row.due_at is not None and row.due_at <= now
        if row.artifact_type is ArtifactType.NOTIFICATION_JOB
        if (job := tables.of(tenant_id, NotificationJob).get((row.artifact_rk,)))
    ]
    claims: list[StageClaim] = []
    for *_, tenant_id, row, job in sorted(due, key=lambda one: one[:3])[:limit]:
        taken = move(tables, tenant_id, row, to=NotificationStatus.PROCESSING, lease_until=now + lease)
        claims.append(StageClaim(tenant_id=tenant_id, scheduler=taken, job=job))
    return claims


def finish_stage(tables: Tables, results: Sequence[StageResult]) -> set[int]:
    """Move claimed rows on where the claim still stands; return the ids of those that moved."""
    moved: set[int] = set()
    rows = {row.id: (tenant_id, row) for tenant_id, row in tables.everywhere(NotificationScheduler)}
    for result in results:
        if result.scheduler_id not in rows or result.scheduler_id in moved:
            continue
        tenant_id, row = rows[result.scheduler_id]
        if row.status is not NotificationStatus.PROCESSING or row.version != result.version:
            continue
        finished = move(
            tables,
            tenant_id,
            row,
            to=result.to,
            stage=result.stage,
            due_at=tables.now() + result.delay if result.to is NotificationStatus.READY else None,
            retry_count=row.retry_count + result.is_retry,
            reason=result.reason,
            diagnostics=result.diagnostics or row.diagnostics,
        )
        if finished.status is NotificationStatus.FAILED:
            tables.open_cases(tenant_id, [trouble.failed_job(tenant_id, finished)])
        moved.add(result.scheduler_id)
    return moved


def freeze_recipients(tables: Tables, frozen: Mapping[int, str]) -> dict[int, str]:
    """Store each job's recipient set unless one is stored already; return the sets that stand."""
    standing: dict[int, str] = {}
    for tenant_id, job in tables.everywhere(NotificationJob):
        if job.id is not None and job.id in frozen:
            recipients = job.recipients if job.recipients is not None else frozen[job.id]
            tables.of(tenant_id, NotificationJob)[job.key] = msgspec.structs.replace(job, recipients=recipients)
            standing[job.id] = recipients
    return standing


def rescue_stages(tables: Tables, *, limit: int, rescues_max: int) -> int:
    """Return expired claims to Ready; past the bound to Failed with a support case."""
    now = tables.now()
    expired = [
        (row.lease_until, row.id or 0, tenant_id, row)
        for tenant_id, row in tables.everywhere(NotificationScheduler)
        if row.lease_until is not None and row.lease_until <= now
    ]
    rescued = sorted(expired, key=lambda one: one[:2])[:limit]
    for *_, tenant_id, row in rescued:
        rescues = row.rescue_count + 1
        if rescues <= rescues_max:
            move(tables, tenant_id, row, to=NotificationStatus.READY, due_at=now, rescue_count=rescues)
            continue
        reason = f"rescued {rescues} times: every worker that took it was lost"
        move(tables, tenant_id, row, to=NotificationStatus.FAILED, rescue_count=rescues, reason=reason)
        tables.open_cases(tenant_id, [trouble.poisoned_job(tenant_id, row, rescues=rescues)])
    return len(rescued)


def retry_job(tables: Tables, tenant_id: str, job_guid: UUID, *, actor: str, reason: str) -> bool:
    """Return a failed job to Ready at the stage where it failed; audited."""
    done = act.retry_job(job_guid, reason=reason, actor=actor)
    jobs = {job.row_key for job in tables.of(tenant_id, NotificationJob).values() if job.guid == job_guid}
    rows = tables.of(tenant_id, NotificationScheduler).values()
    failed = [row for row in rows if row.artifact_rk in jobs and row.status is NotificationStatus.FAILED]
    for row in failed:
        changes = {"due_at": tables.now(), "rescue_count": 0, "retry_count": 0, "reason": f"retried by {actor}"}
        move(tables, tenant_id, row, to=NotificationStatus.READY, **changes)
    if failed:
        append_audit(tables, tenant_id, done)
    return bool(failed)


def move(
    tables: Tables, tenant_id: str, row: NotificationScheduler, *, to: NotificationStatus, **changes: object
) -> NotificationScheduler:
    """Make one legal move: a row has a due time only while it waits and a lease only while it is claimed."""
    NOTIFICATION_SCHEDULER.require(from_=row.status, to=to)
    moved = msgspec.structs.replace(
        row, **{"due_at": None, "lease_until": None, **changes, "status": to, "version": row.version + 1}
    )
    tables.of(tenant_id, NotificationScheduler)[row.key] = moved
    tables.moved[row.id or 0] = tables.now()
    if moved.stage is not row.stage:
        tables.scheduled[row.id or 0] = tables.now()
    return moved

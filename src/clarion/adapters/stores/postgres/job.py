"""Jobs that are new, with their guards and scheduler rows, by one statement: what accepting is nearly always about.

Writes `idempotency_guard`, `notification_job` and `notification_scheduler`. Whatever else may be found or differ is for
the general way, `shared.job`.
"""

from collections.abc import Sequence
from typing import Final

import asyncpg
import msgspec

from clarion.adapters.stores.postgres.session import Transaction
from clarion.adapters.stores.shared.job import MadeJob, as_stored
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Value
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.guard import IdempotencyGuard, JobEntry
from clarion.domain.notification import ArtifactType, NotificationJob, NotificationScheduler, Stage

_SQL: Final = Statements("job.sql", package=__package__)


async def insert_new_jobs(
    transaction: Transaction, tenant_id: str, items: Sequence[JobEntry]
) -> list[Ensured[NotificationJob]] | None:
    """Insert a set that is new as a whole; None where it is not, or holds what only the general way can store."""
    rows = [row for item in items if (row := _row(item)) is not None]
    keys = [item.guard.key for item in items if item.guard is not None]
    if len(rows) < len(items) or len(set(keys)) < len(keys):
        return None
    try:
        made = await transaction.fetch(
            MadeJob, _SQL["insert_new_jobs"], tenant_id=tenant_id, stage=Stage.SCHEDULE, items=rows
        )
    except asyncpg.UniqueViolationError:
        return None
    if not made:
        return None
    ids = {row.row_key: row.id for row in made}
    return [Ensured(outcome=Outcome.CREATED, record=as_stored(item.job, ids[item.job.row_key])) for item in items]


def _row(entry: JobEntry) -> tuple[Value, ...] | None:
    """Give a job's columns, and what its guard and scheduler row have besides; None where they have more than that."""
    job, scheduler, guard = entry.job, entry.scheduler, entry.guard
    if scheduler is None or scheduler != NotificationScheduler(
        artifact_type=ArtifactType.NOTIFICATION_JOB,
        artifact_pk=job.partition_key,
        artifact_rk=job.row_key,
        event_type=job.event_type,
        lane=scheduler.lane,
        due_at=scheduler.due_at,
        correlation_id=job.correlation_id,
        traceparent=job.traceparent,
    ):
        return None
    if guard is not None and guard != IdempotencyGuard(
        operation=job.operation,
        key_hash=guard.key_hash,
        payload_hash=job.payload_hash,
        job_partition_key=job.partition_key,
        job_row_key=job.row_key,
        source_at=job.source_at,
    ):
        return None
    *columns, _ = msgspec.structs.astuple(job)  # its id is not known yet
    return (*columns, guard and guard.key_hash, scheduler.lane, scheduler.due_at)

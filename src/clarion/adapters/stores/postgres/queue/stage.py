"""Pending jobs: taken under a lease, finished by version, rescued when their worker is gone.

Writes `notification_scheduler`, the frozen recipients of `notification_job`, and `support_case`.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import asyncpg

from clarion.adapters.stores.postgres import codec
from clarion.adapters.stores.postgres.ensure.record import write_cases_of_tenants
from clarion.adapters.stores.query import load
from clarion.domain import trouble
from clarion.domain.claim import StageClaim, StageResult
from clarion.domain.identity import Lane
from clarion.domain.notification import (
    NOTIFICATION_SCHEDULER,
    NotificationJob,
    NotificationScheduler,
    NotificationStatus,
    Stage,
)

if TYPE_CHECKING:
    from clarion.adapters.stores.postgres.session import Connection

_SQL: Final = load(__package__, "stage.sql")
_read_scheduler: Final = codec.reader(NotificationScheduler)
_read_job: Final = codec.reader(NotificationJob, prefix="job_")


async def claim_stage(
    connection: "Connection", stage: Stage, *, lanes: Sequence[Lane], limit: int, lease: timedelta
) -> list[StageClaim]:
    """Take due pending jobs of a stage, urgent lanes first, oldest first within a lane."""
    order = [lane for lane in Lane if lane in lanes]
    rows = await connection.fetch(_SQL["claim_stage"].sql, stage, order, limit, lease)
    rows.sort(key=lambda row: (order.index(row["lane"]), row["was_due_at"], row["id"]))
    return [StageClaim(tenant_id=row["tenant_id"], scheduler=_read_scheduler(row), job=_read_job(row)) for row in rows]


async def finish_stage(connection: "Connection", results: Sequence[StageResult]) -> set[int]:
    """Move claimed rows on where the claim still stands; return the ids of those that moved."""
    for result in results:
        NOTIFICATION_SCHEDULER.require(from_=NotificationStatus.PROCESSING, to=result.to)
    first = {result.scheduler_id: result for result in reversed(results)}
    ordered = [first[scheduler_id] for scheduler_id in sorted(first)]
    rows = await connection.fetch(
        _SQL["finish_stage"].sql,
        [result.scheduler_id for result in ordered],
        [result.version for result in ordered],
        [result.to for result in ordered],
        [result.stage for result in ordered],
        [result.delay for result in ordered],
        [int(result.is_retry) for result in ordered],
        [result.reason for result in ordered],
        [result.diagnostics for result in ordered],
    )
    return {row["id"] for row in rows}


async def freeze_recipients(connection: "Connection", frozen: Mapping[int, str]) -> dict[int, str]:
    """Store each job's recipient set unless one is stored already; return the sets that stand."""
    ids = sorted(frozen)
    await connection.execute(_SQL["freeze_recipients"].sql, ids, [frozen[job_id] for job_id in ids])
    rows = await connection.fetch(_SQL["read_recipients"].sql, ids)
    return {row["id"]: row["recipients"] for row in rows}


async def rescue_stages(connection: "Connection", *, limit: int, rescues_max: int) -> int:
    """Return expired claims to Ready; past the bound to Failed with a support case."""
    rows = await connection.fetch(_SQL["rescue_stages"].sql, limit, rescues_max)
    cases = [
        (row["tenant_id"], trouble.poisoned_job(row["tenant_id"], _read_scheduler(row), rescues=row["rescue_count"]))
        for row in rows
        if row["status"] == NotificationStatus.FAILED
    ]
    await write_cases_of_tenants(connection, cases)
    return len(rows)


async def next_stage_due_in(connection: "Connection") -> timedelta | None:
    """Tell how long until the next pending job falls due; zero where one is due now."""
    row: asyncpg.Record | None = await connection.fetchrow(_SQL["next_stage_due_in"].sql, list(Stage), list(Lane))
    return None if row is None else row["due_in"]

"""Pending jobs: taken under a lease, finished by version, rescued when their worker is gone.

Writes `notification_scheduler`, the frozen recipients of `notification_job`, and `support_case`.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID

import asyncpg
import structlog

from clarion.adapters.stores.postgres import codec
from clarion.adapters.stores.postgres.audit import append_audit
from clarion.adapters.stores.postgres.ensure.record import write_cases_of_tenants
from clarion.adapters.stores.query import load
from clarion.domain import act, trouble
from clarion.domain.claim import StageClaim, StageResult
from clarion.domain.identity import Lane
from clarion.domain.notification import (
    NOTIFICATION_SCHEDULER,
    NotificationJob,
    NotificationScheduler,
    NotificationStatus,
    Stage,
)
from clarion.errors import ProgramTooOld

if TYPE_CHECKING:
    from clarion.adapters.stores.postgres.session import Connection

log = structlog.get_logger("clarion.stores")

_SQL: Final = load(__package__, "stage.sql")
_read_scheduler: Final = codec.reader(NotificationScheduler)
_read_job: Final = codec.reader(NotificationJob, prefix="job_")


async def claim_stage(
    connection: "Connection", stage: Stage, *, lanes: Sequence[Lane], limit: int, lease: timedelta
) -> list[StageClaim]:
    """Take due pending jobs of a stage, urgent lanes first, oldest first within a lane."""
    order = [lane for lane in Lane if lane in lanes]
    rows = await connection.fetch(_SQL["claim_stage"].sql, stage, order, limit, lease)
    rows.sort(key=lambda row: (order.index(row["lane"]), row["was_due"], row["id"]))
    return [claim for row in rows if (claim := _read_claim(row)) is not None]


def _read_claim(row: asyncpg.Record) -> StageClaim | None:
    """Read one claim; one that cannot be read stays claimed, and holds up no other."""
    with suppress(ProgramTooOld):
        if row["job_source_at"] is not None:
            return StageClaim(tenant_id=row["tenant_id"], scheduler=_read_scheduler(row), job=_read_job(row))
    log.error(
        "a pending job cannot be read and stays claimed",
        tenant_id=row["tenant_id"],
        stage=row["stage"],
        correlation_id=row["correlation_id"],
    )
    return None


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
    failed = [row for row in rows if row["status"] == NotificationStatus.FAILED]
    cases = [(row["tenant_id"], trouble.failed_job(row["tenant_id"], _read_scheduler(row))) for row in failed]
    await write_cases_of_tenants(connection, cases)
    return {row["id"] for row in rows}


def is_one_statement(results: Sequence[StageResult]) -> bool:
    """Tell whether finishing these needs no transaction: none fails, so no support case is to be opened with it."""
    return all(result.to is not NotificationStatus.FAILED for result in results)


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


async def retry_job(connection: "Connection", tenant_id: str, job_guid: UUID, *, actor: str, reason: str) -> bool:
    """Return a failed job to Ready at the stage where it failed; audited."""
    NOTIFICATION_SCHEDULER.require(from_=NotificationStatus.FAILED, to=NotificationStatus.READY)
    done = act.retry_job(job_guid, reason=reason, actor=actor)
    if not await connection.fetch(_SQL["retry_schedulers"].sql, tenant_id, job_guid, actor):
        return False
    await append_audit(connection, tenant_id, done)
    return True

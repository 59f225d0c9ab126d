"""Stages: pending jobs taken under a lease, finished by version, rescued when their worker is gone.

Writes `notification_scheduler`, the recipients of `notification_job`, and `support_case`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

import msgspec
import structlog

from clarion.adapters.stores.query import load
from clarion.adapters.stores.sqlite import codec
from clarion.adapters.stores.sqlite.audit import append_audit
from clarion.adapters.stores.sqlite.clock import MICROSECOND, instant
from clarion.adapters.stores.sqlite.ensure.record import write_cases
from clarion.adapters.stores.sqlite.session import Transaction
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
from clarion.domain.support import SupportCase
from clarion.errors import ProgramTooOld
from clarion.ports.ensure import ITEMS_MAX, bounded

log = structlog.get_logger("clarion.stores")

UNREADABLE: Final = (ProgramTooOld, OverflowError, TypeError, ValueError)
"""What a column raises that holds no guid, no instant, or a word that this program does not know."""

_SQL: Final = load(__package__, "stage.sql")

_READY, _PROCESSING, _FAILED = NotificationStatus.READY, NotificationStatus.PROCESSING, NotificationStatus.FAILED


def claim_stage(
    transaction: Transaction, stage: Stage, *, lanes: Sequence[Lane], limit: int, lease: timedelta
) -> list[StageClaim]:
    """Take due pending jobs of a stage, urgent lanes first, oldest first within a lane."""
    NOTIFICATION_SCHEDULER.require(from_=_READY, to=_PROCESSING)
    columns, rows = transaction.table(
        _SQL["find_due_stages"],
        stage=stage.value,
        lanes=codec.as_json([lane for lane in Lane if lane in lanes]),  # in the enum's order, most urgent first
        limit=min(limit, ITEMS_MAX),
    )
    if not rows:
        return []
    lease_until = transaction.now + lease // MICROSECOND
    transaction.rows(_SQL["take_stages"], ids=codec.as_json([row[1] for row in rows]), lease_until=lease_until)
    taken = {"status": _PROCESSING, "due_at": None, "lease_until": instant(lease_until)}
    split = 1 + len(NotificationScheduler.__struct_fields__)
    claims = []
    for row in rows:
        try:
            found = codec.record(NotificationScheduler, columns[1:split], row[1:split])
            job = codec.record(NotificationJob, columns[split:], row[split:])
        except UNREADABLE:
            log.exception(
                "a pending job cannot be read and stays claimed",
                tenant_id=row[0],
                stage=stage,
                correlation_id=row[columns.index("correlation_id")],
            )
            continue
        scheduler = msgspec.structs.replace(found, version=found.version + 1, **taken)
        claims.append(StageClaim(tenant_id=row[0], scheduler=scheduler, job=job))
    return claims


def finish_stage(transaction: Transaction, results: Sequence[StageResult]) -> set[int]:
    """Move claimed rows on where the claim still stands; return the ids of those that moved."""
    for result in bounded(results):
        NOTIFICATION_SCHEDULER.require(from_=_PROCESSING, to=result.to)
    first = {(result.scheduler_id, result.version): result for result in reversed(results)}
    given = codec.as_json([_finished(result) for result in first.values()])
    moved = {row_id for (row_id,) in transaction.rows(_SQL["finish_stages"], results=given)}
    failed = {result.scheduler_id for result in results if result.to is _FAILED}
    _open_cases(transaction, sorted(failed & moved))
    return moved


def freeze_recipients(transaction: Transaction, frozen: Mapping[int, str]) -> dict[int, str]:
    """Store each job's recipient set by job id unless one is stored already; return the sets that stand (I-06)."""
    given = codec.as_json(bounded(list(frozen.items())))
    transaction.rows(_SQL["freeze_recipients"], frozen=given)
    return dict(transaction.rows(_SQL["read_recipients"], frozen=given))


def rescue_stages(transaction: Transaction, *, limit: int, rescues_max: int) -> int:
    """Return expired claims to Ready, rescue_count + 1; past the bound to Failed with a support case (I-23)."""
    columns, rows = transaction.table(_SQL["find_expired_stages"], limit=min(limit, ITEMS_MAX))
    if not rows:
        return 0
    moved: list[tuple[object, ...]] = []
    cases: dict[str, list[SupportCase]] = defaultdict(list)
    for row in rows:
        tenant_id, found = row[0], codec.record(NotificationScheduler, columns[1:], row[1:])
        rescues = found.rescue_count + 1
        to, reason = _READY, None
        if rescues > rescues_max:
            to, reason = _FAILED, f"rescued {rescues} times: every worker that took it was lost"
            cases[tenant_id].append(trouble.poisoned_job(tenant_id, found, rescues=rescues))
        NOTIFICATION_SCHEDULER.require(from_=found.status, to=to)
        moved.append((found.id, to, reason))
    transaction.rows(_SQL["rescue_stages"], rows=codec.as_json(moved))
    for tenant_id, opened in sorted(cases.items()):
        write_cases(transaction, tenant_id, opened)
    return len(rows)


def retry_job(transaction: Transaction, tenant_id: str, job_guid: UUID, *, actor: str, reason: str) -> bool:
    """Return a failed job to Ready at the stage where it failed; audited."""
    NOTIFICATION_SCHEDULER.require(from_=_FAILED, to=_READY)
    done = act.retry_job(job_guid, reason=reason, actor=actor)
    moved = transaction.rows(
        _SQL["retry_scheduler"], tenant_id=tenant_id, guid=str(job_guid), reason=f"retried by {actor}"
    )
    if moved:
        append_audit(transaction, tenant_id, done)
    return bool(moved)


def _open_cases(transaction: Transaction, ids: Sequence[int]) -> None:
    """Open the case of each of these jobs that has failed just now."""
    if not ids:
        return
    columns, rows = transaction.table(_SQL["read_schedulers"], ids=codec.as_json(ids))
    for row in sorted(rows):
        found = codec.record(NotificationScheduler, columns[1:], row[1:])
        write_cases(transaction, row[0], [trouble.failed_job(row[0], found)])


def _finished(result: StageResult) -> tuple[object, ...]:
    """Give a result as the statement unpacks it."""
    return (
        result.scheduler_id,
        result.version,
        result.to,
        result.stage,
        result.delay // MICROSECOND,
        int(result.is_retry),
        result.reason,
        result.diagnostics,
    )

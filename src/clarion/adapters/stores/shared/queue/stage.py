"""Stages of pending jobs: finished by version, rescued when their worker is gone, retried on a person's word.

Writes `notification_scheduler`, the frozen recipients of `notification_job`, `recipient_job` and `support_case`. How a
job is claimed is in the folder of each engine.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from clarion.adapters.stores.shared.audit import append_audit
from clarion.adapters.stores.shared.queue.cancel import find_job
from clarion.adapters.stores.shared.queue.one_time_code import require_data
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.support import write_cases_of_tenants
from clarion.adapters.stores.shared.transaction import Row, Transaction
from clarion.domain import act, trouble
from clarion.domain.claim import StageResult
from clarion.domain.notification import NOTIFICATION_SCHEDULER, NotificationScheduler, NotificationStatus, rescued
from clarion.domain.recipient import FrozenSet, RecipientJob
from clarion.ports.ensure import ITEMS_MAX, Hold, bounded

_SQL: Final = Statements("queue/stage.sql")


class _Moved(msgspec.Struct, frozen=True):
    id: int


class _Scheduler(NotificationScheduler, frozen=True, kw_only=True):
    """A scheduler row and whose it is."""

    tenant_id: str


class _Frozen(msgspec.Struct, frozen=True):
    id: int
    recipients: str


async def finish_stage(transaction: Transaction, results: Sequence[StageResult]) -> set[int]:
    """Move claimed rows on where the claim still stands; return the ids of those that moved."""
    for result in bounded(results):
        NOTIFICATION_SCHEDULER.require(from_=NotificationStatus.PROCESSING, to=result.to)
    first = {result.scheduler_id: result for result in reversed(results)}
    if not first:
        return set()
    given = [_given(first[scheduler_id]) for scheduler_id in sorted(first)]
    moved = {one.id for one in await transaction.fetch(_Moved, _SQL["finish_stages"], results=given)}
    failed = sorted(moved & {one.scheduler_id for one in first.values() if one.to is NotificationStatus.FAILED})
    if failed:
        rows = await transaction.fetch(_Scheduler, _SQL["read_schedulers"], ids=failed)
        await write_cases_of_tenants(
            transaction, [(row.tenant_id, trouble.failed_job(row.tenant_id, row)) for row in rows]
        )
    return moved


def is_one_statement(results: Sequence[StageResult]) -> bool:
    """Tell whether finishing these needs no transaction: none fails, so no support case is to be opened with it."""
    return all(result.to is not NotificationStatus.FAILED for result in results)


async def freeze_recipients(transaction: Transaction, tenant_id: str, sets: Sequence[FrozenSet]) -> dict[int, str]:
    """Store each job's recipient set unless one is stored already; return the sets that stand, by job (I-06)."""
    given = {one.job_id: one for one in reversed(sets)}
    bounded([recipient for one in sets for recipient in one.recipients])
    if not bounded(sets):
        return {}
    texts = [(job_id, given[job_id].text) for job_id in sorted(given)]
    rows = await transaction.fetch(_Moved, _SQL["freeze_recipients"], tenant_id=tenant_id, frozen=texts)
    new = {row.id: given[row.id] for row in rows}
    lines = [(recipient, one.job_key, one.job_id) for one in new.values() for recipient in one.recipients]
    if lines:
        await transaction.execute(_SQL["insert_recipient_jobs"], tenant_id=tenant_id, lines=lines)
    stand = {job_id: one.text for job_id, one in new.items()}
    others = sorted(given.keys() - new.keys())
    if others:
        found = await transaction.fetch(_Frozen, _SQL["read_recipients"], tenant_id=tenant_id, ids=others)
        stand |= {row.id: row.recipients for row in found}
    return stand


async def note_recipients(transaction: Transaction, tenant_id: str, hold: Hold, lines: Sequence[RecipientJob]) -> bool:
    """Note that recipients have a job, each once, while the claim stands; tell whether it does."""
    bounded(lines)
    scheduler_id, version = hold
    held = await transaction.fetch(
        _Moved, _SQL["hold_scheduler"], tenant_id=tenant_id, id=scheduler_id, version=version
    )
    if held and lines:
        await transaction.execute(_SQL["insert_recipient_jobs"], tenant_id=tenant_id, lines=lines)
    return bool(held)


async def rescue_stages(transaction: Transaction, *, limit: int, rescues_max: int) -> int:
    """Return expired claims to Ready, rescue_count + 1; past the bound to Failed with a support case (I-23)."""
    rows = await transaction.fetch(_Scheduler, _SQL["lock_expired_schedulers"], limit=min(limit, ITEMS_MAX))
    if not rows:
        return 0
    ruled = [(row, *rescued(row, rescues_max=rescues_max)) for row in sorted(rows, key=lambda row: row.id or 0)]
    await transaction.execute(_SQL["rescue_schedulers"], rows=[(row.id, to, reason) for row, to, reason in ruled])
    failed = [row for row, to, _ in ruled if to is NotificationStatus.FAILED]
    cases = [(row.tenant_id, trouble.poisoned_job(row.tenant_id, row, rescues=row.rescue_count + 1)) for row in failed]
    await write_cases_of_tenants(transaction, cases)
    return len(rows)


async def retry_job(transaction: Transaction, tenant_id: str, job_guid: UUID, *, actor: str, reason: str) -> bool:
    """Return a failed job to Ready at the stage where it failed; audited."""
    NOTIFICATION_SCHEDULER.require(from_=NotificationStatus.FAILED, to=NotificationStatus.READY)
    done = act.retry_job(job_guid, reason=reason, actor=actor)
    job = await find_job(transaction, tenant_id, job_guid)
    if job is None or not await transaction.execute(
        _SQL["retry_schedulers"],
        tenant_id=tenant_id,
        **job.artifact,
        reason=f"retried by {actor}",
    ):
        return False
    await require_data(transaction, tenant_id, job.row_key)
    await append_audit(transaction, tenant_id, done)
    return True


def _given(result: StageResult) -> Row:
    return (
        result.scheduler_id,
        result.version,
        result.to,
        result.stage,
        result.delay,
        int(result.is_retry),
        result.reason,
        result.rule,
        result.diagnostics,
        result.cursor,
    )

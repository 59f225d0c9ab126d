"""Pausing and canceling: gates of campaigns, cancels of direct jobs, and the sweep that carries both out.

Writes `broadcast` and `notification_scheduler`; changes outgoing rows through `ledger`. What a person does is audited.
That nothing is sent after a pause or a cancel is the claim's part.
"""

from typing import Final
from uuid import UUID

import msgspec

from clarion.adapters.stores.shared.audit import append_audit
from clarion.adapters.stores.shared.queue.ledger import Located, lock_rows, write_rulings
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction, first
from clarion.domain import act
from clarion.domain.claim import Gate
from clarion.domain.machine import Cause
from clarion.domain.notification import NOTIFICATION_SCHEDULER, NotificationStatus
from clarion.domain.outgoing import FINAL
from clarion.domain.ruling import UNCHANGED, at_cancel, at_sweep
from clarion.ports.ensure import ITEMS_MAX

_SQL: Final = Statements("queue/cancel.sql")


class JobKey(msgspec.Struct, frozen=True):
    """Where a job is, and what its rows derive from."""

    partition_key: str
    row_key: str
    bucket: int


async def find_job(transaction: Transaction, tenant_id: str, job_guid: UUID) -> JobKey | None:
    """Return the keys of a job by its guid, or None."""
    return first(await transaction.fetch(JobKey, _SQL["find_job"], tenant_id=tenant_id, guid=job_guid))


async def set_gate(transaction: Transaction, tenant_id: str, broadcast: str, gate: Gate, *, actor: str) -> bool:
    """Open, pause or cancel a campaign: one update, after which no claim of its rows begins; audited."""
    done = act.gate(broadcast, gate, actor=actor)
    if not await transaction.execute(_SQL["set_gate"], tenant_id=tenant_id, broadcast=broadcast, gate=gate):
        return False
    await append_audit(transaction, tenant_id, done)
    return True


async def sweep_canceled(transaction: Transaction, *, limit: int) -> int:
    """End waiting rows that were called off, by themselves or with their campaign."""
    limit = min(limit, ITEMS_MAX)
    found = await transaction.fetch(Located, _SQL["lock_called_off_rows"], limit=limit)
    if len(found) < limit:
        found += await transaction.fetch(Located, _SQL["lock_rows_of_canceled"], limit=limit - len(found))
    rows = await lock_rows(transaction, {one.place for one in found})
    await write_rulings(transaction, [(row, at_sweep(row)) for row in rows], actor="sweep")
    return len(rows)


async def cancel_job(transaction: Transaction, tenant_id: str, job_guid: UUID, *, actor: str) -> bool:
    """Cancel a direct job: its scheduler row unless finished, its waiting rows, what may still come back; audited."""
    done = act.cancel(job_guid, actor=actor)
    job = await find_job(transaction, tenant_id, job_guid)
    if job is None:
        return False
    schedulers = await transaction.execute(
        _SQL["cancel_schedulers"],
        tenant_id=tenant_id,
        partition_key=job.partition_key,
        row_key=job.row_key,
        reason=f"canceled by {actor}",
        statuses=sorted({*NOTIFICATION_SCHEDULER.sources(Cause.CANCEL), NotificationStatus.FAILED}),
    )
    found = await transaction.fetch(
        Located,
        _SQL["find_rows_of_job"],
        tenant_id=tenant_id,
        bucket=job.bucket,
        row_key=job.row_key,
        final=sorted(FINAL),
    )
    rows = await lock_rows(transaction, [one.place for one in found])
    ruled = [(row, ruling) for row in rows if (ruling := at_cancel(row)) is not UNCHANGED]
    await write_rulings(transaction, ruled, actor=actor)
    if not (schedulers or ruled):
        return False
    await append_audit(transaction, tenant_id, done)
    return True

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
from clarion.domain.notification import NOTIFICATION_SCHEDULER, NotificationStatus, artifact_of
from clarion.domain.outgoing import FINAL
from clarion.domain.ruling import UNCHANGED, at_cancel, at_sweep
from clarion.ports.ensure import ITEMS_MAX

_SQL: Final = Statements("queue/cancel.sql")


ROWS_MAX: Final = 5 * ITEMS_MAX
"""Of a job that are canceled in one transaction: some 150 ms. Every job whose set stands in its row has fewer."""


class Canceling(msgspec.Struct, frozen=True, kw_only=True):
    """How far a cancel has come: up to which row, None behind the last; and whether there was anything to cancel."""

    after: str | None = ""
    is_done: bool = False


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    rk: str
    bucket: int | None
    id: int | None


class JobKey(msgspec.Struct, frozen=True):
    """Where a job is, and what its rows derive from."""

    partition_key: str
    row_key: str
    bucket: int
    messaging_job: str | None

    @property
    def artifact(self) -> dict[str, str]:
        """What its scheduler row is pending for, as statements take it."""
        kind, pk, rk = artifact_of(self.partition_key, self.row_key, self.messaging_job)
        return {"artifact_type": kind, "artifact_pk": pk, "artifact_rk": rk}


async def find_job(transaction: Transaction, tenant_id: str, job_guid: UUID) -> JobKey | None:
    """Return the keys of a job by its guid or by that of its messaging job, or None."""
    return first(
        await transaction.fetch(
            JobKey, _SQL["find_job"], tenant_id=tenant_id, guid=job_guid, messaging_job=str(job_guid)
        )
    )


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


async def cancel_part(
    transaction: Transaction, tenant_id: str, job_guid: UUID, *, actor: str, so_far: Canceling
) -> Canceling:
    """Cancel a direct job: its scheduler row unless finished, its waiting rows, what may still come back; audited.

    Of a job with more rows than `ROWS_MAX` it is so many, behind those that were canceled so far.
    """
    job = await find_job(transaction, tenant_id, job_guid)
    if job is None:
        return msgspec.structs.replace(so_far, after=None)
    schedulers = 0
    if not so_far.after:
        schedulers = await transaction.execute(
            _SQL["cancel_schedulers"],
            tenant_id=tenant_id,
            **job.artifact,
            reason=f"canceled by {actor}",
            statuses=sorted({*NOTIFICATION_SCHEDULER.sources(Cause.CANCEL), NotificationStatus.FAILED}),
        )
    found = await transaction.fetch(
        _Row,
        _SQL["find_rows_of_job"],
        tenant_id=tenant_id,
        bucket=job.bucket,
        outgoing_pk=job.messaging_job or job.row_key,
        after=so_far.after or "",
        final=sorted(FINAL),
        limit=ROWS_MAX,
    )
    places = [(one.bucket, one.id) for one in found if one.bucket is not None and one.id is not None]
    rows = await lock_rows(transaction, places)
    ruled = [(row, ruling) for row in rows if (ruling := at_cancel(row)) is not UNCHANGED]
    await write_rulings(transaction, ruled, actor=actor)
    is_done = bool(schedulers or ruled)
    if is_done and not so_far.is_done:
        await append_audit(transaction, tenant_id, act.cancel(job_guid, actor=actor))
    return Canceling(after=found[-1].rk if len(found) == ROWS_MAX else None, is_done=is_done or so_far.is_done)

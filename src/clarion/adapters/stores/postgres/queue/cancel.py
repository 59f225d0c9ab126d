"""Pausing and canceling: gates of sources, cancels of direct jobs, and the sweep that carries both out.

Writes `source`, `notification_scheduler`, `outgoing_message`, `transition`, `flow_count` and, for what a person does,
`audit_log`. That nothing is sent after a pause or a cancel is the claim's part.
"""

from typing import TYPE_CHECKING, Final
from uuid import UUID

from clarion.adapters.stores.postgres.audit import append_audit
from clarion.adapters.stores.postgres.queue.move import Locked, Move, Step, read_locked, write_moves
from clarion.adapters.stores.query import load
from clarion.domain import act
from clarion.domain.claim import Gate
from clarion.domain.machine import Cause
from clarion.domain.notification import NOTIFICATION_SCHEDULER, NotificationStatus
from clarion.domain.outgoing import DUE, FINAL, called_off

if TYPE_CHECKING:
    from clarion.adapters.stores.postgres.session import Connection

_SQL: Final = load(__package__, "cancel.sql")


async def set_gate(connection: "Connection", tenant_id: str, source: str, gate: Gate, *, actor: str) -> bool:
    """Open, pause or cancel a source: one update, after which no claim of its rows begins; audited."""
    changed = await connection.fetchrow(_SQL["set_gate"].sql, tenant_id, source, gate)
    if changed is None:
        return False
    await append_audit(connection, tenant_id, act.gate(source, gate, actor=actor))
    return True


async def sweep_canceled(connection: "Connection", *, limit: int) -> int:
    """End waiting rows that were called off, with their source or by themselves."""
    found = await connection.fetch(_SQL["lock_canceled_messages"].sql, limit)
    moves = [_cancel(read_locked(row)) for row in found]
    await write_moves(connection, moves, actor="sweep")
    return len(moves)


async def cancel_job(connection: "Connection", tenant_id: str, job_guid: UUID, *, actor: str) -> bool:
    """Cancel a direct job: its scheduler row unless finished, its waiting rows, what may still come back; audited."""
    schedulers = await connection.fetch(
        _SQL["cancel_schedulers"].sql,
        tenant_id,
        job_guid,
        actor,
        sorted({*NOTIFICATION_SCHEDULER.sources(Cause.CANCEL), NotificationStatus.FAILED}),
    )
    found = await connection.fetch(_SQL["lock_messages_of_job"].sql, tenant_id, job_guid, sorted(FINAL))
    rows = [read_locked(row) for row in found]
    waiting = [row for row in rows if row.status in DUE]
    moves = [_cancel(row, by=actor) for row in waiting]
    await write_moves(connection, moves, actor=actor)
    away = [row for row in rows if row.status not in DUE]
    if away:
        await connection.execute(
            _SQL["call_off_messages"].sql, [row.bucket for row in away], [row.id for row in away], actor
        )
    if not (schedulers or rows):
        return False
    await append_audit(connection, tenant_id, act.cancel(job_guid, actor=actor))
    return True


def _cancel(row: Locked, *, by: str | None = None) -> Move:
    """End a waiting row; `by` is whoever calls it off now."""
    to, reason = called_off(is_unproven=row.is_unproven)
    return Move(row=row, steps=(Step(to=to, reason=reason),), called_off=by)

"""Gates and cancels: one update for a source, a mark on every open row of a direct job, and the sweep that follows.

Writes `source` and scheduler rows; outgoing rows change through `move`. What a person does is audited by the same
transaction.
"""

from typing import Final
from uuid import UUID

from clarion.adapters.stores.query import load
from clarion.adapters.stores.shared.audit import append_audit
from clarion.adapters.stores.shared.transaction import finished
from clarion.adapters.stores.sqlite.queue.move import Moves, Row, Wanted
from clarion.adapters.stores.sqlite.session import Transaction
from clarion.domain import act
from clarion.domain.claim import Gate
from clarion.domain.outgoing import DUE, called_off
from clarion.ports.ensure import ITEMS_MAX

_SQL: Final = load(__package__, "cancel.sql")


def set_gate(transaction: Transaction, tenant_id: str, source: str, gate: Gate, *, actor: str) -> bool:
    """Open, pause or cancel a source: one update, after which no claim of its rows begins; audited."""
    changed = transaction.rows(_SQL["set_gate"], tenant_id=tenant_id, source=source, gate=gate.value)
    if changed:
        finished(append_audit(transaction, tenant_id, act.gate(source, gate, actor=actor)))
    return bool(changed)


def sweep_canceled(transaction: Transaction, *, limit: int) -> int:
    """End waiting rows of canceled sources, and waiting rows that were called off."""
    rows = transaction.rows(_SQL["find_called_off"], limit=min(limit, ITEMS_MAX))
    if not rows:
        return 0
    moves = Moves(transaction, actor="sweep")
    for row in moves.read(Wanted(id=row_id) for (row_id,) in rows).values():
        _cancel(moves, row)
    moves.write()
    return len(rows)


def cancel_job(transaction: Transaction, tenant_id: str, job_guid: UUID, *, actor: str) -> bool:
    """Cancel a direct job: its scheduler row unless finished, its waiting rows, what may still come back; audited."""
    jobs = transaction.rows(_SQL["find_job"], tenant_id=tenant_id, guid=str(job_guid))
    if not jobs:
        return False
    ((partition_key, row_key, bucket),) = jobs
    schedulers = transaction.rows(
        _SQL["cancel_scheduler"],
        tenant_id=tenant_id,
        partition_key=partition_key,
        row_key=row_key,
        reason=f"canceled by {actor}",
    )
    rows = transaction.rows(_SQL["find_rows_of_job"], tenant_id=tenant_id, bucket=bucket, row_key=row_key)
    moves = Moves(transaction, actor=actor)
    for row in moves.read(Wanted(id=row_id) for (row_id,) in rows).values():
        row.cancel_at, row.cancel_actor = transaction.now, actor
        if row.status in DUE:
            _cancel(moves, row)
        else:
            moves.change(row)
    moves.write()
    if not (schedulers or rows):
        return False
    finished(append_audit(transaction, tenant_id, act.cancel(job_guid, actor=actor)))
    return True


def _cancel(moves: Moves, row: Row) -> None:
    """End a waiting row."""
    to, reason = called_off(is_unproven=row.first_unproven_at is not None)
    moves.move(row, to, reason=reason)

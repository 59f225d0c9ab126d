"""Uncertain sends: claims that nobody reported about, decisions about them, and a person's word to send one again.

Changes outgoing rows through `ledger`; a person's word is audited. Who decides is in the pipeline.
"""

from collections.abc import Collection, Sequence
from typing import Final

from clarion.adapters.stores.shared.audit import append_audit
from clarion.adapters.stores.shared.queue.ledger import Located, lock_rows, write_rulings
from clarion.adapters.stores.shared.queue.one_time_code import require_data
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain import act
from clarion.domain.claim import Settlement, UncertainSend
from clarion.domain.ruling import after_decision, after_lease, at_retry
from clarion.ports.ensure import ITEMS_MAX, bounded

_SQL: Final = Statements("queue/uncertain.sql")


async def rescue_outgoing(transaction: Transaction, *, limit: int) -> int:
    """Turn `Sending` rows whose lease ran out into `Uncertain`, each with an attempt of unknown outcome."""
    expired = await transaction.fetch(Located, _SQL["lock_expired_rows"], limit=min(limit, ITEMS_MAX))
    rows = await lock_rows(transaction, [one.place for one in expired])
    await write_rulings(transaction, [(row, after_lease(row)) for row in rows], actor="rescue")
    return len(rows)


async def find_uncertain(transaction: Transaction, *, accounts: Collection[str], limit: int) -> list[UncertainSend]:
    """Return rows in `Uncertain` that wait for a decision, the oldest first."""
    return await transaction.fetch(UncertainSend, _SQL["find_uncertain"], accounts=sorted(accounts), limit=limit)


async def settle_uncertain(transaction: Transaction, settlements: Sequence[Settlement], *, actor: str) -> set[int]:
    """Replay uncertain rows or let them rest, where nothing has happened to them since they were read."""
    first = {(settlement.bucket, settlement.id): settlement for settlement in reversed(bounded(settlements))}
    rows = await lock_rows(transaction, first)
    ruled = [(row, after_decision(row, first[row.bucket, row.id])) for row in rows]
    await write_rulings(transaction, ruled, actor=actor)
    return {row.id for row, ruling in ruled if ruling.steps}


async def retry_outgoing(
    transaction: Transaction, tenant_id: str, outgoing_id: int, *, version: int, actor: str, reason: str
) -> bool:
    """Return a `FailedFinal` or `Uncertain` row to `RetryReady` on a person's word; False if it cannot be sent now."""
    done = act.retry(outgoing_id, reason=reason, actor=actor)
    found = await transaction.fetch(Located, _SQL["find_retried_row"], tenant_id=tenant_id, id=outgoing_id)
    rows = await lock_rows(transaction, [one.place for one in found])
    ruled = [(row, at_retry(row, version=version, reason=reason)) for row in rows]
    if not any(ruling.steps for _, ruling in ruled):
        return False
    for row in rows:
        await require_data(transaction, tenant_id, row.pk)
    await write_rulings(transaction, ruled, actor=actor)
    await append_audit(transaction, tenant_id, done)
    return True

"""Doubts: rows whose worker is gone, the verdicts about them, and a person's retry, which is audited.

Reads by the heads of partial indexes, changes through `move`.
"""

from collections.abc import Collection, Sequence
from typing import Final

from clarion.adapters.stores.query import load
from clarion.adapters.stores.shared.audit import append_audit
from clarion.adapters.stores.shared.transaction import finished
from clarion.adapters.stores.sqlite import codec
from clarion.adapters.stores.sqlite.clock import MICROSECOND
from clarion.adapters.stores.sqlite.queue.move import Moves, Wanted
from clarion.adapters.stores.sqlite.session import Transaction
from clarion.domain import act, trouble
from clarion.domain.attempt import AttemptStatus
from clarion.domain.claim import Doubt, DoubtVerdict
from clarion.domain.outgoing import OutgoingStatus
from clarion.ports.ensure import ITEMS_MAX, bounded

_SQL: Final = load(__package__, "doubt.sql")

_RETRIED: Final = frozenset({OutgoingStatus.FAILED_FINAL, OutgoingStatus.UNCERTAIN})
"""What a person may have sent again."""


def rescue_outgoing(transaction: Transaction, *, limit: int) -> int:
    """Turn `Sending` rows whose lease ran out into `Uncertain`, each with an attempt of unknown outcome."""
    expired = [row_id for (row_id,) in transaction.rows(_SQL["find_expired"], limit=min(limit, ITEMS_MAX))]
    if not expired:
        return 0
    moves = Moves(transaction, actor="rescue")
    for row in moves.read(Wanted(id=row_id, is_doubtful=True) for row_id in expired).values():
        moves.new_attempt(row, AttemptStatus.UNKNOWN, number=row.attempts)
        moves.doubt(row, reason="the lease ran out before an outcome was recorded")
    moves.write()
    return len(expired)


def find_doubts(transaction: Transaction, *, accounts: Collection[str], limit: int) -> list[Doubt]:
    """Return rows in `Uncertain` that wait for a decision, the oldest first."""
    return transaction.records(Doubt, _SQL["find_doubts"], accounts=codec.as_json(sorted(accounts)), limit=limit)


def settle_doubts(transaction: Transaction, verdicts: Sequence[DoubtVerdict], *, actor: str) -> set[int]:
    """Replay doubts or let them rest, where nothing has happened to them since they were read."""
    moves = Moves(transaction, actor=actor)
    rows = moves.read(Wanted(id=verdict.id) for verdict in bounded(verdicts))
    settled: set[int] = set()
    for verdict in verdicts:
        row = rows.get(verdict.id)
        if row is None or row.settle_at is None or row.version != verdict.version:
            continue
        settled.add(row.id)
        moves.move(row, verdict.to, reason=verdict.reason)
        if verdict.replay:
            row.due_at = transaction.now + verdict.delay // MICROSECOND
            row.replay_authorised = int(verdict.counts_as_duplicate)
            row.replays += verdict.counts_as_duplicate
        else:
            moves.report(row, trouble.left_uncertain, verdict.reason, account=row.account or "")
    moves.write()
    return settled


def retry_outgoing(
    transaction: Transaction, tenant_id: str, outgoing_id: int, *, version: int, actor: str, reason: str
) -> bool:
    """Return a `FailedFinal` or `Uncertain` row to `RetryReady` on a person's word; False if it has moved on."""
    moves = Moves(transaction, actor=actor)
    row = moves.read([Wanted(id=outgoing_id)]).get(outgoing_id)
    if row is None or row.tenant_id != tenant_id or row.version != version or row.status not in _RETRIED:
        return False
    if row.cancel_at is not None or (row.expires_at is not None and row.expires_at <= transaction.now):
        return False
    moves.move(row, OutgoingStatus.RETRY_READY, reason=reason)
    row.due_at, row.replay_authorised, row.not_called = transaction.now, 1, 0
    moves.write()
    finished(append_audit(transaction, tenant_id, act.retry(outgoing_id, reason=reason, actor=actor)))
    return True

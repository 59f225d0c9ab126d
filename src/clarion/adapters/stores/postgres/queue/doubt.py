"""Messages in doubt: claims that nobody reported about, decisions about them, and a person's word to try again.

Writes `outgoing_message`, `transition`, `delivery_attempt`, `flow`, `flow_count`, `support_case` for what is let rest
and, for a person's word, `audit_log`.
Who decides about a doubt is in the pipeline.
"""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from clarion.adapters.stores.postgres import codec
from clarion.adapters.stores.postgres.ensure.record import write_cases_of_tenants
from clarion.adapters.stores.postgres.queue.move import Locked, Move, Step, read_locked, write_moves
from clarion.adapters.stores.postgres.queue.record import lock_and_pin
from clarion.adapters.stores.postgres.session import Transaction
from clarion.adapters.stores.query import load
from clarion.adapters.stores.shared.audit import append_audit
from clarion.domain import act, trouble
from clarion.domain.claim import Doubt, DoubtVerdict
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.support import SupportCase

if TYPE_CHECKING:
    from clarion.adapters.stores.postgres.session import Connection

_SQL: Final = load(__package__, "doubt.sql")
_read_doubt: Final = codec.reader(Doubt)


async def rescue_outgoing(connection: "Connection", *, limit: int) -> int:
    """Turn `Sending` rows whose lease ran out into `Uncertain`, each with an attempt of unknown outcome."""
    expired = await connection.fetch(_SQL["lock_expired_messages"].sql, limit)
    if not expired:
        return 0
    rows = [read_locked(row) for row in expired]
    await lock_and_pin(connection, sorted((row.bucket, row.id) for row in rows))
    step = Step(to=OutgoingStatus.UNCERTAIN, reason="the lease ran out before an outcome was recorded")
    moves = [
        Move(row=row, steps=(step,), pin=row.account, first_unproven_at=found["claimed_at"])
        for row, found in zip(rows, expired, strict=True)
    ]
    await write_moves(connection, moves, actor="rescue")
    await connection.execute(
        _SQL["insert_unknown_attempts"].sql,
        [row.tenant_id for row in rows],
        [row.bucket for row in rows],
        [row.id for row in rows],
        [row.attempts for row in rows],
        [row.claim_token for row in rows],
        [row.account or "" for row in rows],
        [row.correlation_id for row in rows],
        [row.traceparent for row in rows],
    )
    return len(rows)


async def find_doubts(connection: "Connection", *, accounts: Collection[str], limit: int) -> list[Doubt]:
    """Return rows in `Uncertain` that wait for a decision, the oldest first."""
    return [_read_doubt(row) for row in await connection.fetch(_SQL["find_doubts"].sql, sorted(accounts), limit)]


async def settle_doubts(connection: "Connection", verdicts: Sequence[DoubtVerdict], *, actor: str) -> set[int]:
    """Replay doubts or let them rest, where nothing has happened to them since they were read."""
    first = {(verdict.bucket, verdict.id): verdict for verdict in reversed(verdicts)}
    ordered = [first[place] for place in sorted(first)]
    found = await connection.fetch(
        _SQL["lock_doubts"].sql,
        [verdict.bucket for verdict in ordered],
        [verdict.id for verdict in ordered],
        [verdict.version for verdict in ordered],
    )
    settled = [(ordered[row["place"] - 1], read_locked(row)) for row in found]
    moves = [
        Move(
            row=row,
            steps=(Step(to=verdict.to, reason=verdict.reason),),
            delay=verdict.delay,
            authorised=verdict.counts_as_duplicate,  # else the window is looked at again right before the call
            replays=int(verdict.counts_as_duplicate),
        )
        for verdict, row in settled
    ]
    await write_moves(connection, moves, actor=actor)
    resting = [(row.tenant_id, _case(row, verdict)) for verdict, row in settled if not verdict.replay]
    if resting:
        await write_cases_of_tenants(connection, resting)
    return {row.id for _, row in settled}


async def retry_outgoing(
    connection: "Connection", tenant_id: str, outgoing_id: int, *, version: int, actor: str, reason: str
) -> bool:
    """Return a `FailedFinal` or `Uncertain` row to `RetryReady` on a person's word; False if it has moved on."""
    found = await connection.fetchrow(_SQL["lock_failed_message"].sql, tenant_id, outgoing_id, version)
    if found is None:
        return False
    step = Step(to=OutgoingStatus.RETRY_READY, reason=reason)
    move = Move(row=read_locked(found), steps=(step,), delay=timedelta(), authorised=True, forgiven=True)
    await write_moves(connection, [move], actor=actor)
    await append_audit(Transaction(connection), tenant_id, act.retry(outgoing_id, reason=reason, actor=actor))
    return True


def _case(row: Locked, verdict: DoubtVerdict) -> SupportCase:
    return trouble.left_uncertain(
        row.tenant_id,
        account=row.account or "",
        message_id=row.message_id,
        reason=verdict.reason,
        correlation_id=row.correlation_id,
    )

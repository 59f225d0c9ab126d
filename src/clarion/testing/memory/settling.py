"""Settling: rows whose worker is gone, uncertain sends and their decisions, gates, cancels and a person's retry."""

from collections.abc import Collection, Sequence
from typing import Final
from uuid import UUID

from clarion.domain import act, trouble
from clarion.domain.attempt import AttemptStatus
from clarion.domain.claim import Gate, Settlement, UncertainSend
from clarion.domain.notification import NotificationJob, NotificationScheduler, NotificationStatus
from clarion.domain.outgoing import DUE, FINAL, OutgoingStatus, called_off
from clarion.testing.memory import moving, recording, stages
from clarion.testing.memory.catalog import append_audit
from clarion.testing.memory.moving import Row
from clarion.testing.memory.tables import Tables

_CANCELED_BY_A_PERSON: Final = (NotificationStatus.READY, NotificationStatus.PROCESSING, NotificationStatus.FAILED)


def rescue_outgoing(tables: Tables, *, limit: int) -> int:
    """Turn rows whose lease ran out into uncertain sends, each with an attempt of unknown outcome."""
    now = tables.now()
    expired = [
        (row.entry.lease_until, row.id, row)
        for row in moving.rows(tables)
        if row.entry.lease_until is not None and row.entry.lease_until <= now
    ]
    rescued = sorted(expired, key=lambda one: one[:2])[:limit]
    for *_, row in rescued:
        recording.new_attempt(tables, row, AttemptStatus.UNKNOWN, number=row.entry.attempts)
        recording.make_uncertain(tables, row, actor="rescue", reason="the lease ran out before an outcome was recorded")
    return len(rescued)


def find_uncertain(tables: Tables, *, accounts: Collection[str], limit: int) -> list[UncertainSend]:
    """Return rows in `Uncertain` that wait for a decision, the oldest first."""
    waiting = [
        (row.entry.settle_at, row.id, row)
        for row in moving.rows(tables)
        if row.entry.settle_at is not None and row.entry.account in accounts
    ]
    return [
        UncertainSend(
            id=row.id,
            bucket=row.message.bucket,
            tenant_id=row.tenant_id,
            version=row.message.version,
            account=row.entry.account or "",
            message_id=row.message.message_id,
            channel=row.message.channel,
            attempts=row.entry.attempts,
            unanswered=sum(
                one.status is AttemptStatus.UNKNOWN and one.latency_ms is not None
                for one in moving.attempts(tables, row)
            ),
            uncertain_policy=row.entry.uncertain_policy,
            replays=row.entry.replays,
            unknown_for=tables.now() - (row.entry.first_unknown_at or settle_at),
            is_over=_is_over(tables, row),
        )
        for settle_at, _, row in sorted(waiting, key=lambda one: one[:2])[:limit]
        if settle_at <= tables.now()
    ]


def settle_uncertain(tables: Tables, settlements: Sequence[Settlement], *, actor: str) -> set[int]:
    """Replay uncertain sends or let them rest, where nothing has happened to them since they were read."""
    settled: set[int] = set()
    for settlement in settlements:
        row = moving.find(tables, settlement.id)
        if row is None or row.entry.settle_at is None or row.message.version != settlement.version:
            continue
        settled.add(row.id)
        changes: dict[str, object] = (
            {}
            if not settlement.replay
            else {
                "due_at": tables.now() + settlement.delay,
                "replay_authorised": settlement.counts_as_duplicate,  # the window is checked again before the call
                "replays": row.entry.replays + settlement.counts_as_duplicate,
            }
        )
        moving.move(tables, row, settlement.to, actor=actor, reason=settlement.reason, changes=changes)
        if not settlement.replay:
            recording.report(tables, row, trouble.left_uncertain, settlement.reason, account=row.entry.account or "")
    return settled


def set_gate(tables: Tables, tenant_id: str, broadcast: str, gate: Gate, *, actor: str) -> bool:
    """Open, pause or cancel a broadcast; audited."""
    if tables.gate(tenant_id, broadcast) is gate:
        return False
    append_audit(tables, tenant_id, act.gate(broadcast, gate, actor=actor))
    tables.gates[tenant_id, broadcast] = gate
    return True


def sweep_canceled(tables: Tables, *, limit: int) -> int:
    """End waiting rows of canceled broadcasts, and waiting rows that were called off."""
    waiting = [row for row in moving.rows(tables) if row.status in DUE and _is_called_off(tables, row)]
    for row in waiting[:limit]:
        to, reason = called_off(may_have_arrived=row.entry.first_unknown_at is not None)
        moving.move(tables, row, to, actor="sweep", reason=reason)
    return len(waiting[:limit])


def cancel_job(tables: Tables, tenant_id: str, job_guid: UUID, *, actor: str) -> bool:
    """Cancel a direct job: its scheduler row unless finished, its waiting rows, what may still come back; audited."""
    job = next((job for job in tables.of(tenant_id, NotificationJob).values() if job.guid == job_guid), None)
    if job is None:
        return False
    done = act.cancel(job_guid, actor=actor)
    canceled = False
    for scheduler in list(tables.of(tenant_id, NotificationScheduler).values()):
        mine = scheduler.artifact_rk == job.row_key
        if mine and scheduler.status in _CANCELED_BY_A_PERSON:
            stages.move(tables, tenant_id, scheduler, to=NotificationStatus.CANCELED, reason=f"canceled by {actor}")
            canceled = True
    for row in list(moving.rows(tables)):
        mine = row.tenant_id == tenant_id and row.message.pk == job.row_key
        if mine and row.status not in FINAL and row.entry.cancel_at is None:
            _call_off(tables, row, actor=actor)
            canceled = True
    if canceled:
        append_audit(tables, tenant_id, done)
    return canceled


def retry_outgoing(tables: Tables, tenant_id: str, outgoing_id: int, *, version: int, actor: str, reason: str) -> bool:
    """Return a failed or uncertain row to `RetryReady` on a person's word; audited."""
    row = moving.find(tables, outgoing_id)
    if row is None or row.tenant_id != tenant_id or row.message.version != version:
        return False
    if row.status not in (OutgoingStatus.FAILED_FINAL, OutgoingStatus.UNCERTAIN) or _is_over(tables, row):
        return False
    append_audit(tables, tenant_id, act.retry(outgoing_id, reason=reason, actor=actor))
    changes = {"due_at": tables.now(), "replay_authorised": True, "not_called": 0}
    moving.move(tables, row, OutgoingStatus.RETRY_READY, actor=actor, reason=reason, changes=changes)
    return True


def _call_off(tables: Tables, row: Row, *, actor: str) -> None:
    """Mark a row as called off; one that waits is canceled at once, one in flight or uncertain when it comes back."""
    tables.cancelers[row.id] = actor
    row = moving.change(tables, row, cancel_at=tables.now())
    if row.status in DUE:
        to, reason = called_off(may_have_arrived=row.entry.first_unknown_at is not None)
        moving.move(tables, row, to, actor=actor, reason=reason)


def _is_over(tables: Tables, row: Row) -> bool:
    """Tell whether a row was canceled or is out of time, so that the claim would not let it out."""
    expires_at = row.entry.expires_at
    return row.entry.cancel_at is not None or (expires_at is not None and expires_at <= tables.now())


def _is_called_off(tables: Tables, row: Row) -> bool:
    return row.entry.cancel_at is not None or tables.gate(row.tenant_id, row.entry.broadcast) is Gate.CANCELED

"""Claiming: flows with work are discovered and rows taken out of them, by the rules of docs/explanation/claiming.md."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from clarion.domain.address import AddressVersion
from clarion.domain.claim import SOON, ClaimedMessage, Discovery, FlowHead, FlowQuota, LowMark
from clarion.domain.messaging import MessagingJob
from clarion.domain.notification import NotificationJob
from clarion.domain.outgoing import DUE, OutgoingStatus, called_off, out_of_time
from clarion.testing.memory import moving
from clarion.testing.memory.moving import Row
from clarion.testing.memory.record import Flow
from clarion.testing.memory.tables import Tables


def discover_flows(tables: Tables, *, routes: Collection[str], lows: Mapping[int, LowMark]) -> Discovery:
    """Find the flows that have a row due behind their low mark, behind an open gate."""
    now = tables.now()
    heads: list[FlowHead] = []
    later: list[datetime] = []
    for flow in tables.flows():
        waiting = _waiting(tables, flow, lows.get(flow.id)) if flow.route in routes else []
        if not waiting:
            continue
        due_at = _due(waiting[0])
        if due_at > now:
            later.append(due_at)
            continue
        heads.append(
            FlowHead(
                flow_id=flow.id,
                tenant_id=flow.tenant_id,
                lane=flow.lane,
                route=flow.route,
                broadcast=flow.broadcast,
                account=flow.account,
            )
        )
    return Discovery(heads=tuple(heads), next_due_in=min(later) - now if later else None)


def claim_outgoing(
    tables: Tables, quotas: Sequence[FlowQuota], *, token: UUID, lease: timedelta, actor: str
) -> list[ClaimedMessage]:
    """Take due rows, at most each flow's quota; what is due is judged once, before anything is moved."""
    now = tables.now()
    picked = {row.id: (row, quota.account) for quota in quotas for row in _pick(tables, quota)}
    ruled = [(row, account, *_rule(tables, row)) for row, account in picked.values()]
    for row, _, to, _ in ruled:
        if to in DUE:
            moving.change(tables, row, due_at=now + lease, in_line=True)
    claimed: list[ClaimedMessage] = []
    for row, account, to, reason in ruled:
        if reason is not None:
            moving.move(tables, row, to, actor=actor, reason=reason)
        elif to is OutgoingStatus.SENDING:
            changes = {
                "lease_until": now + lease,
                "claim_token": token,
                "account": account,
                "attempts": row.entry.attempts + 1,
                "replay_authorised": row.entry.replay_authorised,  # for this call: whatever comes of it consumes it
            }
            taken = moving.move(tables, row, to, actor=actor, changes=changes)
            claimed.append(_claimed(tables, before=row, after=taken))
    return claimed


def _waiting(tables: Tables, flow: Flow, low: LowMark | None) -> list[Row]:
    """Give a flow's rows behind its low mark in the order in which they fall due; none behind a closed gate."""
    waiting = [
        row
        for row in moving.rows(tables)
        if row.status in DUE and moving.flow_of(tables, row) is flow and moving.is_open(tables, row)
        if low is None or (_due(row), row.id) > (low.due_at, low.id)
    ]
    return sorted(waiting, key=lambda row: (_due(row), row.id))


def _pick(tables: Tables, quota: FlowQuota) -> list[Row]:
    """Choose the rows of one flow; those of a flow that is pinned go through no other account."""
    flow = next((flow for flow in tables.flows() if flow.id == quota.flow_id), None)
    if flow is None or flow.account not in ("", quota.account):
        return []
    due = [row for row in _waiting(tables, flow, quota.low) if _due(row) <= tables.now()]
    return due[: quota.quota]


def _rule(tables: Tables, row: Row) -> tuple[OutgoingStatus, str | None]:
    """Decide what becomes of a picked row, and why if it ends; one that must wait for its order stays where it is."""
    may_have_arrived = row.entry.first_unknown_at is not None
    if row.entry.cancel_at is not None:
        return called_off(may_have_arrived=may_have_arrived)
    if row.entry.expires_at is not None and row.entry.expires_at <= tables.now():
        return out_of_time(may_have_arrived=may_have_arrived)
    return row.status if _is_blocked(tables, row) else OutgoingStatus.SENDING, None


def _is_blocked(tables: Tables, row: Row) -> bool:
    """Tell whether a row waits for another one of its order key: one in flight, or an earlier one about to go."""
    if row.entry.order_key is None:
        return False
    others = [one for one in moving.rows(tables) if one.entry.order_key == row.entry.order_key and one.id != row.id]
    return any(one.status is OutgoingStatus.SENDING or (one.id < row.id and _goes_soon(tables, one)) for one in others)


def _goes_soon(tables: Tables, row: Row) -> bool:
    """Tell whether a row is due or near its retry; one that is pinned waits for its replay and blocks nobody."""
    if row.status not in DUE or row.entry.pinned or not moving.is_open(tables, row):
        return False
    soon = SOON if row.status is OutgoingStatus.RETRY_READY else timedelta()
    return _due(row) <= tables.now() + soon


def _due(row: Row) -> datetime:
    """Give the due time that a waiting row has."""
    if row.entry.due_at is None:
        raise AssertionError("a row that waits has a due time")
    return row.entry.due_at


def _claimed(tables: Tables, *, before: Row, after: Row) -> ClaimedMessage:
    """Gather what a call needs from the row, its address version and its parent."""
    message, entry, tenant_id = after.message, after.entry, after.tenant_id
    addresses = tables.of(tenant_id, AddressVersion).values()
    address = next(one for one in addresses if one.id == message.address_id)
    job = tables.of(tenant_id, NotificationJob).get((message.pk,))
    campaign = tables.of(tenant_id, MessagingJob).get((message.pk,))
    parent = campaign or job
    if parent is None or entry.claim_token is None or entry.account is None:
        raise AssertionError("a claimed row has a parent, a token and an account")
    return ClaimedMessage(
        id=after.id,
        bucket=message.bucket,
        tenant_id=tenant_id,
        flow_id=moving.flow_of(tables, after).id,
        message_id=message.message_id,
        channel=message.channel,
        attempt_no=message.attempt_no,
        attempts=entry.attempts,
        not_called=entry.not_called,
        claim_token=entry.claim_token,
        account=entry.account,
        was_due_at=_due(before),
        recipient_id_hash=address.recipient_id_hash,
        key_hash=address.key_hash,
        address_serial=address.serial,
        ciphertext=address.ciphertext,
        job_guid=parent.guid,
        event_type=parent.event_type if isinstance(parent, NotificationJob) else parent.kind,
        template_key=parent.template_key,
        template_version=parent.template_version,
        payload=parent.payload if isinstance(parent, NotificationJob) else None,
        content_hash=entry.content_hash,
        replay_authorised=before.entry.replay_authorised,
        unknown_for=None if entry.first_unknown_at is None else tables.now() - entry.first_unknown_at,
        correlation_id=message.correlation_id,
        traceparent=entry.traceparent,
    )

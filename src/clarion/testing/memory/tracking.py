"""Receipts: kept once each as they came, and merged into their rows by rank, in any order to the same end."""

from collections.abc import Sequence

import msgspec

from clarion.domain.address import AddressVersion
from clarion.domain.attempt import AttemptStatus, is_told_of
from clarion.domain.outgoing import DUE, OutgoingStatus
from clarion.ports.track import ProviderEvent
from clarion.testing.memory import moving, recording
from clarion.testing.memory.moving import Row
from clarion.testing.memory.record import DeliveryAttempt, WebhookEvent
from clarion.testing.memory.tables import Tables


def keep_events(tables: Tables, tenant_id: str, events: Sequence[ProviderEvent]) -> int:
    """Store events that are new by account and event id; return how many were."""
    kept = tables.of(tenant_id, WebhookEvent)
    before = len(kept)
    for event in events:
        row = WebhookEvent(**msgspec.structs.asdict(event.storable()), received_at=tables.now())
        kept.setdefault(row.key, row)
    return len(kept) - before


def apply_events(tables: Tables, *, limit: int, actor: str) -> int:
    """Merge kept events into their rows, oldest first; one whose row is yet to be sent waits and holds up nobody."""
    waiting = [
        (tenant_id, event, row)
        for tenant_id, event in tables.everywhere(WebhookEvent)
        if event.applied_at is None
        if (row := row_of(tables, tenant_id, event)) and (row.entry.attempts or row.status not in DUE)
    ]
    waiting.sort(key=lambda one: one[1].received_at)
    for tenant_id, event, row in waiting[:limit]:
        _apply(tables, event, moving.find(tables, row.id) or row, actor=actor)
        applied = msgspec.structs.replace(event, applied_at=tables.now())
        tables.of(tenant_id, WebhookEvent)[event.key] = applied
    return len(waiting[:limit])


def row_of(tables: Tables, tenant_id: str, event: WebhookEvent) -> Row | None:
    """Find the row that an event is about: by our key, or else by the provider's id of one of its attempts."""
    addresses = {address.id: address.key_hash for address in tables.of(tenant_id, AddressVersion).values()}
    for row in moving.rows(tables):
        if row.tenant_id != tenant_id:
            continue
        ours = (row.message.message_id, addresses[row.message.address_id])
        if ours == (event.message_id, event.recipient_key_hash) or _has_attempt(tables, row, event):
            return row
    return None


def _has_attempt(tables: Tables, row: Row, event: WebhookEvent) -> bool:
    """Tell whether a row has an attempt of this provider id at this account."""
    return event.provider_message_id is not None and any(
        (one.account, one.provider_message_id) == (event.account, event.provider_message_id)
        for one in moving.attempts(tables, row)
    )


def _apply(tables: Tables, event: WebhookEvent, row: Row, *, actor: str) -> None:
    """Merge one event: whatever it shows, the provider has accepted an attempt of the row."""
    tried = moving.attempts(tables, row)
    if row.status is OutgoingStatus.SENDING and not any(one.attempt == row.entry.attempts for one in tried):
        tried = [recording.new_attempt(tables, row, AttemptStatus.UNKNOWN, number=row.entry.attempts)]
    unknown = [one for one in tried if one.status is AttemptStatus.UNKNOWN]
    if unknown and not any(
        one.status is AttemptStatus.ACCEPTED
        and is_told_of(accepted_id=one.provider_message_id, told_id=event.provider_message_id)
        for one in tried
    ):
        settled = moving.settle_attempt(tables, row, unknown[-1], AttemptStatus.ACCEPTED)
        pid = settled.provider_message_id or event.provider_message_id
        attempt = msgspec.structs.replace(settled, provider_message_id=pid)
        tables.of(row.tenant_id, DeliveryAttempt)[attempt.key] = attempt
    pid = row.entry.provider_message_id or event.provider_message_id
    row = moving.change(tables, row, provider_message_id=pid)
    moving.show(tables, row, event.status, actor=actor, reason=f"receipt {event.event_id} of {event.account}")

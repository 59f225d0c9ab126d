"""Outgoing rows on the move: one legal change of state, with all that belongs to it.

Every change goes through `move`: the table of legal moves, version + 1, one transition line, the counters of the flow,
and the wake-up of the next row of the same order key when one is closed. Nothing else writes a status.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

import msgspec

from clarion.domain.attempt import DELIVERY_ATTEMPT, AttemptStatus
from clarion.domain.claim import Gate
from clarion.domain.outgoing import (
    OPEN,
    OUTGOING_MESSAGE,
    OutgoingMessage,
    OutgoingStatus,
    ReasonClass,
    merge,
)
from clarion.testing.memory.record import DeliveryAttempt, Flow, QueueEntry, Transition
from clarion.testing.memory.tables import Tables

# A row is due, in line, leased, uncertain or authorised only until it moves; a move that keeps or sets one says so.
_OF_A_STATE: Final = {
    "due_at": None,
    "in_line": False,
    "lease_until": None,
    "settle_at": None,
    "replay_authorised": False,
}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One outgoing row, whole."""

    tenant_id: str
    message: OutgoingMessage
    entry: QueueEntry

    @property
    def id(self) -> int:
        """The row's id, which is never missing in a store."""
        return self.message.id or 0

    @property
    def status(self) -> OutgoingStatus:
        """Where the row stands."""
        return self.message.status


def rows(tables: Tables) -> Iterator[Row]:
    """Walk all rows of all tenants in the order of their ids."""
    for outgoing_id in tables.places:
        row = find(tables, outgoing_id)
        if row is not None:
            yield row


def find(tables: Tables, outgoing_id: int) -> Row | None:
    """Return a row by its id, or None."""
    place = tables.places.get(outgoing_id)
    if place is None:
        return None
    tenant_id, key = place
    message = tables.of(tenant_id, OutgoingMessage).get(key)
    if message is None:
        return None
    entry = tables.of(tenant_id, QueueEntry)[message.pk, message.rk]
    return Row(tenant_id=tenant_id, message=message, entry=entry)


def flow_of(tables: Tables, row: Row) -> Flow:
    """Return the flow that a row waits in."""
    entry = row.entry
    return tables.flow(
        row.tenant_id, lane=entry.lane, route=entry.route, broadcast=entry.broadcast, account=entry.pinned
    )


def is_open(tables: Tables, row: Row) -> bool:
    """Tell whether the gate of a row's broadcast is open."""
    return tables.gate(row.tenant_id, row.entry.broadcast) is Gate.OPEN


def change(tables: Tables, row: Row, **changes: object) -> Row:
    """Change what is no state."""
    entry = msgspec.structs.replace(row.entry, **changes)
    tables.of(row.tenant_id, QueueEntry)[entry.key] = entry
    return msgspec.structs.replace(row, entry=entry)


def move(
    tables: Tables,
    row: Row,
    to: OutgoingStatus,
    *,
    actor: str,
    reason: str | None = None,
    reason_class: ReasonClass | None = None,
    changes: Mapping[str, object] | None = None,
) -> Row:
    """Make one legal move; `changes` are what else it brings."""
    OUTGOING_MESSAGE.require(from_=row.status, to=to)
    tables.count(flow_of(tables, row), row.status, row.entry.reason_class, by=-1)
    message = msgspec.structs.replace(row.message, status=to, version=row.message.version + 1)
    tables.of(row.tenant_id, OutgoingMessage)[message.key] = message
    moved = change(
        tables,
        msgspec.structs.replace(row, message=message),
        **{**_OF_A_STATE, "reason": reason, "reason_class": reason_class or "", **(changes or {})},
    )
    line = Transition(
        outgoing_id=row.id,
        version=message.version,
        from_status=row.status,
        to_status=to,
        at=tables.now(),
        actor=tables.cancelers.get(row.id, actor) if to is OutgoingStatus.CANCELED else actor,
        reason=reason,
    )
    tables.of(row.tenant_id, Transition)[line.key] = line
    tables.count(flow_of(tables, moved), to, moved.entry.reason_class, by=1)
    if row.status in OPEN and to not in OPEN:
        _wake_next(tables, moved)
    return moved


def show(tables: Tables, row: Row, evidence: OutgoingStatus, *, actor: str, reason: str | None = None) -> Row:
    """Merge evidence into a row by rank; it never moves a row backwards, nor one that was never sent."""
    if not row.entry.attempts or merge(current=row.status, evidence=evidence) is row.status:
        return row
    return move(tables, row, evidence, actor=actor, reason=reason)


def attempts(tables: Tables, row: Row) -> list[DeliveryAttempt]:
    """Give a row's attempts in their order."""
    mine = [one for one in tables.of(row.tenant_id, DeliveryAttempt).values() if one.outgoing_id == row.id]
    return sorted(mine, key=lambda one: one.attempt)


def settle_attempt(tables: Tables, row: Row, attempt: DeliveryAttempt, status: AttemptStatus) -> DeliveryAttempt:
    """Say what became of an attempt of unknown outcome; any other stays as it is."""
    if attempt.status is not AttemptStatus.UNKNOWN or status is AttemptStatus.UNKNOWN:
        return attempt
    DELIVERY_ATTEMPT.require(from_=attempt.status, to=status)
    settled = msgspec.structs.replace(attempt, status=status)
    tables.of(row.tenant_id, DeliveryAttempt)[settled.key] = settled
    return settled


def claimed_at(tables: Tables, row: Row) -> datetime:
    """Tell when the row was last claimed: before that its call cannot have begun."""
    lines = tables.of(row.tenant_id, Transition).values()
    return max(line.at for line in lines if line.outgoing_id == row.id and line.to_status is OutgoingStatus.SENDING)


def _wake_next(tables: Tables, closed: Row) -> None:
    """Make the next row that waits in line behind a closed one due at once."""
    key = closed.entry.order_key
    for row in rows(tables):
        if key is not None and row.entry.order_key == key and row.entry.in_line and is_open(tables, row):
            change(tables, row, due_at=tables.now(), in_line=False)
            return

"""Receipts: kept once each as they came, and merged into their rows by rank, in any order to the same end (I-31).

Writes `webhook_event`; outgoing rows change through `queue.move`.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from clarion.adapters.stores.query import load
from clarion.adapters.stores.sqlite import codec
from clarion.adapters.stores.sqlite.queue.move import Attempt, Moves, Row, Wanted
from clarion.adapters.stores.sqlite.session import Transaction
from clarion.domain.attempt import AttemptStatus, is_told_of
from clarion.domain.outgoing import OutgoingStatus
from clarion.ports.ensure import ITEMS_MAX, bounded
from clarion.ports.track import ProviderEvent

_SQL: Final = load(__package__, "track.sql")


class _Waiting(msgspec.Struct, frozen=True):
    """A kept event and the row that it is about, as far as that is known; fields as they are read."""

    tenant_id: str
    account: str
    event_id: str
    status: str
    provider_message_id: str | None
    row_id: int | None

    @property
    def key(self) -> tuple[str, str, str]:
        """What is unique."""
        return (self.tenant_id, self.account, self.event_id)


def keep_events(transaction: Transaction, tenant_id: str, events: Sequence[ProviderEvent]) -> int:
    """Store events that are new by (account, event id); return how many were."""
    given = codec.parameter([event.storable() for event in bounded(events)])
    return len(transaction.rows(_SQL["insert_events"], tenant_id=tenant_id, events=given))


def apply_events(transaction: Transaction, *, limit: int, actor: str) -> int:
    """Merge kept events into their rows, oldest first; one whose row is not known yet waits and holds up nobody."""
    waiting = [_Waiting(*row) for row in transaction.rows(_SQL["find_waiting_events"], limit=ITEMS_MAX)]
    known = [event for event in waiting if event.row_id is not None][: min(limit, ITEMS_MAX)]
    if len(waiting) == ITEMS_MAX and (lost := [event.key for event in waiting if event.row_id is None]):
        transaction.rows(_SQL["send_to_the_end"], events=codec.as_json(lost))
    if not known:
        return 0
    moves = Moves(transaction, actor=actor)
    rows = moves.read(Wanted(id=event.row_id, claim_token="") for event in known if event.row_id is not None)
    attempts = {row.id: Attempt.known(row) for row in rows.values()}
    for event in known:
        row = rows[event.row_id or 0]
        _apply(moves, event, row, attempts[row.id])
    moves.write()
    transaction.rows(_SQL["mark_applied"], events=codec.as_json([event.key for event in known]))
    return len(known)


def _apply(moves: Moves, event: _Waiting, row: Row, tried: list[Attempt]) -> None:
    """Merge one event: whatever it shows, the provider has accepted an attempt of the row."""
    if row.status == OutgoingStatus.SENDING and not any(one.attempt == row.attempts for one in tried):
        tried.append(moves.new_attempt(row, AttemptStatus.UNKNOWN, number=row.attempts))
    doubtful = [one for one in tried if one.status == AttemptStatus.UNKNOWN]
    if doubtful and not any(
        one.status == AttemptStatus.ACCEPTED
        and is_told_of(accepted_id=one.provider_message_id, told_id=event.provider_message_id)
        for one in tried
    ):
        attempt = doubtful[-1]
        attempt.settle(AttemptStatus.ACCEPTED)
        attempt.provider_message_id = attempt.provider_message_id or event.provider_message_id
        moves.keep(attempt)
    row.provider_message_id = row.provider_message_id or event.provider_message_id
    moves.change(row)
    evidence = OutgoingStatus(event.status)
    moves.show(row, evidence, reason=f"receipt {event.event_id} of {event.account}")

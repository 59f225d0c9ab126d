"""Receipts: kept once each as they came, and merged into their rows by rank, in any order to the same end (I-31).

Writes `webhook_event`; changes outgoing rows through `queue.ledger`, and suppresses through `refusal`. What a receipt
does to a row is in `domain.ruling`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from clarion.adapters.stores.shared.queue.ledger import Place, lock_rows, read_attempts, write_rulings
from clarion.adapters.stores.shared.refusal import destinations_of, heed
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain.queue_row import Receipt
from clarion.domain.ruling import after_receipt, may_be_received
from clarion.domain.suppression import WORDS
from clarion.ports.ensure import ITEMS_MAX, bounded
from clarion.ports.track import ProviderEvent

_SQL: Final = Statements("receipts.sql")

Key = tuple[str, str, str]
"""What is unique of a receipt: tenant, account and event id."""

PASSES_MAX: Final = 10
"""How often a page full of receipts without a row is passed over in one transaction; the rest is in the next one."""

ASIDE_MIN, ASIDE_MAX = timedelta(seconds=1), timedelta(hours=1)
"""For how long such receipts are put aside: as long as they have waited already, within these bounds."""


class _Waiting(Receipt, frozen=True, kw_only=True):
    """A kept receipt, and what its row is found by."""

    tenant_id: str
    message_id: UUID | None
    recipient_key_hash: str | None
    received_at: datetime

    @property
    def key(self) -> Key:
        """What is unique."""
        return (self.tenant_id, self.account, self.event_id)


class _Found(msgspec.Struct, frozen=True):
    """The row of a receipt, which is named by its place in the set that was asked about."""

    place: int
    bucket: int
    id: int


async def keep_events(transaction: Transaction, tenant_id: str, events: Sequence[ProviderEvent]) -> int:
    """Store receipts that are new by (account, event id); return how many were."""
    new = {(event.account, event.event_id): event.storable() for event in reversed(bounded(events))}
    rows = [
        (
            *key,
            one.status,
            one.message_id,
            one.recipient_key_hash,
            one.provider_message_id,
            one.signal,
            one.happened_at,
            one.raw,
        )
        for key, one in reversed(new.items())
    ]
    given = [(*row, timedelta(microseconds=place)) for place, row in enumerate(rows)]
    return await transaction.execute(_SQL["insert_receipts"], tenant_id=tenant_id, events=given) if given else 0


async def apply_events(transaction: Transaction, *, limit: int, actor: str) -> int:
    """Merge kept receipts into their rows; return how many. One whose row is not known yet waits and holds up nobody.

    It is looked at every time, so that it is applied as soon as its row or the provider's id is known (F-38). Only
    where more of them wait than can be looked at in one transaction they are put aside for a while (F-49).
    """
    size = limit = min(limit, ITEMS_MAX)
    waiting: list[_Waiting] = []
    places: dict[Key, Place] = {}
    for _ in range(PASSES_MAX):
        waiting = await _lock_waiting(transaction, size)
        places = await _find_rows(transaction, waiting)
        if len(places) >= limit or len(waiting) < size:
            break  # enough, or all that wait
        if size == ITEMS_MAX:
            lost = [one.key for one in waiting if one.key not in places]
            await transaction.execute(_SQL["put_aside"], events=lost, shortest=ASIDE_MIN, longest=ASIDE_MAX)
        size = ITEMS_MAX
    known = [one for one in waiting if one.key in places][:limit]
    return await _apply(transaction, known, places, actor=actor)


async def _lock_waiting(transaction: Transaction, limit: int) -> list[_Waiting]:
    return await transaction.fetch(_Waiting, _SQL["lock_waiting_receipts"], limit=limit)


async def _find_rows(transaction: Transaction, waiting: Sequence[_Waiting]) -> dict[Key, Place]:
    """Find the row of each receipt, if it is known and was called; of several the first."""
    if not waiting:
        return {}
    given = [
        (one.tenant_id, one.account, one.message_id, one.recipient_key_hash, one.provider_message_id) for one in waiting
    ]
    found = await transaction.fetch(_Found, _SQL["find_rows_of_receipts"], events=given)
    found.sort(key=lambda row: row.id, reverse=True)
    return {waiting[row.place - 1].key: (row.bucket, row.id) for row in found}


async def _apply(
    transaction: Transaction, known: Sequence[_Waiting], places: Mapping[Key, Place], *, actor: str
) -> int:
    """Apply receipts whose rows are known, in the order in which they came."""
    by_row: dict[Place, list[_Waiting]] = defaultdict(list)
    for one in sorted(known, key=lambda one: one.received_at):
        by_row[places[one.key]].append(one)
    rows = [row for row in await lock_rows(transaction, by_row) if may_be_received(row)]
    tried = await read_attempts(transaction, [(row.bucket, row.id) for row in rows])
    ruled = [(row, after_receipt(row, by_row[row.bucket, row.id], tried.get(row.id, ()))) for row in rows]
    await write_rulings(transaction, ruled, actor=actor)
    told = [(row, one) for row in rows for one in by_row[row.bucket, row.id]]
    if not told:
        return 0
    subjects = await destinations_of(transaction, told)
    words = {one.key: subjects[row.id] for row, one in told if one.signal in WORDS}
    applied = sorted((*one.key, words.get(one.key)) for _, one in told)
    await transaction.execute(_SQL["mark_applied"], events=applied)
    await heed(transaction, told, subjects, actor=actor)
    return len(applied)

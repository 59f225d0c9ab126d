"""What receipts say of their recipients: an address that bounced, a complaint, STOP and START.

Writes `suppression`, in the transaction that applies the receipts, so that it is there before the next claim (I-34).
What a receipt does to its row is in `receipts`; which of them suppress is `domain.suppression`'s to say.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import msgspec

from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.suppression import delete_suppressions, lock_suppressions, write_suppressions
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.queue_row import LockedRow
from clarion.domain.suppression import (
    EVERYTHING,
    WORDS,
    Cause,
    Signal,
    Suppression,
    Word,
    cause_of,
    last_word,
    note_of,
)

_SQL: Final = Statements("refusal.sql")


class Event(Protocol):
    """A receipt as it is applied."""

    @property
    def account(self) -> str:
        """Through which account it came."""
        ...

    @property
    def event_id(self) -> str:
        """The provider's name for it."""
        ...

    @property
    def status(self) -> OutgoingStatus:
        """What it shows of its message."""
        ...

    @property
    def signal(self) -> Signal | None:
        """What it says besides."""
        ...


Told = Sequence[tuple[LockedRow, Event]]
"""Rows, and receipts about them."""


class _At(msgspec.Struct, frozen=True):
    id: int
    destination_index: str


class _Said(Word, frozen=True, kw_only=True):
    tenant_id: str
    subject: str


async def destinations_of(transaction: Transaction, told: Told) -> dict[int, str]:
    """Find where the rows went whose recipients cannot be reached, want no more, or answered; by the row's id."""
    rows = sorted({(row.bucket, row.id) for row, one in told if _cause(one) is not None or one.signal in WORDS})
    if not rows:
        return {}
    return {one.id: one.destination_index for one in await transaction.fetch(_At, _SQL["find_destinations"], rows=rows)}


async def heed(transaction: Transaction, told: Told, subjects: Mapping[int, str], *, actor: str) -> None:
    """Suppress what bounced, and whoever complained or answered STOP last; lift what STOP made where START came last.

    After the events are marked as applied, with what they were answered from.
    """
    items = [
        (row.tenant_id, _everything(subjects[row.id], cause, one))
        for row, one in told
        if (cause := _cause(one)) is not None and one.signal not in WORDS
    ]
    answered = {
        (row.tenant_id, one.account, one.event_id): subjects[row.id] for row, one in told if one.signal in WORDS
    }
    started: list[tuple[str, str, str]] = []
    for tenant_id, subject, word in await _last_words(transaction, answered):
        if word.signal is Signal.STOP:
            items.append((tenant_id, _everything(subject, Cause.STOP, word)))
        else:
            started.append((tenant_id, subject, EVERYTHING))
    if items:
        await write_suppressions(transaction, items, actor=actor)
    stored = await lock_suppressions(transaction, started)
    await delete_suppressions(transaction, [one for one in stored if one.cause is Cause.STOP])


async def _last_words(
    transaction: Transaction, answered: Mapping[tuple[str, str, str], str]
) -> list[tuple[str, str, Word]]:
    """Give what was answered last from each destination, where it is among what came now; else it was done before.

    Two trackers that apply STOP and START of one destination at once take turns: the second sees what the first one
    applied.
    """
    if not answered:
        return []
    for tenant_id in sorted({tenant_id for tenant_id, _, _ in answered}):
        await transaction.lock(f"clarion words {tenant_id}")
    places = sorted({(tenant_id, subject) for (tenant_id, _, _), subject in answered.items()})
    said: dict[tuple[str, str], list[Word]] = defaultdict(list)
    for one in await transaction.fetch(_Said, _SQL["read_words"], subjects=places):
        said[one.tenant_id, one.subject].append(one)
    last = [(*place, last_word(words)) for place, words in sorted(said.items())]
    return [
        (tenant, subject, word) for tenant, subject, word in last if (tenant, word.account, word.event_id) in answered
    ]


def _everything(subject: str, cause: Cause, event: Event | Word) -> Suppression:
    """Suppress a destination, and say where that is known from, as far as a note holds it."""
    note = note_of(f"receipt {event.event_id} of {event.account}")
    return Suppression(subject=subject, scope=EVERYTHING, cause=cause, note=note)


def _cause(one: Event) -> Cause | None:
    return cause_of(one.status, one.signal)

"""Inboxes: entering lines, listing and counting them, what readers make of them, and sweeping what has expired.

Writes `inbox_state`, `inbox_count` and, of `user_message`, only whether a line is entered. What a line's row and its
inbox make of it together is ruled by `domain.inbox`. Whoever changes lines holds their inbox's row in `inbox_count`
first, so that its counters and its lines change together.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction, first
from clarion.domain.inbox import Counts, Inbox, LineRow, LineState, Marking, after_all, after_one, state_of
from clarion.ports.ensure import ITEMS_MAX, bounded
from clarion.ports.inbox import InboxCount, InboxLine
from clarion.ports.insights import PAGE_MAX

_SQL: Final = Statements("inbox.sql")

InboxKey = tuple[str, str]
"""A tenant, and the hash of whoever the inbox belongs to."""


class Entered(msgspec.Struct, frozen=True, kw_only=True):
    """A line that is there and not counted yet."""

    tenant_id: str
    recipient_id_hash: str
    row_key: str
    bucket: int
    id: int
    expires_at: datetime | None


class _Listed(Inbox, frozen=True, kw_only=True):
    """A line of a list, with the marks of its inbox."""

    id: int
    bucket: int
    partition_key: str
    row_key: str
    message_id: UUID
    job_row_key: str
    event_type: str
    category: str | None
    created_at: datetime
    line_mark: int
    seen_at: datetime | None
    read_at: datetime | None
    archived_at: datetime | None
    expires_at: datetime | None


class _Content(msgspec.Struct, frozen=True):
    id: int
    content: bytes


class _Held(Inbox, frozen=True, kw_only=True):
    """An inbox that is held, and the store's time."""

    tenant_id: str
    recipient_id_hash: str
    now: datetime


class _Place(msgspec.Struct, frozen=True, kw_only=True):
    tenant_id: str
    recipient_id_hash: str
    bucket: int
    user_message_id: int


class _Line(LineRow, frozen=True, kw_only=True):
    """The row of a line whose inbox is held."""

    tenant_id: str
    recipient_id_hash: str
    bucket: int
    user_message_id: int


class _Named(_Line, frozen=True, kw_only=True):
    """The same, found by its message."""

    message_id: UUID


async def enter(transaction: Transaction, lines: Sequence[Entered]) -> None:
    """Count new lines and give them their rows; the caller knows that they have none yet."""
    if not lines:
        return
    numbers = Counter((line.tenant_id, line.recipient_id_hash) for line in lines)
    await transaction.execute(_SQL["count_lines"], inboxes=[(*inbox, n) for inbox, n in numbers.items()])
    await transaction.execute(_SQL["insert_states"], lines=lines)


async def enter_lines(transaction: Transaction, *, limit: int) -> int:
    """Enter lines of a program that knew of no counts."""
    lines = await transaction.fetch(Entered, _SQL["lock_lines_outside"], limit=min(limit, ITEMS_MAX))
    if lines:
        await enter(transaction, lines)
        ids, buckets = [line.id for line in lines], sorted({line.bucket for line in lines})
        await transaction.execute(_SQL["note_entered"], ids=ids, buckets=buckets)
    return len(lines)


async def list_inbox(
    transaction: Transaction, tenant_id: str, recipient_id_hash: str, *, after: str = "", limit: int = 50
) -> list[InboxLine]:
    """List the lines of an inbox that have not expired, behind `after`."""
    inbox = {"tenant_id": tenant_id, "recipient_id_hash": recipient_id_hash}
    rows = await transaction.fetch(_Listed, _SQL["list_lines"], **inbox, after=after, limit=min(limit, PAGE_MAX))
    return [_listed(row) for row in rows]


async def find_contents(
    transaction: Transaction, tenant_id: str, lines: Collection[tuple[int, int]]
) -> dict[int, bytes]:
    """Return what lines say, sealed."""
    wanted = sorted(set(lines))
    if not bounded(wanted):
        return {}
    rows = await transaction.fetch(_Content, _SQL["find_contents"], tenant_id=tenant_id, lines=wanted)
    return {row.id: row.content for row in rows}


async def count_inbox(transaction: Transaction, tenant_id: str, recipient_id_hash: str) -> InboxCount:
    """Return the counts of an inbox; one that never had a line has none."""
    inbox = {"tenant_id": tenant_id, "recipient_id_hash": recipient_id_hash}
    return first(await transaction.fetch(InboxCount, _SQL["count_inbox"], **inbox)) or InboxCount()


async def mark_lines(
    transaction: Transaction,
    tenant_id: str,
    recipient_id_hash: str,
    message_ids: Collection[UUID],
    marking: Marking,
) -> set[UUID]:
    """Mark some lines of an inbox, and count them anew; only those are written that this changes."""
    asked = sorted(set(message_ids))
    if not bounded(asked):
        return set()
    held = await _hold(transaction, [(tenant_id, recipient_id_hash)])
    if not held:
        return set()
    (inbox,) = held.values()
    lines = await transaction.fetch(
        _Named,
        _SQL["read_lines_of_messages"],
        tenant_id=tenant_id,
        recipient_id_hash=recipient_id_hash,
        messages=asked,
    )
    states = [(line, state_of(line, inbox)) for line in lines]
    changed = [
        (line, before, after)
        for line, before in states
        if (after := after_one(before, marking, at=inbox.now)) != before
    ]
    if changed:
        recounted = inbox.counted([before for _, before, _ in changed], sign=-1).counted([one for *_, one in changed])
        rows = [
            (line.bucket, line.user_message_id, inbox.mark, after.seen_at, after.read_at, after.archived_at)
            for line, _, after in changed
        ]
        await transaction.execute(_SQL["write_states"], rows=rows)
        await transaction.execute(_SQL["write_inboxes"], inboxes=[recounted])
    return {line.message_id for line in lines}


async def mark_inbox(transaction: Transaction, tenant_id: str, recipient_id_hash: str, marking: Marking) -> Counts:
    """Mark all lines of an inbox by its own row alone."""
    held = await _hold(transaction, [(tenant_id, recipient_id_hash)])
    if not held:
        return Counts()
    (inbox,) = held.values()
    marked = after_all(inbox, marking, at=inbox.now)
    if marked is not inbox:
        await transaction.execute(_SQL["write_inboxes"], inboxes=[marked])
    return Counts(**{name: getattr(marked, name) for name in Counts.__struct_fields__})


async def sweep_inbox(transaction: Transaction, tenant_id: str, recipient_id_hash: str, *, limit: int) -> int:
    """Count out expired lines of one inbox."""
    inbox = {"tenant_id": tenant_id, "recipient_id_hash": recipient_id_hash}
    limit = min(limit, ITEMS_MAX)
    return await _sweep(
        transaction, await transaction.fetch(_Place, _SQL["find_expired_lines_of_inbox"], **inbox, limit=limit)
    )


async def sweep_inboxes(transaction: Transaction, *, limit: int) -> int:
    """Count out expired lines of all inboxes."""
    limit = min(limit, ITEMS_MAX)
    return await _sweep(transaction, await transaction.fetch(_Place, _SQL["find_expired_lines"], limit=limit))


async def _sweep(transaction: Transaction, places: Sequence[_Place]) -> int:
    """Hold the inboxes of these lines, look again, and count out those that are still to be."""
    if not places:
        return 0
    held = await _hold(transaction, {(place.tenant_id, place.recipient_id_hash) for place in places})
    lines = await transaction.fetch(
        _Line, _SQL["read_expired_lines"], lines=[(place.bucket, place.user_message_id) for place in places]
    )
    leaving: dict[InboxKey, list[LineState]] = {}
    for line in lines:
        inbox = line.tenant_id, line.recipient_id_hash
        leaving.setdefault(inbox, []).append(state_of(line, held[inbox]))
    if lines:
        recounted = [held[inbox].counted(states, sign=-1) for inbox, states in leaving.items()]
        await transaction.execute(_SQL["sweep_states"], lines=[(line.bucket, line.user_message_id) for line in lines])
        await transaction.execute(_SQL["write_inboxes"], inboxes=recounted)
    return len(lines)


async def _hold(transaction: Transaction, inboxes: Collection[InboxKey]) -> dict[InboxKey, _Held]:
    """Hold inboxes until the transaction ends; one that never had a line is left out."""
    rows = await transaction.fetch(_Held, _SQL["lock_inboxes"], inboxes=sorted(inboxes))
    return {(row.tenant_id, row.recipient_id_hash): row for row in rows}


def _listed(row: _Listed) -> InboxLine:
    state = LineRow(mark=row.line_mark, seen_at=row.seen_at, read_at=row.read_at, archived_at=row.archived_at)
    return InboxLine(
        **{name: getattr(row, name) for name in InboxLine.__struct_fields__ if name != "state"},
        state=state_of(state, row),
    )

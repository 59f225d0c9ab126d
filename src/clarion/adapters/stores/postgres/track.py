"""Receipts: kept once each as they came, and merged into their messages in batches, by rank.

Writes `webhook_event`, `outgoing_message`, `transition`, `delivery_attempt` and `flow_count`. What an event means was
decided by whoever verified it.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import asyncpg
import msgspec

from clarion.adapters.stores.postgres import codec
from clarion.adapters.stores.postgres.queue.move import Locked, Move, Step, read_locked, write_moves
from clarion.adapters.stores.query import load
from clarion.domain.attempt import AttemptStatus, is_told_of
from clarion.domain.outgoing import DUE, OutgoingStatus, merge
from clarion.ports.track import ProviderEvent

if TYPE_CHECKING:
    from clarion.adapters.stores.postgres.session import Connection

_SQL: Final = load(__package__, "track.sql")

YOUNG: Final = timedelta(minutes=1)
"""A receipt may overtake the record of its own call by a lease; while it is this young it is looked at every time."""

LOOK_MAX: Final = timedelta(hours=1)
"""How long an event whose row does not come waits at most between two looks."""

PAGES_MAX: Final = 10
"""How many pages of events without a row are passed over in one transaction; the rest is passed over in the next."""

Place = tuple[int, int]


class Merged(msgspec.Struct, frozen=True, kw_only=True):
    """What the events of one row make of it: its steps up in rank, and the attempts that they prove accepted."""

    row: Locked
    steps: tuple[Step, ...]
    accepted: tuple[tuple[int, str | None], ...]  # attempt, and the provider's id of it
    provider_message_id: str | None


async def keep_events(connection: "Connection", tenant_id: str, events: Sequence[ProviderEvent]) -> int:
    """Store events that are new by account and event id; return how many were."""
    first = {(event.account, event.event_id): event for event in reversed(events)}
    kept = [event.storable() for event in events if first.pop((event.account, event.event_id), None) is not None]
    made = await connection.fetch(
        _SQL["insert_events"].sql,
        tenant_id,
        [event.account for event in kept],
        [event.event_id for event in kept],
        [event.status for event in kept],
        [event.message_id for event in kept],
        [event.recipient_key_hash for event in kept],
        [event.provider_message_id for event in kept],
        [event.happened_at for event in kept],
        [event.raw for event in kept],
    )
    return len(made)


async def apply_events(connection: "Connection", *, limit: int, actor: str) -> int:
    """Merge kept events into their rows, in the order in which they came; those whose row is not known yet wait."""
    known, unknown = await _find(connection, limit=limit)
    by_place: dict[Place, list[asyncpg.Record]] = defaultdict(list)
    for event in sorted(known, key=lambda event: event["received_at"]):
        by_place[event["bucket"], event["id"]].append(event)
    rows = await _lock(connection, sorted(by_place))
    merged = [_merge(row, by_place[row.bucket, row.id], tried) for row, tried in rows]
    lifted = [one for one in merged if one.steps]
    moves = [Move(row=one.row, steps=one.steps, provider_message_id=one.provider_message_id) for one in lifted]
    await write_moves(connection, moves, actor=actor)
    await _settle_attempts(connection, merged)
    await _note_provider_ids(connection, [one for one in merged if not one.steps])
    applied = {(one.row.bucket, one.row.id) for one in merged}
    await _mark(connection, [*known, *unknown], applied)
    return sum(len(by_place[place]) for place in applied)


async def _find(connection: "Connection", *, limit: int) -> tuple[list[asyncpg.Record], list[asyncpg.Record]]:
    """Find events whose row is known, page by page past those whose row is not; return both."""
    known: list[asyncpg.Record] = []
    unknown: list[asyncpg.Record] = []
    look_at, received_at = None, None
    for _ in range(PAGES_MAX):
        page = await connection.fetch(_SQL["lock_events"].sql, limit - len(known), look_at, received_at)
        known += [event for event in page if event["id"] is not None]
        unknown += [event for event in page if event["id"] is None]
        if not page or len(known) == limit:
            break
        look_at, received_at = page[-1]["look_at"], page[-1]["received_at"]
    return known, unknown


async def _lock(connection: "Connection", places: Sequence[Place]) -> list[tuple[Locked, list[asyncpg.Record]]]:
    """Lock rows in the common order, and read their attempts after that; one that is yet to be called is left out."""
    if not places:
        return []
    parameters = [bucket for bucket, _ in places], [row_id for _, row_id in places]
    found = await connection.fetch(_SQL["lock_tracked_messages"].sql, *parameters)
    rows = [row for row in map(read_locked, found) if row.attempts or row.status not in DUE]
    tried: dict[Place, list[asyncpg.Record]] = defaultdict(list)
    for attempt in await connection.fetch(_SQL["read_attempts"].sql, *parameters):
        tried[attempt["bucket"], attempt["outgoing_id"]].append(attempt)
    return [(row, tried[row.bucket, row.id]) for row in rows]


def _merge(row: Locked, events: Sequence[asyncpg.Record], tried: Sequence[asyncpg.Record]) -> Merged:
    """Merge the events of one row one by one: whatever one shows, the provider has accepted an attempt of the row.

    Nothing moves a row that was never called.
    """
    status = row.status
    unknown = [attempt["attempt"] for attempt in tried if attempt["status"] == AttemptStatus.UNKNOWN]
    if status is OutgoingStatus.SENDING and all(attempt["attempt"] != row.attempts for attempt in tried):
        unknown.append(row.attempts)
    steps: list[Step] = []
    accepted: list[tuple[int, str | None]] = []
    sure = [attempt["provider_message_id"] for attempt in tried if attempt["status"] == AttemptStatus.ACCEPTED]
    for event in events:
        told_id = event["provider_message_id"]
        if unknown and not any(is_told_of(accepted_id=one, told_id=told_id) for one in sure):
            accepted.append((unknown.pop(), told_id))
            sure.append(told_id)
        evidence = codec.member(OutgoingStatus, event["status"])
        shown = merge(current=status, evidence=evidence) if row.attempts else status
        if shown is not status:
            steps.append(Step(to=shown, reason=f"receipt {event['event_id']} of {event['account']}"))
            status = shown
    told = (event["provider_message_id"] for event in events)
    return Merged(
        row=row,
        steps=tuple(steps),
        accepted=tuple(accepted),
        provider_message_id=next((one for one in told if one is not None), None),
    )


async def _settle_attempts(connection: "Connection", merged: Sequence[Merged]) -> None:
    """Write that attempts were accepted."""
    settled = [(one.row, attempt, told) for one in merged for attempt, told in one.accepted]
    if not settled:
        return
    await connection.execute(
        _SQL["settle_attempts"].sql,
        [row.tenant_id for row, _, _ in settled],
        [row.bucket for row, _, _ in settled],
        [row.id for row, _, _ in settled],
        [attempt for _, attempt, _ in settled],
        [row.claim_token for row, _, _ in settled],
        [row.account or "" for row, _, _ in settled],
        [told for _, _, told in settled],
        [row.correlation_id for row, _, _ in settled],
        [row.traceparent for row, _, _ in settled],
    )


async def _note_provider_ids(connection: "Connection", merged: Sequence[Merged]) -> None:
    """Keep what events told of rows that they did not lift."""
    told = [one for one in merged if one.provider_message_id is not None]
    if told:
        await connection.execute(
            _SQL["note_provider_ids"].sql,
            [one.row.bucket for one in told],
            [one.row.id for one in told],
            [one.provider_message_id for one in told],
        )


async def _mark(connection: "Connection", events: Sequence[asyncpg.Record], applied: set[Place]) -> None:
    """Mark applied events, and send the others to the end of the line."""
    if not events:
        return
    await connection.execute(
        _SQL["mark_events"].sql,
        [event["tenant_id"] for event in events],
        [event["account"] for event in events],
        [event["event_id"] for event in events],
        [(event["bucket"], event["id"]) in applied for event in events],
        YOUNG,
        LOOK_MAX,
    )

"""Ensuring outgoing messages: the hot path of every campaign, two statements a set, and more only for what was there.

The rows are made on the server from parents, address versions and flows; what travels is the set, and what its items
share travels once. Writes `source`, `flow`, `outgoing_message`, `outgoing_key`, `flow_count` and `support_case`, and
holds scheduler rows while it inserts.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from operator import itemgetter
from typing import TYPE_CHECKING, Final
from uuid import UUID

import asyncpg
import msgspec

from clarion.adapters.stores import answer
from clarion.adapters.stores.postgres import codec
from clarion.adapters.stores.postgres.ensure.record import write_cases
from clarion.adapters.stores.postgres.session import Overtaken
from clarion.adapters.stores.query import load
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.identity import Channel
from clarion.domain.outgoing import OutgoingItem, OutgoingMessage, OutgoingStatus
from clarion.errors import BrokenInvariant
from clarion.ports.ensure import unknown_address, unknown_parent

if TYPE_CHECKING:
    from clarion.adapters.stores.postgres.session import Connection

_SQL: Final = load(__package__, "outgoing.sql")

Parent = tuple[str, UUID | None]
Place = tuple[str, int, int | None]


async def ensure_outgoing_messages(
    connection: "Connection", tenant_id: str, items: Sequence[OutgoingItem]
) -> list[Ensured[OutgoingMessage]]:
    """Insert the rows that are absent while their holds hold, and compare those that are there."""
    try:
        made = await _insert(connection, tenant_id, items)
    except asyncpg.UniqueViolationError:
        raise Overtaken from None  # somebody has made one of the keys since we looked; the server's words quote it
    rows = await _with_stored(connection, tenant_id, items, made)
    known = [number for number, row in enumerate(rows) if row.id is not None]
    verdicts = answer.compare(
        tenant_id,
        [_given(items[number], rows[number]) for number in known],
        stored={rows[number].key: rows[number] for number in known},
        created={row.key for row in made.values()},
    )
    await write_cases(connection, tenant_id, verdicts.cases)
    answers = [Ensured(outcome=Outcome.SUPERSEDED, record=row) for row in rows]
    for number, verdict in zip(known, verdicts.answers, strict=True):
        answers[number] = verdict
    return answers


async def _insert(
    connection: "Connection", tenant_id: str, items: Sequence[OutgoingItem]
) -> dict[Place, OutgoingMessage]:
    """Make the flows and the rows that are absent; return the rows that were made."""
    parents = _parents(items)
    roads = sorted({(item.lane.value, item.route, item.source) for item in items})
    holds = sorted({item.hold for item in items if item.hold is not None})
    road_places = {road: place for place, road in enumerate(roads, 1)}
    hold_places: dict[tuple[int, int] | None, int] = {hold: place for place, hold in enumerate(holds, 1)}
    lanes, routes, sources = (list(map(itemgetter(part), roads)) for part in range(3))
    await connection.execute(_SQL["insert_flows"].sql, tenant_id, lanes, routes, sources)
    made = await connection.fetch(
        _SQL["insert_outgoing_messages"].sql,
        tenant_id,
        [pk for pk, _ in parents],
        [guid for _, guid in parents],
        lanes,
        routes,
        sources,
        [hold_id for hold_id, _ in holds],
        [version for _, version in holds],
        codec.numbers([parents[_parent(item)] for item in items]),
        codec.numbers([road_places[item.lane.value, item.route, item.source] for item in items]),
        codec.numbers([hold_places.get(item.hold) for item in items]),
        codec.numbers([item.address_id for item in items]),
        codec.texts([item.recipient_id_hash for item in items]),
        codec.words([item.channel for item in items]),
        codec.words([str(item.message_id) for item in items]),
        codec.numbers([item.attempt_no for item in items]),
        codec.texts([item.order_key for item in items]),
        codec.words([_instant(item.due_at) for item in items]),
        codec.words([_instant(item.expires_at) for item in items]),
        codec.words([item.doubt_policy for item in items]),
    )
    rows = [_message(row, status=OutgoingStatus.CREATED, version=1) for row in made]
    return {(row.pk, row.address_id, row.attempt_no): row for row in rows}


async def _with_stored(
    connection: "Connection",
    tenant_id: str,
    items: Sequence[OutgoingItem],
    made: dict[Place, OutgoingMessage],
) -> list[OutgoingMessage]:
    """Give each item its row: the one it made, the one that is stored, or the one it would have made, without an id.

    Items that name the same place are read even if a row was made there: not all of them need be right about it.
    """
    places = [_place(item) for item in items]
    times = Counter(places)
    rest = [number for number, place in enumerate(places) if place not in made or times[place] > 1]
    if not rest:
        return [made[place] for place in places]
    asked = [items[number] for number in rest]
    parents = _parents(asked)
    found = await connection.fetch(
        _SQL["read_outgoing_messages"].sql,
        tenant_id,
        [pk for pk, _ in parents],
        [guid for _, guid in parents],
        [parents[_parent(item)] for item in asked],
        [item.address_id for item in asked],
        [item.recipient_id_hash for item in asked],
        [item.channel for item in asked],
        [item.attempt_no for item in asked],
    )
    read = {number: _stored(items[number], row) for number, row in zip(rest, found, strict=True)}
    return [read.get(number) or made[place] for number, place in enumerate(places)]


def _stored(item: OutgoingItem, row: asyncpg.Record) -> OutgoingMessage:
    """Read one row, or refuse an item that refers to something unknown; raising takes back what the set made."""
    if row["bucket"] is None:
        raise unknown_parent(item.pk)
    if row["rk"] is None:
        raise unknown_address(item.address_id)
    if row["id"] is not None:
        return _message(row, status=codec.member(OutgoingStatus, row["status"]), version=row["version"])
    if item.hold is None:
        raise BrokenInvariant("an outgoing message was neither made nor there, though nothing stood in its way")
    return OutgoingMessage(
        bucket=row["bucket"],
        pk=row["pk"],
        rk=row["rk"],
        message_id=item.message_id,
        address_id=item.address_id,
        channel=item.channel,
        attempt_no=item.attempt_no,
        correlation_id=row["parent_correlation_id"],
    )


def _message(row: asyncpg.Record, *, status: OutgoingStatus, version: int) -> OutgoingMessage:
    """Read one row; written out, because this is done for every recipient of every campaign."""
    return OutgoingMessage(
        bucket=row["bucket"],
        pk=row["pk"],
        rk=row["rk"],
        message_id=row["message_id"],
        address_id=row["address_id"],
        channel=codec.member(Channel, row["channel"]),
        attempt_no=row["attempt_no"],
        status=status,
        version=version,
        correlation_id=row["correlation_id"],
        id=row["id"],
    )


def _given(item: OutgoingItem, found: OutgoingMessage) -> OutgoingMessage:
    """Give the row as this item would have made it: its key, parent and channel are those of the row it found."""
    if (found.message_id, found.address_id) == (item.message_id, item.address_id):
        return found
    return msgspec.structs.replace(found, message_id=item.message_id, address_id=item.address_id)


def _instant(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _parents(items: Sequence[OutgoingItem]) -> dict[Parent, int]:
    """Number the parents of some items from 1, as an array does."""
    distinct = dict.fromkeys(map(_parent, items))
    return {parent: place for place, parent in enumerate(distinct, 1)}


def _parent(item: OutgoingItem) -> Parent:
    return item.pk, item.messaging_job


def _place(item: OutgoingItem) -> Place:
    return item.pk, item.address_id, item.attempt_no

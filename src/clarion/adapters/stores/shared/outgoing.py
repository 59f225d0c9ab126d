"""Ensuring outgoing messages: the hot path of every campaign, three statements for a set that is new.

The flows that rows wait in and the parents that they belong to are looked up once for each, not for each row. The
insert is each engine's own, because a campaign makes a million rows; everything around it is the same. Writes
`broadcast`, `flow`, `support_case`, and what the engine's insert writes.
"""

from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec

from clarion.adapters.stores.shared import answer
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.support import write_cases
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.identity import Channel
from clarion.domain.outgoing import OutgoingItem, OutgoingMessage, OutgoingStatus
from clarion.errors import BrokenInvariant
from clarion.ports.ensure import unknown_address, unknown_parent

_SQL: Final = Statements("outgoing.sql")

_CHANNELS: Final = {channel.value: channel for channel in Channel}
_STATUSES: Final = {status.value: status for status in OutgoingStatus}

FlowKey = tuple[str, str, str]
"""Lane, route and broadcast: what a flow is found by."""

ParentKey = tuple[str, UUID | None]
"""The partition key of a parent's rows, and its guid if it is a messaging job."""

Place = tuple[str, int, int | None]
"""Partition key, address version and attempt number: what an item's row is found by before its row key is known."""


class Parent(msgspec.Struct, frozen=True):
    """What a row has of the job that it belongs to."""

    pk: str
    guid: UUID | None
    bucket: int
    correlation_id: str
    traceparent: str | None


class Origins(msgspec.Struct, frozen=True):
    """The flows and the parents of a set."""

    flows: Mapping[FlowKey, int]
    parents: Mapping[ParentKey, Parent]

    def flow(self, item: OutgoingItem) -> int:
        """Give the flow that an item's row waits in."""
        return self.flows[_flow_key(item)]

    def parent(self, item: OutgoingItem) -> Parent:
        """Give the job that an item belongs to."""
        return self.parents[_parent(item)]


Insert = Callable[[str, Sequence[OutgoingItem], Origins], Coroutine[Any, Any, Sequence[OutgoingMessage]]]
"""Inserts the rows that are absent while their holds stand, counts those of broadcasts, and returns the new ones."""


class _Flow(msgspec.Struct, frozen=True):
    lane: str
    route: str
    broadcast: str
    id: int


class _Stored(msgspec.Struct, frozen=True):
    """An item's row; without an id if it is not there, without a row key if the address version is not there."""

    rk: str | None
    id: int | None
    message_id: UUID | None
    address_id: int | None
    channel: str | None  # a word that this program may not know, as the status may be
    attempt_no: int | None
    status: str | None
    version: int | None
    correlation_id: str | None

    @property
    def is_newer(self) -> bool:
        """Whether only a newer program knows what the row holds."""
        return self.id is not None and not (self.channel in _CHANNELS and self.status in _STATUSES)

    @property
    def is_read(self) -> bool:
        """Whether there is a row, and this program knows what it holds."""
        return self.id is not None and not self.is_newer


async def ensure_outgoing_messages(
    transaction: Transaction, tenant_id: str, items: Sequence[OutgoingItem], *, insert: Insert
) -> list[Ensured[OutgoingMessage]]:
    """Insert the rows that are absent while their holds stand, and compare those that are there."""
    flows = await _find_flows(transaction, tenant_id, sorted(set(map(_flow_key, items))))
    parents = await _find_parents(transaction, tenant_id, list(dict.fromkeys(map(_parent, items))))
    origins = Origins(flows, parents)
    made = {_place(row): row for row in await insert(tenant_id, items, origins)}
    rows, newer = await _rows(transaction, tenant_id, items, origins, made)
    there = [(item, row) for item, row in zip(items, rows, strict=True) if row.id is not None]
    verdicts = answer.compare(
        tenant_id,
        [_given(item, row) for item, row in there],
        stored={row.key: row for _, row in there},
        created={row.key for row in made.values()},
    )
    await write_cases(transaction, tenant_id, verdicts.cases)
    answers = iter(verdicts.answers)
    return [
        next(answers)
        if row.id is not None
        else Ensured(outcome=Outcome.NEWER if number in newer else Outcome.SUPERSEDED, record=row)
        for number, row in enumerate(rows)
    ]


async def _find_flows(transaction: Transaction, tenant_id: str, keys: Sequence[FlowKey]) -> dict[FlowKey, int]:
    """Find flows and make those that are missing; after a campaign's first set none is."""
    flows = await _flows(transaction, "read_flows", tenant_id, keys)
    if missing := [key for key in keys if key not in flows]:
        if broadcasts := sorted({broadcast for _, _, broadcast in missing if broadcast}):
            await transaction.execute(_SQL["insert_broadcasts"], tenant_id=tenant_id, broadcasts=broadcasts)
        flows |= await _flows(transaction, "insert_flows", tenant_id, missing)
        if len(flows) < len(keys):  # somebody else made one since we looked
            flows = await _flows(transaction, "read_flows", tenant_id, keys)
    return flows


async def _flows(transaction: Transaction, name: str, tenant_id: str, keys: Sequence[FlowKey]) -> dict[FlowKey, int]:
    rows = await transaction.fetch(_Flow, _SQL[name], tenant_id=tenant_id, keys=keys)
    return {(row.lane, row.route, row.broadcast): row.id for row in rows}


async def _find_parents(transaction: Transaction, tenant_id: str, keys: Sequence[ParentKey]) -> dict[ParentKey, Parent]:
    """Find jobs, or refuse a set with an item whose job is not there."""
    rows = await transaction.fetch(
        Parent,
        _SQL["read_parents"],
        tenant_id=tenant_id,
        notification_jobs=[pk for pk, guid in keys if guid is None],
        messaging_jobs=[guid for _, guid in keys if guid is not None],
    )
    found = {(row.pk, row.guid): row for row in rows}
    for key in keys:
        if key not in found:
            raise unknown_parent(key[0])
    return found


async def _rows(
    transaction: Transaction,
    tenant_id: str,
    items: Sequence[OutgoingItem],
    origins: Origins,
    made: Mapping[Place, OutgoingMessage],
) -> tuple[list[OutgoingMessage], set[int]]:
    """Give each item its row: the one it made, the one that is stored, or the one it would have made, without an id.

    The last is given where the hold is lost, and for rows that only a newer program can read; the numbers of those are
    returned beside. Items that name the same place are read even if a row was made there: not all of them need be right
    about it.
    """
    places = [(item.pk, item.address_id, item.attempt_no) for item in items]
    times = Counter(places)
    rest = [number for number, place in enumerate(places) if place not in made or times[place] > 1]
    if not rest:
        return [made[place] for place in places], set()
    asked = [items[number] for number in rest]
    found = await transaction.fetch(
        _Stored,
        _SQL["read_outgoing_messages"],
        tenant_id=tenant_id,
        items=[
            (
                origins.parent(item).bucket,
                item.pk,
                item.address_id,
                item.recipient_id_hash,
                item.channel,
                item.attempt_no,
            )
            for item in asked
        ],
    )
    read = {
        number: _row(item, origins.parent(item), stored)
        for number, item, stored in zip(rest, asked, found, strict=True)
    }
    newer = {number for number, stored in zip(rest, found, strict=True) if stored.is_newer}
    return [read.get(number) or made[place] for number, place in enumerate(places)], newer


def _row(item: OutgoingItem, parent: Parent, stored: _Stored) -> OutgoingMessage:
    """Give the stored row of an item, or the one that it would have made; refuse an item with a wrong address."""
    if stored.rk is None:
        raise unknown_address(item.address_id)
    if stored.id is None and item.hold is None:
        raise BrokenInvariant("an outgoing message was neither made nor there, though nothing stood in its way")
    return OutgoingMessage(
        bucket=parent.bucket,
        pk=parent.pk,
        rk=stored.rk,
        message_id=stored.message_id or item.message_id,
        address_id=stored.address_id or item.address_id,
        channel=_CHANNELS[stored.channel or ""] if stored.is_read else item.channel,
        attempt_no=stored.attempt_no if stored.is_read else item.attempt_no,
        status=_STATUSES[stored.status or ""] if stored.is_read else OutgoingStatus.CREATED,
        version=stored.version or 1,
        correlation_id=stored.correlation_id or parent.correlation_id,
        id=stored.id if stored.is_read else None,
    )


def _given(item: OutgoingItem, found: OutgoingMessage) -> OutgoingMessage:
    """Give the row as this item would have made it: its key, parent and channel are those of the row it found."""
    if (found.message_id, found.address_id) == (item.message_id, item.address_id):
        return found
    return msgspec.structs.replace(found, message_id=item.message_id, address_id=item.address_id)


def _flow_key(item: OutgoingItem) -> FlowKey:
    return item.lane.value, item.route, item.broadcast


def _parent(item: OutgoingItem) -> ParentKey:
    return item.pk, item.messaging_job


def _place(row: OutgoingMessage) -> Place:
    return row.pk, row.address_id, row.attempt_no

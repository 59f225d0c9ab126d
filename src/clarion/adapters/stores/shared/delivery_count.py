"""Counts of messages: of a time, by type and channel, for reports; and of a broadcast, by state. Reads only."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain.identity import Channel
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.result import DELIVERY_CLASS, DeliveryClass
from clarion.ports.insights import BroadcastTotals
from clarion.ports.reporting import PAGE_MAX, DeliveryCount

_SQL: Final = Statements("delivery_count.sql")


class _Count(msgspec.Struct, frozen=True, kw_only=True):
    event_type: str
    channel: Channel
    status: OutgoingStatus
    messages: int


class _Total(msgspec.Struct, frozen=True, kw_only=True):
    status: OutgoingStatus
    reason_class: str
    messages: int


async def count_deliveries(
    transaction: Transaction,
    tenant_id: str,
    *,
    start_at: datetime,
    end_at: datetime,
    after: tuple[str, str] | None = None,
    limit: int = PAGE_MAX,
) -> list[DeliveryCount]:
    """Count the messages of the notifications of a time by type and channel, in their order, behind a place."""
    event_type, channel = after or ("", "")
    rows = await transaction.fetch(
        _Count,
        _SQL["count_deliveries"],
        tenant_id=tenant_id,
        start_at=start_at,
        end_at=end_at,
        after_type=event_type,
        after_channel=channel,
        most=min(limit, PAGE_MAX) * len(OutgoingStatus),  # as many as so many lines can have at most
    )
    counts: dict[tuple[str, Channel], dict[str, int]] = {}
    for row in rows:
        of_class = counts.setdefault((row.event_type, row.channel), {one.value: 0 for one in DeliveryClass})
        of_class[DELIVERY_CLASS[row.status]] += row.messages
    return [
        DeliveryCount(notification_type=event_type, channel=channel, **of_class)
        for (event_type, channel), of_class in [*counts.items()][:limit]
    ]


async def count_broadcast(transaction: Transaction, tenant_id: str, broadcast: str) -> BroadcastTotals:
    """Add up the rows of a broadcast by state and reason, from the counts that change with them."""
    rows: Sequence[_Total] = await transaction.fetch(
        _Total, _SQL["count_broadcast"], tenant_id=tenant_id, broadcast=broadcast
    )
    return BroadcastTotals(counts={(row.status, row.reason_class): row.messages for row in rows})

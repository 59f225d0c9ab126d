"""A flow as the memory store keeps it, beside the rows that every store has. Pure."""

import msgspec

from clarion.domain.identity import Lane
from clarion.testing.row import DeliveryAttempt, FlowCount, Key, QueueEntry, Transition, WebhookEvent

__all__ = ["DeliveryAttempt", "Flow", "FlowCount", "Key", "QueueEntry", "Transition", "WebhookEvent"]


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """What claiming shares out: the rows of a tenant with the same lane, route, broadcast and pinned account."""

    id: int
    tenant_id: str
    lane: Lane
    route: str
    broadcast: str
    account: str

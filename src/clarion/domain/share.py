"""Sharing out call slots: lanes by reserved capacity, tenants in turn, flows within a tenant.

A lane may claim only while fewer slots are busy than its ceiling, so that a backlog of bulk mail never takes the last
slots from a one-time code. Who is served first moves on with every round, so nobody is always last. Pure arithmetic.
"""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Final, TypeVar

from clarion.domain.claim import FlowHead
from clarion.domain.identity import Lane

CEILING: Final[Mapping[Lane, float]] = {Lane.CRITICAL: 1.0, Lane.HIGH: 0.95, Lane.NORMAL: 0.9, Lane.BULK: 0.75}
"""What share of the slots may be busy for a lane still to claim; an idle reserve costs little, a late code a login."""

_SLOTS_WORTH_SHARING: Final = 4
"""With fewer slots than that, a reserve would be most of them."""

T = TypeVar("T")


def allot(heads: Sequence[FlowHead], *, slots: int, busy: int, turn: int) -> dict[int, int]:
    """Give flows their quotas of the free slots; `turn` is any number that grows from round to round."""
    quotas: dict[int, int] = {}
    for lane in Lane:  # most urgent first, as the enum lists them
        flows = _in_turn([head for head in heads if head.lane is lane], turn)
        free = max(0, _ceiling(lane, slots) - busy)
        share = max(1, free // max(1, len(flows)))
        for flow_id in flows[:free]:
            quotas[flow_id] = share
            busy += share
    return quotas


def _ceiling(lane: Lane, slots: int) -> int:
    return slots if slots < _SLOTS_WORTH_SHARING else int(slots * CEILING[lane])


def _in_turn(heads: Sequence[FlowHead], turn: int) -> list[int]:
    """Order flows so that tenants alternate, each round starting with another tenant and another flow of it."""
    tenants: dict[str, list[int]] = {}
    for head in sorted(heads, key=lambda head: (head.tenant_id, head.flow_id)):
        tenants.setdefault(head.tenant_id, []).append(head.flow_id)
    queues = [_rotated(flows, turn) for flows in tenants.values()]
    return [flow for layer in zip_longest(*_rotated(queues, turn)) for flow in layer if flow is not None]


def _rotated(items: list[T], by: int) -> list[T]:
    start = by % len(items) if items else 0
    return items[start:] + items[:start]

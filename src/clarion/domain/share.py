"""Sharing out call slots: lanes by reserved capacity, tenants evenly, flows evenly within their tenant.

A lane may claim only while fewer slots are busy than its ceiling, so that a backlog of bulk mail never takes the last
slots from a one-time code. A tenant's part does not grow with the number of its flows. Who is served first moves on
with every round, so nobody is always last. Pure arithmetic.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar

from clarion.domain.claim import FlowHead
from clarion.domain.identity import Lane

CEILING: Final[Mapping[Lane, float]] = {Lane.CRITICAL: 1.0, Lane.HIGH: 0.95, Lane.NORMAL: 0.9, Lane.BULK: 0.75}
"""A lane claims only while less than this share of the slots is busy.

The slots above it are left for more urgent lanes: a few idle slots are cheaper than a one-time code that comes too late
for its login.
"""

_SLOTS_WORTH_SHARING: Final = 4
"""With fewer slots than that, a reserve would be most of them."""

T = TypeVar("T")


def allot(heads: Iterable[FlowHead], *, slots: int, busy: int, turns: Mapping[Lane, int]) -> dict[int, int]:
    """Give flows their quotas of the free slots; a lane's turn grows by one with every round that dealt it any."""
    waiting: dict[Lane, dict[str, list[int]]] = {lane: {} for lane in Lane}
    for head in heads:
        waiting[head.lane].setdefault(head.tenant_id, []).append(head.flow_id)
    quotas: dict[int, int] = {}
    for lane, tenants in waiting.items():  # most urgent first, as the enum lists them
        free = max(0, _ceiling(lane, slots) - busy)
        names = sorted(tenants) if free else []
        for name, part in _dealt(names, free, first=turns[lane]):
            # A tenant is first once in as many turns as there are tenants; only then does its next flow come first,
            # or tenants and flows could turn in step and one flow would never be met.
            quotas.update(_dealt(sorted(tenants[name]), part, first=turns[lane] // len(names)))
            busy += part
    return quotas


def _ceiling(lane: Lane, slots: int) -> int:
    return slots if slots < _SLOTS_WORTH_SHARING else int(slots * CEILING[lane])


def _dealt(takers: list[T], number: int, *, first: int) -> Iterator[tuple[T, int]]:
    """Deal a number out evenly, what is left over from the one at `first` on; who gets nothing is left out."""
    each, over = divmod(number, len(takers)) if takers else (0, 0)
    for place in range(min(number, len(takers))):
        yield takers[(first + place) % len(takers)], each + (place < over)

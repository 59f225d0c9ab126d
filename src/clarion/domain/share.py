"""Sharing out call slots: lanes by weight, tenants in turn within a lane, flows in turn within their tenant.

A lane that has work always gets its part, so a backlog in an urgent lane slows the others down and never stops them. A
tenant's part does not grow with the number of its flows. Whose turn it is carries over from round to round, so that the
parts come out right even where one slot becomes free at a time.

Two reserves stay out of it. Some slots are left to the critical lane, so that a campaign never takes the last one from
a one-time code. And some are left to tenants that have no call open in any lane, so that as many of them need not wait
for the end of somebody else's calls, however slow these are. Pure arithmetic; what was really claimed is told to it
afterwards.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heapify, heapreplace
from typing import Final, Generic, TypeVar

from clarion.domain.claim import FlowHead
from clarion.domain.identity import Lane

WEIGHT: Final[Mapping[Lane, int]] = {Lane.CRITICAL: 8, Lane.HIGH: 4, Lane.NORMAL: 2, Lane.BULK: 1}
"""How many slots a lane gets for one of bulk, while all of them have work."""

COST: Final[Mapping[Lane, int]] = {lane: max(WEIGHT.values()) // weight for lane, weight in WEIGHT.items()}
"""What one slot counts for in the lanes' turns: a lane of twice the weight is charged half."""

Holders = Mapping[tuple[Lane, str], int]
"""How many slots each lane of each tenant holds now."""

K = TypeVar("K")


def kept_for_critical(slots: int) -> int:
    """Return how many slots no lane but the critical one may take; with fewer than four it would be most of them."""
    return max(1, slots // 16) if slots >= 4 else 0


def kept_for_newcomers(slots: int) -> int:
    """Return how many slots are left to tenants that hold none; with fewer than eight it would be too many of them."""
    return max(1, slots // 32) if slots >= 8 else 0


def portions(number: int, lanes: Collection[Lane]) -> dict[Lane, int]:
    """Divide a batch among these lanes by weight, the most urgent first; from four on, every lane gets something."""
    ordered = [lane for lane in Lane if lane in lanes]
    dealt = Turns[Lane](COST).deal(number, ordered)
    return {lane: dealt.get(lane, 0) for lane in ordered}


class Share:
    """The turns of lanes, tenants and flows in one pump."""

    def __init__(self) -> None:
        """Begin with everybody alike."""
        self._lanes = Turns[Lane](COST)
        self._tenants: dict[Lane, Turns[str]] = {lane: Turns() for lane in Lane}
        self._flows: dict[tuple[Lane, str], Turns[int]] = defaultdict(Turns)
        self._newcomers: set[int] = set()  # flows whose quota of the last round was no turn of their lane

    def allot(self, heads: Iterable[FlowHead], *, slots: int, held: Holders) -> dict[int, int]:
        """Give flows that have work their quotas of the free slots."""
        waiting: dict[Lane, dict[str, list[int]]] = {lane: {} for lane in Lane}
        for head in heads:
            waiting[head.lane].setdefault(head.tenant_id, []).append(head.flow_id)
        calls: Counter[str] = Counter()
        for (_, tenant_id), number in held.items():
            calls[tenant_id] += number
        urgent = sum(number for (lane, _), number in held.items() if lane is Lane.CRITICAL)
        kept, others = kept_for_critical(slots), kept_for_newcomers(slots)
        free = slots - calls.total()
        room = slots - kept - (calls.total() - urgent)  # for the lanes below critical
        # The critical lane fills its reserve first; above that the lanes share by weight.
        first = max(0, min(free, kept - urgent)) if waiting[Lane.CRITICAL] else 0
        lanes = [lane for lane in Lane if waiting[lane]]
        parts = Counter(self._lanes.deal(min(free - first, room) - others, lanes))
        parts[Lane.CRITICAL] += first
        quotas: dict[int, int] = {}
        for lane, part in parts.items():
            room -= part if lane is not Lane.CRITICAL else 0
            tenants = sorted(waiting[lane], key=lambda name: (calls[name], name))
            for name, mine in self._tenants[lane].deal(part, tenants).items():
                quotas |= self._flows[lane, name].deal(mine, sorted(waiting[lane][name]))
                calls[name] += mine
        # What is left goes to tenants that hold nothing and got nothing, one slot each.
        self._newcomers = set()
        for lane in Lane:
            left = free - sum(quotas.values())
            left = max(0, left if lane is Lane.CRITICAL else min(left, room))
            newcomers = self._tenants[lane].order([name for name in sorted(waiting[lane]) if not calls[name]])
            for name in newcomers[:left]:
                given = self._flows[lane, name].deal(1, sorted(waiting[lane][name]))
                self._newcomers |= given.keys()
                quotas |= given
                calls[name] += 1
                room -= 1 if lane is not Lane.CRITICAL else 0
        return quotas

    def count(self, head: FlowHead, number: int) -> None:
        """Note what a flow gave in the last round; one that was asked in vain had its turn too, which counts as one."""
        number = max(1, number)
        if head.flow_id not in self._newcomers:
            self._lanes.count(head.lane, number)
        self._tenants[head.lane].count(head.tenant_id, number)
        self._flows[head.lane, head.tenant_id].count(head.flow_id, number)


class Turns(Generic[K]):
    """Whose turn it is among some takers: everybody has an account of what they were given, and the lowest is next.

    Who was away begins at the lowest account of those who wait, so nobody saves turns up; and nobody is held to be more
    than one turn ahead, so what was given beside the turns, from a reserve, delays nobody for long.
    """

    def __init__(self, cost: Mapping[K, int] | None = None) -> None:
        """Begin with everybody alike; `cost` is what a slot counts for, one unless it says otherwise."""
        self._cost = cost or {}
        self._accounts: dict[K, int] = {}
        self._lowest = 0

    def deal(self, number: int, takers: Sequence[K]) -> dict[K, int]:
        """Deal a number out among those who wait, to equals in the order given; who gets nothing is left out."""
        if number <= 0 or not takers:
            return {}
        turns = [(account, place) for place, account in enumerate(self._look(takers))]
        if len(turns) == 1:
            return {takers[0]: number}
        heapify(turns)
        dealt: Counter[K] = Counter()
        for _ in range(number):
            account, place = turns[0]
            taker = takers[place]
            dealt[taker] += 1
            heapreplace(turns, (account + self._cost.get(taker, 1), place))
        return dict(dealt)

    def order(self, takers: Sequence[K]) -> list[K]:
        """Return takers in the order of their turns."""
        accounts = {taker: self._accounts.get(taker, self._lowest) for taker in takers}
        return sorted(takers, key=lambda taker: max(accounts[taker], self._lowest))

    def count(self, taker: K, number: int) -> None:
        """Note what somebody was given."""
        account = max(self._accounts.get(taker, 0), self._lowest)
        self._accounts[taker] = account + number * self._cost.get(taker, 1)

    def _look(self, takers: Sequence[K]) -> list[int]:
        """Return the accounts of those who wait, and forget those who are no better remembered than forgotten."""
        accounts = {taker: max(self._accounts.get(taker, 0), self._lowest) for taker in takers}
        self._lowest = min(accounts.values())
        for taker, account in accounts.items():
            self._accounts[taker] = accounts[taker] = min(account, self._lowest + self._cost.get(taker, 1))
        self._accounts = {taker: account for taker, account in self._accounts.items() if account > self._lowest}
        return list(accounts.values())

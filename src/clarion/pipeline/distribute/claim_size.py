"""How many rows of one flow a claim takes: half as many after a claim whose merges took long.

All rows of a claim are merged before its first call leaves, so a large claim of heavy messages keeps its first ones
waiting for the last; and where merges are made in the process, everybody else too. So after a claim that took longer
than a quarter second, or that was not merged in time (`Preparation`), the flow that took most of it has its next claim
halved. The number is doubled by each claim of that flow that needs less than half of the time. Memory of one pump;
reads and writes nothing.
"""

from typing import Final

from clarion.pipeline.distribute.prepare import Prepared

MERGING_MAX: Final = 0.25
"""Seconds for which a claim is merged before its calls leave: people wait that long for an answer."""


class ClaimSizes:
    """The flows of one pump whose claims are kept small."""

    def __init__(self) -> None:
        """Keep none small."""
        self._most: dict[int, int] = {}

    def at_most(self, flow_id: int, quota: int) -> int:
        """Give as much of a flow's quota as is merged soon."""
        return min(quota, self._most.get(flow_id, quota))

    def learn(self, prepared: Prepared, *, merge_max: float, slots: int) -> None:
        """Halve or double what the next claims take; a flow that may fill all slots again is forgotten."""
        limit = min(MERGING_MAX, merge_max)
        if prepared.out_of_time or sum(prepared.seconds.values()) > limit:
            if prepared.seconds:  # or else the claim itself took so long that none was merged
                slowest = max(prepared.seconds, key=prepared.seconds.__getitem__)
                claimed = sum(message.flow_id == slowest for message, _ in prepared.messages)
                self._most[slowest] = max(1, claimed // 2)
            return
        for flow_id in self._most.keys() & prepared.seconds.keys():
            if prepared.seconds[flow_id] < limit / 2:
                self._most[flow_id] *= 2
            if self._most[flow_id] >= slots:
                del self._most[flow_id]

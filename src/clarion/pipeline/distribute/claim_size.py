"""How many rows of one flow a claim takes: half as many after a claim that could not be merged in time.

All rows of a claim are merged before its first call leaves, in a quarter of their lease. A template that takes long to
merge would use that up again and again, so the flow that used most of it has its next claim halved. The number is
doubled by each claim of that flow that needs less than half of the time. Memory of one pump; reads and writes nothing.
"""

from clarion.pipeline.distribute.prepare import Prepared


class ClaimSizes:
    """The flows of one pump whose claims are kept small."""

    def __init__(self) -> None:
        """Keep none small."""
        self._most: dict[int, int] = {}

    def at_most(self, flow_id: int, quota: int) -> int:
        """Give as much of a flow's quota as can be merged in time."""
        return min(quota, self._most.get(flow_id, quota))

    def learn(self, prepared: Prepared, *, merge_max: float, slots: int) -> None:
        """Halve or double what the next claims take; a flow that may fill all slots again is forgotten."""
        if prepared.out_of_time:
            if prepared.seconds:  # or else the claim itself took so long that none was merged
                slowest = max(prepared.seconds, key=prepared.seconds.__getitem__)
                claimed = sum(message.flow_id == slowest for message, _ in prepared.messages)
                self._most[slowest] = max(1, claimed // 2)
            return
        for flow_id in self._most.keys() & prepared.seconds.keys():
            if prepared.seconds[flow_id] < merge_max / 2:
                self._most[flow_id] *= 2
            if self._most[flow_id] >= slots:
                del self._most[flow_id]

"""The memory store as oracle of the queue: the same operations come to the same answers and rows on another store.

Only for a store whose clock can be set: both sides share one, so that every due time and lease can be compared. What a
store chooses by itself (ids) is left out.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import count
from typing import Final

import msgspec
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from clarion.domain.outgoing import OutgoingMessage
from clarion.domain.support import SupportCase
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.oracle import MemoryHarness
from clarion.testing.contracts.pump import Pump
from clarion.testing.contracts.queue_operation import QUEUE_OPERATIONS, Elapse, QueueOperation, Send, Side
from clarion.testing.memory import DeliveryAttempt, FlowCount, QueueEntry, Transition, WebhookEvent

_TENANTS: Final = count(1)

_START: Final = (
    Send(job=1, to=1, in_broadcast=False, ordered=True, due_in=0, expires_in=None),
    Send(job=2, to=1, in_broadcast=True, ordered=True, due_in=0, expires_in=None),
)
"""Two rows that wait for each other, so that the first claim finds something to rule about."""


class QueueOracleContract:
    """Whatever is done to a queue in whatever order, the store answers and holds what the memory store does."""

    # Always the same examples: the suite runs at every commit. The harness outlives an example on purpose: each example
    # has its own tenant, and leaves nothing to do to the next.
    @settings(
        max_examples=60,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],  # an example of fifty operations takes minutes to shrink, and shrinks little
        suppress_health_check=[HealthCheck.differing_executors, HealthCheck.function_scoped_fixture],
    )
    @given(operations=st.lists(QUEUE_OPERATIONS, min_size=30, max_size=60))
    async def test_any_work_on_a_queue_comes_to_the_same_as_on_the_memory_store(
        self, harness: StoreHarness, operations: list[QueueOperation]
    ) -> None:
        """Every answer, and every row after every operation."""
        assert harness.clock is not None
        tenant_id = f"{harness.tenant_id}-{next(_TENANTS)}"
        mine = Side(harness, tenant_id)
        oracle = Side(MemoryHarness(tenant_id, harness.clock), tenant_id)
        try:
            for operation in (*_START, *operations):
                if isinstance(operation, Elapse):
                    harness.clock.advance(timedelta(seconds=operation.seconds))
                expected = await operation.run(oracle)
                assert await operation.run(mine) == expected, operation
                assert await _rows(mine) == await _rows(oracle), operation
            await Pump(harness, tenant_id=tenant_id).check()
        finally:
            await _clear(mine)


async def _rows(side: Side) -> Mapping[str, Sequence[object]]:
    """Read all that a queue's work leaves, comparably: rows by their names, counters without those that are nought."""
    names = await side.names()
    rows: dict[str, Sequence[object]] = {
        "message": [(names[row.id or 0], row.status, row.version) for row in await side.rows()],
        "count": sorted((row.key, row.n) for row in await side.harness.rows(side.tenant_id, FlowCount) if row.n),
    }
    for kind in (QueueEntry, Transition, DeliveryAttempt, WebhookEvent, SupportCase):
        stored = [msgspec.structs.asdict(row) for row in await side.harness.rows(side.tenant_id, kind)]
        for values in stored:
            if "outgoing_id" in values:
                values["outgoing_id"] = names[values["outgoing_id"]]
        rows[kind.__name__] = sorted(stored, key=repr)
    return rows


async def _clear(side: Side) -> None:
    """Take away what is left to do, since workers work for all tenants."""
    for kind in (OutgoingMessage, WebhookEvent):
        for row in await side.harness.rows(side.tenant_id, kind):
            await side.harness.remove(side.tenant_id, row)

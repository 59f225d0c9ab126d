"""The janitor: brings back what a dead worker left behind, and clears away what was canceled.

An expired claim of a stage is ready again; an expired claim of a message may have been sent, so it becomes `Uncertain`
and is settled from there. Every rescue is conditional on what was read, so two janitors do no harm.
"""

from typing import Final

from clarion.domain.notification import RESCUES_MAX
from clarion.ports.queue import QueueStore

BATCH: Final = 500
"""A bounded set; after a crash of many workers the rest follows in the next steps."""


class Janitor:
    """Rescues and sweeps."""

    def __init__(self, *, queue: QueueStore) -> None:
        """Work on this queue."""
        self._queue = queue

    async def step(self) -> int:
        """Rescue and sweep a bounded number of rows; return how many."""
        rescued = await self._queue.rescue_stages(limit=BATCH, rescues_max=RESCUES_MAX)
        rescued += await self._queue.rescue_outgoing(limit=BATCH)
        return rescued + await self._queue.sweep_canceled(limit=BATCH)

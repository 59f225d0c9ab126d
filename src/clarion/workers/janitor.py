"""The janitor: brings back what a dead worker left behind, clears away what was canceled or expired, erases codes.

An expired claim of a stage, of an event or of an occurrence is ready again; an expired claim of a message may have been
sent, so it becomes `Uncertain` and is settled from there. Every rescue is conditional on what was read, so two janitors
do no harm. Codes that are not over yet may be many: it looks at so many of them each time and goes on behind them the
next time. Lines of inboxes that have expired are in no list any more; it takes them out of the counts, and enters lines
that an older program made.
"""

from typing import Final

from clarion.domain.notification import RESCUES_MAX
from clarion.ports.store import Store

BATCH: Final = 500
"""A bounded set; after a crash of many workers the rest follows in the next steps."""


class Janitor:
    """Rescues and sweeps."""

    def __init__(self, store: Store, *, automates: bool = True) -> None:
        """Work on everything that this store has, events and occurrences only where this process has such work."""
        self._store = store
        self._automates = automates
        self._codes_after = 0

    async def step(self) -> int:
        """Rescue, sweep and erase a bounded number of rows; return how many."""
        rescued = await self._store.rescue_stages(limit=BATCH, rescues_max=RESCUES_MAX)
        rescued += await self._store.rescue_outgoing(limit=BATCH)
        if self._automates:
            rescued += await self._store.rescue_events(limit=BATCH, rescues_max=RESCUES_MAX)
            rescued += await self._store.rescue_due(limit=BATCH)
        rescued += await self._store.sweep_canceled(limit=BATCH)
        codes = await self._store.erase_codes(after=self._codes_after, limit=BATCH)
        self._codes_after = codes.next_after
        entered = await self._store.enter_lines(limit=BATCH)
        return rescued + codes.erased + entered + await self._store.sweep_inboxes(limit=BATCH)

"""Track: apply what providers reported. Receipts were kept raw when they came; here they move rows up in rank."""

from typing import Final

from clarion.ports.track import TrackStore

BATCH: Final = 500
"""One statement's worth; a burst of receipts is worked off in a few steps."""


class Track:
    """The last stage."""

    def __init__(self, *, events: TrackStore) -> None:
        """Work on these kept events."""
        self._events = events

    async def step(self) -> int:
        """Apply a batch of receipts; return how many."""
        return await self._events.apply_events(limit=BATCH, actor="track")

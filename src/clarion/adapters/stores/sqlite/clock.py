"""The store's clock: what leases and due times are judged by on SQLite, where the host's clock is all there is.

Time = the wall clock when the store was opened, or the highest time that the database remembers if that is later, plus
what a monotonic clock counted since. So a wall clock that is set while the program runs changes nothing, and one that
was set back between two starts cannot give a lease away early (I-37); one that was set forwards between two starts
cannot be told from time that passed. SQL takes this time, and no other, from the function `clarion_now()`.

The mark is written by the transactions that write something anyway, so it is as old as the last of them: after a start
with the clock set back, time goes on from there, and what was leased is held for longer by as much as the store had
been idle. Reads the clock port; `clock.sql` is run by `session`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

from clarion.ports.clock import Clock

EPOCH_AT: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)

MARK_EVERY: Final = timedelta(seconds=1)
"""How far the mark may lie behind while the store writes: next to a lease, which is tens of seconds, a second is
nothing, and one small write a second costs nothing."""


def microseconds(at: datetime) -> int:
    """Give an instant as the database stores it, exactly."""
    return (at - EPOCH_AT) // MICROSECOND


def instant(stored: int) -> datetime:
    """Read an instant as the database stores it."""
    return EPOCH_AT + stored * MICROSECOND


class StoreClock:
    """Time that never goes back, in microseconds since 1970 UTC."""

    def __init__(self, clock: Clock, *, high_water: int) -> None:
        """Go on from the wall clock, or from the mark where that is higher."""
        self._clock = clock
        self._start = max(microseconds(clock.now()), high_water)
        self._started = clock.monotonic()
        self._standing: int | None = None
        self._marked: int | None = None

    def now(self) -> int:
        """Return the present time; during a transaction, the time at which it began."""
        return self._running() if self._standing is None else self._standing

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Hand out one and the same time inside the block, as PostgreSQL's now() does in a transaction."""
        self._standing = self._running()
        try:
            yield
        finally:
            self._standing = None

    def mark_is_due(self) -> bool:
        """Tell whether the database's mark may be further behind than it should."""
        return self._marked is None or self.now() - self._marked >= MARK_EVERY // MICROSECOND

    def marked(self, high_water: int) -> None:
        """Note the mark that was committed, and catch up with it where another process was ahead."""
        self._marked = high_water
        self._start += max(0, high_water - self._running())

    def _running(self) -> int:
        elapsed = timedelta(seconds=self._clock.monotonic() - self._started)
        return self._start + elapsed // MICROSECOND

"""The store's clock on SQLite, where the host is all there is: by it things are accepted, due, leased and out of time.

A file is used by one machine at a time, and a machine counts the time since it was started (`Clock.monotonic`),
whatever happens to its wall clock. So the wall clock is asked once for each run of the machine: the first process that
writes after a start keeps in the file by how much the store's time is ahead of that count, and every process until the
next start goes by the same difference. Setting the wall clock, while processes run or between two of them, changes
nothing (I-37). After a start of the machine time goes on from the wall clock, or from the highest time that the file
remembers (`high_water`) where that is later: it never goes back.

Whether the machine was switched off for weeks or its wall clock is wrong cannot be told in general, but within one run
of the machine it can. There a wall clock that is more than `LEAP_MAX` ahead of the store's time is refused, and after a
start one that is more than `REST_MAX` ahead. `setting` is how a person mends either (decision 0033).

Where the machine does not say which run this is (`Clock.boot` is empty), every process asks the wall clock when it
opens the file, and follows whichever is ahead. SQL takes this time, and no other, from the function `clarion_now()`.
Reads the clock port; `clock.sql` is run by `session`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from clarion.domain.duration import spoken
from clarion.errors import ClockLeap
from clarion.ports.clock import Clock

EPOCH_AT: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)

MARK_EVERY: Final = timedelta(seconds=1)
"""How far the mark may lie behind while the store writes: next to a lease, which is tens of seconds, a second is
nothing, and one small write a second costs nothing."""

LEAP_MAX: Final = timedelta(days=1)
"""How far the wall clock may be ahead of the store's time within one run of the machine. The difference changes nothing
in the store, but API keys and signatures go by the wall clock: beyond a day somebody should look."""

REST_MAX: Final = timedelta(days=92)
"""How far it may be ahead after a start of the machine: as long as one may stand switched off in a season without
anybody finding it odd. Whoever switches it on after a longer time is there to answer."""


def microseconds(at: datetime) -> int:
    """Give an instant as the database stores it, exactly."""
    return (at - EPOCH_AT) // MICROSECOND


def instant(stored: int) -> datetime:
    """Read an instant as the database stores it."""
    return EPOCH_AT + stored * MICROSECOND


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What the file keeps of the time.

    `high_water` is the highest that was handed out, or a second before it; 0 in a file that nobody has written to.
    `ahead` is the store's time less the count of the machine's run `boot`.
    """

    high_water: int = 0
    boot: str = ""
    ahead: int = 0


class StoreClock:
    """Time that never goes back, in microseconds since 1970 UTC."""

    def __init__(self, clock: Clock, kept: Kept) -> None:
        """Go on from what the file keeps of this run of the machine, else from the wall clock or the mark."""
        self._clock = clock
        self._boot = clock.boot()
        self._ahead = max(microseconds(clock.now()), kept.high_water) - self._counted()
        self._standing: int | None = None
        self.follow(kept)

    def follow(self, kept: Kept) -> None:
        """Take over what the file keeps, as every transaction does first: whoever was first on this run decides."""
        self._kept = kept
        if self._boot and kept.boot == self._boot:
            self._ahead = kept.ahead
        self._ahead = max(self._ahead, kept.high_water - self._counted())

    def now(self) -> int:
        """Return the present time; during a transaction, the time at which it began."""
        return self._ahead + self._counted() if self._standing is None else self._standing

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Hand out one and the same time inside the block, as PostgreSQL's now() does in a transaction."""
        self._standing = self.now()
        try:
            yield
        finally:
            self._standing = None

    def to_keep(self) -> Kept | None:
        """Say what a transaction that writes should keep; None while the file's mark is fresh."""
        now = self.now()
        if self._kept.boot == self._boot and now - self._kept.high_water < MARK_EVERY // MICROSECOND:
            return None
        return Kept(high_water=max(now, self._kept.high_water), boot=self._boot, ahead=self._ahead)

    def set_to_wall(self) -> Kept:
        """Begin anew at the wall clock, also in the present transaction, and say what the file should keep."""
        now = microseconds(self._clock.now())
        self._ahead = now - self._counted()
        self._standing = None if self._standing is None else now
        self._kept = Kept(high_water=now, boot=self._boot, ahead=self._ahead)
        return self._kept

    def require_near(self, *, store: str) -> None:
        """Refuse a wall clock that is so far ahead that it, or the store's time, must be wrong."""
        known = bool(self._boot) and self._kept.boot == self._boot
        since, most = (self.now(), LEAP_MAX) if known else (self._kept.high_water, REST_MAX)
        leap = (microseconds(self._clock.now()) - since) * MICROSECOND
        if self._kept.high_water and leap > most:
            what = "the time in" if known else "the last time that was written to"
            raise ClockLeap(
                f"this machine's clock is {spoken(leap)} ahead of {what} {store}",
                hint="set the clock right; if it is right, stop all that use the store and run: "
                "clarion clock set --reason WHY",
            )

    def _counted(self) -> int:
        return timedelta(seconds=self._clock.monotonic()) // MICROSECOND

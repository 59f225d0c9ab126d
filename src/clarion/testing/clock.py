"""Time and ids that a test sets by hand or that a seed replays.

These are honest implementations of `ports.clock`, not recordings: the clock stands until it is told to move, and equal
seeds give equal ids in equal order. Reads and writes nothing.
"""

import asyncio
import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from uuid import UUID

START_AT = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)
"""Where a clock starts unless told otherwise: a noon far from any change of zone, month or year."""


class ManualMachine:
    """What the clocks of one machine have in common: the time since it was started, and which start that was."""

    def __init__(self, boot: str = "") -> None:
        """Start the machine; without a name nobody can tell this start from another."""
        self.boot = boot
        self.elapsed = timedelta()


class ManualClock:
    """A clock that stands still until a test moves it.

    Clocks that are given the same machine are those of several processes on it: time passes for all of them, and each
    has a wall clock of its own.
    """

    def __init__(self, start_at: datetime = START_AT, *, machine: ManualMachine | None = None) -> None:
        """Start at an aware instant, on a machine of its own if none is given."""
        self._machine = machine or ManualMachine()
        self._zero_at = _utc(start_at) - self._machine.elapsed

    def now(self) -> datetime:
        """Return the instant that the clock stands at, in UTC."""
        return self._zero_at + self._machine.elapsed

    def monotonic(self) -> float:
        """Return the seconds by which the machine's clocks were advanced; jumps do not count."""
        return self._machine.elapsed.total_seconds()

    def boot(self) -> str:
        """Name the start of the machine."""
        return self._machine.boot

    def advance(self, by: timedelta) -> None:
        """Let time pass: all clocks of the machine move on."""
        if by < timedelta():
            raise ValueError("time passes forwards only: use jump to set the wall clock back")
        self._machine.elapsed += by

    def jump(self, to: datetime) -> None:
        """Set the wall clock forwards or back, as an administrator would; no time passes."""
        self._zero_at = _utc(to) - self._machine.elapsed


class LoopClock(ManualClock):
    """The time of an event loop, which passes as fast as that loop lets it: in a simulation, at once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Follow a loop from its time zero on."""
        super().__init__()
        self._loop = loop

    def now(self) -> datetime:
        """Return the instant that the loop has come to, in UTC."""
        return START_AT + timedelta(seconds=self._loop.time())

    def monotonic(self) -> float:
        """Return the loop's own time."""
        return self._loop.time()


class SeededIds:
    """Guids that follow from a seed."""

    def __init__(self, seed: str = "clarion") -> None:
        """Start the sequence of a seed."""
        self._draws = _draws(f"guid:{seed}")

    def new_guid(self) -> UUID:
        """Return the next guid of the sequence."""
        return UUID(bytes=next(self._draws)[:16], version=4)


def _draws(seed: str) -> Iterator[bytes]:
    """Hash a seed and a counter, for ever."""
    return (hashlib.sha256(f"{seed}:{number}".encode()).digest() for number in count())


def _utc(instant: datetime) -> datetime:
    """Refuse a naive instant; bring any other to UTC."""
    if instant.tzinfo is None:
        raise ValueError("an instant without a zone is not an instant: pass an aware datetime")
    return instant.astimezone(UTC)

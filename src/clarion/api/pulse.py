"""Whether this process can do its work now: the store answers, it can be written, and the event loop keeps up.

A loop that is late starves time limits and heartbeats (F-58). That a store is full or read-only shows only when
something is written, so after such a failure, of a request or of a worker, the process is unready for a while (F-45).
A damaged store mends itself never, and much of it can often still be read: it makes the process unready for good.
"""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Final

from clarion.errors import ClarionError, OperatorError, StoreDamaged, StoreFull, StoreReadOnly
from clarion.operations.clock import gap_warning
from clarion.ports.clock import Clock
from clarion.ports.insights import Gauge
from clarion.ports.store import Store

BEAT: Final = 0.25
"""Seconds between two looks at the loop."""

LAG_MAX: Final = 1.0
"""Seconds by which the loop may be late (F-58)."""

ANSWER_MAX: Final = 2.0
"""Seconds in which the store must answer: half of what probes usually wait."""

FRESH_FOR: Final = 1.0
"""Seconds for which an answer of the store is repeated: anybody may ask, and must not be able to load the store."""

TROUBLE_FOR: Final = 10.0
"""Seconds for which a store that refused a write is taken to refuse the next."""


class Pulse:
    """One process's own judgement of itself."""

    def __init__(self, store: Store, *, clock: Clock) -> None:
        """Judge by this store and this clock."""
        self._store = store
        self._clock = clock
        self._beat: float | None = None
        self._late = 0.0
        self._asked = float("-inf")
        self._answer: str | None = None
        self._trouble: tuple[float, str] | None = None  # until when, and what
        self._measured = float("-inf")
        self._ahead = timedelta()
        self._gauge: Gauge | None = None

    async def run(self) -> None:
        """Watch the loop until canceled."""
        while True:
            started = self._beat = self._clock.monotonic()
            await asyncio.sleep(BEAT)
            self._late = self._clock.monotonic() - started - BEAT

    def note(self, error: ClarionError) -> None:
        """Take note of an error; only a store that cannot be written matters here."""
        if isinstance(error, StoreDamaged | StoreFull | StoreReadOnly):
            lasts = float("inf") if isinstance(error, StoreDamaged) else TROUBLE_FOR
            until = self._clock.monotonic() + lasts
            if self._trouble is None or until >= self._trouble[0]:
                self._trouble = (until, error.code)

    @property
    def lag(self) -> float:
        """Seconds by which the loop was late last, or is late now."""
        now_late = 0.0 if self._beat is None else self._clock.monotonic() - self._beat - BEAT
        return max(self._late, now_late, 0.0)

    @property
    def warning(self) -> str | None:
        """What a person should look at, though work goes on: clocks that differ, when the store was asked last."""
        return gap_warning(self._ahead)

    async def why_unready(self) -> str | None:
        """Say what is in the way, by a word of ours or an error code; None where nothing is."""
        if self.lag > LAG_MAX:
            return "event-loop-late"
        now = self._clock.monotonic()
        if self._trouble is not None and now < self._trouble[0]:
            return self._trouble[1]
        if now - self._asked >= FRESH_FOR:
            self._answer, self._asked = await self._ask(), self._clock.monotonic()
        return self._answer

    async def measure(self) -> Gauge | None:
        """Measure the store's work, or say what it was a moment ago; None where the store does not answer."""
        if self._clock.monotonic() - self._measured >= FRESH_FOR:
            self._gauge = None
            with suppress(OperatorError, TimeoutError):
                async with asyncio.timeout(ANSWER_MAX):
                    self._gauge = await self._store.measure()
            self._measured = self._clock.monotonic()
        return self._gauge

    async def _ask(self) -> str | None:
        """Ask the store for the least that it can be asked for."""
        try:
            async with asyncio.timeout(ANSWER_MAX):
                await self._store.list_tenants(limit=1)
                self._ahead = await self._store.now() - self._clock.now()
        except OperatorError as error:
            return error.code
        except TimeoutError:
            return "store-busy"
        return None

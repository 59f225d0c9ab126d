"""Where the synchronous core runs: in a thread of its own, or right here.

SQLite has one writer and its calls wait for the disk, so in production everything that a store does runs in one thread.
Those who wait for it are served together: the works that wait when the thread comes round share one commit, urgent ones
first, each under a savepoint, and are answered after it. A simulation runs each work inline instead, as a transaction
of its own, so that a seed replays the order of everything. Knows nothing of SQL.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from heapq import heappop, heappush
from itertools import count
from threading import Condition, Thread
from typing import Any, Final, Generic, Protocol, TypeVar

from clarion.adapters.stores.shared.store import Urgency
from clarion.adapters.stores.sqlite.core import Outcome, SqliteCore, Work
from clarion.errors import BrokenInvariant

T = TypeVar("T")

WORKS_MAX: Final = 200
"""Works that are offered to one commit: more than there are workers and open requests in an embedded installation. How
many of them it takes is bounded by their rows and by time (see `core`)."""


OVERTAKEN_MAX: Final = 500
"""How many works of the next higher urgency, asked for later, go before one that waits: a fraction of a second. Without
a bound, a stream of requests could keep the rows of a campaign waiting for as long as it lasts."""


class Runner(Protocol):
    """Runs works one at a time, each as a whole, all in one thread: a connection belongs to the thread that uses it.

    A caller that is canceled gets no answer, and nothing more can be said: a work that has begun is finished, one that
    still waits may be dropped or may run. Works are transactions that may be repeated, so the caller asks again.
    """

    async def run(self, call: Callable[[], T], *, urgency: Urgency = Urgency.SOON) -> T:
        """Call something outside of any transaction, and return what it returns or raise what it raises."""
        ...

    async def read(self, core: SqliteCore, work: Work[T]) -> T:
        """Run a work that writes nothing."""
        ...

    async def write(self, core: SqliteCore, work: Work[T], *, urgency: Urgency) -> T:
        """Run a work as a transaction, and answer when it is committed."""
        ...

    async def close(self) -> None:
        """Let go of what runs the works, after those that were asked for before."""
        ...


class InlineRunner:
    """Runs each work where it is asked for, without giving way to anybody."""

    async def run(self, call: Callable[[], T], *, urgency: Urgency = Urgency.SOON) -> T:
        """Call it now."""
        return call()

    async def read(self, core: SqliteCore, work: Work[T]) -> T:
        """Run the work now."""
        return core.read(work)

    async def write(self, core: SqliteCore, work: Work[T], *, urgency: Urgency) -> T:
        """Run the work now, with a commit of its own."""
        return core.write(work)

    async def close(self) -> None:
        """Do nothing: there is nothing to let go of."""


class _Asked(Generic[T]):
    """Something that waits for the thread; with a core and a work it is a write, which may share its commit."""

    def __init__(self, call: Callable[[], T], *, write: tuple[SqliteCore, Work[T]] | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[T] = self.loop.create_future()
        self.call = call
        self.write = write


_Entry = tuple[int, int, _Asked[Any]]
"""Among those that wait: by urgency, unless one was overtaken too often, then in the order asked."""


class WriterThread:
    """Runs works in one thread: those that wait together in one commit, the urgent ones first, then in the order asked.

    Works that only read are not kept waiting for a commit: each time the thread comes round, they are first.
    """

    def __init__(self) -> None:
        """Start no thread before the first work."""
        self._wakes = Condition()
        self._reads: list[_Asked[Any]] = []
        self._waiting: list[_Entry] = []
        self._numbers = count()
        self._thread: Thread | None = None
        self._closed = False

    async def run(self, call: Callable[[], T], *, urgency: Urgency = Urgency.SOON) -> T:
        """Put the call among those that wait, and wait for it."""
        return await self._ask(_Asked(call), urgency)

    async def read(self, core: SqliteCore, work: Work[T]) -> T:
        """Have the work run before the next commit, and wait for it."""
        return await self._ask(_Asked(lambda: core.read(work)), None)

    async def write(self, core: SqliteCore, work: Work[T], *, urgency: Urgency) -> T:
        """Put the work among those that wait, and wait until it is committed."""
        return await self._ask(_Asked(lambda: core.write(work), write=(core, work)), urgency)

    async def close(self) -> None:
        """End the thread after the works that wait; the store's own last one was awaited, so this takes no time."""
        with self._wakes:
            self._closed = True
            self._wakes.notify()
        if self._thread is not None:
            self._thread.join()

    async def _ask(self, asked: _Asked[T], urgency: Urgency | None) -> T:
        """Hand something to the thread and wait for its answer."""
        with self._wakes:
            if self._closed:
                raise BrokenInvariant("a store was used after it was closed")
            if urgency is None:
                self._reads.append(asked)
            else:
                number = next(self._numbers)
                heappush(self._waiting, (number + urgency * OVERTAKEN_MAX, number, asked))
            if self._thread is None:
                # A daemon, so that a program which is told to end is not kept by a store that nobody closed.
                self._thread = Thread(target=self._serve, name="clarion-sqlite", daemon=True)
                self._thread.start()
            self._wakes.notify()
        return await asked.future

    def _serve(self) -> None:
        """Serve those who wait, until the runner is closed and nobody is left."""
        while (turn := self._next_turn()) is not None:
            reads, taken = turn
            for read in reads:
                _answer([(read, _called(read))])
            if len(taken) == 1:
                (_, _, asked) = taken[0]
                _answer([(asked, _called(asked))])
            elif taken:
                self._commit(taken)

    def _next_turn(self) -> tuple[list[_Asked[Any]], list[_Entry]] | None:
        """Wait for work; take all that reads, and then one call or as many writes as may share a commit."""
        with self._wakes:
            while not (self._reads or self._waiting or self._closed):
                self._wakes.wait()
            if not (self._reads or self._waiting):
                return None
            reads, self._reads = self._reads, []
            taken: list[_Entry] = []
            while self._waiting and len(taken) < WORKS_MAX:
                if taken and not _may_share(taken[0][2], self._waiting[0][2]):
                    break
                entry = heappop(self._waiting)
                if entry[2].future.cancelled():
                    continue
                taken.append(entry)
            return reads, taken

    def _commit(self, taken: list[_Entry]) -> None:
        """Run writes in one commit and answer them; those that did not fit wait on in their places."""
        writes = [(asked, asked.write) for _, _, asked in taken if asked.write is not None]
        (_, (core, _)), *_ = writes
        outcomes = core.write_together([work for _, (_, work) in writes])
        with self._wakes:
            for entry in taken[len(outcomes) :]:
                heappush(self._waiting, entry)
        _answer([(asked, outcome) for (asked, _), outcome in zip(writes, outcomes, strict=False)])


def _may_share(first: _Asked[Any], second: _Asked[Any]) -> bool:
    """Tell whether two that wait may share a commit: only writes to one database do."""
    return first.write is not None and second.write is not None and first.write[0] is second.write[0]


def _called(asked: _Asked[Any]) -> Outcome[Any]:
    """Call what was asked for, unless nobody waits for it any more."""
    outcome = Outcome[Any]()
    outcome.value = None
    if not asked.future.cancelled():
        with outcome:
            outcome.value = asked.call()
    return outcome


def _answer(answers: list[tuple[_Asked[Any], Outcome[Any]]]) -> None:
    """Give each caller what became of its work, waking each event loop once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Asked[Any], Outcome[Any]]]] = defaultdict(list)
    for asked, outcome in answers:
        by_loop[asked.loop].append((asked, outcome))
    for loop, mine in by_loop.items():
        with suppress(RuntimeError):  # the loop was closed, so its callers are gone
            loop.call_soon_threadsafe(_settle, mine)


def _settle(answers: list[tuple[_Asked[Any], Outcome[Any]]]) -> None:
    """Wake the callers, in the thread of their event loop."""
    for asked, outcome in answers:
        if asked.future.done():  # canceled meanwhile
            continue
        if outcome.error is not None:
            asked.future.set_exception(outcome.error)
        else:
            asked.future.set_result(outcome.value)

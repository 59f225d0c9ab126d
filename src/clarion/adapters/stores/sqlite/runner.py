"""Where the synchronous core runs: in a thread of its own, or right here.

SQLite has one writer and its calls wait for the disk, so in production everything that a store does runs in one thread,
one work after the other. A simulation runs it inline instead, so that a seed replays the order of everything. Knows
nothing of databases.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from clarion.errors import BrokenInvariant

T = TypeVar("T")


class Runner(Protocol):
    """Runs works one at a time, each as a whole, all in one thread: a connection belongs to the thread that uses it."""

    async def run(self, work: Callable[[], T]) -> T:
        """Run one work and return what it returns, or raise what it raises.

        A caller that is canceled gets no answer, and nothing more can be said: a work that has begun is finished, one
        that still waits may be dropped or may run. Works are transactions that may be repeated, so the caller asks
        again.
        """
        ...

    async def close(self) -> None:
        """Let go of what runs the works, after those that were asked for before."""
        ...


class InlineRunner:
    """Runs each work where it is asked for, without giving way to anybody."""

    async def run(self, work: Callable[[], T]) -> T:
        """Run the work now."""
        return work()

    async def close(self) -> None:
        """Do nothing: there is nothing to let go of."""


class WriterThread:
    """Runs works in one thread, in the order asked.

    All that waits for the writer waits here, so this is the place to let urgent works pass or several share a commit.
    """

    def __init__(self) -> None:
        """Start no thread before the first work."""
        # An executor of one thread is the queue, the thread, and the way of results and errors back to the event loop.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="clarion-sqlite")
        self._closed = False

    async def run(self, work: Callable[[], T]) -> T:
        """Put the work behind those that wait, and wait for it."""
        if self._closed:
            raise BrokenInvariant("a store was used after it was closed")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def close(self) -> None:
        """End the thread after the works that wait; the store's own last one was awaited, so this takes no time."""
        self._closed = True
        self._thread.shutdown(wait=True)

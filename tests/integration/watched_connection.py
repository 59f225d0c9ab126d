"""Connections that tests look into: what is about to be sent, and a gate that stops a caller before a statement."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import asyncpg

if TYPE_CHECKING:
    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record]
else:
    Connection = asyncpg.Connection  # a generic class to its type stubs only

Before: TypeAlias = Callable[[Connection, str], Awaitable[None]]


def watched(before: Before) -> type[Connection]:
    """Make a class of connections that calls `before` with each statement, BEGIN and COMMIT too, before it is sent."""

    class Watched(Connection):
        # These three are all that the store and the driver's own transactions use.
        async def execute(self, query: str, *args: object, timeout: float | None = None) -> str:  # noqa: ASYNC109
            await before(self, query)
            return await super().execute(query, *args, timeout=timeout)

        async def fetch(self, query: str, *args: object, **options: Any) -> Any:
            await before(self, query)
            return await super().fetch(query, *args, **options)

        async def fetchrow(self, query: str, *args: object, **options: Any) -> Any:
            await before(self, query)
            return await super().fetchrow(query, *args, **options)

    return Watched


class Gate:
    """Notes every statement, and can stop its caller once, before the n-th from now."""

    def __init__(self) -> None:
        """Stand open."""
        self.passed: list[str] = []
        self.stopped_at: Connection | None = None
        self._stop_before: int | None = None
        self._reached = asyncio.Event()
        self._opened = asyncio.Event()

    def close_before(self, n: int | None) -> None:
        """Count from here, and stop the caller before its n-th statement, or never."""
        self.passed = []
        self.stopped_at = None
        self._stop_before = n
        self._reached, self._opened = asyncio.Event(), asyncio.Event()

    async def reached_by(self, caller: "asyncio.Task[Any]") -> None:
        """Wait until the caller stands before the gate; one that ends before it gets there fails the test."""
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(self._reached.wait())
            await asyncio.wait([waiting, caller], return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
        assert self._reached.is_set(), f"the caller made only {len(self.passed)} statements"

    def open(self) -> None:
        """Let the caller go on."""
        self._opened.set()

    async def before(self, connection: Connection, query: str) -> None:
        """Let a statement pass, or hold it."""
        self.passed.append(query)
        if len(self.passed) == self._stop_before:
            self.stopped_at = connection
            self._reached.set()
            await self._opened.wait()


IS_ANYONE_BLOCKED = """
SELECT EXISTS (
  SELECT FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid() AND cardinality(pg_blocking_pids(pid)) > 0
)
"""


async def done_or_blocked(task: "asyncio.Task[Any]", *, observer: Connection) -> bool:
    """Wait until the task has ended or waits for somebody's lock, and tell whether it waits."""
    while not task.done():
        if await observer.fetchval(IS_ANYONE_BLOCKED):
            return True
    return False

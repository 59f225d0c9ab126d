"""What generate is at work on: each tenant's jobs in a task of their own, for which no step waits longer than a moment.

Memory of one worker; reads and writes nothing.
"""

import asyncio
from collections.abc import Coroutine
from typing import Final

import msgspec

JOBS_MAX: Final = 2000
"""Jobs that are held at once. A batch has 200 at most, so ten tenants may be slow before the others wait for them; and
recipients and data of a job have 64 kB at most, so all together 128 MB."""

PATIENCE: Final = 0.05
"""Seconds that a step waits for one tenant. An ordinary batch takes that long, and so does a turn of the renderer."""


class _Work(msgspec.Struct, frozen=True):
    """What a task is at work on."""

    tenant_id: str
    count: int
    is_alone: bool


class Underway:
    """The tasks of one worker."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._tasks: dict[asyncio.Task[None], _Work] = {}

    def __bool__(self) -> bool:
        """Whether anything is at work."""
        return bool(self._tasks)

    @property
    def tenants(self) -> set[str]:
        """Whose jobs are at work."""
        return {work.tenant_id for work in self._tasks.values()}

    @property
    def count(self) -> int:
        """How many jobs are at work."""
        return sum(work.count for work in self._tasks.values())

    @property
    def is_alone(self) -> bool:
        """Whether one of them is a job that no other such job may be beside."""
        return any(work.is_alone for work in self._tasks.values())

    async def begin(
        self, tenant_id: str, work: Coroutine[None, None, None], *, count: int, is_alone: bool = False
    ) -> None:
        """Begin to work on so many jobs of a tenant, and wait a moment for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = _Work(tenant_id, count, is_alone)
        await asyncio.wait([task], timeout=PATIENCE)

    async def wait(self) -> None:
        """Wait a moment for whatever is at work."""
        await asyncio.wait([*self._tasks], timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)

    def collect(self) -> None:
        """Let go of what has ended; raise what it raised, one error at each call."""
        for task in [task for task in self._tasks if task.done()]:
            del self._tasks[task]
            task.result()

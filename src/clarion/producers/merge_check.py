"""The check of data against templates at the door, without keeping everybody else waiting.

Most data is checked in microseconds, right in the event loop. A template that does much work is checked in a thread:
one check at a time, and of each tenant at most one in line there, so that a tenant which sends a hundred of them
delays its own requests and no others. Reads and writes nothing.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from clarion.ports.renderer import Bundle, Renderer


class MergeChecks:
    """Checks of one process."""

    def __init__(self, renderer: Renderer) -> None:
        """Check with this renderer; the thread is started when it is needed."""
        self._renderer = renderer
        # One: two would compete with the event loop for the interpreter, and be no faster together.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="clarion-merge-check")
        self._turns: dict[str, tuple[asyncio.Lock, int]] = {}  # by tenant, with how many want it

    async def check(self, tenant_id: str, bundle: Bundle, data: Mapping[str, object]) -> None:
        """Raise InvalidInput where the data cannot be merged into the templates."""
        if self._renderer.check(bundle, data, briefly=True):
            return
        async with self._turn(tenant_id):
            await asyncio.get_running_loop().run_in_executor(self._thread, self._renderer.check, bundle, data)

    @asynccontextmanager
    async def _turn(self, tenant_id: str) -> AsyncIterator[None]:
        """Wait until none of the tenant's other requests is in line for the thread."""
        lock, wanted = self._turns.get(tenant_id, (asyncio.Lock(), 0))
        self._turns[tenant_id] = lock, wanted + 1
        try:
            async with lock:
                yield
        finally:
            lock, wanted = self._turns.pop(tenant_id)
            if wanted > 1:
                self._turns[tenant_id] = lock, wanted - 1

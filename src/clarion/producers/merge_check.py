"""The check of data against templates at the door, without keeping everybody else waiting.

Most data is checked in a moment. A template that does much work is checked apart, by the renderer: of each tenant at
most one check at a time, so that a tenant which sends a hundred of them delays its own requests and no others. How many
wait for that, and how long, is bounded: each is an open request, and a tenant that had all of them would lock the
others out. Reads and writes nothing.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from clarion.errors import TooManyAtOnce
from clarion.ports.renderer import Bundle, Renderer

LINE_MAX: Final = 100
"""Of one tenant at once: a tenth of the requests that a process serves."""

WAIT_MAX: Final = 5.0
"""Seconds in that line. The door answers after 8 whatever happens, and work for whoever was answered is wasted."""


class MergeChecks:
    """Checks of one process."""

    def __init__(self, renderer: Renderer) -> None:
        """Check with this renderer."""
        self._renderer = renderer
        self._turns: dict[str, tuple[asyncio.Lock, int]] = {}  # by tenant, with how many want it

    async def check(
        self, tenant_id: str, bundle: Bundle, data: Mapping[str, object], *, entity: Mapping[str, object]
    ) -> None:
        """Raise InvalidInput where data and entity cannot be merged into the templates."""
        if await self._renderer.check_request(bundle, data, entity=entity, tenant_id=tenant_id, briefly=True):
            return
        async with self._turn(tenant_id):
            await self._renderer.check_request(bundle, data, entity=entity, tenant_id=tenant_id, briefly=False)

    @asynccontextmanager
    async def _turn(self, tenant_id: str) -> AsyncIterator[None]:
        """Wait until none of the tenant's other requests is being checked."""
        lock, wanted = self._turns.get(tenant_id, (asyncio.Lock(), 0))
        if wanted >= LINE_MAX:
            raise _too_many()
        self._turns[tenant_id] = lock, wanted + 1
        try:
            try:
                async with asyncio.timeout(WAIT_MAX):
                    await lock.acquire()
            except TimeoutError:
                raise _too_many() from None
            try:
                yield
            finally:
                lock.release()
        finally:
            lock, wanted = self._turns.pop(tenant_id)
            if wanted > 1:
                self._turns[tenant_id] = lock, wanted - 1


def _too_many() -> TooManyAtOnce:
    return TooManyAtOnce(
        "too many notifications are being checked whose templates take long to merge",
        hint="try again in a moment, with fewer at once",
    )

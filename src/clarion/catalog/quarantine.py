"""Quarantine: writes down that a template version is not merged any more, with its support case.

The renderer says so in the middle of its work, so it is written a moment later, beside it; where the store does not
take it, again until it does or the program ends. Then the processes of the next start find out for themselves.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from clarion.errors import ClarionError
from clarion.ports.catalog import CatalogStore
from clarion.ports.renderer import Bundle

AGAIN_AFTER: Final = 5.0
"""Seconds until the store is asked again."""

log = structlog.get_logger("clarion.catalog")


class Quarantine:
    """The quarantines of one process that are not written yet."""

    def __init__(
        self, catalog: CatalogStore, *, stored: Callable[[str, Bundle], None] = lambda _tenant_id, _bundle: None
    ) -> None:
        """Write to this catalog; `stored` hears of each that was written."""
        self._catalog = catalog
        self._stored = stored
        self._writing: set[asyncio.Task[None]] = set()

    def hear(self, tenant_id: str, bundle: Bundle) -> None:
        """Take down that a tenant's template version is not merged any more."""
        task = asyncio.get_running_loop().create_task(self._write(tenant_id, bundle))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def close(self) -> None:
        """Give up what could not be written."""
        for task in self._writing:
            task.cancel()
        await asyncio.gather(*self._writing, return_exceptions=True)

    async def _write(self, tenant_id: str, bundle: Bundle) -> None:
        while True:
            try:
                await self._catalog.quarantine_template(tenant_id, bundle.definition.key, bundle.content_hash)
            except ClarionError as error:
                log.warning("a quarantine cannot be stored", tenant_id=tenant_id, error=str(error))
                await asyncio.sleep(AGAIN_AFTER)
            else:
                self._stored(tenant_id, bundle)
                return

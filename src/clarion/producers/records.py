"""Sources that an application puts in by API, program or CSV, told as the providers of plugins tell theirs.

Reads stored sources and opens them; writes nothing.
"""

from collections.abc import Collection, Mapping
from typing import Final

from clarion.domain.source import SourceFacts
from clarion.ports.reminding import ScanBounds, ScanPage
from clarion.ports.source import RecordStore, SourceScan
from clarion.sealing.keyring import Keyring
from clarion.sealing.sources import opened_source

BOUNDS: Final = ScanBounds()
"""Every change is told by an event in its own transaction, so a scan repairs only what was lost between two programs;
the usual bounds find it."""


class Records:
    """The provider of stored sources, of whichever type."""

    def __init__(self, store: RecordStore, keyring: Keyring) -> None:
        """Read from this store with these keys."""
        self._store = store
        self._keyring = keyring

    async def load(self, tenant_id: str, source_type: str, sources: Collection[str]) -> Mapping[str, SourceFacts]:
        """Return these sources as they are now, by id; one that was removed is told as inactive."""
        keys = await self._keyring.get(tenant_id)
        found = await self._store.find_sources(tenant_id, source_type, sources)
        return {source: opened_source(keys, record) for source, record in found.items()}

    async def scan(self, tenant_id: str, scan: SourceScan) -> ScanPage:
        """Return a page of active sources within the bounds of a scan."""
        keys = await self._keyring.get(tenant_id)
        page = await self._store.scan_sources(tenant_id, scan)
        return ScanPage(facts=tuple(opened_source(keys, record) for record in page.records), cursor=page.cursor)

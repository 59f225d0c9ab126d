"""The immediate contract: something is to be said at once, and the provider knows to whom.

Keys are to be returned on a day, which is a reminder. One that is reported lost (`key.lost`) is told at once, and the
provider adds what only it knows: whoever holds it now. An event that leads to the same notification for everybody
needs no plugin, only a line in the table of mappings.
"""

import asyncio
from collections.abc import Collection, Mapping
from datetime import date

from clarion.domain.entity_event import EntityEvent
from clarion.domain.identity import Identity
from clarion.domain.recipient import Target
from clarion.domain.source import SourceFacts
from clarion.ports.reminding import Immediate, ScanBounds, ScanPage
from clarion.ports.source import SourceScan
from stand_in import Table, event


class Keys:
    """Tells of keys, and says at once that one is lost."""

    source_type = "key"
    bounds = ScanBounds()

    def __init__(self) -> None:
        """Open what stands in for a database."""
        self._table = Table(self.source_type)
        self._table.put("workshop-3", fields={"holder": "4711"}, dates={"back": date(2027, 2, 1)})

    async def load(self, tenant_id: str, sources: Collection[str]) -> Mapping[str, SourceFacts]:
        """Return these keys as they are now."""
        return self._table.load(sources)

    async def scan(self, tenant_id: str, scan: SourceScan) -> ScanPage:
        """Return a page of keys."""
        return self._table.scan(scan)

    async def immediate(
        self, tenant_id: str, event: EntityEvent, data: Mapping[str, object], facts: SourceFacts | None
    ) -> Immediate | None:
        """Say it to whoever holds the key; None where there is nothing to say. Clarion sends, and only once."""
        if event.event_type != "key.lost" or facts is None:
            return None
        holder = Target(identity=Identity.user(str(facts.content.fields["holder"])))
        return Immediate(notification_type="key-lost", to=(holder,), data={"key": facts.source})


async def main() -> None:
    """Ask as the handler of events does."""
    keys = Keys()
    found = await keys.load("example", ["workshop-3"])
    print(await keys.immediate("example", event("key.lost"), {}, found["workshop-3"]))


if __name__ == "__main__":
    asyncio.run(main())

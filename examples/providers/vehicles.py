"""The trigger contract, which every provider has: the vehicles of a garage, each with the day of its inspection.

`load` and `scan` tell what there is, and nothing else: no recipient, no channel, no text. When somebody is told is for
a reminder setting to say (`clarion reminders put ... --source-type vehicle --date inspection --offset 30`).
"""

import asyncio
from collections.abc import Collection, Mapping
from datetime import date, timedelta

from clarion.domain.source import SourceFacts
from clarion.ports.reminding import ScanBounds, ScanPage
from clarion.ports.source import SourceScan
from stand_in import Table


class Vehicles:
    """Tells of vehicles."""

    source_type = "vehicle"
    bounds = ScanBounds(every=timedelta(hours=6), overlap=timedelta(minutes=15), window_days=60, batch_size=200)
    """A repair looks at most so far. Without bounds Clarion does not start: a scan must never read a whole table."""

    def __init__(self) -> None:
        """Open what stands in for a database. Clarion calls this without arguments: read your own settings here."""
        self._table = Table(self.source_type)
        self._table.put("W-1047", fields={"name": "Minibus"}, dates={"inspection": date(2027, 3, 31)})
        self._table.put("W-2210", fields={"name": "Van"}, dates={"inspection": date(2027, 9, 30)})

    async def load(self, tenant_id: str, sources: Collection[str]) -> Mapping[str, SourceFacts]:
        """Return these vehicles as they are now; one that was sold is left out, and its reminders are taken back."""
        return self._table.load(sources)

    async def scan(self, tenant_id: str, scan: SourceScan) -> ScanPage:
        """Return a page of vehicles that changed since the watermark or have a date in the window, by id."""
        return self._table.scan(scan)


async def main() -> None:
    """Ask as reconciliation does: what is due in March."""
    asked = SourceScan(source_type="vehicle", due_from=date(2027, 3, 1), due_until=date(2027, 3, 31), limit=10)
    page = await Vehicles().scan("example", asked)
    print([one.source for one in page.facts])


if __name__ == "__main__":
    asyncio.run(main())

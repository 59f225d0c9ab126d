"""The invalidation contract: one event changes many sources.

Drivers renew their licence with their team. When a team moves to another office, the application tells `team.moved`
once, and the reminders of every driver in it are planned anew. Without this contract an event changes the one source
that it names.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import date

from clarion.domain.entity_event import EntityEvent
from clarion.domain.source import SourceFacts
from clarion.ports.reminding import ScanBounds, ScanPage
from clarion.ports.source import SourceScan
from stand_in import Table, event

TEAMS = {"north": ("ada", "ben"), "south": ("cem",)}


class Drivers:
    """Tells of drivers, and which of them an event is about."""

    source_type = "driver"
    bounds = ScanBounds()
    event_types = frozenset({"team.moved"})
    """Events of these types are shown to `touched`. Map each to `--nothing`, or to what is told at once."""

    def __init__(self) -> None:
        """Open what stands in for a database."""
        self._table = Table(self.source_type)
        for team, names in TEAMS.items():
            for name in names:
                self._table.put(name, fields={"team": team}, dates={"licence": date(2027, 5, 1)})

    async def load(self, tenant_id: str, sources: Collection[str]) -> Mapping[str, SourceFacts]:
        """Return these drivers as they are now."""
        return self._table.load(sources)

    async def scan(self, tenant_id: str, scan: SourceScan) -> ScanPage:
        """Return a page of drivers."""
        return self._table.scan(scan)

    async def touched(self, tenant_id: str, event: EntityEvent, data: Mapping[str, object]) -> Sequence[str]:
        """Return the ids of the drivers in the team; up to 1,000."""
        return TEAMS.get(str(data.get("team")), ())


async def main() -> None:
    """Ask as the handler of events does."""
    print(await Drivers().touched("example", event("team.moved"), {"team": "north"}))


if __name__ == "__main__":
    asyncio.run(main())

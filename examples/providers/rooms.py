"""The recipient contract: for whom a reminder is, asked when it is due and not before.

Whoever booked a room is reminded of it. Bookings change hands, so the provider is asked at the last moment, and what
waits meanwhile knows no names.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from uuid import UUID

from clarion.domain.identity import Identity
from clarion.domain.recipient import Target
from clarion.domain.reminder import DateRule, ReminderSetting
from clarion.domain.source import SourceFacts
from clarion.ports.reminding import ScanBounds, ScanPage
from clarion.ports.source import SourceScan
from stand_in import Table

BOOKED_BY = {"hall": ("ada", "ben"), "gym": ()}

SETTING = ReminderSetting(
    guid=UUID(int=1), name="Room is booked", source_type="room", rule=DateRule(field="on"), notification_type="booked"
)
"""As Clarion shows it: a provider may answer otherwise for one setting than for another."""


class Rooms:
    """Tells of booked rooms, and for whom their reminders are."""

    source_type = "room"
    bounds = ScanBounds()

    def __init__(self) -> None:
        """Open what stands in for a database."""
        self._table = Table(self.source_type)
        for name in (*BOOKED_BY, "cellar"):
            self._table.put(name, dates={"on": date(2027, 2, 8)})

    async def load(self, tenant_id: str, sources: Collection[str]) -> Mapping[str, SourceFacts]:
        """Return these rooms as they are now."""
        return self._table.load(sources)

    async def scan(self, tenant_id: str, scan: SourceScan) -> ScanPage:
        """Return a page of rooms."""
        return self._table.scan(scan)

    async def recipients(self, tenant_id: str, facts: SourceFacts, setting: ReminderSetting) -> Sequence[Target] | None:
        """Return who booked it: none for nobody, None to leave it to the setting. Up to 1,000."""
        found = BOOKED_BY.get(facts.source)
        return None if found is None else [Target(identity=Identity.user(one)) for one in found]


async def main() -> None:
    """Ask as the worker does that hands a reminder over."""
    rooms = Rooms()
    for name, facts in (await rooms.load("example", ["hall", "gym", "cellar"])).items():
        print(name, await rooms.recipients("example", facts, SETTING))


if __name__ == "__main__":
    asyncio.run(main())

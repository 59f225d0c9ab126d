"""The delivery contract: how a reminder goes out, asked when it is due.

A boiler's service is told by mail; where its pressure is low, by text message too, with the reading. The channels must
be ones that the notification type has. Who gets it stays with the setting.
"""

import asyncio
from collections.abc import Collection, Mapping
from datetime import date
from uuid import UUID

from clarion.domain.identity import Channel
from clarion.domain.reminder import DateRule, ReminderSetting
from clarion.domain.source import SourceFacts
from clarion.ports.reminding import Delivery, ScanBounds, ScanPage
from clarion.ports.source import SourceScan
from stand_in import Table

LOW = 1.2
"""Bar: below it somebody should come at once."""

SETTING = ReminderSetting(
    guid=UUID(int=2),
    name="Boiler needs service",
    source_type="boiler",
    rule=DateRule(field="service"),
    notification_type="service",
)


class Boilers:
    """Tells of boilers, and how their reminders go out."""

    source_type = "boiler"
    bounds = ScanBounds()

    def __init__(self) -> None:
        """Open what stands in for a database."""
        self._table = Table(self.source_type)
        self._table.put("cellar", dates={"service": date(2027, 10, 1)}, metrics={"bar": 1.7})
        self._table.put("attic", dates={"service": date(2027, 10, 1)}, metrics={"bar": 0.9})

    async def load(self, tenant_id: str, sources: Collection[str]) -> Mapping[str, SourceFacts]:
        """Return these boilers as they are now."""
        return self._table.load(sources)

    async def scan(self, tenant_id: str, scan: SourceScan) -> ScanPage:
        """Return a page of boilers."""
        return self._table.scan(scan)

    async def delivery(self, tenant_id: str, facts: SourceFacts, setting: ReminderSetting) -> Delivery:
        """Return the channels, and what templates read besides what the source says."""
        bar = facts.metric("bar", "all")
        if bar is not None and bar < LOW:
            return Delivery(channels=(Channel.EMAIL, Channel.SMS), data={"warning": f"its pressure is {bar} bar"})
        return Delivery(channels=(Channel.EMAIL,))


async def main() -> None:
    """Ask as the worker does that hands a reminder over."""
    boilers = Boilers()
    for name, facts in (await boilers.load("example", ["cellar", "attic"])).items():
        print(name, await boilers.delivery("example", facts, SETTING))


if __name__ == "__main__":
    asyncio.run(main())

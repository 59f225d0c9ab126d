"""A post-processor: something of your own is done about every event, here a line in a journal.

Events of all types come here where `event_types` is None, each in turn with all other post-processors, Clarion's first.
Where one of them fails, the event is handled again by all. So what is done must come to the same when it is done twice:
the journal is kept by the event's id.
"""

import asyncio
from collections.abc import Mapping
from uuid import UUID

from clarion.domain.entity_event import EntityEvent, EventData
from stand_in import event


class Journal:
    """Keeps a line for each event."""

    event_types: frozenset[str] | None = None

    def __init__(self) -> None:
        """Open what stands in for a table with the event's id as its key."""
        self.lines: dict[UUID, str] = {}

    async def process(self, tenant_id: str, event: EntityEvent, told: EventData) -> Mapping[str, int]:
        """Write the line, once; what is counted stands with the event (`clarion events show`)."""
        is_new = event.event_guid not in self.lines
        self.lines[event.event_guid] = f"{event.occurred_at:%Y-%m-%d %H:%M} {event.event_type} {sorted(told.data)}"
        return {"written": int(is_new)}


async def main() -> None:
    """Have the same event processed twice."""
    journal = Journal()
    for _ in range(2):
        print(await journal.process("example", event("team.moved"), EventData(data={"team": "north"})))
    print(*journal.lines.values())


if __name__ == "__main__":
    asyncio.run(main())

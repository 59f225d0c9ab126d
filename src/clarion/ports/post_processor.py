"""The seam where handlers of events hang: whoever wants to do something about an event is registered here.

A post-processor of a stranger is an entry point of `clarion.events`: a call without arguments that gives one. Every
event is given to each of them in turn, ours first, and again to all of them where one fails, so what they do must come
to the same when it is done again.
"""

from collections.abc import Collection, Mapping
from typing import Protocol, runtime_checkable

from clarion.domain.entity_event import EntityEvent, EventData


@runtime_checkable
class EventPostProcessor(Protocol):
    """Does something about the events of some types, or of all of them where `event_types` is None."""

    event_types: Collection[str] | None

    async def process(self, tenant_id: str, event: EntityEvent, told: EventData) -> Mapping[str, int]:
        """Do it, and say in a few counts what it came to; a second time it does nothing more."""
        ...

"""Reminders of events: plans the sources that an event changes, and tells at once what is to be told at once.

The order is: the sources that it changes are loaded, with the zone of their business unit and the settings about their
type; what is no longer wanted is deactivated and what is wanted ensured in one transaction; then the notification that
the event leads to by itself is made. Whom a reminder tells, and how, is read when it is due, so that what is pending
stays as it is while settings of notifications change. It neither sends nor renders, and looks at no other source.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from itertools import repeat
from typing import Protocol

import msgspec

from clarion.domain.entity_event import EntityEvent, EventData
from clarion.domain.planning import PlanCounts
from clarion.domain.source import SourceFacts
from clarion.producers.immediate import Immediately
from clarion.producers.planning import Ask, Known, Planned, Planning


class Touched(Known, Protocol):
    """What a handler may ask of sources: which ones an event changes, and how these are."""

    async def touched(
        self, tenant_id: str, event: EntityEvent, data: Mapping[str, object]
    ) -> Sequence[tuple[str, str]]:
        """Return the type and id of each source that an event changes."""
        ...


class RemindersOfEvents:
    """The post-processor of ours: it handles every event."""

    event_types: Collection[str] | None = None

    def __init__(self, *, planning: Planning, immediately: Immediately, sources: Touched) -> None:
        """Plan and tell by these."""
        self._planning = planning
        self._immediately = immediately
        self._sources = sources

    async def process(self, tenant_id: str, event: EntityEvent, told: EventData) -> Mapping[str, int]:
        """Plan what the event changes, notify, and count; a second time nothing more is done.

        What cannot be planned is told after everything else is done.
        """
        touched = await self._sources.touched(tenant_id, event, told.data)
        cause = f"event {event.event_guid}"
        asks = [Ask(source=source, cause=cause, correlation_id=event.correlation_id) for _, source in touched]
        types = [source_type for source_type, _ in touched]
        answers = await asyncio.gather(*map(self._planning.plan, repeat(tenant_id), types, asks))
        planned = dict(zip(touched, answers, strict=True))
        facts = await self._facts(tenant_id, event, planned)
        notified = await self._immediately.notify(tenant_id, event, told, facts)
        counts = sum((one.counts for one in planned.values()), PlanCounts())
        for one in planned.values():
            if one.refused is not None:
                raise one.refused
        return {**msgspec.structs.asdict(counts), "notified": len(notified)}

    async def _facts(
        self, tenant_id: str, event: EntityEvent, planned: Mapping[tuple[str, str], Planned]
    ) -> SourceFacts | None:
        """Give the source that the event names, which a plugin may not have said that it changes."""
        if event.source_type is None or event.source is None:
            return None
        known = planned.get((event.source_type, event.source))
        if known is not None:
            return known.facts
        return (await self._sources.load(tenant_id, event.source_type, [event.source])).get(event.source)

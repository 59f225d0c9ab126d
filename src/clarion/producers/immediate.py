"""Immediate: what is told at once about an event.

The table of mappings says which notification type an event type leads to, or that it leads to none; what is in neither
way in the table is an error, told where the event comes in and again where it is handled. The plugin of the event's
source type may ask for another notification. Each is one job for its event, whoever handles that how often.
Reads mappings, templates and what plugins say; writes jobs through dispatch.
"""

from collections.abc import Mapping
from uuid import UUID

import msgspec

from clarion.dispatch.request import FromEvent, JobRequest, Trace
from clarion.domain.ensured import Outcome
from clarion.domain.entity_event import EntityEvent, EventData, EventMapping
from clarion.domain.source import SourceFacts
from clarion.errors import InvalidInput
from clarion.ports.reminding import Immediate
from clarion.ports.source import ReminderStore
from clarion.ports.templates import Published
from clarion.producers.direct import DirectSends
from clarion.producers.sources import Sources
from clarion.producers.telling import data_of


class Notified(msgspec.Struct, frozen=True, kw_only=True):
    """A notification that was made for an event, now or when it was handled before."""

    notification_type: str
    job: UUID
    is_new: bool


class Immediately:
    """Tells at once what is to be told about events."""

    def __init__(self, *, store: ReminderStore, sources: Sources, sends: DirectSends) -> None:
        """Look into this table of mappings, ask these sources, and send by this door."""
        self._store = store
        self._sources = sources
        self._sends = sends

    async def check(self, tenant_id: str, event: EntityEvent, told: EventData) -> None:
        """Refuse an event that leads nowhere, or whose notification lacks data; stores nothing.

        What only a plugin knows, or a source that is not there yet, is not missed here but when the event is handled.
        """
        notification_type = await self._mapped(tenant_id, event)
        if notification_type is None:
            return
        published = await self._sends.look_up(tenant_id, notification_type)
        facts, is_known = await self._facts_at_the_door(tenant_id, event)
        asked = Immediate(notification_type=notification_type)
        request = _request(event, told, facts, asked, published)
        if is_known or published.bundle is None:
            await self._sends.check(tenant_id, request, published, may_raise=True)

    async def notify(
        self, tenant_id: str, event: EntityEvent, told: EventData, facts: SourceFacts | None
    ) -> tuple[Notified, ...]:
        """Make the notifications that an event leads to, once each however often it is asked.

        Raises InvalidInput where the event can lead to nothing, and an OperatorError where it is to be tried again.
        """
        wanted: dict[str, Immediate] = {}
        mapped = await self._mapped(tenant_id, event)
        if mapped is not None:
            wanted[mapped] = Immediate(notification_type=mapped)
        asked = await self._sources.immediate(tenant_id, event, told.data, facts)
        if asked is not None:
            wanted[asked.notification_type] = asked  # a plugin knows more about its sources than the table
        return tuple([await self._tell(tenant_id, event, told, facts, one) for one in wanted.values()])

    async def _tell(
        self, tenant_id: str, event: EntityEvent, told: EventData, facts: SourceFacts | None, wanted: Immediate
    ) -> Notified:
        published = await self._sends.look_up(tenant_id, wanted.notification_type)
        request = _request(event, told, facts, wanted, published)
        answer = await self._sends.send(tenant_id, request, published, may_raise=True)
        return Notified(
            notification_type=wanted.notification_type,
            job=answer.record.guid,
            is_new=answer.outcome is Outcome.CREATED,
        )

    async def _mapped(self, tenant_id: str, event: EntityEvent) -> str | None:
        """Say which notification type the table has for an event; None for explicitly none.

        The events that the store itself makes of every change to a source lead to nothing unless they are mapped.
        """
        found: Mapping[str, EventMapping] = await self._store.find_mappings(tenant_id, [event.event_type])
        mapping = found.get(event.event_type)
        if mapping is None and event.source_version is None:
            raise InvalidInput(
                f"the event type {event.event_type!r} is in no table: nobody has said what it leads to",
                field="type",
                hint="map it to a notification type, or explicitly to none: `clarion event-mappings set`",
            )
        return None if mapping is None else mapping.notification_type

    async def _facts_at_the_door(self, tenant_id: str, event: EntityEvent) -> tuple[SourceFacts | None, bool]:
        """Look an event's source up where that is quick; say too whether all that there is to know is known."""
        if event.source_type is None or event.source is None:
            return None, True
        if event.source_type in self._sources.provided:
            return None, False  # a plugin may take its time, and whoever tells of an event waits
        found = await self._sources.load(tenant_id, event.source_type, [event.source])
        return found.get(event.source), event.source in found


def _request(
    event: EntityEvent, told: EventData, facts: SourceFacts | None, wanted: Immediate, published: Published
) -> JobRequest:
    """Ask for a notification about an event: with what its source says, what itself says, and what a plugin adds."""
    of_source = {} if facts is None or published.bundle is None else data_of(facts, published.bundle.definition)
    return JobRequest(
        origin=FromEvent(event_type=event.event_type, event_guid=event.event_guid),
        event_type=wanted.notification_type,
        source_at=published.at,
        entity=(event.entity_type, event.entity_guid),
        entity_data=told.entity,
        to=wanted.to,
        addressees=wanted.addressees,
        data={**of_source, **told.data, **wanted.data},
        business_unit=event.business_unit or (None if facts is None else facts.business_unit),
        actor=event.actor,
        trace=Trace(correlation_id=event.correlation_id, traceparent=event.traceparent),
    )

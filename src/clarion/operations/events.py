"""Events: telling, showing, listing and retrying them, and what their types lead to.

What an event tells is stored sealed. It is opened in memory, within the tenant, for who may see it: who tells of
events, and who may see messages as their recipients do.
"""

from typing import Final
from uuid import UUID

from clarion.bootstrap import Platform
from clarion.catalog.settings import require_unit
from clarion.client import wire, wire_events
from clarion.dispatch.request import Trace
from clarion.domain.ensured import Outcome
from clarion.domain.entity_event import EntityEvent, EventData, EventMapping, check_type
from clarion.domain.group import read_entity
from clarion.domain.seal import TenantKeys
from clarion.errors import Conflict, InvalidInput, SealBroken
from clarion.operations import page
from clarion.operations.shape import as_wire, read_details
from clarion.operations.sources import TOPIC
from clarion.operations.wake import Wake
from clarion.producers import events as producers
from clarion.producers.direct import require_published
from clarion.producers.immediate import Immediately
from clarion.sealing.sources import opened_event_data

MAPPINGS: Final = "event mappings"


class Events:
    """The events of a tenant."""

    def __init__(self, platform: Platform, *, wake: Wake) -> None:
        """Work on this platform, and wake workers."""
        self._store = platform.store
        self._keyring = platform.keyring
        self._wake = wake
        self._events = producers.Events(
            store=platform.store,
            facts=platform.store,
            sources=platform.sources,
            immediately=Immediately(store=platform.store, sources=platform.sources, sends=platform.sends),
            keyring=platform.keyring,
        )

    async def tell(
        self, tenant_id: str, asked: wire_events.EventRequest, *, key: str | None, actor: str, trace: Trace
    ) -> wire_events.EventAnswer:
        """Accept an event, once for its id or key: it is stored when this returns, and the workers handle it."""
        await require_unit(self._store, tenant_id, asked.business_unit)
        telling = producers.Telling(
            event_type=asked.type,
            event_guid=asked.id,
            key=key,
            entity=None if asked.entity is None else (asked.entity.type, asked.entity.guid),
            entity_data={} if asked.entity is None else asked.entity.data,
            source=None if asked.source is None else (asked.source.type, asked.source.id),
            data=asked.data,
            occurred_at=asked.occurred_at,
            business_unit=asked.business_unit,
            actor=actor,
            trace=trace,
        )
        answer = await self._events.tell(tenant_id, telling)
        is_new = answer.outcome is Outcome.CREATED
        if is_new:
            self._wake(TOPIC)
        return wire_events.EventAnswer(
            event_id=answer.record.event_guid, entity=answer.record.entity_guid, repeated=not is_new
        )

    async def is_known(self, tenant_id: str, asked: wire_events.EventRequest, *, key: str | None) -> bool:
        """Tell whether an event was told before under its id or key."""
        return await self._events.is_known(tenant_id, event_guid=asked.id, key=key)

    async def find(self, tenant_id: str, event_id: UUID, *, whole: bool) -> wire_events.Event | None:
        """Show an event, and how far its handling has come; `whole` shows what it tells."""
        event = await self._store.find_event(tenant_id, event_id)
        return None if event is None else _shown(await self._keyring.get(tenant_id), event, whole=whole)

    async def list(self, tenant_id: str, query: wire_events.EventQuery, *, whole: bool) -> wire_events.EventPage:
        """List events, the newest first, of one entity or in one state where that is asked for."""
        entity = None if query.entity is None else read_entity(query.entity, field="entity")
        name = f"events {query.status or 'all'} {'' if entity is None else f'{entity[0]}:{entity[1]}'}"
        found = await self._store.list_events(
            tenant_id,
            entity=entity,
            status=query.status,
            after=page.read_moment_and_id(name, query.cursor),
            limit=query.limit + 1,
        )
        events, following = page.cut(name, found, query.limit, _written)
        keys = await self._keyring.get(tenant_id)
        items = tuple(_shown(keys, one, whole=whole) for one in events)
        return wire_events.EventPage(items=items, next_cursor=following)

    async def retry(
        self, tenant_id: str, event_id: UUID, *, actor: str, reason: str
    ) -> wire_events.EventRetried | None:
        """Have an event that failed handled again; audited with the reason."""
        if not await self._store.retry_event(tenant_id, event_id, actor=actor, reason=reason):
            if await self._store.find_event(tenant_id, event_id) is None:
                return None
            raise Conflict("the event has not failed", hint="look at it again: it says how far its handling has come")
        self._wake(TOPIC)
        return wire_events.EventRetried(event_id=event_id)


class EventMappings:
    """The table that says what event types lead to at once."""

    def __init__(self, platform: Platform) -> None:
        """Work on this platform."""
        self._store = platform.store
        self._templates = platform.templates

    async def put(
        self, tenant_id: str, event_type: str, notification_type: str | None, *, actor: str
    ) -> wire_events.EventMapping:
        """Say what an event type leads to: a published notification type, or explicitly none; audited."""
        check_type(event_type, field="event_type")
        if notification_type is not None:
            (published,) = await self._templates.latest([(tenant_id, notification_type)])
            try:
                require_published(published, notification_type)
            except InvalidInput as error:
                raise InvalidInput(error.message, field="notification_type", hint=error.hint) from None
        given = EventMapping(event_type=event_type, notification_type=notification_type, changed_by=actor)
        await self._store.put_mapping(tenant_id, given, actor=actor)
        found = await self._store.find_mappings(tenant_id, [event_type])
        return _mapping(found.get(event_type, given))

    async def remove(self, tenant_id: str, event_type: str, *, actor: str) -> bool:
        """Take an event type out of the table; False where it is not in it."""
        check_type(event_type, field="event_type")
        return await self._store.remove_mapping(tenant_id, event_type, actor=actor)

    async def list(self, tenant_id: str, query: wire.PageQuery) -> wire_events.MappingPage:
        """List the table, by event type."""
        after = page.read(MAPPINGS, query.cursor, start="")
        found = await self._store.list_mappings(tenant_id, after=after, limit=query.limit + 1)
        mappings, following = page.cut(MAPPINGS, found, query.limit, lambda one: one.event_type)
        return wire_events.MappingPage(items=tuple(map(_mapping, mappings)), next_cursor=following)


def _shown(keys: TenantKeys, event: EntityEvent, *, whole: bool) -> wire_events.Event:
    told = _opened(keys, event) if whole else None
    source = None
    if event.source_type is not None and event.source is not None:
        source = wire_events.EventSource(type=event.source_type, id=event.source)
    return as_wire(
        event,
        wire_events.Event,
        event_id=event.event_guid,
        type=event.event_type,
        entity=wire.Entity(type=event.entity_type, guid=event.entity_guid),
        source=source,
        retries=event.retry_count,
        result=None if event.metrics is None else read_details(event.metrics),
        data=None if told is None else dict(told.data),
    )


def _opened(keys: TenantKeys, event: EntityEvent) -> EventData | None:
    """Open what an event tells; what cannot be opened is shown as nothing."""
    try:
        return opened_event_data(keys, event)
    except SealBroken:
        return None


def _mapping(mapping: EventMapping) -> wire_events.EventMapping:
    return as_wire(mapping, wire_events.EventMapping)


def _written(event: EntityEvent) -> str:
    """Write the place of an event in a list."""
    return page.moment(event.occurred_at, event.id)

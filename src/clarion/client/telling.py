"""What the client does about sources, events and what these lead to: methods of `connection.Client`."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from urllib.parse import quote
from uuid import UUID

from clarion.client import wire, wire_events, wire_sources
from clarion.client.belonging import Connected
from clarion.client.finite import require_finite
from clarion.domain.entity_event import EventStatus


async def sources(client: Connected, source_type: str, *, cursor: str | None = None) -> wire_sources.SourcePage:
    """List the sources of a type, page by page."""
    return await client.transport.ask("GET", _type(source_type), wire_sources.SourcePage, query={"cursor": cursor})


async def source(client: Connected, source_type: str, source: str) -> wire_sources.Source:
    """Show a source."""
    return await client.transport.ask("GET", _source(source_type, source), wire_sources.Source)


async def put_source(
    client: Connected,
    source_type: str,
    source: str,
    *,
    fields: Mapping[str, str | bool | float | None] | None = None,
    dates: Mapping[str, date | str | None] | None = None,
    metrics: Mapping[str, float | Mapping[str, float] | None] | None = None,
    business_unit: UUID | None = None,
    entity: UUID | None = None,
) -> wire_sources.SourceStored:
    """Insert or replace a source as a whole: what is left out, the source has not any more."""
    body = wire_sources.SourceRequest(
        fields=dict(fields or {}),
        dates=dict(dates or {}),
        metrics=dict(metrics or {}),
        business_unit=business_unit,
        entity=entity,
    )
    require_finite(fields=fields, metrics=metrics)
    path = _source(source_type, source)
    return await client.transport.ask("PUT", path, wire_sources.SourceStored, body=body, again=True)


async def put_sources(
    client: Connected, source_type: str, sources: Sequence[wire_sources.SourceItem]
) -> wire_sources.SourcesStored:
    """Insert or replace up to 500 sources of a type as a whole, all of them or none."""
    for one in sources:
        require_finite(fields=one.fields, metrics=one.metrics)
    body, stored = wire_sources.SourcesRequest(sources=tuple(sources)), wire_sources.SourcesStored
    return await client.transport.ask("POST", _type(source_type), stored, body=body, again=True)


async def remove_source(client: Connected, source_type: str, source: str) -> wire_sources.SourceStored:
    """Remove a source; asked for once, because a second time there is none."""
    return await client.transport.ask("DELETE", _source(source_type, source), wire_sources.SourceStored, again=False)


async def tell(
    client: Connected,
    event: str,
    *,
    event_id: UUID | None = None,
    key: str | None = None,
    entity: wire.Entity | None = None,
    source: tuple[str, str] | None = None,
    data: Mapping[str, object] | None = None,
    occurred_at: datetime | None = None,
    business_unit: UUID | None = None,
) -> wire_events.EventAnswer:
    """Tell that something happened, under an id of yours or under a key: by that it is one event, however often told.

    `source` is the type and the id of the source that it tells of.
    """
    require_finite(data=data, entity=None if entity is None else entity.data)
    body = wire_events.EventRequest(
        type=event,
        id=event_id,
        entity=entity,
        source=None if source is None else wire_events.EventSource(type=source[0], id=source[1]),
        data=dict(data or {}),
        occurred_at=occurred_at,
        business_unit=business_unit,
    )
    headers = {} if key is None else {"idempotency-key": key}
    return await client.transport.ask(
        "POST", "/v1/events", wire_events.EventAnswer, body=body, headers=headers, again=True
    )


async def events(
    client: Connected, *, entity: str | None = None, status: EventStatus | None = None, cursor: str | None = None
) -> wire_events.EventPage:
    """List events, newest first, page by page: all, or those of an entity (`TYPE:GUID`) or with one status."""
    query = {"entity": entity, "status": status, "cursor": cursor}
    return await client.transport.ask("GET", "/v1/events", wire_events.EventPage, query=query)


async def event(client: Connected, event_id: UUID) -> wire_events.Event:
    """Show an event, and how far its handling has come."""
    return await client.transport.ask("GET", f"/v1/events/{event_id}", wire_events.Event)


async def retry_event(client: Connected, event_id: UUID, *, reason: str) -> wire_events.EventRetried:
    """Have an event that failed handled again, on a person's word."""
    body = wire_events.EventRetryRequest(reason=reason)
    return await client.transport.ask("POST", f"/v1/events/{event_id}/retry", wire_events.EventRetried, body=body)


async def event_mappings(client: Connected, *, cursor: str | None = None) -> wire_events.MappingPage:
    """List what event types lead to, page by page."""
    return await client.transport.ask("GET", "/v1/event-mappings", wire_events.MappingPage, query={"cursor": cursor})


async def put_event_mapping(client: Connected, event: str, notification: str | None) -> wire_events.EventMapping:
    """Say what an event type leads to at once: a notification type, or None for explicitly none."""
    body = wire_events.MappingRequest(notification_type=notification)
    return await client.transport.ask("PUT", _mapping(event), wire_events.EventMapping, body=body, again=True)


async def remove_event_mapping(client: Connected, event: str) -> None:
    """Take an event type out of the table; asked for once, because a second time it is not in it."""
    await client.transport.request("DELETE", _mapping(event), again=False)


def _type(source_type: str) -> str:
    return f"/v1/sources/{quote(source_type, safe='')}"


def _source(source_type: str, source: str) -> str:
    return f"{_type(source_type)}/{quote(source, safe='')}"


def _mapping(event: str) -> str:
    return f"/v1/event-mappings/{quote(event, safe='')}"

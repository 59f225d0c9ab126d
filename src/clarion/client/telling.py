"""What the client does about sources, events and what these lead to: methods of `connection.Client`."""

from collections.abc import Mapping, Sequence
from datetime import date
from urllib.parse import quote
from uuid import UUID

from clarion.client import wire_sources
from clarion.client.belonging import Connected
from clarion.client.finite import require_finite


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


def _type(source_type: str) -> str:
    return f"/v1/sources/{quote(source_type, safe='')}"


def _source(source_type: str, source: str) -> str:
    return f"{_type(source_type)}/{quote(source, safe='')}"

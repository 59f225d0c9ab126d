"""Sources that applications put in: put, shown, listed, removed. Each change makes an event, which workers handle.

Content is stored sealed. It is opened in memory, within the tenant, for who may see it: who tells of sources, and who
may see messages as their recipients do.
"""

from collections.abc import Mapping
from typing import Final

from clarion.bootstrap import Platform
from clarion.catalog.source_entry import SourceEntry, refusal
from clarion.catalog.source_records import SourceRecords
from clarion.client import wire, wire_sources
from clarion.dispatch.request import Trace
from clarion.domain.seal import TenantKeys
from clarion.domain.source import SourceContent, SourceRecord, check_id, check_type
from clarion.errors import InvalidInput, InvalidItems, SealBroken
from clarion.operations import page
from clarion.operations.shape import as_wire
from clarion.operations.wake import Wake
from clarion.ports.source import SourceAnswer
from clarion.sealing.sources import opened_source

TOPIC: Final = "events"
"""What the workers are woken for when there are new events."""


class Sources:
    """The stored sources of a tenant."""

    def __init__(self, platform: Platform, *, wake: Wake) -> None:
        """Work on this platform, and wake workers."""
        self._store = platform.store
        self._keyring = platform.keyring
        self._provided = platform.sources.provided
        self._records = SourceRecords(store=platform.store, facts=platform.store, keyring=platform.keyring)
        self._wake = wake

    async def put_all(
        self, tenant_id: str, source_type: str, request: wire_sources.SourcesRequest, *, actor: str, trace: Trace
    ) -> wire_sources.SourcesStored:
        """Insert or replace sources, all of them or none."""
        self._require_stored(source_type)
        good, bad = await self._records.check(
            tenant_id, source_type, [_entry(item.id, item) for item in request.sources]
        )
        if bad:
            raise refusal(bad)
        answers = await self._records.put(tenant_id, source_type, list(good.values()), actor=actor, trace=trace)
        items = tuple(map(self._noted, answers))
        return wire_sources.SourcesStored(changed=sum(one.changed for one in items), items=items)

    async def put(
        self,
        tenant_id: str,
        source_type: str,
        source: str,
        request: wire_sources.SourceRequest,
        *,
        actor: str,
        trace: Trace,
    ) -> wire_sources.SourceStored:
        """Insert or replace one source."""
        self._require_stored(source_type)
        good, bad = await self._records.check(tenant_id, source_type, [_entry(source, request)])
        if bad:
            raise InvalidItems([one.error for one in bad])
        (answer,) = await self._records.put(tenant_id, source_type, list(good.values()), actor=actor, trace=trace)
        return self._noted(answer)

    async def remove(
        self, tenant_id: str, source_type: str, source: str, *, actor: str, trace: Trace
    ) -> wire_sources.SourceStored | None:
        """Remove a source, and with it what is planned for it; None where there is none."""
        check_type(source_type, field="type")
        check_id(source, field="id")
        answer = await self._records.remove(tenant_id, source_type, source, actor=actor, trace=trace)
        return None if answer is None else self._noted(answer)

    async def find(self, tenant_id: str, source_type: str, source: str, *, whole: bool) -> wire_sources.Source | None:
        """Show a source; `whole` shows what was said of it."""
        check_type(source_type, field="type")
        check_id(source, field="id")
        found = (await self._store.find_sources(tenant_id, source_type, [source])).get(source)
        if found is None or not found.active:
            return None
        return _shown(await self._keyring.get(tenant_id), found, whole=whole)

    async def list(
        self, tenant_id: str, source_type: str, query: wire.PageQuery, *, whole: bool
    ) -> wire_sources.SourcePage:
        """List the sources of a type, by id."""
        check_type(source_type, field="type")
        name = f"sources {source_type}"
        after = page.read(name, query.cursor, start="")
        found = await self._store.list_sources(tenant_id, source_type, after=after, limit=query.limit + 1)
        records, following = page.cut(name, found, query.limit, lambda one: one.source)
        keys = await self._keyring.get(tenant_id)
        items = tuple(_shown(keys, one, whole=whole) for one in records)
        return wire_sources.SourcePage(items=items, next_cursor=following)

    def _require_stored(self, source_type: str) -> None:
        require_stored(source_type, self._provided)

    def _noted(self, answer: SourceAnswer) -> wire_sources.SourceStored:
        """Answer a change, and wake those who handle its event."""
        if answer.changed:
            self._wake(TOPIC)
        return as_wire(
            answer, wire_sources.SourceStored, id=answer.source, event_id=answer.event_guid, version=answer.row_version
        )


def require_stored(source_type: str, provided: frozenset[str]) -> None:
    """Refuse what is no type, and one whose sources a plugin provides: what is stored of it nobody would read."""
    check_type(source_type, field="type")
    if source_type in provided:
        raise InvalidInput(
            f"a plugin of this installation provides the sources of type {source_type}",
            field="type",
            hint="change them where the plugin reads them, and tell of changes with events; or use another type",
        )


def _entry(source: str, body: wire_sources.SourceBody) -> SourceEntry:
    return SourceEntry(
        source=source,
        entity=body.entity,
        business_unit=body.business_unit,
        fields=body.fields,
        dates=body.dates,
        metrics=body.metrics,
    )


def _shown(keys: TenantKeys, record: SourceRecord, *, whole: bool) -> wire_sources.Source:
    content = _opened(keys, record) if whole else None
    return wire_sources.Source(
        type=record.source_type,
        id=record.source,
        entity=record.entity_guid,
        business_unit=record.business_unit,
        version=record.row_version,
        changed_at=record.changed_at,
        fields=None if content is None else dict(content.fields),
        dates=None if content is None else dict(content.dates),
        metrics=None if content is None else {name: _metric(one) for name, one in content.metrics.items()},
    )


def _metric(value: float | Mapping[str, float]) -> float | dict[str, float]:
    return dict(value) if isinstance(value, Mapping) else value


def _opened(keys: TenantKeys, record: SourceRecord) -> SourceContent | None:
    """Open what was said of a source; what cannot be opened is shown as nothing."""
    try:
        return opened_source(keys, record).content
    except SealBroken:
        return None

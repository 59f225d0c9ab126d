"""What automation was told by one tenant, and every question about it: a part of `tenant_records`."""

from collections.abc import Awaitable, Callable
from datetime import date
from typing import Any, Final

import msgspec

from clarion.domain.entity_event import EntityEvent, EventMapping, EventStatus
from clarion.ports.source import SourceScan
from clarion.ports.store import Store
from clarion.testing import factories as make
from clarion.testing.contracts.harness import StoreHarness

Ask = Callable[[Store, str, Any], Awaitable[Any]]

SOURCE: Final = make.source_record(1)
FAILED_EVENT: Final = make.entity_event(1)
ENTITY: Final = (FAILED_EVENT.entity_type, FAILED_EVENT.entity_guid)
MAPPING: Final = EventMapping(event_type="order.shipped", notification_type="order-shipped")
SETTING: Final = make.reminder_setting(1)
WINDOW: Final = SourceScan(source_type="invoice", due_from=date(2026, 1, 1), due_until=date(2026, 12, 31), limit=9)


async def fill_sources(harness: StoreHarness, tenant_id: str) -> None:
    """Tell a source and an event that has failed."""
    store = harness.store
    await store.put_sources(tenant_id, [SOURCE], actor="app", correlation_id="c-1")
    await store.ensure_events(tenant_id, [FAILED_EVENT])
    (row,) = [one for one in await harness.rows(tenant_id, EntityEvent) if one.key == FAILED_EVENT.key]
    ended = {"status": EventStatus.FAILED, "due_at": None}
    await harness.overwrite(tenant_id, msgspec.structs.replace(row, **ended))
    await _fill_settings(store, tenant_id)


async def _fill_settings(store: Store, tenant_id: str) -> None:
    await store.put_mapping(tenant_id, MAPPING, actor="sam")
    await store.put_reminder(tenant_id, SETTING, actor="sam")


async def _without_time(found: Awaitable[Any]) -> list[object]:
    """Leave the time out, at which the twin was told later."""
    answer = await found
    some = answer.values() if isinstance(answer, dict) else answer if isinstance(answer, list) else [answer]
    return [msgspec.structs.replace(one, changed_at=make.SOURCE_AT) for one in some if one is not None]


async def _scanned(store: Store, tenant_id: str, scan: SourceScan) -> object:
    return (await store.scan_sources(tenant_id, scan)).records


async def _put(store: Store, tenant_id: str, *, active: bool) -> bool:
    """Tell whether a put changed anything."""
    given = msgspec.structs.replace(SOURCE, active=active)
    (answer,) = await store.put_sources(tenant_id, [given], actor="app", correlation_id="c-2")
    return answer.changed


READS: Final[dict[str, Ask]] = {
    "find_sources": lambda store, tenant, _: store.find_sources(tenant, "invoice", [SOURCE.source]),
    "list_sources": lambda store, tenant, _: store.list_sources(tenant, "invoice", limit=9),
    "scan_sources": lambda store, tenant, _: _scanned(store, tenant, SourceScan(source_type="invoice", limit=9)),
    "scan_sources of what changed": lambda store, tenant, _: _scanned(
        store, tenant, SourceScan(source_type="invoice", changed_since=make.SOURCE_AT, limit=9)
    ),
    "scan_sources of days": lambda store, tenant, _: _scanned(store, tenant, WINDOW),
    "find_event": lambda store, tenant, _: store.find_event(tenant, FAILED_EVENT.event_guid),
    "list_events": lambda store, tenant, _: store.list_events(tenant, limit=9),
    "list_events of an entity": lambda store, tenant, _: store.list_events(tenant, entity=ENTITY, limit=9),
    "list_events in a state": lambda store, tenant, _: store.list_events(tenant, status=EventStatus.FAILED, limit=9),
    "find_mappings": lambda store, tenant, _: _without_time(store.find_mappings(tenant, [MAPPING.event_type])),
    "list_mappings": lambda store, tenant, _: _without_time(store.list_mappings(tenant, limit=9)),
    "find_reminder": lambda store, tenant, _: _without_time(store.find_reminder(tenant, SETTING.guid)),
    "find_reminders": lambda store, tenant, _: _without_time(store.find_reminders(tenant, "invoice")),
    "list_reminders": lambda store, tenant, _: _without_time(store.list_reminders(tenant, limit=9)),
}

WRITES: Final[dict[str, Ask]] = {
    "put_sources that removes": lambda store, tenant, _: _put(store, tenant, active=False),
    "retry_event": lambda store, tenant, _: store.retry_event(
        tenant, FAILED_EVENT.event_guid, actor="sam", reason="again"
    ),
    "remove_mapping": lambda store, tenant, _: store.remove_mapping(tenant, MAPPING.event_type, actor="sam"),
}

MAKES: Final[dict[str, Ask]] = {
    "put_sources": lambda store, tenant, _: _put(store, tenant, active=True),
    "ensure_events": lambda store, tenant, _: store.ensure_events(tenant, [FAILED_EVENT]),
    "put_mapping": lambda store, tenant, _: store.put_mapping(
        tenant, msgspec.structs.replace(MAPPING, notification_type=None), actor="kim"
    ),
    "put_reminder": lambda store, tenant, _: store.put_reminder(
        tenant, msgspec.structs.replace(SETTING, active=False), actor="kim"
    ),
}

"""Every statement about what automation is told on PostgreSQL, used once: a part of `postgres_use`."""

from datetime import UTC, date, datetime, timedelta

from clarion.adapters.stores.postgres import PostgresStore
from clarion.domain.entity_event import EventMapping, EventStatus
from clarion.domain.person import BusinessUnit
from clarion.ports.source import EventEnd, SourceScan
from clarion.testing import factories as make
from tests.integration.postgres_fill import TENANT

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


async def use_sources(store: PostgresStore, start: int) -> None:
    """Put sources that are new and known, and find them in every way."""
    given = [make.source_record(start + n) for n in range(20)]
    again = [make.source_record(start + n, content_hash="k1:other") for n in range(10)]
    for sources in (given, again):
        answers = await store.put_sources(TENANT, sources, actor="app", correlation_id="c")
        assert all(one.changed for one in answers)
    assert await store.find_sources(TENANT, "invoice", [one.source for one in given])
    assert await store.list_sources(TENANT, "invoice", limit=20)
    for scan in (
        SourceScan(source_type="invoice", limit=20, changed_since=LONG_AGO),
        SourceScan(source_type="invoice", limit=20, due_from=date(2026, 1, 1), due_until=date(2200, 1, 1)),
    ):
        assert (await store.scan_sources(TENANT, scan)).records


async def use_events(store: PostgresStore, start: int) -> None:
    """Tell of events, and let everything happen to them."""
    await store.ensure_events(TENANT, [make.entity_event(start + n) for n in range(20)])
    claims = await store.claim_events(limit=10, lease=timedelta(minutes=1))
    assert await store.claim_events(limit=10, lease=timedelta())
    ends = [
        EventEnd(
            tenant_id=one.tenant_id,
            event_id=one.event.id or 0,
            version=one.event.version,
            to=EventStatus.FAILED if n % 2 else EventStatus.READY,
        )
        for n, one in enumerate(claims)
    ]
    assert len(await store.finish_events(ends)) == len(ends)
    failed = claims[1]
    assert await store.retry_event(failed.tenant_id, failed.event.event_guid, actor="sam", reason="again")
    assert await store.rescue_events(limit=10, rescues_max=0)
    assert await store.find_event(TENANT, make.guid(start, "event"))
    assert await store.list_events(TENANT, limit=20)
    assert await store.list_events(TENANT, status=EventStatus.READY, limit=20)
    assert await store.list_events(TENANT, entity=("order", make.guid(start, "order")), limit=20)


async def use_reminders(store: PostgresStore, start: int) -> None:
    """Say what events lead to and when to remind, and plan and repair by it."""
    types = [f"type-{start + n}" for n in range(2)]
    for event_type in types:
        mapping = EventMapping(event_type=event_type, notification_type=None)
        assert await store.put_mapping(TENANT, mapping, actor="sam")
    assert await store.find_mappings(TENANT, types)
    assert await store.list_mappings(TENANT, limit=20)
    assert await store.remove_mapping(TENANT, types[0], actor="sam")
    settings = [make.reminder_setting(start + n, source_type=f"type-{start}") for n in range(2)]
    for setting in settings:
        assert await store.put_reminder(TENANT, setting, actor="sam")
    assert await store.find_reminder(TENANT, settings[0].guid)
    assert await store.find_reminders(TENANT, f"type-{start}")
    assert await store.list_reminders(TENANT, limit=20)
    (claim, *_) = await store.claim_settings(limit=20, lease=timedelta(minutes=1))
    assert await store.finish_setting(claim, cursor=None)
    assert await store.replan_other_editions("2999z", limit=20)
    unit = BusinessUnit(guid=make.guid(start, "unit"), name="North", tz_id="Asia/Tokyo")
    assert await store.put_business_unit(TENANT, unit)
    (repair, *_) = await store.claim_repairs(None, every=timedelta(), limit=20, lease=timedelta(minutes=1))
    assert await store.finish_repair(repair, cursor=None, watermark_at=repair.round_at)

"""Sources on PostgreSQL, where transactions overlap: two who put the same, and a scan beside a put that is not over."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from clarion.adapters.stores.postgres import PostgresStore
from clarion.domain.entity_event import EventStatus
from clarion.domain.source import SourceRecord
from clarion.ports.source import EventEnd, SourceAnswer, SourceScan
from clarion.testing import factories as make
from tests.integration.race import Call, Race, open_race


@pytest.fixture
async def race(migrated_postgres_url: str) -> AsyncIterator[Race]:
    async with open_race(migrated_postgres_url) as race:
        yield race


def edition(n: int, name: str, *, active: bool = True) -> SourceRecord:
    return make.source_record(n, content_hash=f"k1:{name}", active=active)


def put(tenant: str, *sources: SourceRecord) -> Call:
    return lambda store: store.put_sources(tenant, sources, actor="app", correlation_id="c")


@pytest.mark.parametrize("removes", [False, True], ids=["put", "removed"])
@pytest.mark.parametrize("known", [False, True], ids=["new", "known"])
async def test_two_who_put_the_same_sources_wait_for_each_other_and_lose_nothing(
    race: Race, known: bool, removes: bool
) -> None:
    """In opposite orders, met at every statement: each change has its version and its event, and the last stands."""
    if known:
        await put("alone", edition(1, "first"), edition(2, "first"))(race.second)
    count = await race.statements(put("alone", edition(1, "one"), edition(2, "one")))
    for n in range(1, count + 1):
        tenant = f"acme-{n}"
        if known:
            await put(tenant, edition(1, "first"), edition(2, "first"))(race.second)
        one = put(tenant, edition(1, "one"), edition(2, "one"))
        other = put(tenant, edition(2, "other", active=not removes), edition(1, "other"))
        meeting = await race.meet(tenant, one, other, stop_before=n)
        answers: list[SourceAnswer] = [*meeting.first, *meeting.second]
        events = await race.observer.fetch(
            "SELECT source, source_version, event_type FROM entity_event WHERE tenant_id = $1 ORDER BY id", tenant
        )
        found = await race.second.find_sources(tenant, "invoice", ["invoice-1", "invoice-2"])
        for source, record in found.items():
            told = sorted(row["source_version"] for row in events if row["source"] == source)
            assert told == list(range(1, record.row_version + 1))
            versions = sorted(one.row_version for one in answers if one.source == source and one.changed)
            assert versions == told[1:] if known else versions == told
            last = max(one.row_version for one in answers if one.source == source)
            assert last == record.row_version
        assert found["invoice-1"].row_version == 2 + known


async def test_a_scan_misses_no_change_that_is_committed_late(race: Race) -> None:
    """It waits for a put that is under way, and the next one begins behind nothing that it has not seen."""
    count = await race.statements(put("alone", edition(1, "one")))
    waited = 0
    for n in range(1, count + 1):
        tenant = f"acme-{n}"
        began_at = await race.observer.fetchval("SELECT clock_timestamp()")
        scan = SourceScan(source_type="invoice", changed_since=began_at - timedelta(minutes=1), limit=10)
        meeting = await race.meet(
            tenant,
            put(tenant, edition(1, "one")),
            lambda store, tenant=tenant, scan=scan: scan_at(store, tenant, scan),  # type: ignore[misc]
            stop_before=n,
        )
        watermark_at, found = meeting.second
        waited += meeting.waited
        changed = (await race.second.find_sources(tenant, "invoice", ["invoice-1"]))["invoice-1"]
        assert changed.changed_at is not None
        # What the scan has not seen changed after the watermark, so the next scan finds it.
        assert found == ["invoice-1"] or changed.changed_at >= watermark_at
        assert not meeting.waited or found == ["invoice-1"]
    assert waited > 1, "it never met a put that was under way"


async def scan_at(store: PostgresStore, tenant: str, scan: SourceScan) -> tuple[object, list[str]]:
    """Note the time as a reconciliation does, and then scan."""
    watermark_at = await store.now()
    page = await store.scan_sources(tenant, scan)
    return watermark_at, [one.source for one in page.records]


async def test_two_workers_never_claim_one_event(race: Race) -> None:
    """Met at every statement of a claim, and each ends only its own."""
    count = await race.statements(claim())
    for n in range(1, count + 3):
        tenant = f"acme-{n}"
        await race.second.ensure_events(tenant, [make.entity_event(one) for one in range(6)])
        meeting = await race.meet(tenant, claim(), claim(), stop_before=min(n, count))
        claims = [*meeting.first, *meeting.second]
        ids = [one.event.id for one in claims]
        assert len(ids) == len(set(ids))
        ends = [
            EventEnd(tenant_id=tenant, event_id=one.event.id, version=one.event.version, to=EventStatus.DONE)
            for one in claims
        ]
        assert await race.second.finish_events(ends) == set(ids)
        await race.other.execute("DELETE FROM entity_event")


def claim() -> Call:
    return lambda store: store.claim_events(limit=3, lease=timedelta(minutes=1))

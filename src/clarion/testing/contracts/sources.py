"""Sources: every change is one row version and one event, and a scan misses nothing within its bounds."""

import asyncio
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Final

import msgspec
import pytest

from clarion.domain import derived_id
from clarion.domain.entity_event import EntityEvent, EventStatus
from clarion.domain.source import SourceRecord
from clarion.errors import InvalidInput
from clarion.ports.source import SourceAnswer, SourceScan
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pump import near
from clarion.testing.factories import guid, source_record

OLD: Final = timedelta(days=1)


async def put(harness: StoreHarness, *sources: SourceRecord) -> list[SourceAnswer]:
    """Put sources as an application does."""
    return await harness.store.put_sources(harness.tenant_id, sources, actor="app", correlation_id="request")


async def one_of(harness: StoreHarness, source: str = "invoice-1") -> SourceRecord:
    """Find a source that is there."""
    found = await harness.store.find_sources(harness.tenant_id, "invoice", [source])
    return found[source]


async def events_of(harness: StoreHarness) -> list[EntityEvent]:
    """List all events of the tenant, the oldest first."""
    return list(await harness.store.list_events(harness.tenant_id, limit=100))[::-1]


async def scanned(harness: StoreHarness, scan: SourceScan) -> list[str]:
    """Go through a scan to its end, and name what it found."""
    found: list[str] = []
    while True:
        page = await harness.store.scan_sources(harness.tenant_id, scan)
        assert len(page.records) <= scan.limit
        found += [one.source for one in page.records]
        if page.cursor is None:
            return found
        scan = msgspec.structs.replace(scan, after=page.cursor)


def gone(n: int = 1) -> SourceRecord:
    """Make the removal of a source."""
    return source_record(n, active=False, content=b"nothing", content_hash="k1:nothing", days=())


def changed(n: int = 1, edition: int = 2, **fields: object) -> SourceRecord:
    """Make another edition of a source."""
    return source_record(n, content=b"edition %d" % edition, content_hash=f"k1:{edition}", **fields)


class SourceContract:
    """Sources that applications put in."""

    async def test_a_source_is_found_as_it_was_put(self, harness: StoreHarness) -> None:
        """With its dates, at version 1, in the store's time; others are left out."""
        days = (("due", date(2026, 2, 1)), ("paid_on", date(2024, 2, 29)))
        given = source_record(1, business_unit=guid(1, "unit"), days=days)
        (answer,) = await put(harness, given)
        found = await one_of(harness)
        assert found.changed_at is not None
        assert near(found.changed_at, await harness.now())
        assert found == msgspec.structs.replace(given, changed_at=found.changed_at)
        event_guid = derived_id.source_event(
            tenant_id=harness.tenant_id, source_type="invoice", source="invoice-1", row_version=1
        )
        assert answer == SourceAnswer(source="invoice-1", row_version=1, changed=True, event_guid=event_guid)
        assert await harness.store.find_sources(harness.tenant_id, "invoice", ["invoice-2"]) == {}
        assert await harness.store.find_sources(harness.tenant_id, "contract", ["invoice-1"]) == {}
        assert await harness.store.find_sources(harness.tenant_id, "invoice", []) == {}

    async def test_each_change_is_one_row_version_and_one_event(self, harness: StoreHarness) -> None:
        """Created, changed, removed and created again: the version goes on, and each event names it."""
        other_unit = changed(edition=2, business_unit=guid(2, "unit"))
        steps = [source_record(1), changed(), other_unit, gone(), source_record(1)]
        answers = [(await put(harness, one))[0] for one in steps]
        assert [one.row_version for one in answers] == [1, 2, 3, 4, 5]
        events = await events_of(harness)
        assert [one.event_guid for one in events] == [one.event_guid for one in answers]
        assert [one.event_type for one in events] == [
            "invoice.created",
            "invoice.changed",
            "invoice.changed",
            "invoice.removed",
            "invoice.created",
        ]
        last = events[3]
        assert (last.source_type, last.source, last.source_version) == ("invoice", "invoice-1", 4)
        assert (last.entity_type, last.entity_guid, last.actor) == ("invoice", guid(1, "invoice"), "app")
        assert (last.business_unit, last.correlation_id, last.status) == (
            guid(2, "unit"),
            "request",
            EventStatus.READY,
        )

    async def test_what_is_so_already_writes_nothing(self, harness: StoreHarness) -> None:
        """Sealed anew it has other bytes, and the same hash; nor is what is not there removed."""
        await put(harness, source_record(1), source_record(2))
        await put(harness, gone(2))
        before = await events_of(harness)
        again = await put(harness, source_record(1, content=b"sealed anew"), gone(2), gone(3))
        assert again == [
            SourceAnswer(source="invoice-1", row_version=1, changed=False),
            SourceAnswer(source="invoice-2", row_version=2, changed=False),
            SourceAnswer(source="invoice-3", row_version=0, changed=False),
        ]
        assert await events_of(harness) == before
        assert (await one_of(harness)).content == source_record(1).content
        assert await put(harness) == []

    async def test_a_source_keeps_its_first_entity_and_what_was_removed_its_version(
        self, harness: StoreHarness
    ) -> None:
        """Nothing is left of a removed one's dates and content."""
        await put(harness, source_record(1))
        await put(harness, changed(entity_guid=guid(9, "another")))
        assert (await one_of(harness)).entity_guid == guid(1, "invoice")
        await put(harness, gone())
        left = await one_of(harness)
        assert (left.active, left.row_version, left.content, left.days) == (False, 3, b"nothing", ())
        assert await harness.store.list_sources(harness.tenant_id, "invoice", limit=10) == []

    async def test_the_dates_of_a_source_are_those_it_was_last_put_with(self, harness: StoreHarness) -> None:
        """Those of others stay, also where a set has their type or their id."""
        twin = source_record(1, source_type="contract")
        await put(harness, source_record(1), source_record(2), twin, source_record(2, source_type="contract"))
        await put(harness, changed(1, days=(("paid_on", date(2026, 3, 1)),)), changed(2, source_type="contract"))
        assert (await one_of(harness)).days == (("paid_on", date(2026, 3, 1)),)
        assert (await one_of(harness, "invoice-2")).days == source_record(2).days
        found = await harness.store.find_sources(harness.tenant_id, "contract", ["invoice-1"])
        assert found["invoice-1"].days == twin.days

    async def test_of_a_source_that_is_put_twice_in_a_set_the_last_word_counts(self, harness: StoreHarness) -> None:
        """As one change, which both are answered with."""
        one, other = await put(harness, source_record(1), changed())
        assert one == other
        assert (await one_of(harness)).content_hash == changed().content_hash
        assert len(await events_of(harness)) == 1

    async def test_sources_are_listed_by_id_page_by_page(self, harness: StoreHarness) -> None:
        """By the bytes of the id, without those that were removed."""
        ids = ["b", "B", "ä", "a-1", "a1", "a"]
        await put(harness, *(source_record(n, source=source) for n, source in enumerate(ids)), gone(9))
        await put(harness, source_record(7), gone(7))
        found: list[str] = []
        while page := await harness.store.list_sources(
            harness.tenant_id, "invoice", after=found[-1] if found else "", limit=2
        ):
            found += [one.source for one in page]
        assert found == sorted(ids)

    async def test_puts_at_once_lose_nothing(self, harness: StoreHarness) -> None:
        """Each of ten is one version with its event, whatever comes between: a removal too."""
        waves: Sequence[SourceRecord] = [gone() if n == 5 else changed(edition=n) for n in range(10)]
        await put(harness, source_record(1), source_record(2))
        both = [(one, changed(2, edition=n)) for n, one in enumerate(waves)]
        answers = await asyncio.gather(*(put(harness, *pair[:: 1 if n % 2 else -1]) for n, pair in enumerate(both)))
        versions = sorted(one.row_version for some in answers for one in some if one.source == "invoice-1")
        assert versions == list(range(2, 12))
        events = [one for one in await events_of(harness) if one.source == "invoice-1"]
        assert sorted(one.source_version or 0 for one in events) == list(range(1, 12))
        left = await one_of(harness)
        last = max(events, key=lambda one: one.source_version or 0)
        assert (left.row_version, left.active) == (11, last.event_type != "invoice.removed")


class SourceScanContract:
    """Scans of reconciliations, page by page."""

    async def test_a_scan_finds_what_changed_since_by_when(self, harness: StoreHarness) -> None:
        """From that instant on, each source once, without those that were removed."""
        await put(harness, *(source_record(n) for n in range(1, 6)))
        await harness.elapse(OLD)
        await put(harness, changed(4))
        await harness.elapse(timedelta(seconds=1))
        await put(harness, changed(2), gone(5))
        since = await harness.now() - timedelta(hours=1)
        scan = SourceScan(source_type="invoice", changed_since=since, limit=1)
        assert await scanned(harness, scan) == ["invoice-4", "invoice-2"]
        everything = SourceScan(source_type="invoice", changed_since=since - 2 * OLD, limit=3)
        assert await scanned(harness, everything) == ["invoice-1", "invoice-3", "invoice-4", "invoice-2"]

    async def test_a_change_at_the_very_instant_is_found(self, harness: StoreHarness) -> None:
        """A watermark that stands at a change does not pass it."""
        await put(harness, source_record(1))
        at = (await one_of(harness)).changed_at
        assert await scanned(harness, SourceScan(source_type="invoice", changed_since=at, limit=5)) == ["invoice-1"]

    async def test_then_come_those_with_a_date_in_the_window_by_that(self, harness: StoreHarness) -> None:
        """Both ends belong to it; a source comes once for each of its dates, and maybe for its change."""
        first = date(2026, 5, 1)
        days = {1: (9,), 2: (0, 3), 3: (-1,), 4: (10,), 5: (0,)}
        for n, some in days.items():
            dates = tuple((f"day{place}", first + timedelta(days=day)) for place, day in enumerate(some))
            await put(harness, source_record(n, days=dates))
        await put(harness, gone(5))
        window = SourceScan(source_type="invoice", due_from=first, due_until=first + timedelta(days=9), limit=1)
        assert await scanned(harness, window) == ["invoice-2", "invoice-2", "invoice-1"]
        await harness.elapse(OLD)
        await put(harness, changed(4, days=(("day0", first + timedelta(days=10)),)))
        both = msgspec.structs.replace(window, changed_since=await harness.now() - timedelta(hours=1), limit=10)
        assert await scanned(harness, both) == ["invoice-4", "invoice-2", "invoice-1"]

    async def test_without_bounds_it_is_all_of_them(self, harness: StoreHarness) -> None:
        """By id, of one type."""
        await put(harness, *(source_record(n) for n in (3, 1, 2)), source_record(1, source_type="contract"), gone(4))
        assert await scanned(harness, SourceScan(source_type="invoice", limit=2)) == [
            "invoice-1",
            "invoice-2",
            "invoice-3",
        ]

    async def test_sources_of_other_units_are_passed_over(self, harness: StoreHarness) -> None:
        """And those of none, where units are named; a page may hold nothing and not be the last."""
        units = {1: None, 2: guid(1, "unit"), 3: guid(2, "unit"), 4: guid(1, "unit")}
        await put(harness, *(source_record(n, business_unit=unit) for n, unit in units.items()))
        since = await harness.now() - OLD
        for scan in (
            SourceScan(source_type="invoice", limit=1),
            SourceScan(source_type="invoice", changed_since=since, limit=1),
            SourceScan(source_type="invoice", due_from=date(2026, 1, 1), due_until=date(2026, 12, 31), limit=1),
        ):
            bound = msgspec.structs.replace(scan, units=(guid(1, "unit"),))
            assert await scanned(harness, bound) == ["invoice-2", "invoice-4"]

    async def test_what_changes_after_the_first_page_is_left_to_the_next_scan(self, harness: StoreHarness) -> None:
        """So that a scan ends, however often sources change."""
        await put(harness, *(source_record(n) for n in (1, 2, 3)))
        scan = SourceScan(source_type="invoice", changed_since=await harness.now() - OLD, limit=1)
        page = await harness.store.scan_sources(harness.tenant_id, scan)
        await harness.elapse(timedelta(seconds=1))
        await put(harness, changed(1), changed(3))
        assert page.cursor is not None
        if harness.clock is not None:  # where time is moved by moving what is stored, a cursor is moved past it
            assert await scanned(harness, msgspec.structs.replace(scan, after=page.cursor)) == ["invoice-2"]
        assert await scanned(harness, scan) == ["invoice-2", "invoice-1", "invoice-3"]

    async def test_a_cursor_that_is_none_is_refused(self, harness: StoreHarness) -> None:
        """Precisely: it came from outside."""
        with pytest.raises(InvalidInput, match="no cursor of a scan"):
            await harness.store.scan_sources(harness.tenant_id, SourceScan(source_type="invoice", after="x", limit=1))

"""Operations on what automation is told that chance can put together: sources, events, settings, repairs and scans.

As those of `queue_operation`, they name records and claims by small numbers and can run on two stores.
"""

from datetime import date, timedelta
from typing import Final

import msgspec
from hypothesis import strategies as st

from clarion.domain.entity_event import EventMapping, EventStatus
from clarion.ports.source import EventEnd, SourceScan
from clarion.testing.contracts.pump import LEASE
from clarion.testing.contracts.queue_operation import Elapse, Resolve
from clarion.testing.contracts.side import Operation, Side
from clarion.testing.factories import entity_event, guid, reminder_setting, source_record
from clarion.testing.row import PlannedSetting, RepairRow, SourceDay, SourceRow

NUMBERS: Final = (1, 2, 3)
TYPES: Final = ("invoice", "contract")
EVERY: Final = timedelta(seconds=90)
FIRST_DAY: Final = date(2026, 2, 1)
PAGE: Final = 2
ROWS: Final[tuple[type[msgspec.Struct], ...]] = (SourceRow, SourceDay, PlannedSetting, RepairRow)
"""They are looked at now and then: to read them after every operation of every work would take a fifth longer."""


class PutSources(msgspec.Struct, frozen=True):
    """Put sources: (type, number, edition, or 0 for its removal)."""

    sources: tuple[tuple[str, int, int], ...]

    async def run(self, side: Side) -> object:
        """Put the set."""
        given = [
            source_record(
                n,
                source_type=source_type,
                active=edition > 0,
                content_hash=f"k1:{edition}",
                content=b"edition %d" % edition,
                business_unit=guid(1, "unit") if edition == 1 else None,
                days=tuple((f"day{day}", FIRST_DAY + timedelta(days=day)) for day in range(edition)),
            )
            for source_type, n, edition in self.sources
        ]
        return await side.store.put_sources(side.tenant_id, given, actor="app", correlation_id="c")


class Scan(msgspec.Struct, frozen=True):
    """Go through sources, of so many seconds ago or by their days or all."""

    seconds: int | None
    days: bool
    in_unit: bool

    async def run(self, side: Side) -> object:
        """Scan page by page; a cursor itself is the store's own."""
        now = await side.harness.now()
        scan = SourceScan(
            source_type="invoice",
            changed_since=None if self.seconds is None else now - timedelta(seconds=self.seconds),
            due_from=FIRST_DAY if self.days else None,
            due_until=FIRST_DAY + timedelta(days=1) if self.days else None,
            units=(guid(1, "unit"),) if self.in_unit else None,
            limit=PAGE,
        )
        pages = []
        while True:
            page = await side.store.scan_sources(side.tenant_id, scan)
            pages.append(page.records)
            if page.cursor is None:
                return pages
            scan = msgspec.structs.replace(scan, after=page.cursor)


class Tell(msgspec.Struct, frozen=True):
    """Tell of events, some of them otherwise the second time."""

    events: tuple[tuple[int, bool], ...]

    async def run(self, side: Side) -> object:
        """Ensure the set."""
        given = [entity_event(n, **({"source": "x"} if differs else {})) for n, differs in self.events]
        return await side.store.ensure_events(side.tenant_id, given)


class ClaimEvents(msgspec.Struct, frozen=True):
    """Claim events that wait."""

    limit: int

    async def run(self, side: Side) -> object:
        """Claim and remember them."""
        claims = await side.store.claim_events(limit=self.limit, lease=LEASE)
        side.events += claims
        return claims


class FinishEvents(msgspec.Struct, frozen=True):
    """Finish some of the claims so far, each counted from the latest, in one set."""

    ends: tuple[tuple[int, EventStatus], ...]

    async def run(self, side: Side) -> object:
        """Finish those of which there is such a claim."""
        claims = [(side.events[-1 - back], to) for back, to in self.ends if back < len(side.events)]
        ends = [
            EventEnd(
                tenant_id=one.tenant_id,
                event_id=one.event.id or 0,
                version=one.event.version,
                to=to,
                delay=timedelta(seconds=30),
                reason=f"it is {to}",
                metrics="{}" if to is EventStatus.DONE else None,
            )
            for one, to in claims
        ]
        moved = await side.store.finish_events(ends)
        return [one.event.event_guid for one, _ in claims if one.event.id in moved]


class RescueEvents(msgspec.Struct, frozen=True):
    """Rescue events that workers left behind."""

    limit: int

    async def run(self, side: Side) -> object:
        """Rescue as many as that."""
        return await side.store.rescue_events(limit=self.limit, rescues_max=1)


class RetryEvent(msgspec.Struct, frozen=True):
    """Have an event handled again on a person's word."""

    n: int

    async def run(self, side: Side) -> object:
        """Retry it, whatever it is."""
        return await side.store.retry_event(side.tenant_id, guid(self.n, "event"), actor="sam", reason="mended")


class Map(msgspec.Struct, frozen=True):
    """Say what an event type leads to, or take that away."""

    event_type: str
    to: str | None
    removes: bool

    async def run(self, side: Side) -> object:
        """Change the table."""
        if self.removes:
            return await side.store.remove_mapping(side.tenant_id, self.event_type, actor="kim")
        mapping = EventMapping(event_type=self.event_type, notification_type=self.to)
        return await side.store.put_mapping(side.tenant_id, mapping, actor="sam")


class PutReminder(msgspec.Struct, frozen=True):
    """Put a setting."""

    n: int
    source_type: str
    send_time: str
    expected: int | None

    async def run(self, side: Side) -> object:
        """Put it; another type of source is refused, and so is a version that is not the stored one."""
        setting = reminder_setting(self.n, source_type=self.source_type, send_time=self.send_time)
        return await side.store.put_reminder(side.tenant_id, setting, actor="sam", expected=self.expected)


class PlanSettings(msgspec.Struct, frozen=True):
    """Claim settings to be planned, and finish them now or leave them."""

    limit: int
    cursor: str | None
    finishes: bool

    async def run(self, side: Side) -> object:
        """Claim them, and note how far it came."""
        claims = await side.store.claim_settings(limit=self.limit, lease=LEASE)
        finish = side.store.finish_setting
        return claims, [await finish(one, cursor=self.cursor) for one in claims if self.finishes]


class Repair(msgspec.Struct, frozen=True):
    """Claim rounds of reconciliation, and finish them now or leave them."""

    types: tuple[str, ...] | None
    limit: int
    cursor: str | None
    finishes: bool
    seconds: int

    async def run(self, side: Side) -> object:
        """Claim them, and note how far they came."""
        claims = await side.store.claim_repairs(self.types, every=EVERY, limit=self.limit, lease=LEASE)
        finish = side.store.finish_repair
        ends = [one.round_at + timedelta(seconds=self.seconds) for one in claims]
        pairs = list(zip(claims, ends, strict=True)) if self.finishes else []
        return claims, [await finish(one, cursor=self.cursor, watermark_at=at) for one, at in pairs]


class AskTold(msgspec.Struct, frozen=True):
    """Ask every question about what was told, and look at every row of it."""

    async def run(self, side: Side) -> object:
        """Ask them."""
        store, tenant_id = side.store, side.tenant_id
        ids = [source_record(n).source for n in NUMBERS]
        return {
            "rows": [await side.harness.rows(tenant_id, kind) for kind in ROWS],
            "sources": [sorted((await store.find_sources(tenant_id, one, ids)).items()) for one in TYPES],
            "listed": await store.list_sources(tenant_id, "invoice", after=ids[0], limit=PAGE),
            "events": await store.list_events(tenant_id, limit=9),
            "failed": await store.list_events(tenant_id, status=EventStatus.FAILED, limit=PAGE),
            "of entity": await store.list_events(tenant_id, entity=("order", guid(1, "order")), limit=PAGE),
            "event": await store.find_event(tenant_id, guid(1, "event")),
            "mappings": await store.list_mappings(tenant_id, limit=PAGE),
            "mapped": sorted((await store.find_mappings(tenant_id, ["a.b", "c.d"])).items()),
            "settings": await store.list_reminders(tenant_id, limit=PAGE),
            "of type": await store.find_reminders(tenant_id, "invoice"),
            "setting": await store.find_reminder(tenant_id, guid(1, "setting")),
        }


_N: Final = st.sampled_from(NUMBERS)
_TYPE: Final = st.sampled_from(TYPES)
_LIMIT: Final = st.sampled_from((1, 2, 100))
_CURSOR: Final = st.sampled_from((None, None, "page 2"))
_ENDS: Final = st.sampled_from((EventStatus.DONE, EventStatus.READY, EventStatus.FAILED))
_DRAWN: Final[tuple[tuple[int, st.SearchStrategy[Operation]], ...]] = (
    (
        6,
        st.builds(
            PutSources,
            sources=st.lists(st.tuples(_TYPE, _N, st.integers(0, 3)), min_size=1, max_size=4).map(tuple),
        ),
    ),
    (3, st.builds(Scan, seconds=st.sampled_from((None, 30, 100)), days=st.booleans(), in_unit=st.booleans())),
    (3, st.builds(Tell, events=st.lists(st.tuples(_N, st.booleans()), min_size=1, max_size=3).map(tuple))),
    (6, st.builds(ClaimEvents, limit=_LIMIT)),
    (
        6,
        st.builds(
            FinishEvents,
            ends=st.lists(
                st.tuples(st.integers(0, 3), _ENDS), min_size=1, max_size=3, unique_by=lambda one: one[0]
            ).map(tuple),
        ),
    ),
    (3, st.builds(RescueEvents, limit=st.sampled_from((1, 100)))),
    (2, st.builds(RetryEvent, n=_N)),
    (
        2,
        st.builds(
            Map,
            event_type=st.sampled_from(("a.b", "c.d")),
            to=st.sampled_from((None, "welcome")),
            removes=st.booleans(),
        ),
    ),
    (
        4,
        st.builds(
            PutReminder,
            n=_N,
            source_type=_TYPE,
            send_time=st.sampled_from(("09:00", "10:00")),
            expected=st.sampled_from((None, None, 1, 2)),
        ),
    ),
    (4, st.builds(PlanSettings, limit=_LIMIT, cursor=_CURSOR, finishes=st.booleans())),
    (
        4,
        st.builds(
            Repair,
            types=st.sampled_from((None, ("invoice",), TYPES)),
            limit=_LIMIT,
            cursor=_CURSOR,
            finishes=st.booleans(),
            seconds=st.sampled_from((0, 10, -1000)),
        ),
    ),
    (4, st.builds(Elapse, seconds=st.sampled_from((1, 31, 61, 91)))),
    (1, st.builds(Resolve, place=st.integers(0, 9))),
    (6, st.builds(AskTold)),
)
SOURCE_OPERATIONS: Final = st.sampled_from(
    [place for place, (times, _) in enumerate(_DRAWN) for _ in range(times)]
).flatmap(lambda place: _DRAWN[place][1])

"""What no event told is found within the bounds of its provider, under the same keys, and the watermark never leaps."""

from datetime import date, timedelta

from clarion.domain.entity_event import EventStatus
from clarion.ports.reminding import ScanBounds
from clarion.ports.source import EventEnd
from clarion.producers.plugin import Plugin
from tests.unit.automation_house import INVOICES, House
from tests.unit.pipeline_line import TENANT
from tests.unit.plan_house import NORTH, changed
from tests.unit.plugin_house import HURRIED
from tests.unit.test_replanning import Paged

ROUND = timedelta(hours=6, minutes=1)


async def lose_events(house: House) -> None:
    """Take the events away before anybody handles them."""
    claims = await house.store.claim_events(limit=1000, lease=timedelta(minutes=5))
    await house.store.finish_events(
        [
            EventEnd(tenant_id=TENANT, event_id=one.event.id or 0, version=one.event.version, to=EventStatus.DONE)
            for one in claims
        ]
    )


async def settled(house: House) -> None:
    """Go on for a round."""
    await house.pass_time(ROUND)
    await house.drain()


async def test_what_an_event_did_not_tell_is_found_under_the_same_keys() -> None:
    told, lost = await House().open(), await House().open()
    for house in (told, lost):
        await house.remind()
        await house.drain()
        await house.put("i1", "i2")
    await told.handle()
    await lose_events(lost)
    assert await lost.pending() == []
    await settled(lost)
    assert [row.scheduler_key for row in await lost.rows()] == [row.scheduler_key for row in await told.rows()]
    assert await lost.pending() == await told.pending() != []


async def test_a_round_after_it_changes_nothing() -> None:
    house = await House().open()
    await house.remind()
    await house.put("i1")
    await house.drain()
    before = await house.rows()
    await settled(house)
    assert await house.rows() == before


async def test_a_date_that_comes_into_the_window_is_found_without_any_change() -> None:
    house = await House().open()
    await house.put("i1", due_on=date(2026, 3, 1))
    await lose_events(house)
    await house.remind()
    await house.drain()
    for _ in range(2):  # until its change lies behind the watermark and the overlap
        await settled(house)
    for row in await house.rows():
        await house.store.remove(TENANT, row)
    await house.pass_time(timedelta(days=7))
    await house.drain()
    assert await house.pending() == []  # it is due in 38 days, and the window is 30
    await house.pass_time(timedelta(days=10))
    await house.drain()
    assert await house.pending() == ["i1 2026-03-01 0", "i1 2026-03-01 7"]


async def test_each_provider_is_asked_within_its_own_bounds_and_a_broken_round_begins_where_it_was() -> None:
    provider = Paged()
    provider.bounds = ScanBounds(
        every=timedelta(hours=1), overlap=timedelta(minutes=5), window_days=10, units=(NORTH,), batch_size=2
    )
    house = await House(Plugin("boats", provider, patience=HURRIED)).open()
    await house.remind(changed(INVOICES, active=False))
    await house.drain()
    provider.scans.clear()
    began_at = house.clock.now() + timedelta(hours=1, minutes=1)
    await house.pass_time(timedelta(hours=1, minutes=1))
    await house.reconciliation.step()
    provider.is_broken = True
    await house.reconciliation.step()
    provider.is_broken = False
    await house.pass_time(timedelta(minutes=6))
    await house.drain()
    assert [scan.after for scan in provider.scans] == ["", "b2", "b2", "b4"]
    first = provider.scans[0]
    assert (first.due_from, first.due_until) == (
        began_at.date() - timedelta(days=1),
        began_at.date() + timedelta(days=10),
    )
    assert (first.units, first.limit) == ((NORTH,), 2)
    assert len({scan.changed_since for scan in provider.scans}) == 1
    provider.scans.clear()
    await house.pass_time(timedelta(hours=1, minutes=1))
    await house.drain()
    assert provider.scans[0].changed_since == began_at - timedelta(minutes=5)
    await house.close()


async def test_types_that_nobody_reminds_of_are_not_gone_through() -> None:
    provider = Paged()
    house = await House(Plugin("boats", provider, patience=HURRIED)).open()
    await settled(house)
    assert provider.scans == []
    assert await house.pending() == []
    await house.close()

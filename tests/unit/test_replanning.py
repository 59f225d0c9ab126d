"""A setting that was changed is planned anew for all of its sources, page by page, and so are those of another zone."""

from collections.abc import Collection, Mapping
from datetime import timedelta
from uuid import UUID

from clarion.domain.automation import AutomationStatus
from clarion.domain.person import BusinessUnit, LocalForm
from clarion.domain.source import SourceFacts
from clarion.ports.reminding import ScanBounds, ScanPage
from clarion.ports.source import SourceScan
from clarion.producers.plugin import Plugin
from tests.unit.automation_house import INVOICES, House
from tests.unit.pipeline_line import TENANT
from tests.unit.plan_house import NORTH, changed
from tests.unit.plugin_house import ENTITY, HURRIED


async def test_a_new_setting_is_planned_for_the_sources_that_are_there() -> None:
    house = await House().open()
    await house.put("i1", "i2")
    await house.drain()
    assert await house.pending() == []
    await house.remind()
    await house.drain()
    assert len(await house.pending()) == 4
    assert await house.replanning.step() == 0


async def test_another_offset_and_send_time_reach_every_source() -> None:
    house = await House().open()
    await house.remind()
    await house.put("i1", "i2")
    await house.drain()
    await house.remind(changed(INVOICES, offsets=(7, 3), send_time="17:00"))
    await house.drain()
    pending = [row for row in await house.rows() if row.status is AutomationStatus.PENDING]
    assert sorted({row.offset_days or 0 for row in pending}) == [3, 7]
    assert {row.local_time for row in pending} == {"17:00"}
    ended = [row for row in await house.rows() if row.status is AutomationStatus.DEACTIVATED]
    assert [row.offset_days for row in ended] == [0, 0]
    await house.remind(changed(INVOICES, active=False))
    await house.drain()
    assert await house.pending() == []


class Paged:
    """Tells of five boats, two on a page, unless it hangs."""

    source_type = "invoice"
    bounds = ScanBounds(batch_size=2)

    def __init__(self) -> None:
        self.scans: list[SourceScan] = []
        self.is_broken = False

    async def load(self, tenant_id: str, sources: Collection[str]) -> Mapping[str, SourceFacts]:
        return {source: invoice(source) for source in sources}

    async def scan(self, tenant_id: str, scan: SourceScan) -> ScanPage:
        self.scans.append(scan)
        if self.is_broken:
            raise RuntimeError("the pier is gone")
        names = [name for name in ("b1", "b2", "b3", "b4", "b5") if name > scan.after][: scan.limit]
        return ScanPage(facts=[invoice(name) for name in names], cursor=None if names[-1] == "b5" else names[-1])


def invoice(source: str) -> SourceFacts:
    return SourceFacts(source_type="invoice", source=source, entity=ENTITY)


async def test_sources_of_a_plugin_come_page_by_page_and_a_broken_one_goes_on_where_it_was() -> None:
    provider = Paged()
    provider.bounds = ScanBounds(batch_size=2, units=(NORTH,))
    house = await House(Plugin("boats", provider, patience=HURRIED)).open()
    await house.remind()
    await house.replanning.step()
    provider.is_broken = True
    await house.replanning.step()
    assert await house.replanning.step() == 0  # its lease holds
    provider.is_broken = False
    await house.pass_time(timedelta(minutes=6))
    await house.drain()
    of_setting = [scan.after for scan in provider.scans if scan.changed_since is None]
    assert of_setting == ["", "b2", "b2", "b4"]
    assert {(scan.units, scan.limit) for scan in provider.scans} == {((NORTH,), 2)}
    await house.close()


async def test_a_setting_that_changes_while_it_is_planned_begins_anew() -> None:
    provider = Paged()
    house = await House(Plugin("boats", provider, patience=HURRIED)).open()
    await house.remind()
    await house.replanning.step()
    await house.remind(changed(INVOICES, offsets=(1,)))
    await house.replanning.step()
    assert [scan.after for scan in provider.scans] == ["", ""]
    await house.close()


async def test_another_zone_of_a_unit_or_of_the_tenant_moves_what_is_pending() -> None:
    house = await House().open()
    await house.store.put_business_unit(
        TENANT, BusinessUnit(guid=NORTH, name="North", tz_id="Europe/Vienna"), actor="admin"
    )
    await house.remind(changed(INVOICES, offsets=(0,)))
    await house.put("i1", unit=NORTH)
    await house.put("i2")
    await house.drain()
    await house.store.put_business_unit(
        TENANT, BusinessUnit(guid=NORTH, name="North", tz_id="Asia/Tokyo"), actor="admin"
    )
    await house.drain()
    first, second = await house.rows()
    assert (first.tz_id, f"{first.scheduled_at:%H:%M}") == ("Asia/Tokyo", "00:00")
    await house.store.set_tenant_form(TENANT, LocalForm(tz_id="America/New_York"), actor="admin")
    await house.drain()
    first, second = await house.rows()
    assert (first.tz_id, second.tz_id, f"{second.scheduled_at:%H:%M}") == ("Asia/Tokyo", "America/New_York", "13:00")


async def test_a_unit_that_is_only_renamed_has_nothing_planned_anew() -> None:
    house = await House().open()
    await house.remind()
    await house.drain()
    await house.store.put_business_unit(TENANT, BusinessUnit(guid=UUID(int=9), name="A"), actor="admin")
    await house.store.put_business_unit(TENANT, BusinessUnit(guid=UUID(int=9), name="B"), actor="admin")
    assert await house.replanning.step() == 0

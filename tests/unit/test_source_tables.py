"""Imports and exports of sources, on a store in memory: rows that are wrong, events of changes, and the way back."""

import io
from collections.abc import Sequence
from typing import Any

import pytest

from clarion.catalog.table import BadRow
from clarion.dispatch.request import Trace
from clarion.domain.entity_event import EntityEvent
from clarion.errors import InvalidInput
from clarion.operations import source_tables
from clarion.operations.source_tables import SourceTables
from clarion.operations.tables import Imported
from tests.integration.api_harness import OTHER, ApiHarness
from tests.unit.pipeline_line import TENANT

TRACE = Trace(correlation_id="import")
INVOICES = (
    "id,field:payer,number:total,truth:paid,date:due_on,metric:open,metric:seats:north\n"
    "a/1,Sam,120.5,false,2026-12-01,120.5,\n"
    "2,=Kim,80,TRUE,,,3\n"
)


class Office:
    """Somebody who imports and exports."""

    def __init__(self, api: ApiHarness) -> None:
        self.api = api
        self.tables = SourceTables(api.platform, wake=api.wake_ups.append)
        self.bad: list[BadRow] = []

    async def put(self, text: str, *, source_type: str = "invoice", tenant_id: str = TENANT, **more: Any) -> Imported:
        self.bad = []
        return await self.tables.import_sources(
            tenant_id,
            source_type,
            io.BytesIO(text.encode()).readline,
            actor="sam",
            trace=TRACE,
            note=self.bad.append,
            progress=lambda _rows: None,
            **more,
        )

    async def exported(self, source_type: str = "invoice") -> str:
        return "".join([text async for _, text in self.tables.export_sources(TENANT, source_type)])

    async def events(self) -> Sequence[EntityEvent]:
        return await self.api.memory.list_events(TENANT, limit=100)


@pytest.fixture
async def office() -> Office:
    api = ApiHarness()
    for tenant_id in (TENANT, OTHER):
        await api.line.dispatcher.ensure_tenant(tenant_id)
    return Office(api)


def imported(rows: int, *, changed: int, refused: int = 0) -> Imported:
    return Imported(dry_run=False, rows=rows, accepted=rows - refused, refused=refused, changed=changed)


async def test_what_changed_is_stored_with_its_event_and_what_is_so_already_makes_none(office: Office) -> None:
    assert await office.put(INVOICES) == imported(2, changed=2)
    assert [one.event_type for one in await office.events()] == ["invoice.created"] * 2
    assert await office.put(INVOICES) == imported(2, changed=0)
    assert await office.put(INVOICES.replace("120.5,\n", "0,\n")) == imported(2, changed=1)
    assert [one.event_type for one in await office.events()].count("invoice.changed") == 1
    assert office.api.wake_ups == ["events", "events"]


async def test_a_wrong_row_is_left_out_as_a_whole_and_told_with_its_column(office: Office) -> None:
    wrong = "id,date:due_on,metric:open\n1,2026-02-30,NaN\n2,2026-12-01,much\n3,2026-12-01,7\n3,never,8\n,,\n4\n"
    assert await office.put(wrong) == imported(6, changed=1, refused=5)
    assert [(one.row, one.column) for one in office.bad] == [
        *((2, "metric:open"), (3, "metric:open"), (5, "date:due_on"), (6, "id"), (7, "")),
    ]
    assert all(one.reason and one.remedy for one in office.bad)
    assert '"3","","' in await office.exported()


async def test_a_dry_run_finds_the_same_and_stores_nothing(office: Office) -> None:
    unit = "6f1c2c7e-0000-4000-8000-000000000001"
    table = f"id,business_unit,date:due_on\n1,{unit},2026-02-30\n2,{unit},\n3,,\n"
    counted = await office.put(table, dry_run=True)
    assert counted == Imported(dry_run=True, rows=3, accepted=1, refused=2)
    assert [(one.row, one.column) for one in office.bad] == [(2, "date:due_on"), (3, "business_unit")]
    assert await office.events() == []
    assert await office.put(table) == imported(3, changed=1, refused=2)


async def test_of_a_source_that_comes_twice_the_later_row_stands(office: Office) -> None:
    assert await office.put("id,field:a\n1,x\n2,x\n1,y\n") == imported(3, changed=3)
    assert (await office.put("id,field:a\n1,y\n2,x\n")).changed == 0


async def test_an_export_is_imported_as_the_same_sources(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_tables, "EXPORTED_MAX", 1)
    await office.put(INVOICES)
    await office.put("id\n1\n", source_type="class")
    table = await office.exported()
    assert (table.count("\n"), "'=Kim" in table) == (3, True)
    assert await office.put(table) == imported(2, changed=0)
    assert await office.put(table, tenant_id=OTHER) == imported(2, changed=2)
    assert (await office.exported("nothing")).count("\n") == 1


@pytest.mark.parametrize(
    "table, field", [("id,due_on\n", "row 1"), ("field:a\nx\n", "row 1"), ("", "row 1"), ('id\n"x\n', "row 2")]
)
async def test_what_is_no_table_of_sources_is_refused(office: Office, table: str, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        await office.put(table)
    assert refused.value.field == field


async def test_a_type_that_is_none_is_refused(office: Office) -> None:
    for ask in (office.put("id\n1\n", source_type="In voice"), office.exported("In voice")):
        with pytest.raises(InvalidInput) as refused:
            await ask
        assert refused.value.field == "type"

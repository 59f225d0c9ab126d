"""Report providers: what is let in of their answers, what is refused when they are registered, and the example."""

import runpy
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from clarion.domain.report_choice import ReportForm
from clarion.errors import BadConfiguration, InvalidInput, PluginFailed
from clarion.ports.reporting import ReportData, ReportFacts, ReportOutput, ReportRequest
from clarion.producers.apart import Patience
from clarion.producers.delivery_summary import safe_cell
from clarion.producers.report_plugin import ReportPlugin, Reports
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from tests.unit.pipeline_line import TENANT
from tests.unit.test_reports import NOW, Counted, subscription

EXAMPLE: Final = Path(__file__).parents[2] / "examples/providers/open_invoices.py"


class Bad(Counted):
    """A provider that does what the test says instead of writing."""

    report = "bad"

    def __init__(self, does: str) -> None:
        super().__init__()
        self._does = does

    async def write(self, asked: ReportRequest, facts: ReportFacts, output: ReportOutput) -> Any:
        match self._does:
            case "raises":
                raise ZeroDivisionError
            case "writes too much":
                for _ in range(9):
                    output.write("x" * 1024 * 1024)
            case "answers nothing":
                return None
            case "answers what JSON has not":
                return ReportData(lines=1, data={"rows": {1j}})
            case "answers too much":
                return ReportData(lines=1, data={"rows": "x" * 300_000})
            case "counts":
                counted = await facts.count_deliveries(asked.tenant_id, start_at=asked.start_at, end_at=asked.end_at)
                return ReportData(lines=len(counted))
            case _:
                pass
        return ReportData(lines=0)


@pytest.mark.parametrize(
    "does", ["raises", "writes too much", "answers nothing", "answers what JSON has not", "answers too much"]
)
async def test_a_provider_that_answers_badly_fails_its_run_alone(does: str) -> None:
    plugin = ReportPlugin("bad", Bad(does), patience=Patience())
    asked = ReportRequest(
        tenant_id=TENANT,
        report="bad",
        parameters={},
        start_at=NOW - timedelta(days=7),
        end_at=NOW,
        tz_id="UTC",
        form=ReportForm.CSV,
    )
    with pytest.raises(PluginFailed):
        await plugin.write(asked, SqliteInMemory(ManualClock(NOW)))
    written = await ReportPlugin("good", Bad("counts"), patience=Patience()).write(
        asked, SqliteInMemory(ManualClock(NOW))
    )
    assert written.data.lines == 0
    await plugin.close()


def test_what_is_no_provider_or_takes_anothers_name_is_refused_when_it_is_registered() -> None:
    for plugin in (object(), type("Formless", (Counted,), {"forms": ()})(), type("Odd", (Counted,), {"report": ""})()):
        with pytest.raises(BadConfiguration):
            ReportPlugin("odd", plugin)
    with pytest.raises(BadConfiguration):
        Reports([ReportPlugin("a", Counted()), ReportPlugin("b", Counted())])


@pytest.mark.parametrize(
    "change, field", [({"report": "gone"}, "report"), ({"parameters": {"colour": "red"}}, "parameters.colour")]
)
def test_a_subscription_to_what_nobody_writes_is_refused_by_its_field(change: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Reports([ReportPlugin("a", Counted())]).check(subscription(**change))
    assert refused.value.field == field


async def test_the_example_writes_what_its_page_says() -> None:
    provider = runpy.run_path(str(EXAMPLE))["OpenInvoices"]()
    said = subscription(report="open-invoices", form=ReportForm.CSV, parameters={"customer": "Bakery Huber"})
    Reports([ReportPlugin("a", provider)]).check(said)
    asked = ReportRequest(
        tenant_id=TENANT,
        report=said.report,
        parameters=said.parameters,
        start_at=NOW - timedelta(days=7),
        end_at=NOW,
        tz_id="UTC",
        form=said.form,
    )
    written = await ReportPlugin("a", provider).write(asked, SqliteInMemory(ManualClock(NOW)))
    assert written.output.splitlines()[1:] == ['"Bakery Huber","2026/17","2026-11-02","420.0"']
    assert written.data.data["total"] == 420.0


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1"])
def test_no_cell_of_a_table_is_a_formula(text: str) -> None:
    assert safe_cell(text) == f"'{text}"
    assert safe_cell("invoice-due") == "invoice-due"

"""A report provider: open invoices by customer, oldest first, as HTML or CSV.

Install it beside Clarion with an entry point of `clarion.reports` (docs/how-to/write-a-report-provider.md). Run as a
program it writes its report to the screen. The invoices stand in for a question to a database.
"""

import asyncio
import csv
import io
import sys
from datetime import UTC, date, datetime
from html import escape

from clarion.domain.report_choice import ReportForm
from clarion.ports.reporting import ReportData, ReportFacts, ReportOutput, ReportRequest

INVOICES = (
    ("Bakery Huber", "2026/17", date(2026, 11, 2), 420.0),
    ("=SUM(A1)", "2026/18", date(2026, 11, 20), 80.5),  # a customer whose name a spreadsheet must not run
    ("School North", "2026/21", date(2027, 1, 7), 1200.0),
)


class OpenInvoices:
    """Writes the report `open-invoices`; the parameter `customer` narrows it to one."""

    report = "open-invoices"
    forms = frozenset({ReportForm.HTML, ReportForm.CSV})
    parameters = frozenset({"customer"})

    async def write(self, asked: ReportRequest, facts: ReportFacts, output: ReportOutput) -> ReportData:
        """Write the invoices that fell due until the end of the period."""
        only, until = asked.parameters.get("customer"), asked.end_at.date()
        rows = [one for one in INVOICES if one[2] < until and only in (None, one[0])]
        output.write(_csv(rows) if asked.form is ReportForm.CSV else _html(rows))
        shown = [
            {"customer": who, "number": number, "due": f"{due}", "amount": much} for who, number, due, much in rows
        ]
        return ReportData(lines=len(rows), data={"rows": shown, "total": sum(one[3] for one in rows)})


def _csv(rows: list[tuple[str, str, date, float]]) -> str:
    table = io.StringIO()
    writer = csv.writer(table, quoting=csv.QUOTE_ALL)
    writer.writerow(("customer", "number", "due", "amount"))
    for who, *rest in rows:
        writer.writerow((f"'{who}" if who.startswith(("=", "+", "-", "@", "\t", "\r")) else who, *rest))
    return table.getvalue()


def _html(rows: list[tuple[str, str, date, float]]) -> str:
    cells = "".join(
        f"<tr><td>{escape(who)}</td><td>{escape(number)}</td><td>{due}</td><td>{much:.2f}</td></tr>\n"
        for who, number, due, much in rows
    )
    return f'<!doctype html><html lang="en"><title>Open invoices</title><table>\n{cells}</table></html>\n'


class Screen:
    """An output that prints."""

    def write(self, text: str) -> None:
        """Print a part."""
        sys.stdout.write(text)


async def main() -> None:
    """Write the report of one week as CSV."""
    asked = ReportRequest(
        tenant_id="example",
        report=OpenInvoices.report,
        parameters={},
        start_at=datetime(2026, 11, 23, 7, 0, tzinfo=UTC),
        end_at=datetime(2026, 11, 30, 7, 0, tzinfo=UTC),
        tz_id="Europe/Vienna",
        form=ReportForm.CSV,
    )
    facts: ReportFacts = None  # type: ignore[assignment]  # this report asks Clarion for nothing
    found = await OpenInvoices().write(asked, facts, Screen())
    sys.stdout.write(f"{found.lines} lines, {found.data['total']} in all\n")


if __name__ == "__main__":
    asyncio.run(main())

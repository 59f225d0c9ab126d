"""The report `delivery-summary`: what became of the messages of a period, by notification type and channel.

As HTML a page of its own, as CSV one line for each type and channel. Reads counts; writes nothing itself.
"""

import csv
import io
from collections.abc import Collection, Iterator
from html import escape
from typing import Final

import msgspec

from clarion.domain.local_time import to_local
from clarion.domain.report_choice import ReportForm
from clarion.ports.reporting import PAGE_MAX, DeliveryCount, ReportData, ReportFacts, ReportOutput, ReportRequest

LINES_MAX: Final = 200
"""Lines that a template gets, and somebody reads in a mail; the report itself has all of them."""

_COUNTS: Final = ("sent", "delivered", "failed", "uncertain", "waiting", "not_sent", "total")
_HEAD: Final = ("notification_type", "channel", *_COUNTS)

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a spreadsheet takes for the beginning of a formula, wide forms too (X-26)."""


class DeliverySummary:
    """Writes the report."""

    report = "delivery-summary"
    forms: Collection[ReportForm] = frozenset(ReportForm)
    parameters: Collection[str] = frozenset({"type"})

    async def write(self, asked: ReportRequest, facts: ReportFacts, output: ReportOutput) -> ReportData:
        """Write the report of a period; the parameter `type` narrows it to one notification type."""
        only = asked.parameters.get("type")
        found = await _all(asked, facts)
        counts = [one for one in found if only is None or one.notification_type == only]
        for text in _csv(counts) if asked.form is ReportForm.CSV else _html(asked, counts):
            output.write(text)
        return ReportData(
            lines=len(counts),
            data={
                "rows": [_row(one) for one in counts[:LINES_MAX]],
                "more": max(0, len(counts) - LINES_MAX),
                "totals": {name: sum(getattr(one, name) for one in counts) for name in _COUNTS},
            },
        )


def safe_cell(text: str) -> str:
    """Write text for a cell so that no spreadsheet takes it for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


async def _all(asked: ReportRequest, facts: ReportFacts) -> list[DeliveryCount]:
    counts: list[DeliveryCount] = []
    while True:
        after = (counts[-1].notification_type, counts[-1].channel.value) if counts else None
        page = await facts.count_deliveries(
            asked.tenant_id, start_at=asked.start_at, end_at=asked.end_at, after=after, limit=PAGE_MAX
        )
        counts += page
        if len(page) < PAGE_MAX:
            return counts


def _row(one: DeliveryCount) -> dict[str, object]:
    """Give a line as templates read it."""
    return {**msgspec.to_builtins(one), "total": one.total}


def _csv(counts: list[DeliveryCount]) -> Iterator[str]:
    table = io.StringIO()
    writer = csv.writer(table, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(_HEAD)
    for one in counts:
        names = (safe_cell(one.notification_type), safe_cell(one.channel.value))
        writer.writerow([*names, *(getattr(one, name) for name in _COUNTS)])
    yield table.getvalue()


def _html(asked: ReportRequest, counts: list[DeliveryCount]) -> Iterator[str]:
    start, end = (f"{to_local(at, asked.tz_id):%Y-%m-%d %H:%M}" for at in (asked.start_at, asked.end_at))
    yield (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Delivery summary</title>'
        "<style>body{font:16px/1.5 sans-serif;margin:2em}table{border-collapse:collapse}"
        "th,td{border:1px solid #ccc;padding:.3em .6em;text-align:right}"
        "th:first-child,td:first-child,th:nth-child(2),td:nth-child(2){text-align:left}</style></head><body>"
        f"<h1>Delivery summary</h1><p>{escape(start)} to {escape(end)}, {escape(asked.tz_id)}</p>"
    )
    if not counts:
        yield "<p>No messages were made in this time.</p>"
    else:
        heads = "".join(f"<th>{name.replace('_', ' ')}</th>" for name in _HEAD)
        yield f"<table><thead><tr>{heads}</tr></thead><tbody>"
        for one in counts:
            numbers = "".join(f"<td>{getattr(one, name)}</td>" for name in _COUNTS)
            yield f"<tr><td>{escape(one.notification_type)}</td><td>{escape(one.channel.value)}</td>{numbers}</tr>"
        yield "</tbody></table>"
    yield "</body></html>\n"

"""The demo's agenda: at whatever moment it is first started, the same reminders are due, and the same ones wait."""

from datetime import UTC, datetime, timedelta

import pytest

from clarion.catalog.source_entry import SourceEntry, check_source
from clarion.cli import school, school_agenda
from clarion.client.wire_sources import SourceItem
from clarion.domain.local_time import to_local
from clarion.domain.plan import plan
from clarion.domain.planning import SourceStanding
from clarion.domain.reminder import ReminderSetting
from clarion.domain.source import SourceContent, SourceFacts
from clarion.domain.wanted import Situation
from clarion.operations.shape import as_wire

DUE = {"first-aid-tom", "vetting-coach", "2026-0418", "2026-0399", "1a"}
"""What is due at once; of each of these but the class, something else waits too or is over."""

MOMENTS = [
    datetime(2026, 10, 25, 0, tzinfo=UTC),  # the day of 25 hours in Berlin; its clocks go back at 01:00 UTC
    datetime(2026, 3, 29, 0, tzinfo=UTC),  # the day of 23 hours
    datetime(2026, 12, 31, 12, tzinfo=UTC),  # over the end of a year
    datetime(2028, 2, 28, 23, tzinfo=UTC),  # over a 29 February in Berlin
]


def facts(source_type: str, item: SourceItem) -> SourceFacts:
    entry = SourceEntry(source=item.id, fields=item.fields, dates=item.dates, metrics=item.metrics)
    content: SourceContent = check_source(entry).content
    return SourceFacts(source_type=source_type, source=item.id, entity=school.CHILD.guid, content=content)


def planned(started_at: datetime, *, seconds_later: int = 10) -> tuple[set[str], dict[str, timedelta]]:
    """Plan everything as workers do soon after the start: what is due at once, and when what waits is due first."""
    settings = [
        as_wire(request, ReminderSetting, guid=guid) for guid, request in school_agenda.reminders(started_at).items()
    ]
    now = started_at + timedelta(seconds=seconds_later)
    due: set[str] = set()
    waits: dict[str, timedelta] = {}
    for source_type, items in school_agenda.sources(started_at).items():
        for item in items:
            situation = Situation(
                source_type=source_type,
                source=item.id,
                facts=facts(source_type, item),
                settings=[one for one in settings if one.source_type == source_type],
                tz_id=school.ZONE,
                now=now,
            )
            standing = SourceStanding(source_type=source_type, source=item.id)
            for row in plan(situation, standing, cause="test", correlation_id="c").ensure:
                if row.scheduled_at <= now:
                    due.add(item.id)
                else:
                    waits[item.id] = min(waits.get(item.id, timedelta.max), row.scheduled_at - started_at)
    return due, waits


@pytest.mark.parametrize("day", MOMENTS)
def test_at_every_minute_of_odd_days_the_same_things_are_due(day: datetime) -> None:
    for minutes in range(0, 26 * 60, 7):
        started_at = day + timedelta(minutes=minutes, seconds=59)
        due, waits = planned(started_at)
        local = to_local(started_at, school.ZONE)
        # In the hour that the clocks show twice, the first of two equal times is meant, so Mina's day is due already.
        assert due - {"mina"} == DUE, local
        assert "mina" in due or timedelta() < waits["mina"] <= school_agenda.SOON, local
        assert "mina" not in due or local.fold or to_local(started_at + school_agenda.SOON, school.ZONE).fold, local
        assert set(waits) >= {"first-aid-karl", "vetting-mina", "2026-0420"}, local
        assert not {"2b", "2026-0401"} & (due | set(waits)), local

"""The examples of `examples/providers` work as plugins: found by their entry points, registered and asked as any."""

import sys
import tomllib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import UUID

import pytest

from clarion.bootstrap import _loaders
from clarion.domain.entity_event import EntityEvent, EventData
from clarion.domain.identity import Channel, Identity
from clarion.domain.recipient import Target
from clarion.domain.reminder import DateRule, ReminderSetting
from clarion.ports.source import SourceScan
from clarion.producers.post_processing import PostProcessors
from clarion.producers.records import Records
from clarion.producers.registration import (
    EVENTS,
    REMINDERS,
    REPORTS,
    event_processors,
    reminder_plugins,
    report_plugins,
)
from clarion.producers.report_plugin import Reports
from clarion.producers.sources import Sources
from tests.unit.plugin_house import event

EXAMPLES = Path(__file__).parents[2] / "examples/providers"
SETTING = ReminderSetting(
    guid=UUID(int=1), name="Any", source_type="room", rule=DateRule(field="on"), notification_type="booked"
)


class Installed:
    """The examples as a machine has them on which they were installed."""

    def __init__(self) -> None:
        no_records: Records = None  # type: ignore[assignment]  # all that is asked for is a plugin's
        self.sources = Sources(no_records, reminder_plugins(_loaders(REMINDERS)))
        self.processors = PostProcessors([], event_processors(_loaders(EVENTS)))
        self.reports = Reports(report_plugins(_loaders(REPORTS)))


@pytest.fixture
async def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Installed]:
    """Put on the path what an installer would: the modules, and the entry points of the package."""
    points = tomllib.loads((EXAMPLES / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points[group].items()) for group in points
    ]
    info = tmp_path / "clarion_example_providers-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: clarion-example-providers\nVersion: 1\n")
    (info / "entry_points.txt").write_text("\n".join(lines))
    before = set(sys.modules)
    for folder in (EXAMPLES, tmp_path):
        monkeypatch.syspath_prepend(str(folder))
    async with AsyncExitStack() as closing:
        found = Installed()
        for one in (found.sources, found.processors, found.reports):
            closing.push_async_callback(one.close)
        yield found
    for name in set(sys.modules) - before:
        if str(EXAMPLES) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def users(*names: str) -> tuple[Target, ...]:
    return tuple(Target(identity=Identity.user(name)) for name in names)


async def test_the_trigger_tells_what_there_is_within_the_bounds_of_a_scan(installed: Installed) -> None:
    vehicle = (await installed.sources.load("t", "vehicle", ["W-1047", "sold"]))["W-1047"]
    assert vehicle.content.fields == {"name": "Minibus"}
    scan = SourceScan(source_type="vehicle", limit=1)
    page = await installed.sources.scan("t", scan)
    assert ([one.source for one in page.facts], page.cursor) == (["W-1047"], "W-1047")
    assert installed.sources.bounds("vehicle").window_days == 60


def happened(event_type: str, source_type: str | None = None, source: str | None = None) -> EntityEvent:
    return event(event_type, source_type=source_type, source=source)


async def test_the_invalidation_names_every_driver_of_a_team(installed: Installed) -> None:
    touched = await installed.sources.touched("t", happened("team.moved"), {"team": "north"})
    assert touched == (("driver", "ada"), ("driver", "ben"))
    assert await installed.sources.touched("t", happened("team.left"), {"team": "north"}) == ()


async def test_the_immediate_notification_goes_to_whoever_holds_the_key(installed: Installed) -> None:
    facts = (await installed.sources.load("t", "key", ["workshop-3"]))["workshop-3"]
    lost = happened("key.lost", "key", "workshop-3")
    told = await installed.sources.immediate("t", lost, {}, facts)
    assert told is not None
    assert (told.notification_type, told.to, told.data) == ("key-lost", users("4711"), {"key": "workshop-3"})
    assert await installed.sources.immediate("t", happened("key.found", "key", "workshop-3"), {}, facts) is None


async def test_the_recipients_are_those_who_booked_the_room_or_whom_the_setting_names(installed: Installed) -> None:
    rooms = await installed.sources.load("t", "room", ["hall", "gym", "cellar"])
    found = {name: await installed.sources.recipients("t", facts, SETTING) for name, facts in rooms.items()}
    assert found == {"hall": users("ada", "ben"), "gym": (), "cellar": None}


async def test_the_delivery_of_a_low_boiler_is_by_text_message_too(installed: Installed) -> None:
    boilers = await installed.sources.load("t", "boiler", ["cellar", "attic"])
    low, fine = [await installed.sources.delivery("t", boilers[name], SETTING) for name in ("attic", "cellar")]
    assert (low.channels, low.data) == ((Channel.EMAIL, Channel.SMS), {"warning": "its pressure is 0.9 bar"})
    assert (fine.channels, fine.data) == ((Channel.EMAIL,), {})


async def test_the_post_processor_does_the_same_thing_once(installed: Installed) -> None:
    told = EventData(data={"team": "north"})
    counts = [await installed.processors.process("t", happened("team.moved"), told) for _ in range(2)]
    assert counts == [{"journal.written": 1}, {"journal.written": 0}]


async def test_the_report_can_be_subscribed_to(installed: Installed) -> None:
    assert {one.report for one in installed.reports.all} == {"delivery-summary", "open-invoices"}

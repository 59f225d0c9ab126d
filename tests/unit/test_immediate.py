"""What is told at once about an event: by the table, or by a plugin, once each."""

from collections.abc import Collection, Mapping

import msgspec
import pytest

from clarion.domain.entity_event import EntityEvent, EventData, EventMapping
from clarion.domain.identity import Channel, Identity
from clarion.domain.notification import NotificationJob
from clarion.domain.recipient import Target
from clarion.domain.source import SourceContent, SourceFacts, SourceRecord
from clarion.errors import InvalidInput
from clarion.ports.reminding import Immediate
from clarion.producers.immediate import Immediately
from clarion.producers.plugin import Plugin
from clarion.producers.records import Records
from clarion.producers.sources import Sources
from clarion.sealing.sources import sealed_source
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from tests.unit.pipeline_line import TENANT, Line, Scripted
from tests.unit.plugin_house import ENTITY, Boats, event

CHILD = SourceContent(fields={"name": "Leo", "group": "2b"})
INCIDENT = EventData(
    data={"summary": "Leo fell.", "happened_at": "2026-02-12T10:40:00+01:00", "action": "Look at the knee."}
)
SAM = Target(identity=Identity.address("sam@example.com"), channel=Channel.EMAIL)


class Told:
    """Tables of mappings and sources as a test says."""

    def __init__(self, line: Line, *plugins: Plugin, **mapped: str | None) -> None:
        self.mapped = {name.replace("_", "."): type_ for name, type_ in mapped.items()}
        self.records: dict[str, SourceRecord] = {}
        self.line = line
        self.sources = Sources(Records(self, line.keyring), plugins)  # type: ignore[arg-type]  # these two methods of it
        self.immediately = Immediately(store=self, sources=self.sources, sends=line.sends)  # type: ignore[arg-type]

    async def find_mappings(self, tenant_id: str, event_types: Collection[str]) -> dict[str, EventMapping]:
        return {
            one: EventMapping(event_type=one, notification_type=self.mapped[one])
            for one in event_types
            if one in self.mapped
        }

    async def find_sources(self, tenant_id: str, source_type: str, sources: Collection[str]) -> dict[str, SourceRecord]:
        return {one: self.records[one] for one in sources if one in self.records}

    async def put(self, source: str, content: SourceContent) -> None:
        keys = await self.line.keyring.get(TENANT)
        nonce = self.line.keyring.nonce()
        self.records[source] = sealed_source(keys, source_type="child", source=source, content=content, nonce=nonce)

    async def jobs(self) -> list[NotificationJob]:
        return list(await self.line.store.rows(TENANT, NotificationJob))


@pytest.fixture
async def line() -> Line:
    clock = ManualClock()
    line = Line(SqliteInMemory(clock), clock, Scripted())
    await line.seed()
    return line


def told_of(source: str | None = None) -> EntityEvent:
    """Tell that a member joined or, with a source, that a child did."""
    return event("member.joined", source_type=None if source is None else "child", source=source)


async def test_a_mapped_event_becomes_one_job_however_often_it_is_handled(line: Line) -> None:
    told = Told(line, member_joined="welcome")
    (first,) = await told.immediately.notify(TENANT, told_of(), EventData(data={"name": "Mia"}), None)
    (again,) = await told.immediately.notify(TENANT, told_of(), EventData(data={"name": "Changed"}), None)
    (job,) = await told.jobs()
    assert (first.job, first.is_new, again.job, again.is_new) == (job.guid, True, job.guid, False)
    assert (job.event_type, job.source_type, job.source) == ("welcome", "boat", str(ENTITY))
    assert job.row_key == f"member.joined:{told_of().event_guid}:welcome"


async def test_an_event_type_in_no_table_is_refused_and_one_mapped_to_none_tells_nobody(line: Line) -> None:
    told = Told(line, boat_moored=None)
    for ask in (
        told.immediately.check(TENANT, told_of(), EventData()),
        told.immediately.notify(TENANT, told_of(), EventData(), None),
    ):
        with pytest.raises(InvalidInput, match=r"'member\.joined' is in no table") as refused:
            await ask
        assert refused.value.field == "type"
    await told.immediately.check(TENANT, event(), EventData())
    assert await told.immediately.notify(TENANT, event(), EventData(), None) == ()
    assert await told.jobs() == []


async def test_an_event_of_a_stored_source_needs_no_mapping(line: Line) -> None:
    told, changed = Told(line), msgspec.structs.replace(event("invoice.changed"), source_version=3)
    assert await told.immediately.notify(TENANT, changed, EventData(), None) == ()


@pytest.mark.parametrize(
    "mapped, data, field",
    [("welcome", {}, "data"), ("welcome", {"nom": "Mia"}, "data"), ("no-such-type", {"name": "Mia"}, "type")],
)
async def test_what_a_mapped_event_lacks_is_refused_at_the_door_and_again_when_it_is_handled(
    line: Line, mapped: str, data: Mapping[str, object], field: str
) -> None:
    told = Told(line, member_joined=mapped)
    for ask in (
        told.immediately.check(TENANT, told_of(), EventData(data=data)),
        told.immediately.notify(TENANT, told_of(), EventData(data=data), None),
    ):
        with pytest.raises(InvalidInput) as refused:
            await ask
        assert refused.value.field == field
    assert await told.jobs() == []


async def test_templates_read_the_source_under_its_type_and_the_event_at_the_root(line: Line) -> None:
    told = Told(line, member_joined="incident")
    with pytest.raises(InvalidInput, match=r"needs child\.name"):
        await told.immediately.notify(TENANT, told_of("7"), INCIDENT, None)
    await told.put("7", SourceContent(fields={"group": "2b"}))
    with pytest.raises(InvalidInput, match=r"needs child\.name"):
        await told.immediately.check(TENANT, told_of("7"), INCIDENT)
    await told.put("7", CHILD)
    await told.immediately.check(TENANT, told_of("7"), INCIDENT)
    facts = (await told.sources.load(TENANT, "child", ["7"]))["7"]
    (notified,) = await told.immediately.notify(TENANT, told_of("7"), INCIDENT, facts)
    assert notified.is_new


async def test_a_source_that_is_not_there_yet_is_no_reason_to_refuse_an_event(line: Line) -> None:
    told = Told(line, member_joined="incident")
    await told.immediately.check(TENANT, told_of("8"), INCIDENT)
    assert await told.jobs() == []


class Greeting(Boats):
    """Greets at once, whom it likes."""

    def __init__(self, wanted: Immediate | None) -> None:
        super().__init__()
        self._wanted = wanted

    async def immediate(
        self, tenant_id: str, event: EntityEvent, data: Mapping[str, object], facts: SourceFacts | None
    ) -> Immediate | None:
        return self._wanted


async def test_a_plugin_may_ask_for_another_notification_and_knows_better_about_the_same(line: Line) -> None:
    wanted = Immediate(notification_type="welcome", data={"name": "Grace"}, to=(SAM,))
    told = Told(line, Plugin("boats", Greeting(wanted)), boat_moored="welcome")
    (notified,) = await told.immediately.notify(TENANT, event(), EventData(), None)
    await line.drain()
    (call,) = line.provider.calls
    assert (notified.notification_type, call.destination) == ("welcome", "sam@example.com")
    await told.sources.close()


async def test_a_mapping_and_a_plugin_are_two_notifications_of_two_types(line: Line) -> None:
    wanted = Immediate(notification_type="welcome", data={"name": "Grace"}, to=(SAM,))
    told = Told(line, Plugin("boats", Greeting(wanted)), boat_moored="incident")
    data = msgspec.structs.replace(INCIDENT, data={**INCIDENT.data, "child": {"name": "Leo", "group": "2b"}})
    types = {one.notification_type for one in await told.immediately.notify(TENANT, event(), data, None)}
    assert types == {"welcome", "incident"}
    await told.sources.close()

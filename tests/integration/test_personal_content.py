"""Content that reads its recipient, through the whole line on both engines: what was said first is said again."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

import asyncpg
import msgspec
import pytest

from clarion.adapters.stores.postgres import open_store as open_postgres
from clarion.catalog.people import ContactEntry, GroupEntry, People, PersonEntry
from clarion.client.wire import Entity, Recipient
from clarion.domain.call import Call, Deferred
from clarion.domain.content import EmailContent, InboxContent, SmsContent
from clarion.domain.definition import Definition
from clarion.domain.identity import Channel, Identity
from clarion.domain.inbox import UserMessage
from clarion.domain.notification import NotificationStatus
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.person import BusinessUnit, LocalForm, PersonVersion
from clarion.domain.recipient import decode
from clarion.ports.catalog import NewTemplate
from clarion.sealing.place import inbox_place
from clarion.testing.clock import ManualClock
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.store import StandIn
from tests.contract.test_store_postgres import PostgresHarness
from tests.unit.pipeline_line import TENANT, TRACE, Line, Scripted

TEAM: Final = UUID(int=11)
SAM: Final = PersonEntry(
    identity=Identity.user("sam"),
    name="Sam Sample",
    locale="de-AT",
    tz_id="Europe/Vienna",
    contacts=(
        ContactEntry(channel=Channel.EMAIL, destination="sam@example.com"),
        ContactEntry(channel=Channel.SMS, destination="+447700900001"),
    ),
)
KIM: Final = PersonEntry(
    identity=Identity.user("kim"),
    name="Kim Sample",
    contacts=(ContactEntry(channel=Channel.SMS, destination="+447700900002"),),
)
FILES: Final = {
    "email.subject.liquid": "Hello {{ recipient.name | default: 'friend' }}",
    "email.mjml.liquid": "<mjml><mj-body><mj-section><mj-column><mj-text>Dear {{ recipient.name }}</mj-text>"
    "</mj-column></mj-section></mj-body></mjml>",
    "email.text.liquid": "Dear {{ recipient.name }}",
    "sms.liquid": "Dear {{ recipient.name | default: 'friend' }}, {{ what }}",
    "inbox.liquid": "For {{ recipient.name }}\n{{ what }}",
}
PLAIN: Final = {"sms.liquid": "{{ what }} at {{ at | time: 'short' }}"}
IN_GERMAN: Final = {"sms.liquid": "{{ what }} um {{ at | time: 'short' }}"}


class World(NamedTuple):
    """One process's stages over an engine, and the way around its store."""

    line: Line
    harness: StoreHarness

    def restarted(self) -> Line:
        """Give the stages of another process, which has nothing in memory."""
        return Line(self.line.store, self.line.clock, self.line.provider)

    async def put(self, *people: PersonEntry) -> None:
        """Put people in, in place of what was known of them."""
        line = self.line
        store = People(catalog=line.store, dispatcher=line.dispatcher, keyring=line.keyring)
        await store.put(TENANT, people, trace=TRACE)
        await store.put_group(TENANT, GroupEntry(guid=TEAM, name="Team", members=(SAM.identity, KIM.identity)))

    async def publish(
        self, key: str, files: Mapping[str, str], *channels: Channel, german: Mapping[str, str] | None = None
    ) -> None:
        """Publish a notification in English, and in German if it has that."""
        locales = {} if german is None else {"de": german}
        mine = {name: text for name, text in files.items() if name.partition(".")[0] in channels}
        definition = Definition(key=key, title=key, channels=channels, locales=("en", *locales))
        bundle = self.line.renderer.compile(definition, mine, locales=locales)
        text = msgspec.json.encode(bundle).decode()
        template = NewTemplate(template_key=key, content_hash=bundle.content_hash, bundle=text)
        await self.line.store.publish_templates(TENANT, [template], actor="test")

    async def later(self, line: Line, seconds: float = 60) -> None:
        """Let time pass, and have a process do what is due; twice, since it has no template the first time."""
        for _ in range(2):
            await self.harness.elapse(timedelta(seconds=seconds))
            await line.wait(seconds)  # by the clock of the process, which is the store's own on one of the engines


@pytest.fixture(params=["sqlite", "postgresql"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    close: Callable[[], Awaitable[None]]
    if request.param == "sqlite":
        stand_in = StandIn()
        harness: Any = stand_in
        clock, close = stand_in.clock, stand_in.store.close
    else:
        url = request.getfixturevalue("migrated_postgres_url")
        clock, connection = ManualClock(), await asyncpg.connect(url)
        store = await open_postgres(url, clock=clock)
        harness = PostgresHarness(store, connection)

        async def close() -> None:
            await store.close()
            await connection.close()

    world = World(Line(harness.store, clock, Scripted()), harness)
    await world.line.dispatcher.ensure_tenant(TENANT)
    await world.put(SAM, KIM)
    yield world
    await close()


def said(call: Call) -> str:
    """Give what a call says, in one text."""
    match call.content:
        case EmailContent(subject=subject, text=text):
            return f"{subject} | {text}"
        case SmsContent(text=text):
            return text
        case content:
            raise AssertionError(content)


async def test_an_edit_of_the_person_between_two_attempts_sends_the_first_bytes_again(world: World) -> None:
    """I-15: by another process too, which has merged nothing yet; what is sent next has the new name."""
    await world.publish("greeting", FILES, Channel.EMAIL, Channel.SMS)
    line = world.line
    line.provider.answers = [Deferred(reason="busy"), Deferred(reason="busy")]
    sent = await line.send("greeting", Recipient(user="sam"), data={"what": "lunch"})
    await line.drain()
    await world.put(msgspec.structs.replace(SAM, name="Alex Other", locale="fr", tz_id="Europe/Paris"))
    await world.later(world.restarted())
    first, second = line.provider.calls[:2], line.provider.calls[2:]
    assert sorted(map(said, second)) == ["Dear Sam Sample, lunch", "Hello Sam Sample | Dear Sam Sample"]
    by_key = {call.idempotency_key: call.content for call in first}
    assert {call.idempotency_key: call.content for call in second} == by_key
    rows = (await line.timeline(sent)).outgoing
    assert {(row.status, row.locale, row.tz_id) for row in rows} == {
        (OutgoingStatus.SENT_TO_PROVIDER, "en", "Europe/Vienna")
    }
    line.provider.calls.clear()
    await line.send("greeting", Recipient(user="sam"), data={"what": "lunch"})
    await line.drain()
    assert sorted(map(said, line.provider.calls)) == ["Dear Alex Other, lunch", "Hello Alex Other | Dear Alex Other"]


@pytest.mark.parametrize("what", ["moves", "is removed"])
async def test_a_person_who_moves_or_is_removed_between_two_attempts_gets_what_was_decided(
    world: World, what: str
) -> None:
    """The first bytes go again to the first address; the next notification knows what has become of the person."""
    await world.publish("greeting", FILES, Channel.EMAIL)
    line = world.line
    line.provider.answers = [Deferred(reason="busy")]
    await line.send("greeting", Recipient(user="sam"), data={"what": "lunch"})
    await line.drain()
    elsewhere = ContactEntry(channel=Channel.EMAIL, destination="sam@elsewhere.example.com")
    if what == "moves":
        await world.put(msgspec.structs.replace(SAM, name="Alex Other", contacts=(elsewhere,)))
    else:
        people = People(catalog=line.store, dispatcher=line.dispatcher, keyring=line.keyring)
        assert await people.remove(TENANT, [SAM.identity], actor="test") == [SAM.identity]
    await world.later(world.restarted())
    first, second = line.provider.calls
    assert (second.destination, second.content) == (first.destination, first.content)
    assert first.destination == "sam@example.com"
    line.provider.calls.clear()
    await line.send("greeting", Recipient(user="sam"), data={"what": "lunch"})
    await line.drain()
    assert [call.destination for call in line.provider.calls] == (
        ["sam@elsewhere.example.com"] if what == "moves" else []
    )


async def test_the_recipients_of_one_notification_are_called_by_their_own_names(world: World) -> None:
    """And a bare address, of which nobody knows a name, by what the template says instead."""
    await world.publish("greeting", FILES, Channel.SMS)
    bare = Recipient(address="+447700900003")
    await world.line.send("greeting", Recipient(group=TEAM), also=(bare,), data={"what": "lunch"})
    await world.line.drain()
    assert {call.destination: said(call) for call in world.line.provider.calls} == {
        "+447700900001": "Dear Sam Sample, lunch",
        "+447700900002": "Dear Kim Sample, lunch",
        "+447700900003": "Dear friend, lunch",
    }


async def test_a_profile_is_opened_only_where_a_template_reads_it(world: World) -> None:
    """And never to make rows. One that does not open keeps its own message back, and ends no other's."""
    await world.publish("plain", {"sms.liquid": "{{ what }}"}, Channel.SMS)
    await world.publish("greeting", FILES, Channel.SMS)
    line = world.line
    keys = await line.keyring.get(TENANT)
    (broken,) = [
        one
        for one in await world.harness.rows(TENANT, PersonVersion)
        if one.recipient_id_hash == keys.hash_of(SAM.identity)
    ]
    await world.harness.overwrite(TENANT, msgspec.structs.replace(broken, profile=b"nothing that was sealed"))
    await line.send("plain", Recipient(group=TEAM), data={"what": "lunch"})
    sent = await line.send("greeting", Recipient(group=TEAM), data={"what": "tea"})
    await line.drain()
    assert sorted(map(said, line.provider.calls)) == ["Dear Kim Sample, tea", "lunch", "lunch"]
    (waiting,) = [row for row in (await line.timeline(sent)).outgoing if row.status is OutgoingStatus.RETRY_READY]
    assert waiting.reason is not None


async def test_everybody_reads_in_their_own_language_and_zone(world: World) -> None:
    """The person's, else the tenant's, else the notification's; what was frozen is what is sent."""
    await world.publish("plain", PLAIN, Channel.SMS, german=IN_GERMAN)
    line = world.line
    form = LocalForm(locale="de", tz_id="America/New_York")
    at = {"what": "Lunch", "at": "2026-07-01T12:00:00Z"}
    forms: list[set[tuple[str | None, str | None]]] = []
    for kim in ("Lunch at 12:00 PM", "Lunch um 08:00"):
        line.provider.calls.clear()
        sent = await line.send("plain", Recipient(group=TEAM), data=at)
        await line.queue()
        frozen = decode((await line.timeline(sent)).job.recipients or "")
        forms.append({(one.locale, one.tz_id) for one in frozen})
        await line.store.set_tenant_form(TENANT, form, actor="sam")
        await line.drain()
        told = {call.destination: said(call).replace("\u202f", " ") for call in line.provider.calls}
        assert told == {"+447700900001": "Lunch um 14:00", "+447700900002": kim}
    assert forms == [
        {("de-AT", "Europe/Vienna"), ("en", None)},
        {("de-AT", "Europe/Vienna"), ("de", "America/New_York")},
    ]


async def test_who_reads_the_same_language_elsewhere_reads_their_own_time(world: World) -> None:
    """What is merged once for many is not merged once for all zones."""
    await world.publish("plain", PLAIN, Channel.SMS, german=IN_GERMAN)
    line = world.line
    await line.store.set_tenant_form(TENANT, LocalForm(locale="de", tz_id="America/New_York"), actor="sam")
    at = {"what": "Lunch", "at": "2026-07-01T12:00:00Z"}
    await line.send("plain", Recipient(group=TEAM), data=at, locale="de")
    await line.drain()
    told = {call.destination: said(call) for call in line.provider.calls}
    assert told == {"+447700900001": "Lunch um 14:00", "+447700900002": "Lunch um 08:00"}


async def test_what_a_send_and_its_business_unit_say_comes_before_the_tenant(world: World) -> None:
    """The language of the send is before that of the person, the unit's behind it; a unit nobody knows says nothing."""
    await world.publish("plain", PLAIN, Channel.SMS, german=IN_GERMAN)
    line, at = world.line, {"what": "Lunch", "at": "2026-07-01T12:00:00Z"}
    await line.store.set_tenant_form(TENANT, LocalForm(locale="de", tz_id="America/New_York"), actor="sam")
    await line.store.put_business_unit(TENANT, BusinessUnit(guid=TEAM, name="Team", locale="en", tz_id="Asia/Tokyo"))
    for asked, kim in (
        ({"business_unit": TEAM}, ("en", "Asia/Tokyo")),
        ({"business_unit": TEAM, "locale": "de-CH"}, ("de-CH", "Asia/Tokyo")),
        ({"business_unit": UUID(int=99)}, ("de", "America/New_York")),
        ({"locale": "fr"}, ("de", "America/New_York")),
    ):
        sent = await line.send("plain", Recipient(user="kim"), data=at, **asked)
        await line.drain()
        (row,) = (await line.timeline(sent)).outgoing
        assert (row.locale, row.tz_id) == kim


async def test_what_is_read_of_the_entity_is_that_of_the_send(world: World) -> None:
    """Its type, its guid and its data, also after a restart; and on every channel, the inbox included."""
    text = "{{ entity.type }} {{ entity.guid }}: {{ entity.name }}"
    files = {"sms.liquid": text, "inbox.liquid": "{{ entity.name }}\nx"}
    await world.publish("about", files, Channel.SMS, Channel.INBOX)
    line, guid = world.line, UUID(int=7)
    line.provider.answers = [Deferred(reason="busy")]
    window = Entity(type="incident", guid=guid, data={"name": "Broken window"})
    await line.send("about", Recipient(user="kim"), data={}, entity=window)
    await line.drain()
    await world.later(world.restarted())
    assert list(map(said, line.provider.calls)) == [f"incident {guid}: Broken window"] * 2
    assert [one.title for one in await inbox(world)] == ["Broken window"]


async def test_every_reader_has_an_inbox_line_of_their_own(world: World) -> None:
    """Whoever has nothing to be read fails alone: the others have their lines, and the timeline says how many not."""
    await world.publish("greeting", FILES, Channel.INBOX)
    line = world.line
    sent = await line.send("greeting", Recipient(group=TEAM), data={"what": "lunch"})
    await line.drain()
    assert sorted([one.title for one in await inbox(world)]) == ["For Kim Sample", "For Sam Sample"]
    (pending,) = [(await line.timeline(sent)).scheduler]
    assert pending is not None
    assert pending.reason == "2 recipients, 2 messages"
    await world.publish(
        "title", {"inbox.liquid": "{% if recipient.name contains 'Sam S' %}Hi{% endif %}\nx"}, Channel.INBOX
    )
    half = await line.send("title", Recipient(group=TEAM), data={})
    await line.drain()
    assert sorted([one.title for one in await inbox(world)]) == ["For Kim Sample", "For Sam Sample", "Hi"]
    (pending,) = [(await line.timeline(half)).scheduler]
    assert pending is not None
    assert (pending.reason or "").startswith("2 recipients, 2 messages, 1 inbox line not made: ")


async def test_an_inbox_line_that_cannot_be_made_keeps_no_mail_back(world: World) -> None:
    """Also where nobody else has a line in an inbox; the job fails only where nothing is made of it at all."""
    line = world.line
    nick = {**FILES, "inbox.liquid": "{{ recipient.nick }}\nx"}
    await world.publish("nick", nick, Channel.EMAIL, Channel.SMS, Channel.INBOX)
    await world.publish("line", nick, Channel.INBOX)
    sent = await line.send("nick", Recipient(user="sam"), data={"what": "lunch"})
    alone = await line.send("line", Recipient(user="sam"), data={})
    await line.drain()
    assert sorted(map(said, line.provider.calls)) == ["Dear Sam Sample, lunch", "Hello Sam Sample | Dear Sam Sample"]
    told = {}
    for one in (sent, alone):
        pending = (await line.timeline(one)).scheduler
        assert pending is not None
        told[one.job_id] = (pending.status, pending.reason or "")
    assert told[sent.job_id][0] is NotificationStatus.DONE
    assert "1 inbox line not made: " in told[sent.job_id][1]
    assert told[alone.job_id][0] is NotificationStatus.FAILED
    assert "recipient.nick" in told[alone.job_id][1]
    assert not await inbox(world)


async def inbox(world: World) -> list[InboxContent]:
    """Open every inbox line."""
    keys = await world.line.keyring.get(TENANT)
    return [
        msgspec.json.decode(
            inbox_place(partition_key=one.partition_key, row_key=one.row_key).open(keys, one.content or b""),
            type=InboxContent,
        )
        for one in await world.harness.rows(TENANT, UserMessage)
    ]

"""A job whose inbox lines take longer to merge than one step may: what was merged is kept, and the rest follows."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec
import pytest

from clarion.adapters.renderers import open_renderer
from clarion.adapters.renderers.renderer import LiquidRenderer
from clarion.catalog.people import ContactEntry, GroupEntry, People, PersonEntry
from clarion.client.wire import Recipient
from clarion.domain.definition import Definition
from clarion.domain.identity import Channel, Identity
from clarion.domain.inbox import UserMessage
from clarion.domain.notification import NotificationScheduler, NotificationStatus
from clarion.domain.outgoing import OutgoingMessage
from clarion.pipeline.generate import pages, whom
from clarion.pipeline.generate.plan import NOT_MERGED_FOR
from clarion.pipeline.schedule import Schedule
from clarion.ports.catalog import NewTemplate
from clarion.ports.renderer import LATE, Bundle, Merge, Merged, NotMerged
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from tests.unit.pipeline_line import TENANT, TRACE, Line, Scripted

READERS = 10


class Few(LiquidRenderer):
    """A renderer that merges so many inbox lines in the time that it has, and notes for how many it was asked."""

    most = 3

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []

    async def render(self, bundle: Bundle, channel: Channel, merges: Sequence[Merge], **options: Any) -> list[Merged]:
        if channel is not Channel.INBOX:
            return await super().render(bundle, channel, merges, **options)
        self.asked.append(len(merges))
        made = await super().render(bundle, channel, merges[: self.most], **options)
        return [*made, *[NotMerged(LATE)] * (len(merges) - len(made))]


@pytest.fixture
async def line() -> Line:
    """A school whose readers each have a mail and a line of their own; one profile has no name."""
    clock = ManualClock()
    line = Line(SqliteInMemory(clock), clock, Scripted(), renderer=Few(), slots=40)
    await line.seed()
    definition = Definition(key="note", title="Note", channels=(Channel.INBOX, Channel.SMS))
    files = {"inbox.liquid": "For {{ recipient.name }}\n{{ x }}", "sms.liquid": "{{ x }}"}
    bundle = open_renderer().compile(definition, files)
    row = NewTemplate(
        template_key="note", content_hash=bundle.content_hash, bundle=msgspec.json.encode(bundle).decode()
    )
    await line.store.publish_templates(TENANT, [row], actor="test")
    people = People(catalog=line.store, dispatcher=line.dispatcher, keyring=line.keyring)
    readers = [
        PersonEntry(
            identity=Identity.user(f"reader {n}"),
            name=f"Reader {n}" if n else None,
            contacts=(ContactEntry(channel=Channel.SMS, destination=f"+4477009001{n:02}"),),
        )
        for n in range(READERS)
    ]
    await people.put(TENANT, readers, trace=TRACE)
    group = GroupEntry(guid=UUID(int=1), name="All", members=tuple(one.identity for one in readers))
    await people.put_group(TENANT, group)
    return line


async def status(line: Line) -> tuple[NotificationStatus, str | None]:
    (row,) = await line.store.rows(TENANT, NotificationScheduler)
    return row.status, row.reason


def asked(line: Line) -> list[int]:
    assert isinstance(line.renderer, Few)
    return line.renderer.asked


@pytest.mark.parametrize("is_large", [False, True])
async def test_the_rows_of_the_first_recipients_are_kept_and_the_rest_is_made_in_later_steps(
    line: Line, monkeypatch: pytest.MonkeyPatch, *, is_large: bool
) -> None:
    """Every reader gets one line and one mail, whether the set lies in the job or in pages."""
    if is_large:
        monkeypatch.setattr(whom, "INLINE_MAX", READERS - 1)
        monkeypatch.setattr(pages, "PAGE_SIZE", 4)
        monkeypatch.setattr(pages, "STEP_SIZE", 5)
    await line.send("note", Recipient(group=UUID(int=1)), data={"x": 1})
    while not asked(line):
        await Schedule(queue=line.store, facts=line.store).step()
        await line.generate().step()
    assert len(await line.store.rows(TENANT, OutgoingMessage)) == Few.most, "those whose lines are made, and no others"
    await line.queue()
    assert await status(line) == (NotificationStatus.DONE, "10 recipients, 20 messages, 1 inbox line not made: " + WHY)
    lines = await line.store.rows(TENANT, UserMessage)
    assert len({one.key for one in lines}) == len(lines) == READERS - 1
    mails = await line.store.rows(TENANT, OutgoingMessage)
    assert len({one.key for one in mails}) == len(mails) == READERS
    assert asked(line) == ([5, 5, 4, 1] if is_large else [10, 7, 4, 1])


WHY = "inbox title: there is no recipient.name: add it to the person's profile, or give it a default in the template"


async def test_a_job_of_which_nothing_was_merged_waits_and_is_made_when_there_is_time(line: Line) -> None:
    assert isinstance(line.renderer, Few)
    line.renderer.most = 0
    await line.send("note", Recipient(group=UUID(int=1)), data={"x": 1})
    await line.queue()
    assert await status(line) == (NotificationStatus.READY, LATE)
    assert not await line.store.rows(TENANT, OutgoingMessage)
    line.renderer.most = READERS
    line.clock.advance(NOT_MERGED_FOR)
    await line.queue()
    assert (await status(line))[0] is NotificationStatus.DONE
    assert len(await line.store.rows(TENANT, UserMessage)) == READERS - 1

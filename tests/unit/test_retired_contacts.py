"""A push token that its provider does not know any more: the next notification skips it until it is given again."""

from pathlib import Path

import pytest

from clarion.catalog.people import ContactEntry, People, PersonEdit
from clarion.catalog.publish import Publisher
from clarion.client.wire import Recipient
from clarion.domain import recipient
from clarion.domain.call import Accepted, Refused
from clarion.domain.identity import Channel, Identity
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.skip import SkipRule
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from tests.unit.pipeline_line import TENANT, TRACE, Line, Scripted

SAM = Identity.user("1")
GONE = Refused(reason="unregistered", recipient_not_found=True)
DEFINITION = 'key = "alert"\ntitle = "Alert"\ncategory = "alarms"\nchannels = ["push"]\n\n[sample]\nname = "Sam"\n'


@pytest.fixture
async def line(tmp_path: Path) -> Line:
    """A line with a notification that goes to the devices of a person who has two."""
    line = Line(SqliteInMemory(clock := ManualClock()), clock, Scripted())
    line.pumps = [line._pump(Channel.PUSH)]
    await line.seed()
    folder = tmp_path / "alert"
    folder.mkdir()
    (folder / "definition.toml").write_text(DEFINITION)
    (folder / "push.liquid").write_text("Alert\nfor {{ name }}")
    await Publisher(catalog=line.store, renderer=line.renderer).publish(TENANT, folder=tmp_path, actor="test")
    await give(line, "old", "new")
    return line


async def give(line: Line, *tokens: str) -> None:
    """Register devices of the person."""
    people = People(catalog=line.store, dispatcher=line.dispatcher, keyring=line.keyring)
    contacts = tuple(ContactEntry(channel=Channel.PUSH, destination=one) for one in tokens)
    await people.edit(TENANT, [PersonEdit(identity=SAM, add_contacts=contacts)], trace=TRACE)


async def sent(line: Line, key: str) -> tuple[list[tuple[str, OutgoingStatus]], list[SkipRule | None]]:
    """Send a notification; give which device was called and what came of it, and why others were not."""
    line.provider.calls.clear()
    answer = await line.send("alert", Recipient(user="1"), key=key)
    await line.drain()
    timeline = await line.timeline(answer)
    (frozen,) = recipient.decode(timeline.job.recipients or "")
    called = zip(line.provider.calls, sorted(timeline.outgoing, key=lambda row: row.id), strict=True)
    return [(call.destination, row.status) for call, row in called], [
        one.rule for one in frozen.decisions if one.skipped
    ]


async def test_a_token_that_is_gone_is_skipped_by_the_next_job_until_it_is_given_again(line: Line) -> None:
    line.provider.answers = [GONE, Accepted()]
    gone, taken = OutgoingStatus.FAILED_FINAL, OutgoingStatus.SENT_TO_PROVIDER
    assert await sent(line, "first") == ([("old", gone), ("new", taken)], [])
    assert await sent(line, "second") == ([("new", taken)], [SkipRule.RETIRED])
    await give(line, "old")
    assert await sent(line, "third") == ([("old", taken), ("new", taken)], [])

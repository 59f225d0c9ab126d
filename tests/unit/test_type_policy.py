"""What a type decides for all of its sends, along the whole line: on which channels, and how often it is tried."""

from datetime import timedelta
from pathlib import Path

import pytest

from clarion.catalog.publish import Publisher
from clarion.client.wire import Recipient
from clarion.domain.call import Accepted, CallOutcome, Deferred, Misconfigured, Replay, Unknown
from clarion.domain.identity import Channel
from clarion.domain.outgoing import OutgoingStatus
from clarion.testing.clock import ManualClock
from clarion.testing.row import QueueEntry
from clarion.testing.store import SqliteInMemory
from tests.unit.pipeline_line import TENANT, Line, Scripted

BUSY, LOST = Deferred(reason="busy"), Unknown(reason="lost")
SAM = Recipient(user="1")  # has a mail address and a phone number


@pytest.fixture
async def line() -> Line:
    clock = ManualClock()
    line = Line(SqliteInMemory(clock), clock, Scripted())
    await line.seed()
    return line


async def publish(line: Line, folder: Path, more: str) -> None:
    """Publish the type `ping`, whose definition says this besides."""
    place = folder / "ping"
    place.mkdir()
    channels = '"sms", "email", "inbox"'
    (place / "definition.toml").write_text(f'key = "ping"\ntitle = "Ping"\nchannels = [{channels}]\n{more}\n')
    (place / "sms.liquid").write_text("Ping")
    (place / "inbox.liquid").write_text("Ping\nPing")
    (place / "email.subject.liquid").write_text("Ping")
    (place / "email.text.liquid").write_text("Ping")
    (place / "email.mjml.liquid").write_text(
        "<mjml><mj-body><mj-section><mj-column><mj-text>Ping</mj-text></mj-column></mj-section></mj-body></mjml>"
    )
    await Publisher(catalog=line.store, renderer=line.renderer).publish(TENANT, folder=folder, actor="test")


@pytest.mark.parametrize(
    "more, asked, sent",
    [
        ("", (), ([Channel.SMS, Channel.EMAIL], 1)),
        ('channel_policy = "first"', (), ([Channel.SMS], 0)),
        ('channel_policy = "first"', (Channel.EMAIL, Channel.SMS), ([Channel.EMAIL], 0)),
        ('channel_policy = "first"', (Channel.INBOX, Channel.SMS), ([], 1)),
        ('channel_policy = "cascade"\nfallback_after_seconds = { sms = 60, email = 60 }', (), ([Channel.SMS], 0)),
    ],
)
async def test_a_person_gets_it_on_the_channels_that_the_policy_takes(
    line: Line, tmp_path: Path, more: str, asked: tuple[Channel, ...], sent: tuple[list[Channel], int]
) -> None:
    channels, inbox = sent
    await publish(line, tmp_path, more)
    job = await line.send("ping", SAM, data={}, channels=asked)
    await line.drain()
    timeline = await line.timeline(job)
    assert ([row.channel for row in timeline.outgoing], len(timeline.inbox)) == (channels, inbox)
    assert sorted(call.channel for call in line.provider.calls) == sorted(channels)


async def test_who_lacks_the_first_channel_gets_the_next(line: Line, tmp_path: Path) -> None:
    await publish(line, tmp_path, 'channel_policy = "first"')
    job = await line.send("ping", Recipient(user="2"), data={})  # has no address at all
    await line.drain()
    timeline = await line.timeline(job)
    assert ([row.channel for row in timeline.outgoing], len(timeline.inbox)) == ([], 1)
    assert timeline.scheduler is not None
    assert timeline.scheduler.reason == "1 recipient, 1 message, 2 skipped"


@pytest.mark.parametrize(
    "more, kept",
    [
        ('category = "News: all"\nmay_unsubscribe = true', "News%3A%20all"),
        ('category = "News: all"', None),
        ("may_unsubscribe = true", "general"),
    ],
)
async def test_a_message_keeps_the_category_that_its_recipient_may_refuse(
    line: Line, tmp_path: Path, more: str, kept: str | None
) -> None:
    """Written as in a scope; of a required one it keeps none."""
    await publish(line, tmp_path, more)
    await line.send("ping", SAM, data={})
    await line.drain()
    assert {entry.category for entry in await line.store.rows(TENANT, QueueEntry)} == {kept}


@pytest.mark.parametrize("allowed", [1, 2, 3])
async def test_a_message_that_is_put_off_is_tried_as_often_as_its_type_allows(
    line: Line, tmp_path: Path, allowed: int
) -> None:
    await publish(line, tmp_path, f"attempts_max = {allowed}")
    line.provider.answers = [BUSY] * 10
    job = await line.send("ping", "sam@example.com", data={})
    await line.drain()
    for _ in range(6):
        await line.wait(3600)
    (row,) = (await line.timeline(job)).outgoing
    assert (row.status, len(line.provider.calls)) == (OutgoingStatus.FAILED_FINAL, allowed)


@pytest.mark.parametrize(
    "allowed, answers, status",
    [
        (1, [LOST], OutgoingStatus.UNCERTAIN),
        (2, [LOST, Accepted()], OutgoingStatus.SENT_TO_PROVIDER),
        (2, [LOST, LOST], OutgoingStatus.UNCERTAIN),
        (2, [LOST, BUSY], OutgoingStatus.UNCERTAIN),
        (2, [BUSY, LOST], OutgoingStatus.UNCERTAIN),
        # An account at fault says nothing about the message, which waits until somebody mends it.
        (1, [Misconfigured(reason="bad password"), Accepted()], OutgoingStatus.SENT_TO_PROVIDER),
    ],
)
async def test_no_replay_goes_beyond_what_its_type_allows(
    line: Line, tmp_path: Path, allowed: int, answers: list[CallOutcome], status: OutgoingStatus
) -> None:
    """Though the provider would make a second one harmless."""
    await publish(line, tmp_path, f"attempts_max = {allowed}")
    line.provider.replay = Replay(dedupe_window=timedelta(days=3))
    line.provider.answers = [*answers, *[Accepted()] * 5]
    job = await line.send("ping", "sam@example.com", data={})
    await line.drain()
    for _ in range(4):
        await line.wait(600)
    (row,) = (await line.timeline(job)).outgoing
    assert (row.status, len(line.provider.calls)) == (status, len(answers))

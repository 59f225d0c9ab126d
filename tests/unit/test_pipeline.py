"""One notification from the door to the provider, stage by stage, and what becomes of it when things go wrong."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from clarion.catalog.publish import Publisher
from clarion.client.wire import Recipient, SendAnswer
from clarion.domain.backoff import NOT_CALLED_FOR, NOT_CALLED_MAX
from clarion.domain.call import Accepted, CallOutcome, Deferred, Misconfigured, Refused, Replay, Unknown
from clarion.domain.call_times import CALL_TIMEOUT
from clarion.domain.claim import CallResult
from clarion.domain.content import Content, EmailContent
from clarion.domain.identity import Channel
from clarion.domain.notification import NotificationJob, NotificationStatus
from clarion.domain.outgoing import OutgoingStatus
from clarion.errors import BrokenInvariant, Conflict, InvalidAddress, InvalidInput
from clarion.ports.facts import TemplateRow
from clarion.ports.renderer import Bundle, Merge
from clarion.ports.templates import TemplateName
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from tests.unit.pipeline_line import STAFF, TENANT, Line, Newer, Scripted


@pytest.fixture
async def line() -> Line:
    clock = ManualClock()
    line = Line(SqliteInMemory(clock), clock, Scripted())
    await line.seed()
    return line


async def test_a_mail_goes_out_once_and_its_whole_timeline_can_be_read(line: Line) -> None:
    sent = await line.send()
    await line.drain()
    (call,) = line.provider.calls
    assert (call.channel, call.destination) == (Channel.EMAIL, "sam@example.com")
    assert isinstance(call.content, EmailContent)
    assert "Sam" in call.content.html
    (row,) = (await line.timeline(sent)).outgoing
    assert (row.status, row.message_id) == (OutgoingStatus.SENT_TO_PROVIDER, sent.message_id)
    words = [entry.what for entry in await line.told(sent)]
    assert words == ["accepted", "stored", "scheduled", "generated", "queued", "claimed", "called", "sent"]


async def test_the_same_key_is_one_notification_and_another_payload_a_conflict(line: Line) -> None:
    first, again = await line.send(key="k"), await line.send(key="k")
    assert again.job_id == first.job_id
    assert (first.repeated, again.repeated) == (False, True)
    with pytest.raises(Conflict, match="used before for something else"):
        await line.send(key="k", data={"name": "Kim"})
    await line.drain()
    assert len(line.provider.calls) == 1


async def test_a_person_hears_on_every_channel_that_reaches_them_and_the_rest_says_why_not(line: Line) -> None:
    sent = await line.send("welcome", Recipient(group=STAFF))
    await line.drain()
    timeline = await line.timeline(sent)
    assert [row.channel for row in timeline.outgoing] == [Channel.EMAIL]
    assert len(timeline.inbox) == 2
    assert timeline.scheduler is not None
    assert timeline.scheduler.reason == "2 recipients, 3 messages, 1 skipped"
    assert "no email address is known" in (timeline.job.recipients or "")


@pytest.mark.parametrize("first", [Channel.SMS, Channel.CHAT])
async def test_one_address_on_two_channels_is_one_recipient_and_two_messages(
    line: Line, tmp_path: Path, first: Channel
) -> None:
    await _publish(line, tmp_path, channels=("sms", "chat"))
    number = "+447700900001"
    second = Channel.CHAT if first is Channel.SMS else Channel.SMS
    sms, chat = Recipient(address=number, channel=first), Recipient(address=number, channel=second)
    sent = await line.send("ping", sms, also=(chat, sms))
    await line.drain()
    timeline = await line.timeline(sent)
    assert {row.channel for row in timeline.outgoing} == {Channel.SMS, Channel.CHAT}
    assert len({row.message_id for row in timeline.outgoing}) == 1
    assert timeline.scheduler is not None
    assert timeline.scheduler.reason == "1 recipient, 2 messages"


async def test_an_address_on_a_channel_that_the_type_lacks_is_refused_at_the_door(line: Line, tmp_path: Path) -> None:
    await _publish(line, tmp_path, channels=("sms",))
    also = (Recipient(address="+447700900001", channel=Channel.CHAT),)
    with pytest.raises(InvalidInput, match=r"to\[1\].*is not sent by chat.*it is sent by sms"):
        await line.send("ping", "+447700900001", also=also)


async def test_a_group_that_nobody_is_in_ends_with_a_reason(line: Line) -> None:
    sent = await line.send(to=Recipient(group=UUID(int=9)))
    await line.drain()
    timeline = await line.timeline(sent)
    assert timeline.scheduler is not None
    assert timeline.scheduler.reason == "nobody to send it to: no group that it names has members"


async def test_a_job_whose_payload_is_gone_fails_and_says_so(line: Line) -> None:
    sent = await line.send()
    (job,) = await line.store.rows(TENANT, NotificationJob)
    await line.store.overwrite(TENANT, msgspec.structs.replace(job, payload=None))
    await line.drain()
    timeline = await line.timeline(sent)
    assert timeline.scheduler is not None
    assert timeline.scheduler.status is NotificationStatus.FAILED
    assert timeline.scheduler.reason == "its recipients and data are not stored any more"


async def _publish(line: Line, folder: Path, *, channels: tuple[str, ...]) -> None:
    """Publish a type `ping` with these channels, one line of text in each."""
    (folder / "ping").mkdir()
    (folder / "ping" / "definition.toml").write_text(
        f'key = "ping"\ntitle = "Ping"\ncategory = "security"\nchannels = {list(channels)}\nlane = "high"\n'
    )
    for channel in channels:
        (folder / "ping" / f"{channel}.liquid").write_text("ping")
    await Publisher(catalog=line.store, renderer=line.renderer).publish(TENANT, folder=folder, actor="test")


async def test_a_type_that_is_switched_off_is_skipped_and_the_setting_named(line: Line) -> None:
    await line.store.set_type_enabled(TENANT, "welcome", enabled=False, actor="test")
    sent = await line.send()
    await line.drain()
    timeline = await line.timeline(sent)
    assert timeline.scheduler is not None
    assert timeline.scheduler.status is NotificationStatus.SKIPPED
    assert "switched off" in (timeline.scheduler.reason or "")
    assert not line.provider.calls


async def test_a_deferred_message_waits_and_is_sent_with_the_same_key_and_bytes(line: Line) -> None:
    line.provider.answers = [Deferred(reason="busy", retry_after=timedelta(seconds=30))]
    sent = await line.send()
    await line.drain()
    await line.wait(29)
    assert len(line.provider.calls) == 1
    await line.wait(2)
    first, second = line.provider.calls
    assert (first.idempotency_key, first.content) == (second.idempotency_key, second.content)
    assert (first.attempt, second.attempt) == (1, 2)
    (row,) = (await line.timeline(sent)).outgoing
    assert row.status is OutgoingStatus.SENT_TO_PROVIDER


@pytest.mark.parametrize(
    "outcome, status",
    [
        (Refused(reason="no such mailbox", recipient_not_found=True), OutgoingStatus.FAILED_FINAL),
        (Unknown(reason="no reply"), OutgoingStatus.UNCERTAIN),
        (Misconfigured(reason="wrong password"), OutgoingStatus.RETRY_READY),
        (Accepted(), OutgoingStatus.SENT_TO_PROVIDER),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_what_a_call_came_to_decides_where_its_row_stands(
    line: Line, outcome: CallOutcome, status: OutgoingStatus
) -> None:
    line.provider.answers = [outcome]
    sent = await line.send()
    await line.drain()
    await line.wait(2)
    (row,) = (await line.timeline(sent)).outgoing
    assert row.status is status
    assert len(line.provider.calls) == 1


async def test_an_uncertain_send_is_replayed_where_the_provider_de_duplicates(line: Line) -> None:
    line.provider.replay = Replay(dedupe_window=timedelta(hours=24))
    line.provider.answers = [Unknown(reason="no reply")]
    sent = await line.send()
    await line.drain()
    await line.wait(5)
    (row,) = (await line.timeline(sent)).outgoing
    assert row.status is OutgoingStatus.SENT_TO_PROVIDER
    assert len({call.idempotency_key for call in line.provider.calls}) == 1


async def test_an_uncertain_row_waits_for_a_worker_that_serves_its_account(line: Line) -> None:
    line.provider.answers = [Unknown(reason="no reply")]
    sent = await line.send()
    await line.drain()
    (row,) = (await line.timeline(sent)).outgoing
    assert await line.store.retry_outgoing(TENANT, row.id, version=row.version, actor="test", reason="asked to")
    other = Line(line.store, line.clock, Scripted(), account="other")
    for _ in range(12):
        await other.wait(5)
    (row,) = (await line.timeline(sent)).outgoing
    assert (row.status, row.attempts, other.provider.calls) == (OutgoingStatus.RETRY_READY, 1, [])
    await line.drain()
    (row,) = (await line.timeline(sent)).outgoing
    assert row.status is OutgoingStatus.SENT_TO_PROVIDER


class Losing(SqliteInMemory):
    """A store that can lose its templates."""

    is_lost = False

    async def find_templates(self, wanted: Sequence[TemplateName]) -> dict[TemplateName, TemplateRow]:
        return {} if self.is_lost else await super().find_templates(wanted)


async def without_template(*, times: int) -> tuple[Line, SendAnswer, list[float]]:
    """Let a worker miss a template so often; return a worker that holds it, the message, and how long it waited."""
    clock = ManualClock()
    store = Losing(clock)
    line = Line(store, clock, Scripted())
    await line.seed()
    sent = await line.send()
    await line.queue()
    store.is_lost = True
    other = Line(store, clock, line.provider)
    waits = []
    await other.drain()
    for _ in range(times - 1):
        (row,) = (await line.timeline(sent)).outgoing
        assert row.due_at is not None
        waits.append((row.due_at - clock.now()).total_seconds())
        await other.wait(waits[-1])
    return line, sent, waits


async def test_a_row_that_cannot_be_called_comes_back_after_twice_as_long_each_time() -> None:
    line, _, waits = await without_template(times=5)
    assert waits == [0.2, 0.2, 0.4, 0.8], "the first time the template was not asked for yet, which counts for nothing"
    assert not line.provider.calls
    await line.wait(1.6)
    assert len(line.provider.calls) == 1


async def test_no_number_of_young_workers_ends_a_row(line: Line) -> None:
    """F-55: each finds the template not in memory, and is gone before it comes back."""
    sent = await line.send()
    await line.queue()
    for _ in range(NOT_CALLED_MAX + 1):
        pump = Line(line.store, line.clock, line.provider).pumps[0]
        await pump.step()
        await pump.step()
        (row,) = (await line.timeline(sent)).outgoing
        assert (row.status, row.reason) == (OutgoingStatus.RETRY_READY, "the template was not in memory yet")
        line.clock.advance(NOT_CALLED_FOR)
    await line.drain()
    assert len(line.provider.calls) == 1


async def test_a_row_whose_template_is_not_there_ends_and_says_so() -> None:
    line, sent, _ = await without_template(times=NOT_CALLED_MAX)
    (row,) = (await line.timeline(sent)).outgoing
    assert row.status is OutgoingStatus.RETRY_READY, "the first time does not count"
    line, sent, _ = await without_template(times=NOT_CALLED_MAX + 1)
    (row,) = (await line.timeline(sent)).outgoing
    assert (row.status, row.reason) == (OutgoingStatus.FAILED_FINAL, "there is no template 'welcome' in its version")
    assert not line.provider.calls


async def test_what_breaks_before_the_call_leaves_nothing_uncertain_and_costs_no_other(line: Line) -> None:
    class Defective(Newer):
        def merge(self, bundle: Bundle, channel: Channel, merge: Merge) -> Content:
            if merge.data["name"] == "Sam":
                raise RuntimeError("a defect")
            return super().merge(bundle, channel, merge)

    sent = await line.send()
    await line.send(to="kim@example.com", data={"name": "Kim"})
    await Line(line.store, line.clock, line.provider, renderer=Defective()).drain()
    (row,) = (await line.timeline(sent)).outgoing
    assert (row.status, row.reason) == (OutgoingStatus.RETRY_READY, "it could not be merged")
    await line.wait(1)
    assert [call.destination for call in line.provider.calls] == ["kim@example.com", "sam@example.com"]


async def test_an_outcome_that_cannot_be_stored_costs_no_other() -> None:
    class Picky(SqliteInMemory):
        async def record_outgoing(self, results: Sequence[CallResult], *, actor: str) -> None:
            if any(isinstance(one.outcome, Refused) for one in results):
                raise BrokenInvariant("a row does not take it")
            await super().record_outgoing(results, actor=actor)

    clock = ManualClock()
    line = Line(Picky(clock), clock, Scripted())
    await line.seed()
    line.provider.answers = [Refused(reason="unspeakable"), Accepted(provider_message_id="p-2")]
    all_sent = [await line.send(to=f"{name}@example.com") for name in ("sam", "kim")]
    await line.drain()
    timelines = [await line.timeline(sent) for sent in all_sent]
    assert {row.status for timeline in timelines for row in timeline.outgoing} == {
        OutgoingStatus.SENDING,
        OutgoingStatus.SENT_TO_PROVIDER,
    }


async def test_a_call_without_a_reply_is_given_up_and_uncertain(line: Line) -> None:
    async def hang() -> CallOutcome:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    line.provider.answers = [hang]
    sent = await line.send()
    await line.queue()
    pump = line.pumps[0]
    while not line.provider.calls:
        await pump.step()
        await asyncio.sleep(0)
    line.clock.advance(CALL_TIMEOUT)
    await pump.step()
    await asyncio.wait(line.tasks, timeout=10)
    await pump.step()
    (row,) = (await line.timeline(sent)).outgoing
    assert (row.status, row.reason) == (OutgoingStatus.UNCERTAIN, "no reply within 20 s")
    assert pump.idle


async def test_an_uncertain_one_time_code_is_replayed_once_and_no_more(line: Line) -> None:
    line.provider.answers = [Unknown(reason="no reply"), Unknown(reason="no reply")]
    sent = await line.send("one-time-code", "+447700900001", data={"name": "Sam", "code": "123456"})
    await line.drain()
    for _ in range(3):
        await line.wait(10)
    assert len(line.provider.calls) == 2
    (row,) = (await line.timeline(sent)).outgoing
    assert row.status is OutgoingStatus.UNCERTAIN


async def test_a_late_message_expires_instead_of_being_sent(line: Line) -> None:
    line.provider.answers = [Deferred(reason="busy", retry_after=timedelta(minutes=10))]
    sent = await line.send("one-time-code", "+447700900001", data={"name": "Sam", "code": "123456"})
    await line.drain()
    await line.wait(601)
    (row,) = (await line.timeline(sent)).outgoing
    assert row.status is OutgoingStatus.EXPIRED
    assert len(line.provider.calls) == 1


@pytest.mark.parametrize("when", ["pending", "waiting"])
async def test_a_canceled_notification_is_not_sent(line: Line, when: str) -> None:
    line.provider.answers = [Deferred(reason="busy")]
    sent = await line.send()
    if when == "waiting":
        await line.drain()
    assert await line.store.cancel_job(TENANT, sent.job_id, actor="test")
    await line.wait(3600)
    assert len(line.provider.calls) == (1 if when == "waiting" else 0)
    timeline = await line.timeline(sent)
    assert all(row.status is OutgoingStatus.CANCELED for row in timeline.outgoing)


async def test_nothing_leaves_before_its_time(line: Line) -> None:
    await line.send(not_before_at=line.clock.now() + timedelta(hours=1))
    await line.wait(3599)
    assert not line.provider.calls
    await line.wait(2)
    assert len(line.provider.calls) == 1


@pytest.mark.parametrize(
    "given, error, says",
    [
        ({"type_": "nothing"}, InvalidInput, "no notification type 'nothing'"),
        ({"data": {}}, InvalidInput, "needs name"),
        ({"to": "sam at example.com"}, InvalidAddress, "to\\[0\\]"),
        ({"to": Recipient()}, InvalidInput, "exactly one of"),
        ({"to": Recipient(user="1", group=UUID(int=1))}, InvalidInput, "exactly one of"),
    ],
)
async def test_what_cannot_be_sent_is_refused_at_the_door(
    line: Line, given: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        await line.send(**given)


async def test_a_worker_that_dies_between_claim_and_record_leaves_the_row_uncertain_and_never_a_second_send(
    line: Line,
) -> None:
    sent = await line.send()

    async def vanish() -> CallOutcome:
        raise RuntimeError("the process is gone")

    line.provider.answers = [vanish]
    other = Line(line.store, line.clock, line.provider)
    await other.drain()
    await line.wait(120)
    (row,) = (await line.timeline(sent)).outgoing
    assert row.status is OutgoingStatus.UNCERTAIN
    assert len(line.provider.calls) == 1

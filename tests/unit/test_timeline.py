"""The timeline as a person reads it: what happened, when and why, by the job's id or the message's, from the start."""

import re
from datetime import timedelta

import msgspec
import pytest

from clarion.client.wire import Recipient, SendAnswer
from clarion.domain.attempt import AttemptStatus
from clarion.domain.call import Accepted, Deferred, Unknown
from clarion.domain.identity import Lane
from clarion.domain.notification import Stage
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.timeline import EventLine, TimelineLine, TransitionLine, timeline_lines
from clarion.pipeline.schedule import Schedule
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from tests.unit.pipeline_line import STAFF, TENANT, Line, Scripted

SECOND = timedelta(seconds=1)


@pytest.fixture
async def line() -> Line:
    clock = ManualClock()
    line = Line(SqliteInMemory(clock), clock, Scripted())
    await line.seed()
    return line


async def explained(line: Line, sent: SendAnswer) -> list[TimelineLine]:
    """Tell the timeline by the message's id alone, which every send to one recipient is answered with."""
    assert sent.message_id is not None
    job_id = await line.store.find_job_of_message(TENANT, sent.message_id)
    assert job_id == sent.job_id
    return list(timeline_lines(await line.timeline(sent), message_id=sent.message_id))


async def ending(line: Line, sent: SendAnswer, lines: int = 1) -> list[tuple[str, str | None, timedelta]]:
    """Give the last lines by word, detail and how long after the acceptance."""
    told = await explained(line, sent)
    return [(one.what, one.detail, one.at - sent.accepted_at) for one in told[-lines:]]


async def test_what_has_just_been_accepted_waits_to_be_scheduled(line: Line) -> None:
    sent = await line.send()
    assert [one.what for one in await explained(line, sent)] == ["accepted", "stored", "waiting to be scheduled"]


async def test_a_message_of_a_group_has_no_id_before_it_has_a_row(line: Line) -> None:
    assert (await line.send(to=Recipient(group=STAFF))).message_id is None


async def test_a_second_caller_with_a_key_has_the_first_ones_message(line: Line) -> None:
    sent = await line.send(key="k")
    line.clock.advance(SECOND)
    again = await line.send(key="k")
    assert again.message_id == sent.message_id
    assert await explained(line, again) == await explained(line, sent)


async def test_what_is_put_off_says_until_when(line: Line) -> None:
    sent = await line.send(not_before_at=line.clock.now() + timedelta(hours=1))
    due = f"{line.clock.now() + timedelta(hours=1):%Y-%m-%d %H:%M:%SZ}"
    await line.wait(60)
    assert await ending(line, sent) == [("waiting to be scheduled", f"due {due}", timedelta())]


async def test_every_step_has_its_own_time(line: Line) -> None:
    sent = await line.send()
    line.clock.advance(SECOND)
    await Schedule(queue=line.store, facts=line.store).step()
    line.clock.advance(SECOND)
    assert await ending(line, sent, 2) == [
        ("scheduled", "normal lane", SECOND),
        ("waiting to be generated", None, SECOND),
    ]
    line.provider.answers = [Deferred(reason="busy", retry_after=30 * SECOND)]
    await line.drain()
    waiting = (await ending(line, sent))[0]
    due = f"{sent.accepted_at + 32 * SECOND:%Y-%m-%d %H:%M:%SZ}"
    assert waiting == ("waiting for a retry", f"busy, due {due}", 2 * SECOND)
    await line.wait(60)
    told = [(one.what, (one.at - sent.accepted_at) // SECOND) for one in await explained(line, sent)]
    assert told == [
        ("accepted", 0),
        ("stored", 0),
        ("scheduled", 1),
        ("generated", 2),
        ("queued", 2),
        ("claimed", 2),
        ("called", 2),
        ("waiting for a retry", 2),
        ("claimed", 62),
        ("called", 62),
        ("sent", 62),
    ]


async def test_what_a_setting_decided_against_names_it(line: Line) -> None:
    await line.store.set_type_enabled(TENANT, "welcome", enabled=False, actor="test")
    sent = await line.send()
    await line.wait(7)
    reason = "the notification type 'welcome' is switched off for this tenant"
    assert await ending(line, sent, 2) == [
        ("stored", f"job {sent.job_id}", timedelta()),
        ("skipped", reason, 7 * SECOND),
    ]


async def test_what_was_canceled_before_it_had_a_row_says_by_whom_and_when(line: Line) -> None:
    sent = await line.send(not_before_at=line.clock.now() + timedelta(hours=1))
    line.clock.advance(5 * SECOND)
    assert await line.store.cancel_job(TENANT, sent.job_id, actor="sam")
    await line.wait(7)
    assert await ending(line, sent) == [("canceled", "canceled by sam", 5 * SECOND)]


async def test_what_no_worker_survives_says_how_often_it_was_tried(line: Line) -> None:
    async def lose_a_worker() -> None:
        await line.store.claim_stage(Stage.SCHEDULE, lanes=tuple(Lane), limit=1, lease=SECOND)
        assert (await ending(line, sent))[0][0] == "being scheduled"
        line.clock.advance(SECOND)
        await line.store.rescue_stages(limit=1, rescues_max=1)

    sent = await line.send()
    await lose_a_worker()
    assert await ending(line, sent) == [("waiting to be scheduled", "workers lost over it: 1", SECOND)]
    await lose_a_worker()
    reason = "rescued 2 times: every worker that took it was lost"
    assert await ending(line, sent) == [("schedule failed", reason, 2 * SECOND)]


async def test_an_uncertain_send_that_is_left_alone_says_who_decided_it_and_why(line: Line) -> None:
    line.provider.answers = [Unknown(reason="no reply")]
    sent = await line.send()
    await line.drain()
    assert await ending(line, sent, 3) == [
        ("called", "attempt 1 through scripted: nobody knows the outcome, 0 ms, no reply", timedelta()),
        ("uncertain", "no reply", timedelta()),
        (
            "left uncertain",
            "left as it is: it may have arrived, and a duplicate would be worse",
            timedelta(),
        ),
    ]


async def test_a_timeline_names_people_and_no_worker_of_ours(line: Line) -> None:
    """Through a refusal, a retry, an uncertain send and a person's decision about it."""
    line.provider.answers = [Deferred(reason="busy"), Unknown(reason="no reply"), Accepted()]
    sent = await line.send()
    await line.wait(60)
    await line.wait(60)
    (uncertain,) = await line.store.list_uncertain(TENANT)
    assert await line.store.retry_outgoing(
        TENANT, uncertain.id, version=uncertain.version, actor="sam", reason="nothing came"
    )
    await line.drain()
    told = " ".join(f"{one.what} {one.detail}" for one in await explained(line, sent))
    assert "waiting for a retry by sam, nothing came" in told
    assert not re.search(r"ensure|distribute|\btrack|settle|rescue|sweep|→|RetryReady|SentToProvider|I-\d", told)


async def test_a_worker_that_said_nothing_may_not_have_called(line: Line) -> None:
    sent = await line.send()
    await Schedule(queue=line.store, facts=line.store).step()
    await line.drain()
    timeline = await line.timeline(sent)
    (row,) = timeline.outgoing
    silent = msgspec.structs.replace(row.tries[0], status=AttemptStatus.UNKNOWN, reason=None, latency_ms=None)
    row = msgspec.structs.replace(row, tries=(silent,))
    told = timeline_lines(msgspec.structs.replace(timeline, outgoing=(row,)))
    assert "perhaps called" in [one.what for one in told]


async def test_nothing_comes_before_the_acceptance_though_the_doors_clock_is_ahead(line: Line) -> None:
    sent = await line.send()
    timeline = await line.timeline(sent)
    ahead = msgspec.structs.replace(timeline.job, source_at=timeline.job.source_at + SECOND)
    assert timeline_lines(msgspec.structs.replace(timeline, job=ahead))[0].what == "accepted"


async def test_a_receipt_comes_before_what_it_led_to_though_it_was_stamped_a_moment_later(line: Line) -> None:
    """The receipts of one request are stamped one after the other, and applied at the time of the first."""
    sent = await line.send()
    await line.drain()
    timeline = await line.timeline(sent)
    (row,) = timeline.outgoing
    at = line.clock.now() + SECOND
    delivered = TransitionLine(
        version=row.version + 1,
        from_status=OutgoingStatus.SENT_TO_PROVIDER,
        to_status=OutgoingStatus.DELIVERED,
        at=at,
        actor="track",
        reason=None,
    )
    receipt = EventLine(
        account="scripted",
        event_id="1",
        status=OutgoingStatus.DELIVERED,
        happened_at=at,
        received_at=at + timedelta(microseconds=9),
        applied_at=at,
    )
    changed = msgspec.structs.replace(row, transitions=(*row.transitions, delivered), events=(receipt,))
    lines = timeline_lines(msgspec.structs.replace(timeline, outgoing=(changed,)))
    assert [one.what for one in lines[-2:]] == ["receipt", "delivered"]


@pytest.mark.parametrize("status", OutgoingStatus)
async def test_a_timeline_tells_every_state_in_plain_words(line: Line, status: OutgoingStatus) -> None:
    """Whatever a message became, a provider answered or a receipt says; states are names for programs."""
    sent = await line.send()
    await line.drain()
    timeline = await line.timeline(sent)
    (row,) = timeline.outgoing
    at = line.clock.now()
    move = TransitionLine(
        version=9, from_status=OutgoingStatus.CREATED, to_status=status, at=at, actor="track", reason=None
    )
    receipt = EventLine(
        account="scripted", event_id="1", status=status, happened_at=at, received_at=at, applied_at=None
    )
    tries = tuple(msgspec.structs.replace(row.tries[0], status=one, reason="busy") for one in AttemptStatus)
    moves = (move,) if status is not OutgoingStatus.CREATED else ()
    changed = msgspec.structs.replace(row, transitions=moves, tries=tries, events=(receipt,))
    told = " ".join(
        f"{one.what} {one.detail}" for one in timeline_lines(msgspec.structs.replace(timeline, outgoing=(changed,)))
    )
    assert not [name for name in (*OutgoingStatus, *AttemptStatus) if name in told], told

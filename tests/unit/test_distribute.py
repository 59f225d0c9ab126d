"""The pump: how many calls it makes at once, and which it must not make."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import pytest
import structlog

from clarion.client.wire import Recipient
from clarion.domain.backoff import ATTEMPTS_MAX, DEFECT_FOR, MISCONFIGURED_FOR, NOT_CALLED_MAX
from clarion.domain.call import MARGIN, Accepted, CallOutcome, Deferred, Misconfigured, Replay, Unknown
from clarion.domain.call_times import CallTimes
from clarion.domain.claim import ClaimedMessage, FlowQuota
from clarion.domain.content import Content
from clarion.domain.hint import Hints
from clarion.domain.identity import Channel, Identity
from clarion.domain.outgoing import DUE, OutgoingMessage, OutgoingStatus
from clarion.domain.support import SupportKind
from clarion.domain.unsubscribe import read_token
from clarion.errors import RenderFailed
from clarion.ports.renderer import Bundle, Merge
from clarion.testing.clock import ManualClock
from clarion.testing.contracts.harness import MOVED_AT
from clarion.testing.store import SqliteInMemory
from tests.unit.pipeline_line import TENANT, Line, Newer, Scripted

WINDOW = timedelta(hours=1)
INVOICE = {
    "name": "Sam",
    "invoice": {
        "number": "1",
        "total": "9.00",
        "currency": "EUR",
        "due": "2026-03-05",
        "items": [{"name": "Lunch", "amount": "9.00"}],
    },
}


@pytest.fixture
async def line() -> Line:
    clock = ManualClock()
    return await seeded(SqliteInMemory(clock), clock)


async def seeded(store: SqliteInMemory, clock: ManualClock) -> Line:
    line = Line(store, clock, Scripted())
    await line.seed()
    return line


async def test_a_slot_is_taken_until_its_outcome_is_recorded(line: Line) -> None:
    """I-14: a kill leaves no more uncertain rows than there are slots, counting those answered and not recorded."""
    end = asyncio.Event()

    async def wait() -> CallOutcome:
        await end.wait()
        return Accepted()

    line.provider.answers = [Accepted(), *[wait] * 20]
    for number in range(15):
        await line.send(to=f"user-{number}@example.com")
    await line.queue()
    pump = line.pumps[0]
    while not line.provider.calls:
        await pump.step()
        await asyncio.sleep(0)
    claimed = (await line.store.measure()).sending
    await asyncio.wait(line.tasks, return_when=asyncio.FIRST_COMPLETED)
    await pump.step()  # one outcome alone waits for others, so nothing is recorded and nothing is free
    assert len(line.provider.calls) == claimed == (await line.store.measure()).sending
    end.set()
    await line.drain()
    assert len(line.provider.calls) == 15


async def test_hints_reach_every_call_of_a_send_and_no_other(line: Line) -> None:
    """Also those whose content was merged for another recipient."""
    hints = Hints(region="eu", tags=("term-2",), from_="office")
    await line.send(hints=hints, also=(Recipient(address="kim@example.com"),))
    await line.send(to="pat@example.com")
    await line.drain()
    told = {call.destination: call.hints for call in line.provider.calls}
    assert told == {"sam@example.com": hints, "kim@example.com": hints, "pat@example.com": None}


NEWS = {"name": "Sam", "edition": "May", "intro": "Hello", "stories": []}


async def test_a_mail_of_a_type_that_people_may_leave_offers_it_in_its_head() -> None:
    """Each recipient by a link of their own, which a retry repeats."""
    clock = ManualClock()
    line = Line(SqliteInMemory(clock), clock, Scripted(), public_url="https://clarion.example.com")
    await line.seed()
    line.provider.answers = [Deferred(reason="busy")]
    await line.send("newsletter", data=NEWS, also=(Recipient(address="kim@example.com"),))
    await line.send("welcome", to="pat@example.com")
    await line.drain()
    await line.wait(10)
    keys = await line.keyring.get(TENANT)
    links: dict[str, set[str]] = {}
    for call in line.provider.calls:
        links.setdefault(call.destination, set()).add(call.headers.get("List-Unsubscribe", ""))
    assert len(line.provider.calls) == 4
    assert links.pop("pat@example.com") == {""}
    for address, mine in links.items():
        (link,) = mine
        told = read_token(keys, link.removeprefix("<https://clarion.example.com/u/").removesuffix(">"))
        assert told.recipient_id_hash == keys.hash_of(Identity.address(address))
        assert (told.category, told.channel) == ("news", Channel.EMAIL)


async def test_nothing_is_offered_where_nobody_said_where_this_installation_is_reached(line: Line) -> None:
    await line.send("newsletter", data=NEWS)
    await line.drain()
    assert [call.headers for call in line.provider.calls] == [{}]


async def test_a_call_is_given_up_in_time_though_the_pump_waits_for_the_store() -> None:
    """I-20: also one that began after the pump had no call open for a while, and so had no timer."""
    clock, timeout = ManualClock(), timedelta(milliseconds=50)
    line = Line(SqliteInMemory(clock), clock, Scripted(), times=CallTimes(timeout=timeout))
    await line.seed()
    await line.send()
    await line.drain()
    await asyncio.sleep(2 * timeout.total_seconds())

    async def hang() -> CallOutcome:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    line.provider.answers = [hang]
    await line.send()
    await line.queue()
    pump = line.pumps[0]
    pump.hint()
    while len(line.provider.calls) < 2:
        await pump.step()
        await asyncio.sleep(0)
    line.clock.advance(timeout)
    _, open_ = await asyncio.wait(line.tasks, timeout=10)  # and the pump takes no step meanwhile
    assert not open_


async def test_an_account_that_is_at_fault_is_left_alone_for_a_while(line: Line) -> None:
    line.provider.answers = [Misconfigured(reason="no such account")]
    await line.send()
    await line.drain()
    await line.send(to="kim@example.com")
    await line.send("invoice-due", "+447700900001", data=INVOICE)
    await line.wait(MISCONFIGURED_FOR.total_seconds() - 1)
    assert len(line.provider.calls) == 1
    await line.wait(2)
    assert sorted(call.channel for call in line.provider.calls) == [Channel.EMAIL] * 3 + [Channel.SMS]


async def test_an_account_that_is_not_served_is_said_once(line: Line) -> None:
    """Its rows wait for a worker that serves the account; there may be none."""
    line.provider.answers = [Unknown(reason="no reply")]
    sent = await line.send()
    await line.drain()
    (row,) = (await line.timeline(sent)).outgoing
    assert await line.store.retry_outgoing(TENANT, row.id, version=row.version, actor="test", reason="asked to")
    other = Line(line.store, line.clock, Scripted(), account="other")
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            await other.wait(5)
    assert [(entry["log_level"], entry["account"]) for entry in logs if "account" in entry] == [("warning", "scripted")]


async def test_a_replay_is_judged_by_the_time_of_its_call_and_not_of_its_claim() -> None:
    """I-10: the provider de-duplicated when it was claimed, and no longer ten seconds later."""
    clock = ManualClock()

    class Sleepy(SqliteInMemory):
        async def claim_outgoing(
            self, quotas: Sequence[FlowQuota], *, token: UUID, lease: timedelta, actor: str
        ) -> list[ClaimedMessage]:
            claimed = await super().claim_outgoing(quotas, token=token, lease=lease, actor=actor)
            if any(message.unknown_for is not None for message in claimed):
                clock.advance(timedelta(seconds=10))
            return claimed

    line = await seeded(Sleepy(clock), clock)
    line.provider.replay = Replay(dedupe_window=WINDOW)
    line.provider.answers = [Unknown(reason="no reply")]
    sent = await line.send()
    await line.drain()
    await line.wait((WINDOW - MARGIN).total_seconds() - 5)
    (row,) = (await line.timeline(sent)).outgoing
    assert (row.status, len(line.provider.calls)) == (OutgoingStatus.UNCERTAIN, 1)
    assert any("not repeated" in (line.reason or "") for line in row.transitions)


async def test_a_retry_whose_bytes_would_differ_waits_until_that_is_mended(line: Line) -> None:
    """I-15: a program was updated between two attempts, and its renderer writes something else.

    All that is merged is frozen, so this is a defect of ours: a person is told, and the message does not end by it.
    """
    line.provider.answers = [Deferred(reason="busy")]
    sent = await line.send()
    await line.drain()
    updated = Line(line.store, line.clock, Scripted(), renderer=Newer())
    with structlog.testing.capture_logs() as logs:
        for _ in range(2 * NOT_CALLED_MAX):  # the first time the template is not in memory yet
            await updated.wait(DEFECT_FOR.total_seconds())
    (row,) = (await line.timeline(sent)).outgoing
    assert (row.status, updated.provider.calls) == (OutgoingStatus.RETRY_READY, [])
    assert "same bytes" in (row.reason or "")
    assert [one["log_level"] for one in logs if "something else" in one["event"]][:1] == ["critical"]
    (case,) = await line.store.list_support_cases(TENANT)
    assert (case.kind, case.record, "same bytes" in case.details) == (SupportKind.HOLD, "OutgoingMessage", True)
    await line.wait(DEFECT_FOR.total_seconds())
    (row,) = (await line.timeline(sent)).outgoing
    assert row.status is OutgoingStatus.SENT_TO_PROVIDER
    assert line.provider.calls[0].content == line.provider.calls[1].content


async def test_replays_wait_longer_each_time_and_end(line: Line) -> None:
    """A provider that de-duplicates and never answers is not called for ever."""
    line.provider.replay = Replay(dedupe_window=timedelta(days=7))
    line.provider.answers = [Unknown(reason="no reply")] * 100
    sent = await line.send()
    await line.drain()
    for _ in range(60):
        await line.wait(1)
    assert len(line.provider.calls) == 4, "after about 2, 8 and 30 seconds"
    for _ in range(8):
        await line.wait(3600)
    (row,) = (await line.timeline(sent)).outgoing
    assert (row.status, row.attempts, len(line.provider.calls)) == (
        OutgoingStatus.UNCERTAIN,
        ATTEMPTS_MAX,
        ATTEMPTS_MAX,
    )
    (case,) = await line.store.list_support_cases(TENANT)
    assert case.kind is SupportKind.UNCERTAIN


async def test_a_worker_leaves_the_uncertain_sends_of_other_accounts_alone(line: Line) -> None:
    line.provider.replay = Replay(dedupe_window=timedelta(hours=24))
    line.provider.answers = [Unknown(reason="no reply")]
    sent = await line.send()
    other = Line(line.store, line.clock, Scripted(), account="other")
    await line.queue()
    while not line.provider.calls:
        await line.pumps[0].step()
        await asyncio.sleep(0)
    await asyncio.wait(line.tasks)
    line.clock.advance(timedelta(seconds=1))
    await line.pumps[0].step()
    await other.wait(5)
    (row,) = (await line.timeline(sent)).outgoing
    assert (row.status, row.reason) == (OutgoingStatus.UNCERTAIN, "no reply")
    for _ in range(2):
        await line.wait(5)
    (row,) = (await line.timeline(sent)).outgoing
    assert row.status is OutgoingStatus.SENT_TO_PROVIDER


async def test_a_message_that_cannot_be_merged_has_no_attempt(line: Line) -> None:
    """A DeliveryAttempt is a provider call, and none was made."""

    class Broken(Newer):
        def merge(self, bundle: Bundle, channel: Channel, merge: Merge) -> Content:
            raise RenderFailed("the data cannot be merged", hint="correct the data")

    sent = await line.send()
    broken = Line(line.store, line.clock, Scripted(), renderer=Broken())
    for _ in range(3):  # the first time the template is not in memory yet
        await broken.wait(5)
    (row,) = (await line.timeline(sent)).outgoing
    assert (row.status, row.tries, row.attempts) == (OutgoingStatus.FAILED_FINAL, (), 0)
    assert broken.provider.calls == []


async def test_a_row_that_is_committed_a_moment_late_is_found_at_the_next_look() -> None:
    """Its transaction began before that of a row which another worker was quicker to commit, and which was claimed."""
    line = await _line_with_a_late_row(late_by=timedelta(milliseconds=500))
    await line.wait(1)
    assert len(line.provider.calls) == 3


async def test_a_row_that_appears_behind_a_low_mark_waits_ten_seconds_at_most() -> None:
    """Its transaction took an hour: by the time that it is seen, later rows have been claimed."""
    line = await _line_with_a_late_row(late_by=timedelta(hours=1))
    await line.wait(9)
    assert len(line.provider.calls) == 2, "the worker trusts its mark, or this test shows nothing"
    await line.wait(2)
    assert len(line.provider.calls) == 3


async def _line_with_a_late_row(*, late_by: timedelta) -> Line:
    """Make two calls, and after them a row appear that was due before both."""
    clock = ManualClock(MOVED_AT + late_by)
    line = await seeded(SqliteInMemory(clock), clock)
    line.provider.answers = [Deferred(reason="busy", retry_after=timedelta(days=1))]
    await line.send()
    await line.send(to="kim@example.com")
    await line.drain()
    (late,) = [row for row in await line.store.rows(TENANT, OutgoingMessage) if row.status in DUE]
    await line.store.overwrite(TENANT, late)  # it is due at MOVED_AT from now on
    return line

"""Call slots: more of them while rows wait and the provider keeps up, never more than it takes."""

import asyncio
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clarion.domain.call import Accepted, Call, CallOutcome, Deferred, Refused, Unknown
from clarion.pipeline.distribute import Slots
from clarion.pipeline.distribute.slots import SLOTS_AT_FIRST, SLOTS_MAX
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from tests.unit.pipeline_line import Line, Scripted

THROTTLED = Deferred(reason="429", throttled=True)
ANSWERS: tuple[CallOutcome, ...] = (
    Accepted(),
    Refused(reason="no"),
    Deferred(reason="busy"),
    THROTTLED,
    Unknown(reason="lost"),
)


def a_round(slots: Slots, *special: CallOutcome, seconds: float = 0.1, waiting: bool = True) -> int:
    """Answer as many calls as there are slots, and return how many slots there are then."""
    slots.claimed(10 if waiting else 9, asked=10)
    ordinary = slots.count - len(special)
    for outcome in [*special, *[Accepted()] * ordinary]:
        slots.answered(outcome, seconds=seconds)
    return slots.count


def test_slots_double_while_rows_wait_and_answers_are_prompt() -> None:
    slots = Slots()
    assert [slots.count, *(a_round(slots) for _ in range(7))] == [32, 64, 128, 256, 512, 1000, 1000, 1000]


def test_slots_stay_where_few_rows_wait() -> None:
    """I-14: a kill would leave more uncertain, and nothing would be faster."""
    slots = Slots()
    assert [a_round(slots, waiting=False) for _ in range(3)] == [32, 32, 32]


@pytest.mark.parametrize("outcome", [Deferred(reason="greylisted"), Refused(reason="no")])
def test_a_reply_about_one_message_is_an_answer_like_any_other(outcome: CallOutcome) -> None:
    assert a_round(Slots(), *[outcome] * 20) == 64


def test_slots_stay_where_a_call_was_not_answered() -> None:
    assert a_round(Slots(), Unknown(reason="lost")) == 32


def test_slots_are_halved_when_the_provider_is_asked_too_much_and_come_back() -> None:
    slots = Slots()
    assert [a_round(slots, THROTTLED) for _ in range(7)] == [16, 8, 4, 2, 1, 1, 1]
    assert [a_round(slots) for _ in range(6)] == [2, 4, 8, 16, 32, 64]


def test_no_more_calls_are_open_than_a_provider_answers_in_a_second() -> None:
    """It answers a hundred calls a second, however many are open."""
    slots = Slots()
    for _ in range(20):
        a_round(slots, seconds=slots.count / 100)
    assert slots.count == 64


def test_a_provider_that_became_slow_has_as_many_calls_as_in_the_beginning() -> None:
    slots = Slots()
    for _ in range(4):
        a_round(slots)
    assert [a_round(slots, seconds=5) for _ in range(6)] == [256, 128, 64, 32, 32, 32]


def test_slots_begin_anew_after_a_rest() -> None:
    slots = Slots()
    a_round(slots)
    slots.rest()
    assert slots.count == 32


def test_a_rest_does_not_forget_that_the_provider_was_asked_too_much() -> None:
    slots = Slots()
    a_round(slots, THROTTLED)
    slots.rest()
    assert slots.count == 16


def test_slots_that_were_given_are_the_most_and_are_there_from_the_beginning() -> None:
    slots = Slots(200)
    assert [slots.count, a_round(slots), a_round(slots, seconds=5), a_round(slots, THROTTLED)] == [200, 200, 200, 100]
    assert a_round(slots) == 200


def test_an_account_has_no_more_calls_than_it_takes() -> None:
    assert [Slots(calls_max=3).count, Slots(200, calls_max=3).count, Slots(2, calls_max=3).count] == [3, 3, 2]
    slots = Slots(calls_max=40)
    assert [a_round(slots) for _ in range(3)] == [40, 40, 40]


@given(
    given_=st.none() | st.integers(1, 50),
    calls_max=st.none() | st.integers(1, 50),
    rounds=st.lists(st.tuples(st.sampled_from(ANSWERS), st.floats(0, 20), st.booleans()), max_size=200),
)
def test_there_is_always_a_slot_and_never_one_too_many(
    given_: int | None, calls_max: int | None, rounds: list[tuple[CallOutcome, float, bool]]
) -> None:
    slots = Slots(given_, calls_max=calls_max)
    for outcome, seconds, waiting in rounds:
        slots.claimed(1 if waiting else 0, asked=1)
        slots.answered(outcome, seconds=seconds)
        assert 1 <= slots.count <= min(given_ or SLOTS_MAX, calls_max or SLOTS_MAX)


class Counting(Scripted):
    """A provider that counts the calls that are open, and answers when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.open = self.most = 0
        self.go = asyncio.Event()

    async def send(self, call: Call) -> CallOutcome:
        self.open += 1
        self.most = max(self.most, self.open)
        await self.go.wait()
        await asyncio.sleep(0)  # others begin meanwhile
        self.open -= 1
        return await super().send(call)


async def waiting(messages: int, *, slots: int | None) -> tuple[Line, Counting]:
    clock, provider = ManualClock(), Counting()
    line = Line(SqliteInMemory(clock), clock, provider, slots=slots)
    await line.seed()
    for number in range(messages):
        await line.send(to=f"user-{number}@example.com")
    await line.queue()
    return line, provider


@pytest.mark.parametrize("slots", [1, 3, 7])
async def test_never_more_calls_are_open_than_slots(slots: int) -> None:
    line, provider = await waiting(25, slots=slots)
    for _ in range(10):
        line.pumps[0].hint()
        await line.pumps[0].step()
        await asyncio.sleep(0)
        assert (await line.store.measure()).sending <= slots
    assert 1 <= provider.open <= slots
    provider.go.set()
    await line.drain()
    assert (len(provider.calls), provider.most <= slots) == (25, True)


async def test_a_backlog_has_more_calls_open_after_a_while_and_a_few_messages_never_have() -> None:
    line, provider = await waiting(200, slots=None)
    provider.go.set()
    await line.drain()
    assert (len(provider.calls), provider.most > SLOTS_AT_FIRST) == (200, True)
    provider.most = 0
    for number in range(20):
        await line.send(to=f"other-{number}@example.com")
    await line.drain()
    assert provider.most <= 20


async def test_an_account_that_is_asked_too_much_is_left_alone_for_as_long_as_it_says() -> None:
    line, provider = await waiting(40, slots=4)
    provider.go.set()
    provider.answers = [Deferred(reason="429", throttled=True, retry_after=timedelta(seconds=7))]
    line.pumps[0].hint()
    await line.drain()
    begun = len(provider.calls)
    assert begun <= 4
    await line.wait(6.5)
    assert len(provider.calls) == begun
    await line.wait(1)
    assert len(provider.calls) == 41

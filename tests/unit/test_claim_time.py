"""What a claim may take of its lease before its calls begin (I-12, I-14, I-20)."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import pytest

from clarion.domain.backoff import NOT_CALLED_MAX
from clarion.domain.call import Accepted, Call, CallOutcome
from clarion.domain.call_times import CALL_TIMES, CallTimes
from clarion.domain.claim import ClaimedMessage, FlowQuota
from clarion.domain.identity import Channel
from clarion.domain.outgoing import OutgoingMessage, OutgoingStatus
from clarion.errors import InvalidInput
from clarion.ports.renderer import LATE, Bundle, Merge, Merged, NotMerged
from clarion.testing.clock import ManualClock
from clarion.testing.row import QueueEntry
from clarion.testing.store import SqliteInMemory
from tests.unit.pipeline_line import TENANT, Line, Newer, Scripted

SECOND = timedelta(seconds=1)
TIMES = CallTimes(timeout=2 * SECOND, record_max=SECOND, lease=4 * SECOND)
TICK = timedelta(milliseconds=1)
HEAVY = timedelta(milliseconds=68)
"""What one merge of a heavy template takes: eighty of them take 5.4 s."""


class Slow(Newer):
    """A renderer whose merges take their time."""

    def __init__(self, clock: ManualClock, takes: timedelta) -> None:
        super().__init__(clock.monotonic)
        self.clock, self.takes, self.slow_times = clock, takes, 1000

    def merged(self, bundle: Bundle, channel: Channel, merge: Merge) -> Merged:
        if self.slow_times:
            self.slow_times -= 1
            self.clock.advance(self.takes)
        return super().merged(bundle, channel, merge)


class Apart(Slow):
    """A renderer that merges elsewhere: of more than one merge it answers when the time is over, with what it has."""

    is_apart = True

    async def render(
        self, bundle: Bundle, channel: Channel, merges: Sequence[Merge], *, seconds_max: float, **_: object
    ) -> list[Merged]:
        if len(merges) == 1:
            return [self.merged(bundle, channel, merges[0])]
        self.clock.advance(timedelta(seconds=seconds_max) + TICK)
        return [self.merged(bundle, channel, merges[0]), *[NotMerged(LATE)] * (len(merges) - 1)]


class Timed(SqliteInMemory):
    """Notes when each claim was asked for and what it took; a claim may take long."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.clock, self.takes = clock, timedelta()
        self.sizes: list[int] = []
        self.asked_at: dict[UUID, float] = {}  # by message

    async def claim_outgoing(
        self, quotas: Sequence[FlowQuota], *, token: UUID, lease: timedelta, actor: str
    ) -> list[ClaimedMessage]:
        asked_at = self.clock.monotonic()
        claimed = await super().claim_outgoing(quotas, token=token, lease=lease, actor=actor)
        self.clock.advance(self.takes)
        self.sizes.append(len(claimed))
        self.asked_at |= {message.message_id: asked_at for message in claimed}
        return claimed


class Watched(Scripted):
    """Notes how long after the claim each call began, and may stand still in the first of a claim."""

    def __init__(self, store: Timed) -> None:
        super().__init__()
        self.store, self.begun, self.stands_still = store, [0.0][:0], timedelta()

    async def send(self, call: Call) -> CallOutcome:
        self.calls.append(call)
        self.begun.append(self.store.clock.monotonic() - self.store.asked_at[call.message_id])
        self.store.clock.advance(self.stands_still)
        self.stands_still = timedelta()
        return Accepted()


class Setting:
    """Messages that wait, each with a merge of its own, and a worker that has their template in memory."""

    def __init__(self, takes: timedelta, *, renderer: type[Slow] = Slow, times: CallTimes = TIMES) -> None:
        self.clock = ManualClock()
        self.store = Timed(self.clock)
        self.provider = Watched(self.store)
        self.renderer = renderer(self.clock, takes)
        self.line = Line(self.store, self.clock, self.provider, renderer=self.renderer, slots=100, times=times)

    async def open(self, messages: int) -> None:
        await self.line.seed()
        await self.send(messages)

    async def send(self, messages: int) -> None:
        for number in range(messages):
            await self.line.send(to=f"user-{number}@example.com")
        await self.line.queue()

    async def states(self) -> list[OutgoingStatus]:
        return [row.status for row in await self.store.rows(TENANT, OutgoingMessage)]

    async def not_called(self) -> list[int]:
        return sorted(row.not_called for row in await self.store.rows(TENANT, QueueEntry))


async def test_a_heavy_template_makes_no_call_later_than_a_quarter_of_its_lease() -> None:
    """Eighty merges of 68 ms under a lease of 4 s: with all of them first, the first call left after 5.4 s."""
    setting = Setting(HEAVY)
    await setting.open(80)
    for _ in range(40):
        await setting.line.wait(0.2)
    assert max(setting.provider.begun) <= 1.0
    assert await setting.states() == [OutgoingStatus.SENT_TO_PROVIDER] * 80
    assert len({call.message_id for call in setting.provider.calls}) == len(setting.provider.calls) == 80


async def test_only_the_row_whose_own_merge_took_the_time_is_blamed() -> None:
    """It is merged before the others, takes longer than a quarter of the lease, and is ready the next time."""
    setting = Setting(1.5 * SECOND)
    await setting.open(20)
    setting.renderer.slow_times = 1
    pump = setting.line.pumps[0]
    while not setting.store.sizes:
        await pump.step()
    await pump.step()
    assert await setting.states() == [OutgoingStatus.RETRY_READY] * 20
    assert await setting.not_called() == [0] * 19 + [1]
    for _ in range(4):
        await setting.line.wait(0.2)
    assert await setting.states() == [OutgoingStatus.SENT_TO_PROVIDER] * 20


@pytest.mark.parametrize("times, called", [(CALL_TIMES, 1), (TIMES, 0)])
async def test_what_was_merged_in_time_beside_something_late_is_called_as_far_as_its_lease_allows(
    times: CallTimes, called: int
) -> None:
    """A call begins within a third of the usual lease, and within a quarter of the shortest; nobody is blamed."""
    setting = Setting(timedelta(), renderer=Apart, times=times)
    await setting.open(2)
    while not setting.store.sizes:
        await setting.line.pumps[0].step()
    await asyncio.gather(*setting.line.tasks)
    await asyncio.gather(*setting.line.tasks)  # merging begins the calls
    assert len(setting.provider.calls) == called
    await setting.line.pumps[0].step()
    assert sorted(await setting.states()) == sorted(
        [OutgoingStatus.SENT_TO_PROVIDER] * called + [OutgoingStatus.RETRY_READY] * (2 - called)
    )
    assert await setting.not_called() == [0, 0]
    await setting.line.wait(1)
    assert await setting.states() == [OutgoingStatus.SENT_TO_PROVIDER] * 2
    assert max(setting.provider.begun) <= times.begins_within.total_seconds()


async def test_a_row_that_is_never_merged_in_time_does_not_end() -> None:
    """The store takes half a lease for each claim; when it is quick again, the row is sent."""
    setting = Setting(timedelta())
    await setting.open(1)
    setting.store.takes = 2 * SECOND
    for _ in range(2 * NOT_CALLED_MAX):
        await setting.line.wait(1)
    assert len(setting.store.sizes) > NOT_CALLED_MAX
    assert (await setting.states(), await setting.not_called()) == ([OutgoingStatus.RETRY_READY], [0])
    setting.store.takes = timedelta()
    await setting.line.wait(1)
    assert await setting.states() == [OutgoingStatus.SENT_TO_PROVIDER]


async def test_a_claim_that_was_too_heavy_is_halved_until_it_is_not_and_grows_back() -> None:
    """A second is enough for fourteen merges; after three claims they take no time."""
    setting = Setting(HEAVY)
    await setting.open(80)
    setting.renderer.slow_times = 42
    for _ in range(10):
        await setting.line.wait(0.2)
    assert setting.store.sizes[:5] == [80, 40, 20, 10, 20]


async def test_a_claim_that_keeps_the_process_from_other_work_is_followed_by_smaller_ones() -> None:
    """Nothing else runs while a claim is merged; a quarter second is enough for 25 merges of 10 ms."""
    setting = Setting(timedelta(milliseconds=10))
    await setting.open(90)
    await setting.line.drain()
    await setting.send(90)
    await setting.line.drain()
    assert setting.store.sizes == [90, 45, 22, 22, 1]
    assert await setting.not_called() == [0] * 180
    assert await setting.states() == [OutgoingStatus.SENT_TO_PROVIDER] * 180


async def test_a_call_that_stands_still_lets_no_other_of_its_claim_leave_too_late() -> None:
    """The last moment is a lease less the call's time-out and the record's time: one second."""
    setting = Setting(timedelta())
    await setting.open(5)
    setting.provider.stands_still = 2 * SECOND
    await setting.line.drain()
    assert len(setting.provider.begun) == 1
    assert await setting.not_called() == [0] * 5
    await setting.line.wait(1)
    assert len(setting.provider.begun) == 5
    assert max(setting.provider.begun) <= 1.0
    assert OutgoingStatus.UNCERTAIN not in await setting.states()


def test_a_lease_has_a_quarter_left_for_merging() -> None:
    """I-20, checked when the program starts."""
    assert (TIMES.merge_max, TIMES.begins_within) == (SECOND, SECOND)
    with pytest.raises(InvalidInput, match=r"the lease of a call is 3\.9 s"):
        CallTimes(timeout=2 * SECOND, record_max=SECOND, lease=3.9 * SECOND)


async def test_others_have_a_turn_between_two_heavy_merges() -> None:
    """A process that serves too answers requests meanwhile."""
    setting = Setting(HEAVY)
    await setting.open(10)
    turns: list[int] = []  # how many merges had been made at each turn of somebody else

    async def somebody_else() -> None:
        while True:
            turns.append(1000 - setting.renderer.slow_times)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        other = tasks.create_task(somebody_else())
        await setting.line.wait(0.2)
        other.cancel()
    assert {*range(1, 10)} <= {*turns}

"""Fairness through the real pump and the real store, in virtual time: how long one tenant waits for another (I-39)."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import TypeVar

import pytest

from clarion.catalog.publish import Publisher
from clarion.client.wire import Recipient, SendRequest
from clarion.domain.call import Accepted, Call, CallOutcome
from clarion.domain.identity import Channel, Lane
from clarion.pipeline.distribute import Distribute
from clarion.pipeline.schedule import Schedule
from clarion.testing.clock import LoopClock
from clarion.testing.simulation.loop import SimulationLoop
from clarion.testing.store import SqliteInMemory
from clarion.workers.loop import run
from tests.unit.pipeline_line import DEFINITIONS, TENANT, Line, Scripted

OTHER = "college"
STEPS_MAX = 10_000_000
LATE_TO = "+447700999999"

T = TypeVar("T")


class Slow(Scripted):
    """A provider that takes its time, and notes for whom it was called."""

    def __init__(self, latency: float) -> None:
        super().__init__()
        self.latency = latency
        self.called: list[str] = []
        self.late_called = asyncio.Event()

    async def send(self, call: Call) -> CallOutcome:
        self.called.append(call.destination)
        if call.destination == LATE_TO:
            self.late_called.set()
        await asyncio.sleep(self.latency)
        return Accepted()


class Town:
    """Two tenants, one pump for text messages, and one provider for all."""

    def __init__(self, loop: SimulationLoop, *, slots: int, latency: float) -> None:
        self.provider = Slow(latency)
        clock = LoopClock(loop)
        self.line = Line(SqliteInMemory(clock), clock, self.provider, slots=slots)
        self.stop = asyncio.Event()

    @property
    def pump(self) -> Distribute:
        return self.line.pumps[1]

    async def seed(self) -> None:
        publisher = Publisher(catalog=self.line.store, renderer=self.line.renderer)
        for tenant_id in (TENANT, OTHER):
            await self.line.dispatcher.ensure_tenant(tenant_id)
            await publisher.publish(tenant_id, folder=DEFINITIONS / "one-time-code", actor="test")

    async def send(self, tenant_id: str, numbers: list[str], *, lane: Lane) -> None:
        """Accept text messages and make their rows, twenty to a job."""
        for first in range(0, len(numbers), 20):
            to = tuple(Recipient(address=number, channel=Channel.SMS) for number in numbers[first : first + 20])
            await self.line.accept(
                SendRequest(type="one-time-code", to=to, data={"code": "407 112"}, lane=lane), tenant_id=tenant_id
            )
        schedule, generate = Schedule(queue=self.line.store, facts=self.line.store), self.line.generate()
        while await schedule.step() + await generate.step():
            pass

    async def spread(self, tenant_id: str) -> None:
        """Put each row of a tenant into a flow of its own, as if each were of another campaign."""
        database = self.line.store._database
        await database.fetch(
            "INSERT INTO flow (tenant_id, lane, route, broadcast) "
            "SELECT o.tenant_id, f.lane, f.route, 'campaign ' || o.id FROM outgoing_message AS o "
            "JOIN flow AS f ON f.id = o.flow_id WHERE o.tenant_id = $1 RETURNING id",
            [tenant_id],
        )
        await database.fetch(
            "UPDATE outgoing_message SET flow_id = (SELECT f.id FROM flow AS f "
            "WHERE f.tenant_id = $1 AND f.broadcast = 'campaign ' || outgoing_message.id) "
            "WHERE tenant_id = $1 RETURNING id",
            [tenant_id],
        )

    async def work(self) -> None:
        """Run the pump as the supervisor does, until it is stopped."""
        wake = self.pump._calls.wake
        await run("distribute sms", self.pump.step, wake=wake, stop=self.stop, rest=lambda: self.pump.rest)


def numbers_of(place: int, count: int) -> list[str]:
    return [f"+4477{place}{number:07}" for number in range(count)]


def in_town(visit: Callable[[Town], Coroutine[None, None, T]], *, slots: int, latency: float) -> T:
    """Run something in virtual time."""
    loop = SimulationLoop("a town", steps_max=STEPS_MAX)
    try:
        return loop.run_until_complete(visit(Town(loop, slots=slots, latency=latency)))
    finally:
        loop.bury()


@pytest.mark.parametrize("backlog, slots, latency", [(5000, 32, 0.1), (1000, 32, 10.0), (1000, 4, 0.1), (500, 1, 0.1)])
def test_a_normal_message_leaves_within_two_seconds_whatever_waits_of_another_in_the_critical_lane(
    backlog: int, slots: int, latency: float
) -> None:
    """I-39: before lanes shared by weight, it waited until the last of the others had left."""

    async def wait(town: Town) -> float:
        await town.seed()
        await town.send(TENANT, numbers_of(0, backlog), lane=Lane.CRITICAL)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(town.work())
            await asyncio.sleep(1.5)  # the backlog has every slot that it can get
            asked_at = asyncio.get_running_loop().time()
            await town.send(OTHER, [LATE_TO], lane=Lane.NORMAL)
            town.pump.hint()
            await town.provider.late_called.wait()
            town.stop.set()
        return asyncio.get_running_loop().time() - asked_at

    assert in_town(wait, slots=slots, latency=latency) < 2.0


@pytest.mark.parametrize("slots", [4, 32])
def test_a_tenant_with_a_thousand_campaigns_is_served_no_more_than_one_with_one(slots: int) -> None:
    async def compare(town: Town) -> Counter[str]:
        await town.seed()
        await town.send(TENANT, numbers_of(0, 1000), lane=Lane.BULK)
        await town.spread(TENANT)
        await town.send(OTHER, numbers_of(1, 400), lane=Lane.BULK)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(town.work())
            await asyncio.sleep(2)
            town.stop.set()
        return Counter(number[:6] for number in town.provider.called)

    many, one = in_town(compare, slots=slots, latency=0.1).values()
    assert many + one > slots * 10
    assert abs(many - one) <= slots

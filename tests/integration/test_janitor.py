"""What a dead worker left behind comes back, and what was called off is cleared away, by the workers as they run."""

import asyncio
from datetime import timedelta

from clarion.domain.call import CallOutcome
from clarion.domain.call_times import CallTimes
from clarion.domain.claim import Gate
from clarion.domain.identity import Channel, Lane
from clarion.domain.notification import STAGE_LEASE, Stage
from clarion.domain.outgoing import OutgoingStatus
from clarion.testing.clock import LoopClock
from clarion.testing.contracts.pump import LEASE, Pump
from clarion.testing.row import QueueEntry
from clarion.testing.simulation.loop import SimulationLoop
from clarion.testing.store import StandIn
from clarion.workers.supervisor import Supervisor
from clarion.workers.timings import Timings
from clarion.workers.wake_up import WakeUp
from tests.integration.api_harness import ApiHarness
from tests.unit.pipeline_line import TENANT


def test_the_workers_of_a_process_rescue_and_sweep_for_as_long_as_they_run() -> None:
    """In virtual time. The workers have been running for a while when things are left behind."""
    loop = SimulationLoop("janitor", steps_max=100_000)
    loop.run_until_complete(_leave_behind(LoopClock(loop)))
    loop.bury()


async def _leave_behind(clock: LoopClock) -> None:
    stored = StandIn(clock)
    api = ApiHarness(store=stored.store, clock=clock)
    await api.seed()
    pump = Pump(stored, tenant_id=TENANT)
    supervisor = Supervisor(api.platform, wake_up=WakeUp(), channels=())
    sent = await api.line.send()
    assert len(await stored.store.claim_stage(Stage.SCHEDULE, lanes=tuple(Lane), limit=9, lease=STAGE_LEASE)) == 1
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(supervisor.run())
        await asyncio.sleep(30)
        message = await pump.message()
        await pump.claim_one()
        campaign = await pump.campaign(3, n=2)
        await stored.store.set_gate(TENANT, campaign[0].pk, Gate.CANCELED, actor="test")
        await asyncio.sleep(LEASE.total_seconds() - 5)
        assert await pump.status(message) is OutgoingStatus.SENDING, "its lease has not ended"
        await asyncio.sleep(10)
        supervisor.stop()
    assert await pump.status(message) is OutgoingStatus.UNCERTAIN
    assert [await pump.status(one) for one in campaign] == [OutgoingStatus.CANCELED] * 3
    assert len((await api.line.timeline(sent)).outgoing) == 1, "its job was ready again, and its rows were made"


def test_the_workers_of_a_process_claim_for_as_long_as_their_timings_say() -> None:
    """I-20: lease, timeout and record fit together only if all of them are of the same timings."""
    loop = SimulationLoop("timings", steps_max=100_000)
    loop.run_until_complete(_claim_for_long(LoopClock(loop)))
    loop.bury()


async def _claim_for_long(clock: LoopClock) -> None:
    async def hang() -> CallOutcome:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    stored, lease = StandIn(clock), timedelta(minutes=10)
    api = ApiHarness(store=stored.store, clock=clock)
    await api.seed()
    api.provider.answers = [hang]
    await api.line.send()
    timings = Timings(calls=CallTimes(timeout=timedelta(minutes=5), lease=lease))
    supervisor = Supervisor(api.platform, wake_up=WakeUp(), channels=(Channel.EMAIL,), timings=timings)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(supervisor.run())
        await asyncio.sleep(30)
        (row,) = await stored.rows(TENANT, QueueEntry)
        assert row.lease_until is not None
        assert row.lease_until > clock.now() + lease / 2
        supervisor.stop()

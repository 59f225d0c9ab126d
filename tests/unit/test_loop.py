"""The loop: it works while there is work, wakes when told, outlives errors, and stops between steps."""

import asyncio

from clarion.errors import OperatorError, StoreUnreachable
from clarion.workers.loop import run
from clarion.workers.wake_up import Topic, WakeUp


async def test_it_works_until_nothing_is_left_and_wakes_when_it_is_woken() -> None:
    wake_up, stop, wake = WakeUp(), asyncio.Event(), asyncio.Event()
    wake_up.listen(Topic.STAGES, wake.set)
    waiting, rested = [3], asyncio.Event()

    async def step() -> int:
        done, waiting[0] = waiting[0], 0
        if not done:
            rested.set()
        return done

    worked: list[None] = []
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(run("test", step, wake=wake, stop=stop, worked=lambda: worked.append(None)))
        await rested.wait()
        rested.clear()
        waiting[0] = 1
        wake_up.wake(Topic.STAGES)
        await rested.wait()
        stop.set()
        wake_up.wake(Topic.STAGES)
    assert len(worked) == 2


async def test_a_step_that_fails_is_tried_again_whoever_is_at_fault() -> None:
    stop, wake = asyncio.Event(), asyncio.Event()
    down, heard = StoreUnreachable("down", hint="wait"), list[OperatorError]()
    failures: list[Exception] = [down, RuntimeError("a defect")]

    async def step() -> int:
        if failures:
            raise failures.pop()
        stop.set()
        return 0

    wake.set()
    await run("test", step, wake=wake, stop=stop, failed=heard.append, after_error=0.0)
    assert not failures
    assert heard == [down]  # and not the defect, which no operator can mend


def test_a_wake_up_is_forwarded_and_one_from_elsewhere_is_not() -> None:
    forwarded: list[Topic] = []
    heard: list[str] = []
    wake_up = WakeUp(forwarded.append)
    wake_up.listen(Topic.OUTGOING, lambda: heard.append("outgoing"))
    wake_up.wake(Topic.OUTGOING)
    wake_up.hear(Topic.OUTGOING)
    wake_up.wake(Topic.STAGES)
    assert heard == ["outgoing", "outgoing"]
    assert forwarded == [Topic.OUTGOING, Topic.STAGES]

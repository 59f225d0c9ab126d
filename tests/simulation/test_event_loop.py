"""The seeded loop: equal seeds give equal runs, time is virtual, and a crash runs nothing."""

import asyncio
from collections.abc import Callable
from itertools import count

import pytest

from clarion.testing.simulation.loop import PROCESS, BudgetSpent, Deadlock, Process, SimulationLoop


def new_loop(seed: int = 1, *, steps_max: int = 10_000) -> SimulationLoop:
    return SimulationLoop(str(seed), steps_max=steps_max, with_digest=True)


def racing(seed: int) -> tuple[list[int], str]:
    """Let ten tasks append their numbers as the seed has it."""
    loop, order = new_loop(seed), []

    async def append(number: int) -> None:
        await asyncio.sleep(0)
        order.append(number)

    async def main() -> None:
        async with asyncio.TaskGroup() as tasks:
            for number in range(10):
                tasks.create_task(append(number))

    loop.run_until_complete(main())
    digest = loop.digest
    loop.bury()
    return order, digest


def test_a_seed_decides_who_runs_next_and_gives_the_same_run_again() -> None:
    assert racing(1) == racing(1)
    assert len({tuple(racing(seed)[0]) for seed in range(20)}) > 10


def test_an_hour_passes_at_once() -> None:
    loop = new_loop()
    loop.run_until_complete(asyncio.sleep(3600))
    assert loop.time() == 3600
    loop.bury()


def test_a_crash_runs_neither_except_nor_finally() -> None:
    loop, timeline = new_loop(), []
    process = Process("worker")

    async def work() -> None:
        try:
            assert PROCESS.get() is process
            await asyncio.sleep(10)
        finally:
            timeline.append("finally")

    async def main() -> None:
        loop.start(process, work())
        await asyncio.sleep(5)
        process.alive = False
        await asyncio.sleep(60)
        assert timeline == []

    loop.run_until_complete(main())
    loop.bury()


def test_a_crashed_process_takes_the_tasks_with_it_that_it_started() -> None:
    loop, timeline = new_loop(), []
    process = Process("worker")

    async def child() -> None:
        await asyncio.sleep(10)
        timeline.append("child")

    async def work() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(child())

    async def main() -> None:
        loop.start(process, work())
        await asyncio.sleep(5)
        process.alive = False
        await asyncio.sleep(60)

    loop.run_until_complete(main())
    assert timeline == []
    loop.bury()


def test_a_paused_process_goes_on_where_it_stood_and_its_timeouts_are_late() -> None:
    loop, timeline = new_loop(), []
    process = Process("worker")

    async def work() -> None:
        try:
            async with asyncio.timeout(10):
                await asyncio.sleep(60)
        except TimeoutError:
            timeline.append(loop.time())

    async def main() -> None:
        loop.start(process, work())
        await asyncio.sleep(5)
        process.paused_until = 30.0
        await asyncio.sleep(60)

    loop.run_until_complete(main())
    assert timeline == [30.0]
    loop.bury()


AWAITS = 5
"""Of the task below: so many suspension points, and one step more."""


async def awaiting(timeline: list[object]) -> None:
    """Pass every kind of await: give way, sleep, wait for another task, wait in a group, wait with a timeout."""
    loop = asyncio.get_running_loop()
    try:
        timeline.append(0)
        await asyncio.sleep(0)
        timeline.append(1)
        await asyncio.sleep(3)
        timeline.append(2)
        await loop.create_task(asyncio.sleep(0))
        timeline.append(3)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(asyncio.sleep(1))
        timeline.append(4)
        async with asyncio.timeout(100):
            await asyncio.sleep(1)
        timeline.append(AWAITS)
    finally:
        timeline.append("finally")


def struck(strike: Callable[[Process], None], *, at: int) -> tuple[list[object], list[object], int]:
    """Strike before one step of a process: what it had done right then, what it had done a minute later, its steps."""
    loop, timeline, process = new_loop(), list[object](), Process("worker")
    seen, steps = list[object](), 0

    def before_step(stepping: Process) -> None:
        nonlocal steps
        assert stepping is process
        if steps == at:
            seen.extend(timeline)
            strike(process)
        steps += 1

    async def main() -> list[object]:
        loop.start(process, awaiting(timeline))
        await asyncio.sleep(60)
        return list(timeline)

    loop.before_step = before_step
    later = loop.run_until_complete(main())
    loop.bury()
    return seen, later, steps


def vanish(process: Process) -> None:
    process.alive = False


def stand_still(process: Process) -> None:
    process.paused_until = asyncio.get_running_loop().time() + 30


def test_a_process_can_vanish_at_each_of_its_awaits() -> None:
    _, whole, steps = struck(vanish, at=1000)
    assert whole == [*range(AWAITS + 1), "finally"]
    ends = [struck(vanish, at=step)[:2] for step in range(steps)]
    assert all(later == seen for seen, later in ends)  # nothing runs from there on, no `finally` either
    assert {tuple(later) for _, later in ends} >= {tuple(range(reached)) for reached in range(AWAITS + 1)}


def test_a_process_can_stand_still_at_each_of_its_awaits_and_goes_on_from_there() -> None:
    _, whole, steps = struck(vanish, at=1000)
    assert all(struck(stand_still, at=step)[1] == whole for step in range(steps))


def test_waiting_for_nothing_is_a_deadlock() -> None:
    loop = new_loop()

    async def main() -> None:
        await loop.create_future()

    with pytest.raises(Deadlock):
        loop.run_until_complete(main())
    loop.bury()


def test_going_round_in_circles_spends_the_budget() -> None:
    loop = new_loop(steps_max=1000)

    async def main() -> None:
        for _ in count():
            await asyncio.sleep(0)

    with pytest.raises(BudgetSpent):
        loop.run_until_complete(main())
    loop.bury()


def test_an_error_that_nobody_waits_for_ends_the_run() -> None:
    loop = new_loop()

    async def broken() -> None:
        raise ValueError("nobody listens")

    async def main() -> None:
        loop.start(None, broken())
        await asyncio.sleep(60)

    with pytest.raises(ValueError, match="nobody listens"):
        loop.run_until_complete(main())
    loop.bury()


def test_a_thread_is_refused() -> None:
    loop = new_loop()
    with pytest.raises(RuntimeError, match="one thread"):
        loop.call_soon_threadsafe(print)
    loop.bury()

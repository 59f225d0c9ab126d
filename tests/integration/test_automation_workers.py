"""The program's workers plan what they are woken for, at once and to the end."""

import asyncio

from clarion.domain.automation import AutomationStatus
from clarion.domain.entity_event import EventStatus
from clarion.domain.identity import Channel
from clarion.workers.supervisor import Supervisor
from clarion.workers.timings import Timings
from clarion.workers.wake_up import Topic, WakeUp
from tests.integration.test_renderer_pool_line import platform_of
from tests.unit.automation_house import House


async def test_an_event_is_handled_when_it_is_told_and_a_new_setting_reaches_all_sources() -> None:
    house = await House().open()
    wake_up, planned = WakeUp(), asyncio.Event()
    wake_up.listen(Topic.DUE, planned.set)
    supervisor = Supervisor(
        platform_of(house.line),
        wake_up=wake_up,
        channels=(Channel.SMS,),
        timings=Timings(poll=60),  # nobody finds anything by looking
    )

    async def until_done(source: str) -> None:
        """Wait until its event is handled; a busy machine tells of it while it is under way, too."""
        while source not in {one.source for one in await house.events(EventStatus.DONE)}:
            planned.clear()
            await planned.wait()

    async with asyncio.TaskGroup() as tasks, asyncio.timeout(30):
        tasks.create_task(supervisor.run())
        await house.put("i1")
        wake_up.wake(Topic.EVENTS)
        await until_done("i1")
        assert await house.pending() == []
        await house.remind()
        wake_up.wake(Topic.JANITOR)
        while len(await house.rows()) < 2:
            planned.clear()
            await planned.wait()
        supervisor.stop()
    assert [row.status for row in await house.rows()] == [AutomationStatus.PENDING] * 2

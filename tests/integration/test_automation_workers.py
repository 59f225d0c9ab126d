"""The program's workers begin at once what they are woken for, and bring it to its end."""

import asyncio

from clarion.client import wire_reminders
from clarion.client.wire_automation import Act
from clarion.domain.automation import AutomationScheduler, AutomationStatus
from clarion.domain.entity_event import EventStatus
from clarion.domain.identity import Channel
from clarion.operations import Operations
from clarion.operations.shape import as_wire
from clarion.workers.supervisor import Supervisor
from clarion.workers.timings import Timings
from clarion.workers.wake_up import Topic, WakeUp
from tests.integration.test_renderer_pool_line import platform_of
from tests.unit.automation_house import INVOICES, House
from tests.unit.pipeline_line import TENANT

BY = "sam"


async def test_events_changed_settings_and_acts_are_worked_on_at_once() -> None:
    house = await House().open()
    wake_up, worked = WakeUp(), asyncio.Event()
    wake_up.listen(Topic.DUE, worked.set)
    wake_up.listen(Topic.STAGES, worked.set)
    platform = platform_of(house.line)
    doors = Operations(platform, wake=lambda topic: wake_up.wake(Topic(topic)))
    supervisor = Supervisor(
        platform,
        wake_up=wake_up,
        channels=(Channel.SMS,),
        timings=Timings(poll=60),  # nobody finds anything by looking
    )

    async def until_handled(source: str) -> None:
        """Wait until its event is handled; a busy machine tells of it while it is under way, too."""
        while source not in {one.source for one in await house.events(EventStatus.DONE)}:
            worked.clear()
            await worked.wait()

    async def until(status: AutomationStatus, *, count: int = 1) -> list[AutomationScheduler]:
        """Wait until so many occurrences stand like that."""
        while len(found := [row for row in await house.rows() if row.status is status]) < count:
            worked.clear()
            await worked.wait()
        return found

    async with asyncio.TaskGroup() as tasks, asyncio.timeout(30):
        tasks.create_task(supervisor.run())
        await house.put("i1")
        wake_up.wake(Topic.EVENTS)
        await until_handled("i1")
        assert await house.pending() == []
        asked = as_wire(INVOICES, wire_reminders.ReminderRequest)
        await doors.reminders.put(TENANT, INVOICES.guid, asked, actor=BY)
        first, second = await until(AutomationStatus.PENDING, count=2)
        await doors.automation.act(TENANT, first.scheduler_key, Act.RUN, actor=BY, reason="now")
        (ended,) = await until(AutomationStatus.COMPLETED)
        await doors.automation.rerun(TENANT, ended.scheduler_key, number=1, actor=BY, reason="again")
        await until(AutomationStatus.COMPLETED, count=2)
        await doors.reminders.switch(TENANT, INVOICES.guid, active=False, actor=BY)
        (taken_back,) = await until(AutomationStatus.DEACTIVATED)
        supervisor.stop()
    assert (ended.scheduler_key, taken_back.scheduler_key) == (first.scheduler_key, second.scheduler_key)

"""A plan goes by what is newest: whoever is overtaken plans again, and nothing is left half."""

from datetime import date
from typing import Any

import msgspec

from clarion.domain.automation import AutomationStatus
from clarion.domain.key import FiringPolicy
from clarion.domain.planning import ThresholdState
from clarion.domain.reminder import ThresholdRule
from clarion.errors import StoreUnreachable
from clarion.producers.planning import Ask
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from tests.unit.automation_house import DUE_ON, INVOICES, House
from tests.unit.pipeline_line import TENANT
from tests.unit.plan_house import NORTH, SOUTH

ASK = Ask(source="i1", cause="a test", correlation_id="c")
FULL = msgspec.structs.replace(
    INVOICES, rule=ThresholdRule(metric="open", value=100, policy=FiringPolicy.FALSE_TO_TRUE)
)


class Overtaking(SqliteInMemory):
    """Lets somebody else plan between the reading of sources and the plan that goes by it."""

    meanwhile: Any = None

    async def find_reminders(self, *args: Any, **named: Any) -> Any:
        found = await super().find_reminders(*args, **named)
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        return found


async def test_a_plan_over_a_source_that_changed_meanwhile_is_made_again() -> None:
    clock = ManualClock()
    store = Overtaking(clock)
    house = await House(store=store, clock=clock).open()
    await house.remind()
    await house.put("i1")

    async def overtake() -> None:
        await house.put("i1", due_on=date(2026, 7, 1))
        await house.planning.plan_all(TENANT, "invoice", [ASK])

    store.meanwhile = overtake
    await house.planning.plan_all(TENANT, "invoice", [ASK])
    assert await house.pending() == ["i1 2026-07-01 0", "i1 2026-07-01 7"]


async def test_a_source_that_moves_to_another_unit_keeps_its_occurrences() -> None:
    house = await House().open()
    await house.remind()
    await house.put("i1", unit=NORTH)
    await house.handle()
    before = await house.rows()
    await house.put("i1", unit=SOUTH)
    await house.handle()
    after = await house.rows()
    assert [row.scheduler_key for row in after] == [row.scheduler_key for row in before]
    assert {(row.business_unit, row.status) for row in after} == {(str(SOUTH), AutomationStatus.PENDING)}
    assert not any(row.on_support_hold for row in after)


async def states(house: House) -> list[tuple[bool, int]]:
    found: Any = await house.store.find_standings_of_sources(TENANT, "invoice", ["i1"])
    standing: list[ThresholdState] = list(found["i1"].states)
    return [(one.met, one.edge_no) for one in standing]


async def test_the_row_and_the_state_of_a_threshold_move_together() -> None:
    house = await House().open()
    await house.remind(FULL)
    for value, status, state in (
        (120.0, AutomationStatus.PENDING, (True, 1)),
        (90.0, AutomationStatus.DEACTIVATED, (False, 1)),
    ):
        await house.put("i1", metrics={"open": value})
        await house.handle()
        (row,) = await house.rows()
        assert (row.status, await states(house)) == (status, [state])
    await house.put("i1", metrics={"open": 100.0})
    await house.handle()
    first, second = await house.rows()
    assert (first.scheduler_key[-2:], second.scheduler_key[-2:]) == (":1", ":2")
    assert (first.status, second.status) == (AutomationStatus.DEACTIVATED, AutomationStatus.PENDING)


class Failing(SqliteInMemory):
    """Is gone when plans are to be carried out."""

    is_gone = False

    async def apply_plans(self, *args: Any, **named: Any) -> Any:
        if self.is_gone:
            raise StoreUnreachable("it is gone", hint="wait")
        return await super().apply_plans(*args, **named)


async def test_planning_that_was_broken_off_is_made_up_for_by_the_next() -> None:
    clock = ManualClock()
    store = Failing(clock)
    house = await House(store=store, clock=clock).open()
    await house.remind()
    await house.put("i1")
    store.is_gone = True
    await house.handle()
    assert await house.pending() == []
    store.is_gone = False
    (planned,) = await house.planning.plan_all(TENANT, "invoice", [ASK])
    assert (planned.counts.ensured, await house.pending()) == (2, [f"i1 {DUE_ON} 0", f"i1 {DUE_ON} 7"])


async def test_one_that_is_asked_for_twice_is_planned_once_and_one_that_is_not_there_has_nothing() -> None:
    house = await House().open()
    await house.remind()
    await house.put("i1")
    other = Ask(source="i2", cause="a test", correlation_id="c")
    first, nothing, again = await house.planning.plan_all(TENANT, "invoice", [ASK, other, ASK])
    assert (first, nothing.facts, nothing.counts.ensured) == (again, None, 0)

"""Events are handled once each, apart from each other, and what a plan did is told in their entity's history."""

import asyncio
from collections.abc import Collection, Mapping
from datetime import date, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from clarion.domain.automation import AutomationStatus
from clarion.domain.entity_event import EntityEvent, EventData, EventMapping, EventStatus
from clarion.domain.support import SupportCase
from clarion.errors import StoreUnreachable
from clarion.producers.post_processing import ForeignProcessor
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from tests.unit.automation_house import DUE_ON, INVOICES, House
from tests.unit.pipeline_line import TENANT
from tests.unit.plan_house import changed
from tests.unit.plugin_house import HURRIED, event

WAITING = [f"i1 {DUE_ON} 0", f"i1 {DUE_ON} 7"]


async def test_a_change_to_a_source_becomes_pending_occurrences() -> None:
    house = await House().open()
    await house.remind()
    await house.put("i1")
    await house.handle()
    assert await house.pending() == WAITING
    (told,) = await house.events()
    assert told.status is EventStatus.DONE
    counts = msgspec.json.decode(told.metrics or "")
    assert counts == {"ensured": 2, "deactivated": 0, "unchanged": 0, "conflicts": 0, "notified": 0}
    assert [line.kind.value for line in await house.history(told.entity_guid)] == ["event", "planned", "planned"]


async def test_every_next_change_deactivates_and_ensures_in_one_go() -> None:
    house = await House().open()
    await house.remind()
    await house.put("i1")
    await house.handle()
    await house.put("i1", due_on=date(2026, 6, 1))
    await house.handle()
    assert await house.pending() == ["i1 2026-06-01 0", "i1 2026-06-01 7"]
    await house.put("i1", active=False)
    await house.handle()
    assert await house.pending() == []
    assert [row.status for row in await house.rows()] == [AutomationStatus.DEACTIVATED] * 4
    told = [msgspec.json.decode(one.metrics or "") for one in await house.events()][::-1]
    assert [(one["ensured"], one["deactivated"]) for one in told] == [(2, 0), (2, 2), (0, 2)]


async def test_many_sources_that_change_together_are_planned_together() -> None:
    house = await House().open()
    await house.remind()
    await house.put(*[f"i{n}" for n in range(150)])
    await house.handle()
    assert len(await house.pending()) == 300
    assert len(await house.events(EventStatus.DONE)) == 100  # a page of the list; all but these are behind it
    assert await house.events(EventStatus.READY) == []


async def test_a_handled_event_that_is_handled_again_does_nothing_more() -> None:
    house = await House().open()
    await house.remind()
    await house.put("i1")
    await house.handle()
    (told,) = await house.events()
    lines = await house.history(told.entity_guid)
    for _ in range(2):
        counts = await house.automation.processors.process(TENANT, told, EventData())
        assert (counts["ensured"], counts["unchanged"]) == (0, 2)
    assert await house.history(told.entity_guid) == lines
    # Its line was written, and its worker lost before it could say so: the next claim writes the same line.
    waits = msgspec.structs.replace(told, status=EventStatus.READY, due_at=house.clock.now())
    await house.store.overwrite(TENANT, waits)
    await house.handle()
    assert [line.key for line in await house.history(told.entity_guid)] == [line.key for line in lines]


class Interrupted(SqliteInMemory):
    """Loses its answer, once each, after the named methods have committed."""

    lost: frozenset[str] = frozenset()

    async def apply_plans(self, *args: Any, **named: Any) -> Any:
        return self._lose("apply_plans", await super().apply_plans(*args, **named))

    async def finish_events(self, *args: Any, **named: Any) -> Any:
        return self._lose("finish_events", await super().finish_events(*args, **named))

    def _lose(self, name: str, answer: object) -> object:
        if name in self.lost:
            self.lost -= {name}
            raise StoreUnreachable("the connection is gone", hint="wait")
        return answer


@pytest.mark.parametrize("lost", ["apply_plans", "finish_events"])
async def test_a_lost_answer_leads_to_the_same_rows(lost: str) -> None:
    clock = ManualClock()
    store = Interrupted(clock)
    house = await House(store=store, clock=clock).open()
    await house.remind()
    await house.put("i1")
    store.lost = frozenset({lost})
    for _ in range(4):
        try:
            await house.handle()
        except StoreUnreachable:
            continue
        await house.pass_time(timedelta(minutes=6))
    assert await house.pending() == WAITING
    (told,) = await house.events()
    assert told.status is EventStatus.DONE


async def test_a_worker_that_is_lost_leaves_its_events_to_the_next() -> None:
    house = await House().open()
    await house.remind()
    await house.put("i1")
    await house.store.claim_events(limit=10, lease=timedelta(minutes=1))
    await house.handle()
    assert await house.pending() == []
    await house.pass_time(timedelta(minutes=2))
    await house.handle()
    assert await house.pending() == WAITING


class Breaking:
    """Does with events what a test says."""

    def __init__(self, how: str, event_types: Collection[str] | None = None) -> None:
        self.event_types = event_types
        self.how = how

    async def process(self, tenant_id: str, event: EntityEvent, told: EventData) -> Mapping[str, int]:
        match self.how:
            case "hang":
                await asyncio.Event().wait()
            case "raise":
                raise ZeroDivisionError
            case _:
                pass
        return {"seen": 1}


def mapped(event_type: str) -> EventMapping:
    """Say that an event leads to nothing."""
    return EventMapping(event_type=event_type, notification_type=None)


def told_of(n: int, event_type: str) -> EntityEvent:
    """Tell of something that is in the table."""
    return msgspec.structs.replace(
        event(event_type, source_type=None, source=None), event_guid=UUID(int=n), row_key=f"r{n}"
    )


@pytest.mark.parametrize("how", ["hang", "raise"])
async def test_a_plugin_that_hangs_or_raises_keeps_only_its_own_events_waiting(how: str) -> None:
    plugin = Breaking(how, {"boat.sunk"})
    house = await House(processors=[ForeignProcessor("theirs", plugin, patience=HURRIED)]).open()
    await house.remind()
    for event_type in ("boat.sunk", "boat.moored"):
        await house.line.store.put_mapping(TENANT, mapped(event_type), actor="admin")
    await house.store.ensure_events(TENANT, [told_of(1, "boat.sunk"), told_of(2, "boat.moored")])
    await house.put("i1")
    await house.handle()
    assert await house.pending() == WAITING
    (waiting,) = await house.events(EventStatus.READY)
    assert (waiting.event_type, waiting.retry_count) == ("boat.sunk", 1)
    assert "theirs" in (waiting.reason or "")
    plugin.how = "work"
    await house.pass_time(timedelta(seconds=11))
    await house.handle()
    assert len(await house.events(EventStatus.DONE)) == 3
    await house.close()


async def test_what_does_not_pass_is_a_persons_after_six_times() -> None:
    plugin = Breaking("raise")
    house = await House(processors=[ForeignProcessor("theirs", plugin)]).open()
    await house.put("i1")
    for _ in range(6):
        await house.handle()
        await house.pass_time(timedelta(hours=1, seconds=1))
    (told,) = await house.events()
    assert (told.status, told.retry_count) == (EventStatus.FAILED, 5)
    assert len(await house.store.rows(TENANT, SupportCase)) == 1
    await house.close()


async def test_an_event_of_an_unmapped_type_fails_at_once_with_its_case() -> None:
    house = await House().open()
    await house.store.ensure_events(TENANT, [told_of(1, "boat.lost")])
    await house.handle()
    (told,) = await house.events()
    assert (told.status, told.retry_count) == (EventStatus.FAILED, 0)
    assert "is in no table" in (told.reason or "")
    assert len(await house.store.rows(TENANT, SupportCase)) == 1
    (line,) = await house.history(told.entity_guid)
    assert "could not be handled" in line.text


async def test_a_source_that_no_key_can_be_made_of_fails_its_event_and_no_other() -> None:
    house = await House().open()
    await house.remind()
    await house.put("i1", "ü" * 150)
    await house.handle()
    assert await house.pending() == WAITING
    (failed,) = await house.events(EventStatus.FAILED)
    assert failed.source == "ü" * 150


async def test_an_event_that_changes_no_source_plans_nothing_and_is_told_at_once() -> None:
    house = await House().open()
    await house.remind(changed(INVOICES, active=False))
    await house.store.put_mapping(TENANT, mapped("boat.moored"), actor="admin")
    await house.store.ensure_events(TENANT, [told_of(1, "boat.moored")])
    await house.handle()
    (told,) = await house.events()
    assert msgspec.json.decode(told.metrics or "")["notified"] == 0

"""The application: it tells of sources, changes its reminder settings, and what people do with occurrences.

An invoice is put in at a door, again where no answer came. Of a room only an event is told, which may be lost, told
twice, late or before its transaction has committed; what it says, the plugin reads from the register. One thing changes
at a time: who asks waits for an answer or gives up before it changes the same thing again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar
from uuid import UUID

from clarion.client.wire import Entity
from clarion.client.wire_events import EventRequest, EventSource
from clarion.client.wire_sources import SourceRequest
from clarion.dispatch.request import Trace
from clarion.domain.audience import Addressee
from clarion.domain.automation import AutomationStatus
from clarion.domain.reminder import DateRule, ReminderSetting, ThresholdRule
from clarion.errors import CallerError, ClarionError
from clarion.operations import Operations
from clarion.testing.simulation import content, society
from clarion.testing.simulation.agenda import (
    DATE,
    GROUPS,
    INVOICE,
    METRIC,
    Agenda,
    Rule,
    Said,
    SettingPlan,
    SourcePlan,
    other_rule,
    other_said,
)
from clarion.testing.simulation.asking import Asking
from clarion.testing.simulation.door import NoAnswer
from clarion.testing.simulation.moment import Act
from clarion.testing.simulation.node import Node
from clarion.testing.simulation.notes import Asked, Setting
from clarion.testing.simulation.option import Fault
from clarion.testing.simulation.register import Register
from clarion.testing.simulation.reminding import Reminding
from clarion.testing.simulation.scene import OccurrenceRow
from clarion.testing.simulation.verdict import Violation
from clarion.testing.simulation.world import World

TRIES_MAX: Final = 8
"""Then an application gives up until it has something new to say, or tells everything anew."""

Plan = TypeVar("Plan", SourcePlan, SettingPlan)

CHANGED: Final = "room.changed"
"""The type of event by which the application tells that a room has changed."""

COMMITS_LATE_BY: Final = (3.0, 60.0, 300.0)
"""Seconds that a transaction of the application may take: longer than its event needs, shorter than the overlap."""


class Application(Asking):
    """Whoever tells the platform what there is to be reminded of."""

    def __init__(self, world: World, agenda: Agenda, reminding: Reminding, register: Register) -> None:
        """Tell a world what an agenda says, and note it for the truth."""
        super().__init__(world, chance="application")
        self._agenda = agenda
        self._reminding = reminding
        self._register = register
        self._said = {plan.number: plan.first for plan in agenda.sources}
        self._rules = {plan.number: plan.first for plan in agenda.settings}
        self._busy: set[tuple[str, int]] = set()

    @property
    def acts(self) -> dict[Fault, Act]:
        """What it and its people do, by kind."""
        return {
            Fault.SOURCE: self._begin(self._change_source),
            Fault.REMINDER: self._begin(self._change_setting),
            Fault.OCCURRENCE: self._begin(self._do_with_occurrence),
        }

    @property
    def busy(self) -> bool:
        """Whether it has not told everything yet."""
        return bool(self._busy)

    def start(self) -> None:
        """Tell of everything at its time."""
        for source in self._agenda.sources:
            self._world.loop.start(None, self._once("source", source.number, self._tell, source, later_by=source.at))
        for setting in self._agenda.settings:
            self._world.loop.start(None, self._once("setting", setting.number, self._set, setting, later_by=setting.at))

    async def tell_all(self) -> None:
        """Tell once more what everything is, and let go what is on hold: in good weather, with nobody at work.

        What was not answered by now is not under way any more, and so is over.
        """
        now = self._world.loop.time()
        histories: list[Setting[Said] | Setting[Rule]] = [
            *self._reminding.said.values(),
            *self._reminding.rules.values(),
        ]
        for act in (act for history in histories for act, _ in history.changes):
            if act.done_at is None:
                act.done(None, at=now)
        await asyncio.sleep(1.0)
        for source in self._agenda.sources:
            if source.type == INVOICE:
                await self._once("source", source.number, self._tell, source)
        for setting in self._agenda.settings:
            await self._once("setting", setting.number, self._set, setting)
        for row in list(self._world.scene.occurrences.values()):
            if row.on_hold:
                await self._act("release", row)

    async def _once(
        self, kind: str, number: int, work: Callable[[Plan], Awaitable[None]], plan: Plan, *, later_by: float = 0.0
    ) -> None:
        """Do one thing after the other to one source or setting; what comes meanwhile is left."""
        if (kind, number) in self._busy:
            return
        self._busy.add((kind, number))
        await asyncio.sleep(later_by)
        await work(plan)
        self._busy.discard((kind, number))

    # Sources

    async def _change_source(self) -> None:
        plan = self._chance.choice(self._agenda.sources)
        other = other_said(self._chance, self._said[plan.number])
        if ("source", plan.number) in self._busy:
            return
        self._said[plan.number] = other
        await self._once("source", plan.number, self._tell, plan)

    async def _tell(self, plan: SourcePlan) -> None:
        """Tell what a source is."""
        said = self._said[plan.number]
        self._world.trace(f"application: {plan.type} {plan.id} shall be {said}")
        if plan.type == INVOICE:
            await self._again_and_again(lambda door: _put(door, plan, said), self._reminding.said[plan.number], said)
            return
        late = self._chance.choice(COMMITS_LATE_BY) if self._world.weather.strikes(Fault.COMMIT_LATE) else 0.0
        self._register.write(plan, said, self._reminding.said[plan.number], late_by=late)
        self._world.loop.start(None, self._tell_event(plan, UUID(int=self._chance.getrandbits(128), version=4)))
        await asyncio.sleep(late)  # it changes a room in one transaction after the other
        self._register.committed(plan)

    async def _tell_event(self, plan: SourcePlan, guid: UUID) -> None:
        """Tell that a room has changed: once, twice, late or not at all."""
        weather = self._world.weather
        if weather.strikes(Fault.EVENT_LOST):
            self._world.trace(f"application: the event {guid} of {plan.id} is lost")
            return
        if weather.strikes(Fault.EVENT_LATE):
            await asyncio.sleep(self._chance.uniform(5.0, 120.0))
        for _ in range(2 if weather.strikes(Fault.EVENT_TWICE) else 1):
            await self._again_and_again(lambda door: _tell(door, plan, guid))
            await asyncio.sleep(self._chance.uniform(0.0, 30.0))

    # Settings

    async def _change_setting(self) -> None:
        plan = self._chance.choice(self._agenda.settings)
        other = other_rule(self._chance, self._rules[plan.number], by_date=plan.by_date)
        if ("setting", plan.number) in self._busy:
            return
        self._rules[plan.number] = other
        await self._once("setting", plan.number, self._set, plan)

    async def _set(self, plan: SettingPlan) -> None:
        rule = self._rules[plan.number]
        self._world.trace(f"application: {plan.name} shall be {rule}")
        await self._again_and_again(
            lambda door: door.platform.store.put_reminder(content.TENANT, _setting(plan, rule), actor="person"),
            self._reminding.rules[plan.number],
            rule,
        )

    async def _again_and_again(
        self,
        work: Callable[[Node], Awaitable[object]],
        history: Setting[Said] | Setting[Rule] | None = None,
        value: Said | Rule | None = None,
    ) -> None:
        """Ask until there is an answer, for a while; each try may be what is done."""
        for _ in range(TRIES_MAX):
            asked = Asked("tell", "", at=self._world.loop.time())
            if history is not None:
                history.change(asked, value)  # type: ignore[arg-type]  # of its own kind
            if await self._is_answered(work, asked):
                return
            await asyncio.sleep(self._chance.uniform(0.5, 6.0))

    async def _is_answered(self, work: Callable[[Node], Awaitable[object]], asked: Asked) -> bool:
        async def noted(door: Node) -> None:
            answer = await work(door)
            asked.done(answer, at=self._world.loop.time())

        try:
            await self._world.ask(noted)
        except CallerError as error:
            self._world.fail(Violation("defect", f"an application was told {error.code}: {error}"))
        except (ClarionError, NoAnswer) as error:
            self._world.trace(f"application: no answer ({error})")
            return False
        return True

    # Occurrences

    async def _do_with_occurrence(self) -> None:
        rows = list(self._world.scene.occurrences.values())
        waiting = [row for row in rows if row.state is AutomationStatus.PENDING and not row.on_hold]
        held = [row for row in rows if row.on_hold]
        if held and self._chance.random() < 0.5:
            await self._act("release", self._chance.choice(held))
        elif waiting:
            kind = self._chance.choice(("hold", "hold", "run now", "deactivate"))
            await self._act(kind, self._chance.choice(waiting))

    async def _act(self, kind: str, row: OccurrenceRow) -> None:
        """Have a person do something with an occurrence."""
        asked = self._notes(kind, f"occurrence {row.key}")
        self._reminding.acts.append((kind, row.key, asked))
        self._world.trace(f"person: {kind} {row.key}")

        async def act(door: Node) -> bool:
            store = door.platform.store
            verbs = {
                "hold": store.hold_occurrence,
                "release": store.release_occurrence,
                "run now": store.run_occurrence_now,
                "deactivate": store.deactivate_occurrence,
            }
            return await verbs[kind](content.TENANT, row.key, actor="person", reason="please")

        await self._ask(act, asked)


async def _put(door: Node, plan: SourcePlan, said: Said) -> object:
    """Put an invoice in, or take it out."""
    sources, trace = Operations(door.platform, wake=lambda _: None).sources, Trace(correlation_id=plan.id)
    if not said.there:
        return await sources.remove(content.TENANT, plan.type, plan.id, actor="application", trace=trace)
    request = SourceRequest(
        dates={} if said.day is None else {DATE: said.day.isoformat()},
        metrics={METRIC: float(said.amount)},
        business_unit=None if said.unit is None else society.UNITS[said.unit],
        entity=plan.entity,
    )
    return await sources.put(content.TENANT, plan.type, plan.id, request, actor="application", trace=trace)


async def _tell(door: Node, plan: SourcePlan, guid: UUID) -> object:
    """Tell that a room has changed."""
    request = EventRequest(
        type=CHANGED,
        id=guid,
        entity=Entity(type=plan.type, guid=plan.entity),
        source=EventSource(type=plan.type, id=plan.id),
    )
    events = Operations(door.platform, wake=lambda _: None).events
    return await events.tell(
        content.TENANT, request, key=None, actor="application", trace=Trace(correlation_id=plan.id)
    )


def _setting(plan: SettingPlan, rule: Rule) -> ReminderSetting:
    """Write a reminder setting."""
    by_date = DateRule(field=DATE, offsets=rule.offsets)
    by_metric = ThresholdRule(metric=METRIC, value=float(rule.value), policy=rule.policy)
    return ReminderSetting(
        guid=plan.guid,
        name=plan.name,
        source_type=plan.type,
        rule=by_date if plan.by_date else by_metric,
        send_time=rule.send_time,
        notification_type=content.REMINDER.key,
        recipients=(Addressee(group=GROUPS[rule.group]),),
        active=rule.active,
    )

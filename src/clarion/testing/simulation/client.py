"""Clients: they ask for notifications at a door, again where no answer came, and remember what they were promised.

A client that got an answer was promised the notification: from then on it must reach everybody, or end with a reason.
The same key always names the same job; another payload under it is refused.
"""

import asyncio
from datetime import timedelta
from uuid import UUID

import msgspec

from clarion.client.wire import Entity, Recipient, SendAnswer, SendRequest
from clarion.dispatch.request import Trace
from clarion.errors import CallerError, ClarionError, Conflict
from clarion.operations import Operations
from clarion.testing.simulation import content, society
from clarion.testing.simulation.door import NoAnswer
from clarion.testing.simulation.node import Node
from clarion.testing.simulation.option import JobPlan
from clarion.testing.simulation.verdict import Violation
from clarion.testing.simulation.world import World

TRIES_MAX = 12
"""Then a client gives up, and nothing was promised to it."""


class Promise(msgspec.Struct, frozen=True, kw_only=True):
    """What a client was told: this job, for so many recipients."""

    job_id: UUID
    plan: JobPlan
    payload: str


class Clients:
    """Everybody who asks for notifications in one run."""

    def __init__(self, world: World) -> None:
        """Ask at the doors of a world."""
        self._world = world
        self._chance = world.options.chance("clients")
        self.promises: dict[UUID, Promise] = {}
        self.busy = 0

    def start(self) -> None:
        """Start every client at its time."""
        for plan in self._world.options.jobs:
            self._spawn(plan, plan.at, payload="first")
            if plan.twin and plan.keyed:
                self._spawn(plan, plan.at, payload="first")
            if plan.again_after is not None and plan.keyed:
                self._spawn(plan, plan.at + plan.again_after, payload="first")
            if plan.other_after is not None and plan.keyed:
                self._spawn(plan, plan.at + plan.other_after, payload="other")

    def _spawn(self, plan: JobPlan, at: float, *, payload: str) -> None:
        self.busy += 1
        self._world.loop.start(None, self._come(plan, at, payload))

    async def _come(self, plan: JobPlan, at: float, payload: str) -> None:
        """Ask until there is an answer; without a key only once, since a second time would be a second job."""
        await asyncio.sleep(at)
        asked = self._asked(plan, payload)
        not_before = None if asked.not_before_at is None else asked.not_before_at.timestamp()
        lost = False
        for _ in range(TRIES_MAX if plan.keyed else 1):
            send = self._world.note_send(plan, payload, store_not_before=not_before)
            try:
                answer = await self._world.ask(lambda door: _send(door, plan, asked))
            except Conflict:
                self._world.trace(f"client: job {plan.number} ({payload}) is a conflict")
                break
            except CallerError as error:
                self._world.fail(Violation("defect", f"a client was told {error.code}: {error}"))
                break
            except (ClarionError, NoAnswer) as error:
                self._world.trace(f"client: job {plan.number} ({payload}) gets no answer: {error}")
                lost = True
                await asyncio.sleep(self._chance.uniform(0.5, 6.0))
            else:
                if lost and answer.repeated:
                    self._world.coverage.met("I-24: accepted after a lost reply")
                send.promised(at=self._world.loop.time(), store_at=self._world.store_seconds())
                self._promised(plan, payload, answer)
                break
        self.busy -= 1

    def _promised(self, plan: JobPlan, payload: str, answer: SendAnswer) -> None:
        """Check an answer against what is stored and against earlier ones, and keep it."""
        world, scene = self._world, self._world.scene
        world.trace(f"client: job {plan.number} ({payload}) is promised as {answer.job_id}")
        job = next((job for job in scene.jobs.values() if job.guid == str(answer.job_id)), None)
        if job is None or scene.scheduler_of(job) is None:
            world.fail(Violation("I-24", f"job {answer.job_id} was promised before it was committed"))
        for known in self.promises.values():
            same_key = plan.keyed and known.plan.number == plan.number
            if same_key and known.job_id != answer.job_id:
                world.fail(Violation("I-03", f"the key of job {plan.number} names two jobs"))
            if same_key and known.payload != payload:
                world.fail(Violation("I-04", f"the key of job {plan.number} was accepted with two payloads"))
        self.promises[answer.job_id] = Promise(job_id=answer.job_id, plan=plan, payload=payload)

    def _asked(self, plan: JobPlan, payload: str) -> SendRequest:
        """Write what a client asks for; the same every time."""
        delay = plan.later_by
        return SendRequest(
            type=plan.type,
            to=_recipients(plan),
            data={"text": content.text_of(plan, payload)},
            entity=None if plan.about is None else Entity(type=society.THING, guid=society.THINGS[plan.about]),
            business_unit=None if plan.unit is None else society.UNITS[plan.unit],
            not_before_at=None if delay is None else self._world.now() + timedelta(seconds=delay),
        )


async def _send(door: Node, plan: JobPlan, asked: SendRequest) -> SendAnswer:
    notifications = Operations(door.platform, wake=lambda _: None).notifications
    key = f"key-{plan.number}" if plan.keyed else None
    return await notifications.send(
        content.TENANT, asked, key=key, actor="client", trace=Trace(correlation_id=plan.correlation_id)
    )


def _recipients(plan: JobPlan) -> tuple[Recipient, ...]:
    """Name the recipients of a plan, as people, as bare addresses, or as the group; one that has none names nobody."""
    if plan.by_setting:
        return ()
    if plan.by_group:
        return (Recipient(group=society.GROUP), *map(_person, plan.to))
    if plan.by_address:
        return tuple(Recipient(address=content.bare_address(plan.type, number)) for number in plan.to)
    return tuple(map(_person, plan.to))


def _person(number: int) -> Recipient:
    guid = society.employee(number)
    return Recipient(user=f"u{number}") if guid is None else Recipient(employee=guid)

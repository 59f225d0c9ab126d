"""People and the nemesis: what is done to a running installation on purpose, now and then, while the weather lasts.

A person cancels, retries, edits an address, publishes, switches a type off. The nemesis kills, pauses and stops
processes and sets their clocks. Both come round every few seconds; how often they act is the weather's.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from clarion.dispatch.request import Trace
from clarion.domain import derived_id
from clarion.domain.outgoing import OutgoingStatus
from clarion.errors import ClarionError
from clarion.testing.simulation import content
from clarion.testing.simulation.client import Clients
from clarion.testing.simulation.node import Node, Worker
from clarion.testing.simulation.option import Fault
from clarion.testing.simulation.world import CLOCKS_OFF, NoAnswer, World

ROUND: Final = 3.0
"""Seconds between two rounds."""

GRACE: Final = 40.0
"""Seconds that a worker has for a graceful stop before it is killed: twice a call's timeout."""

DAY: Final = 25 * 3600.0
"""Seconds of a long absence: longer than the longest window in which a provider de-duplicates."""


class People:
    """Everybody who has a say in one run."""

    def __init__(self, world: World, clients: Clients) -> None:
        """Act on a world, for the jobs of these clients."""
        self._world = world
        self._clients = clients
        self._chance = world.options.chance("people")
        self._edition = 1
        self._addresses = dict.fromkeys(range(content.PEOPLE), 1)
        self._was_away = False

    async def act_for(self, seconds: float) -> None:
        """Come round until so much time has passed, long absences not counted."""
        acts: dict[Fault, Callable[[], Awaitable[None]]] = {
            Fault.CANCEL: self._cancel,
            Fault.RETRY: self._retry,
            Fault.ADDRESS_EDIT: self._edit_address,
            Fault.PUBLISH: self._publish,
            Fault.SWITCH_OFF: self._switch,
            Fault.KILL: self._kill,
            Fault.PAUSE: self._pause,
            Fault.STOP: self._stop,
            Fault.CLOCK: self._set_clock,
        }
        passed = 0.0
        while passed < seconds:
            await asyncio.sleep(ROUND)
            passed += ROUND
            for kind, act in acts.items():
                if self._world.weather.strikes(kind):
                    await act()
            if not self._was_away and self._time_to_leave(passed > seconds / 2):
                await self._leave()

    def _time_to_leave(self, late: bool) -> bool:
        """Tell whether to stop all workers: late in a run, or while a replay waits, so that its window may close."""
        replays = any(
            row.state is OutgoingStatus.RETRY_READY and row.first_unknown_at is not None
            for row in self._world.scene.outgoing.values()
        )
        likely = Fault.OUTAGE in self._world.options.rates and replays and self._chance.random() < 0.5
        return likely or (late and self._world.weather.strikes(Fault.OUTAGE))

    async def _cancel(self) -> None:
        """Cancel a job that somebody was promised."""
        if not self._clients.promises:
            return
        job_id = self._chance.choice(list(self._clients.promises))
        self._world.trace(f"person: cancel job {job_id}")
        await self._ask(lambda door: door.platform.store.cancel_job(content.TENANT, job_id, actor="person"))

    async def _retry(self) -> None:
        """Retry a message that failed or is uncertain, as it looks to the person now."""
        failed = (OutgoingStatus.FAILED_FINAL, OutgoingStatus.UNCERTAIN)
        rows = [row for row in self._world.scene.outgoing.values() if row.status in failed]
        if not rows:
            return
        row = self._chance.choice(rows)
        self._world.trace(f"person: retry row {row.id} at version {row.version}")
        await self._ask(
            lambda door: door.platform.store.retry_outgoing(
                content.TENANT, row.id, version=row.version, actor="person", reason="please"
            )
        )

    async def _edit_address(self) -> None:
        """Let a person move to another address on every channel."""
        number = self._chance.randrange(content.PEOPLE)
        self._addresses[number] += 1
        entry = content.person(number, edition=self._addresses[number])
        self._world.trace(f"person: u{number} moves to {entry.contacts[0].destination}")

        async def edit(door: Node) -> None:
            await door.people.put(content.TENANT, [entry], trace=Trace(correlation_id="edit"))
            keys = await door.platform.keyring.get(content.TENANT)
            hashed = derived_id.recipient_id_hash(
                identity_key=keys.identity_key, tenant_id=content.TENANT, identity=entry.identity
            )
            self._world.scene.edited_at[hashed] = self._world.loop.time()

        await self._ask(edit)

    async def _publish(self) -> None:
        """Publish every type anew."""
        self._edition = 3 - self._edition

        async def publish(door: Node) -> None:
            await self._world.publish(door.platform.store, edition=self._edition)
            for row in content.templates(self._edition):
                self._world.scene.published_at[row.template_key] = self._world.loop.time()

        await self._ask(publish)

    async def _switch(self) -> None:
        """Switch a type off, or on again."""
        key = self._chance.choice(content.DEFINITIONS).key
        enabled = self._chance.random() < 0.5
        await self._ask(
            lambda door: door.platform.store.set_type_enabled(content.TENANT, key, enabled=enabled, actor="person")
        )

    async def _ask(self, work: Callable[[Node], Awaitable[object]]) -> None:
        """Ask once, without waiting longer for the answer than a person would."""
        try:
            await self._world.ask(work)
        except (ClarionError, NoAnswer) as error:
            self._world.trace(f"person: no answer ({error})")

    def _nodes(self) -> list[Node]:
        nodes: list[Node] = [*self._world.workers.values(), *self._world.doors.values()]
        return [node for node in nodes if node.process.alive]

    async def _kill(self) -> None:
        """Kill a process."""
        if nodes := self._nodes():
            self._world.weather.crash(self._chance.choice(nodes).process)

    async def _pause(self) -> None:
        """Let a process stand still."""
        if nodes := self._nodes():
            process, seconds = self._chance.choice(nodes).process, self._world.weather.stall()
            now = self._world.loop.time()
            process.paused_until = now + seconds
            process.suffers(Fault.PAUSE, since=now, until=process.paused_until)
            self._world.trace(f"{process} is paused for {seconds:.0f} s")

    async def _set_clock(self) -> None:
        """Set a process's wall clock."""
        if nodes := self._nodes():
            node, seconds = self._chance.choice(nodes), self._chance.choice(CLOCKS_OFF)
            node.clock.off_by = timedelta(seconds=seconds)
            self._world.trace(f"{node.process} has its wall clock set off by {seconds} s")

    async def _stop(self) -> None:
        """Ask a worker to stop, as a rolling restart does."""
        workers = [(n, one) for n, one in self._world.workers.items() if one.process.alive and not one.stopping]
        if workers:
            number, worker = self._chance.choice(workers)
            worker.stopping = True
            self._world.trace(f"{worker.process} is asked to stop")
            worker.supervisor.stop()
            self._world.loop.start(None, self._wait_for(number, worker))

    async def _wait_for(self, number: int, worker: Worker) -> None:
        """Wait for a worker's end, or kill it; then start the next one in its place."""
        await asyncio.wait([worker.running], timeout=GRACE)
        if worker.running.done():
            self._world.coverage.met("F-54: graceful stop came to its end")
            await self._world.restart_worker(number, 0.5)
        else:
            self._world.weather.crash(worker.process)

    async def _leave(self) -> None:
        """Have no worker at all for a day."""
        self._was_away = self._world.away = True
        self._world.trace("all workers are gone for a day")
        for worker in self._world.workers.values():
            self._world.weather.crash(worker.process)
        await asyncio.sleep(DAY)
        self._world.away = False
        for number in self._world.workers:
            self._world.start_worker(number)

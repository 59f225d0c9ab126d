"""The nemesis: what happens to the processes of an installation as such.

It kills, pauses and stops them and sets their clocks and the store's, each at a step that `moment` chooses; once in a
run it may take all workers away for a day.
"""

import asyncio
from datetime import timedelta
from typing import Final

from clarion.domain.outgoing import OutgoingStatus
from clarion.testing.simulation.loop import Process
from clarion.testing.simulation.moment import ROUND, Act, Moments
from clarion.testing.simulation.node import Node, Worker
from clarion.testing.simulation.option import Fault
from clarion.testing.simulation.world import CLOCKS_OFF, World

GRACE: Final = 40.0
"""Seconds that a worker has for a graceful stop before it is killed: twice a call's timeout."""

DAY: Final = 25 * 3600.0
"""Seconds of a long absence: longer than the longest window in which a provider de-duplicates."""


LEAPS: Final = (-100.0, -100.0, 0.0, 3.0, 30.0, 70.0, 400.0)
"""Seconds: back, and forwards by less and by more than a lease, a time to live and a rest of an account."""


class Nemesis:
    """Whoever wishes the processes of a world ill."""

    def __init__(self, world: World) -> None:
        """Act on a world."""
        self._world = world
        self._chance = world.options.chance("nemesis")
        self._was_away = False
        self._passed = 0.0
        agenda = world.options.agenda
        self._nights = [] if agenda is None else sorted(agenda.nights, key=lambda night: night.at)

    @property
    def acts(self) -> dict[Fault, Act]:
        """What is done to processes, by kind."""
        return {
            Fault.KILL: self._kill,
            Fault.PAUSE: self._pause,
            Fault.STOP: self._stop,
            Fault.CLOCK: self._set_clock,
            Fault.STORE_CLOCK: self._leap,
        }

    async def act_for(self, seconds: float, moments: Moments) -> None:
        """Let rounds pass until so much time has passed, a long absence not counted."""
        passed = 0.0
        while passed < seconds:
            await asyncio.sleep(ROUND)
            passed += ROUND
            moments.at_round()
            self._passed += ROUND
            if not self._was_away and self._time_to_leave(passed > seconds / 2):
                self._was_away = True
                await self._world.leave(DAY)
            if self._nights and self._nights[0].at <= self._passed:
                await self._world.leave(self._nights.pop(0).hours * 3600.0)

    def _time_to_leave(self, late: bool) -> bool:
        """Tell whether to stop all workers: late in a run, or while a replay waits, so that its window may close."""
        replays = any(
            row.state is OutgoingStatus.RETRY_READY and row.first_unknown_at is not None
            for row in self._world.scene.outgoing.values()
        )
        likely = Fault.OUTAGE in self._world.options.rates and replays and self._chance.random() < 0.5
        return likely or (late and self._world.weather.strikes(Fault.OUTAGE))

    def _node(self, process: Process | None) -> Node | None:
        """Find the node of a process, or choose one that is alive."""
        nodes: list[Node] = [*self._world.workers.values(), *self._world.doors.values()]
        alive = [node for node in nodes if node.process.alive and process in (None, node.process)]
        return self._chance.choice(alive) if alive else None

    def _kill(self, process: Process | None) -> None:
        """Kill a process."""
        if (node := self._node(process)) is not None:
            self._world.weather.crash(node.process)

    def _pause(self, process: Process | None) -> None:
        """Let a process stand still."""
        if (node := self._node(process)) is not None:
            self._world.weather.pause(node.process)

    def _set_clock(self, process: Process | None) -> None:
        """Set a process's wall clock."""
        if (node := self._node(process)) is not None:
            seconds = self._chance.choice(CLOCKS_OFF)
            node.clock.off_by = timedelta(seconds=seconds)
            self._world.trace(f"{node.process} has its wall clock set off by {seconds} s")

    def _leap(self, _: Process | None) -> None:
        """Have the store's clock leap."""
        self._world.leap(self._chance.choice(LEAPS), wall_off_by=self._chance.choice(CLOCKS_OFF))

    def _stop(self, process: Process | None) -> None:
        """Ask a worker to stop, as a rolling restart does."""
        workers = [(n, one) for n, one in self._world.workers.items() if one.process.alive and not one.stopping]
        if not workers:
            return
        number, worker = next((one for one in workers if one[1].process is process), self._chance.choice(workers))
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

"""The seeded event loop: virtual time, one callback a step, and processes that vanish or stand still at any await.

Which of the callbacks that could run is run next is drawn from the seed, so every interleaving of tasks can happen and
any one of them can be had again. Nothing waits for real: where nothing can run, time jumps to the next timer.

A simulated process is a name in a context variable, which asyncio hands on to every task and callback that its code
starts. A process that crashed runs nothing any more, neither `except` nor `finally`; one that is paused finds its
callbacks kept until it goes on. What belongs to no process is the world: it cannot fail. Before every step of a process
`before_step` is asked, which may let it vanish or stand still right there: every await of a task lies between two of
its steps. Knows nothing of Clarion.
"""

import asyncio
import contextvars
import hashlib
import inspect
from collections.abc import Callable, Coroutine, Generator
from heapq import heappop, heappush
from itertools import count
from math import ceil
from random import Random
from typing import Any, NamedTuple, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Deadlock(Exception):
    """Nothing can run, now or later, and the run has not ended."""


class BudgetSpent(Exception):
    """The run took more steps than any correct one: something repeats itself for ever."""


class Trouble(NamedTuple):
    """Something that kept a process, or one task of it, from its work."""

    what: str
    since: float
    until: float
    task: object | None  # None: the whole process


class Process:
    """One operating-system process; a restart is a new one."""

    def __init__(self, name: str) -> None:
        """Start to live."""
        self.name = name
        self.alive = True
        self.paused_until = 0.0
        self.troubles: list[Trouble] = []
        self.steps_at_work = 0  # how many of its next steps follow from work that it found
        self.steps_at_call = 0  # the same, with a message in hand

    def suffers(self, what: str, *, since: float, until: float | None = None, task: object | None = None) -> None:
        """Note that something keeps it from its work until then: one task of it, or all of it.

        Whoever makes anything go wrong in a process says so here. What is not noted explains nothing to the checker:
        a message that became uncertain by it counts as a violation (I-12).
        """
        self.troubles.append(Trouble(what, since, since if until is None else until, task))

    @property
    def disturbed_at(self) -> float:
        """Until when something was last wrong in it."""
        return max((trouble.until for trouble in self.troubles), default=float("-inf"))

    def __repr__(self) -> str:
        """Show the name, which says role, number and generation."""
        return self.name


PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar("simulated_process", default=None)
"""Whose code is running."""

TICK = 1e-6
"""Seconds by which the clock advances at least, as real clocks do; otherwise a shorter wait would never end."""

_Ready = tuple[asyncio.Handle, Process | None]


class SimulationLoop(asyncio.BaseEventLoop):
    """An event loop that a seed replays."""

    def __init__(self, seed: str, *, steps_max: int, with_digest: bool = False) -> None:
        """Draw every choice from the seed; `with_digest` makes two runs comparable, at a small price."""
        super().__init__()
        self._chance = Random(seed)
        self._now = 0.0
        self._steps_left = steps_max
        self._order = count()
        self._waiting: list[_Ready] = []
        self._timers: list[tuple[float, int, asyncio.Handle, Process | None]] = []
        self._parked: list[tuple[float, int, asyncio.Handle, Process | None]] = []
        self._dropped: list[_Ready] = []
        self._every_task: list[asyncio.Task[Any]] = []
        self._digest = hashlib.blake2b(digest_size=16) if with_digest else None
        self._world = contextvars.Context()
        self._aborted: BaseException | None = None
        self.before_step: Callable[[Process], None] = nothing_happens

    @property
    def digest(self) -> str:
        """What two runs of one seed must have in common: every step's choice, time and process."""
        return self._digest.hexdigest() if self._digest is not None else ""

    def time(self) -> float:
        """Return the virtual time in seconds since the start."""
        return self._now

    def spawn(self, process: Process | None, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task inside a process, or in the world."""
        context = self._world.copy()
        context.run(PROCESS.set, process)
        return self.create_task(work, context=context)

    def start(self, process: Process | None, work: Coroutine[Any, Any, None]) -> None:
        """Start a task that nobody waits for; an error in it ends the run."""
        self.spawn(process, work).add_done_callback(self._check)

    def abort(self, error: BaseException) -> None:
        """End the run with this error at the next step, whatever the code that runs now makes of it."""
        self._aborted = self._aborted or error

    def create_task(
        self,
        coro: Coroutine[Any, Any, T] | Generator[Any, None, T],
        *,
        name: object = None,
        context: contextvars.Context | None = None,
    ) -> asyncio.Task[T]:
        """Make a task and remember it for the end."""
        task = super().create_task(coro, name=name, context=context)
        self._every_task.append(task)
        return task

    def call_soon(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """Run a callback in one of the next steps."""
        handle = asyncio.Handle(callback, args, self, context)
        self._waiting.append((handle, _process_of(context)))
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Run a callback at a virtual time, at the next tick of the clock."""
        when = max(when, ceil(when / TICK) * TICK)
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heappush(self._timers, (when, next(self._order), timer, _process_of(context)))
        return timer

    def call_soon_threadsafe(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """Refuse: what another thread does cannot be replayed."""
        raise RuntimeError("a simulation has one thread: run the work inline")

    def bury(self) -> None:
        """End every task of the run, those of dead processes too, so that nothing is left to the garbage collector."""
        self._waiting += self._dropped
        self._waiting += [(handle, None) for _, _, handle, _ in self._parked]
        asyncio._set_running_loop(self)  # noqa: SLF001  for those who make loops
        try:
            self._end_tasks()
        finally:
            asyncio._set_running_loop(None)  # noqa: SLF001  the same
        self.close()

    def _end_tasks(self) -> None:
        """Cancel every task until none is left. One that has not begun runs first: its coroutine must be awaited."""
        while any(not task.done() for task in self._every_task):
            for task in self._every_task:
                if not _has_to_begin(task):
                    task.cancel()
            waiting, self._waiting = self._waiting, []
            for handle, _ in waiting:
                if not handle.cancelled():
                    handle._run()  # noqa: SLF001  as any loop does
        self._every_task.clear()

    def _check(self, task: asyncio.Task[None]) -> None:
        """Pass on what a task raised that nobody waits for."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self.abort(error)

    def _run_once(self) -> None:
        """Run one callback: the step of this loop, called again and again by asyncio's own `run_forever`."""
        if self._aborted is not None:
            raise self._aborted
        if self._steps_left <= 0:
            raise BudgetSpent(f"no steps are left at {self._now:.3f} s")
        self._collect()
        chosen = self._chance.randrange(len(self._waiting)) if len(self._waiting) > 1 else 0
        last = self._waiting.pop()
        handle, process = last if chosen == len(self._waiting) else self._waiting[chosen]
        if chosen < len(self._waiting):
            self._waiting[chosen] = last
        if handle.cancelled():
            return
        if process is not None and not self._goes_on(process, handle):
            return
        self._steps_left -= 1
        if self._digest is not None:
            self._digest.update(f"{len(self._waiting)} {self._now:.6f} {process};".encode())
        handle._run()  # noqa: SLF001  as any loop does

    def _goes_on(self, process: Process, handle: asyncio.Handle) -> bool:
        """Tell whether a process takes its next step now; else keep the step, for later or for the end of the run."""
        if process.alive and process.paused_until <= self._now:
            self.before_step(process)
        if not process.alive:
            self._dropped.append((handle, process))  # kept: to free a task would run its `finally`
            return False
        if process.paused_until > self._now:
            heappush(self._parked, (process.paused_until, next(self._order), handle, process))
            return False
        return True

    def _collect(self) -> None:
        """Take what is due from the timers and from the parked, after a jump in time where nothing else can run."""
        while self._timers and self._timers[0][2].cancelled():
            heappop(self._timers)
        if not self._waiting:
            ahead = [heap[0][0] for heap in (self._timers, self._parked) if heap]
            if not ahead:
                raise Deadlock(f"nothing can run at {self._now:.3f} s")
            self._now = max(self._now, min(ahead))
        for heap in (self._parked, self._timers):
            while heap and heap[0][0] <= self._now:
                _, _, handle, process = heappop(heap)
                self._waiting.append((handle, process))

    def _write_to_self(self) -> None:
        """Do nothing: this loop never blocks, so there is nothing to interrupt."""

    def _process_events(self, event_list: object) -> None:
        """Do nothing: there are no sockets."""


def nothing_happens(_: Process) -> None:
    """Let a process take its next step."""


def _has_to_begin(task: asyncio.Task[Any]) -> bool:
    """Tell whether a task has not run at all so far."""
    work = task.get_coro()
    return inspect.iscoroutine(work) and inspect.getcoroutinestate(work) == inspect.CORO_CREATED


def _process_of(context: contextvars.Context | None) -> Process | None:
    """Tell whose callback it is."""
    return PROCESS.get() if context is None else context.get(PROCESS)

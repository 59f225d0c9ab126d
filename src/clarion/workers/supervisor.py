"""The supervisor: runs every step of one process until it is told to stop, and stops gracefully.

Stopping means: claim nothing new, let open calls come to their end, record them. What cannot be recorded in time is
left to its lease, like after a crash.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Protocol

import structlog

from clarion.bootstrap import Platform, due_worker
from clarion.domain.call import CallOutcome
from clarion.domain.call_times import CALL_TIMES, CallTimes
from clarion.domain.claim import ClaimedMessage
from clarion.domain.identity import Channel
from clarion.errors import OperatorError
from clarion.pipeline.distribute import Accounts, CallObserver, Distribute, OpenCalls, Preparation, Slots
from clarion.pipeline.generate import Generate, Sizes
from clarion.pipeline.schedule import Schedule
from clarion.pipeline.settle import Settle
from clarion.pipeline.track import Track
from clarion.ports.provider import Limited
from clarion.producers.handling import Handling
from clarion.producers.reconciliation import Reconciliation
from clarion.producers.replanning import Replanning
from clarion.producers.report_planning import SubscriptionPlanning
from clarion.workers.janitor import Janitor
from clarion.workers.loop import run
from clarion.workers.presence import Presence
from clarion.workers.timings import TIMINGS, Timings
from clarion.workers.wake_up import Topic, WakeUp

log = structlog.get_logger("clarion.workers")


class Ending(Protocol):
    """A worker that has something under way beside its steps."""

    @property
    def idle(self) -> bool:
        """Whether nothing is under way."""
        ...

    def stop(self) -> None:
        """Begin nothing more."""
        ...

    async def step(self) -> int:
        """Work."""
        ...


class Supervisor:
    """One process's workers."""

    def __init__(
        self,
        platform: Platform,
        *,
        wake_up: WakeUp,
        channels: tuple[Channel, ...],
        slots: int | None = None,
        timings: Timings = TIMINGS,
        sizes: Sizes | None = None,
        name: str = "",
        automates: bool = True,
        observe: CallObserver = lambda _message, _outcome, _took: None,
        failed: Callable[[OperatorError], None] = lambda _error: None,
    ) -> None:
        """Serve these channels with so many call slots each, or as many as turn out to be of use (`Slots`).

        Jobs, receipts and uncertain sends are worked on of all channels. `name` is what people call this process, and
        `sizes` are those of sets of recipients, where they are not the usual ones.

        A process that does not automate leaves events, settings and reconciliations to others.

        `observe` hears of every outcome of a call, `failed` of every error that the installation causes.
        """
        self._heard = observe
        self._failed = failed
        self._platform = platform
        self._wake_up = wake_up
        self._channels = channels
        self._slots = slots
        self._timings = timings
        self._sizes = sizes
        self._automates = automates
        self._stop = asyncio.Event()
        self._accounts = Accounts(platform.providers, clock=platform.clock)
        self._presence = Presence(
            platform.store,
            clock=platform.clock,
            worker_id=platform.ids.new_guid(),
            name=name,
            channels=channels,
            accounts=[platform.accounts[channel] for channel in channels],
        )

    def stop(self) -> None:
        """Ask the workers to stop; `run` returns when they have."""
        self._stop.set()
        for topic in Topic:
            self._wake_up.hear(topic)

    async def run(self) -> None:
        """Work until stopped."""
        e, lease = self._platform, self._timings.stage_lease
        generate = Generate(
            queue=e.store,
            facts=e.store,
            templates=e.templates,
            renderer=e.renderer,
            dispatcher=e.dispatcher,
            keyring=e.keyring,
            sets=e.recipient_sets,
            contents=e.contents,
            clock=e.clock,
            lease=lease,
            public_url=e.settings.public_url,
            sizes=self._sizes,
        )
        async with asyncio.TaskGroup() as tasks:
            for name, step, hears, wakes in (
                ("schedule", Schedule(queue=e.store, facts=e.store, lease=lease).step, Topic.STAGES, Topic.STAGES),
                ("track", Track(events=e.store).step, Topic.EVENTS, Topic.OUTGOING),
                ("settle", Settle(queue=e.store, providers=e.providers).step, Topic.UNCERTAIN, Topic.OUTGOING),
                ("janitor", Janitor(e.store, automates=self._automates).step, Topic.JANITOR, Topic.UNCERTAIN),
            ):
                tasks.create_task(self._loop(name, step, hears=hears, wakes=[wakes]))
            tasks.create_task(self._to_the_end("generate", generate, hears=Topic.STAGES, wakes=[Topic.OUTGOING]))
            if self._automates:
                self._automate(tasks)
            for channel in self._channels:
                tasks.create_task(self._pump(channel, tasks))
            tasks.create_task(self._be_present())

    def _automate(self, tasks: asyncio.TaskGroup) -> None:
        """Run what plans."""
        e = self._platform
        handling = Handling(
            store=e.store,
            automation=e.store,
            keyring=e.keyring,
            processors=e.automation.processors,
            lease=self._timings.event_lease,
        )
        replanning = Replanning(store=e.store, planning=e.automation.planning, sources=e.sources)
        reconciliation = Reconciliation(store=e.store, planning=e.automation.planning, sources=e.sources, clock=e.clock)
        handle = self._to_the_end("handle events", handling, hears=Topic.EVENTS, wakes=[Topic.STAGES, Topic.DUE])
        tasks.create_task(handle)
        tasks.create_task(
            self._to_the_end(
                "hand over", due_worker(e, lease=self._timings.due_lease), hears=Topic.DUE, wakes=[Topic.STAGES]
            )
        )
        reports = SubscriptionPlanning(subscriptions=e.store, store=e.store, facts=e.store)
        for name, step, hears in (
            ("replan", replanning.step, Topic.SETTINGS),
            ("plan reports", reports.step, Topic.SETTINGS),
            ("reconcile", reconciliation.step, Topic.JANITOR),
        ):
            tasks.create_task(self._loop(name, step, hears=hears, wakes=[Topic.DUE]))

    async def _to_the_end(self, name: str, worker: Ending, *, hears: Topic, wakes: Sequence[Topic]) -> None:
        """Run a worker until stopped and what it is at work on has come to its end."""
        wake, drained = asyncio.Event(), asyncio.Event()
        self._wake_up.listen(hears, wake.set)

        async def step() -> int:
            if self._stop.is_set():
                worker.stop()
                if worker.idle:
                    drained.set()
                    wake.set()  # as in a pump
                    return 0
            return await worker.step()

        worked = partial(self._wake_all, wakes)
        await run(name, step, wake=wake, stop=drained, worked=worked, failed=self._failed, poll=self._timings.poll)

    def _wake_all(self, topics: Sequence[Topic]) -> None:
        for topic in topics:
            self._wake_up.wake(topic)

    async def _be_present(self) -> None:
        """Write heartbeats until stopped: from then on nothing is claimed, so this process serves nothing."""
        await self._loop("heartbeat", self._presence.step, hears=Topic.JANITOR, wakes=[Topic.JANITOR])
        await self._presence.end()

    def _observe(self, message: ClaimedMessage, outcome: CallOutcome, took: float) -> None:
        """Pass the outcome of a call on to those who listen."""
        self._presence.observe(message, outcome, took)
        self._heard(message, outcome, took)

    async def _loop(
        self, name: str, step: Callable[[], Awaitable[int]], *, hears: Topic, wakes: Sequence[Topic]
    ) -> None:
        """Run one step until stopped."""
        wake = asyncio.Event()
        self._wake_up.listen(hears, wake.set)
        worked = partial(self._wake_all, wakes)
        await run(name, step, wake=wake, stop=self._stop, worked=worked, failed=self._failed, poll=self._timings.poll)

    async def _pump(self, channel: Channel, tasks: asyncio.TaskGroup) -> None:
        """Run one channel's pump until stopped and its open calls are recorded."""
        e, wake, drained = self._platform, asyncio.Event(), asyncio.Event()
        calls = OpenCalls(
            accounts=self._accounts,
            slots=open_slots(e, channel, given=self._slots),
            spawn=lambda call: tasks.create_task(guarded(call)),
            clock=e.clock,
            wake=wake,
            timeout=self._timings.calls.timeout,
            observe=self._observe,
        )
        pump = open_pump(e, channel, calls=calls, times=self._timings.calls)
        self._wake_up.listen(Topic.OUTGOING, pump.hint)

        async def step() -> int:
            if self._stop.is_set():
                pump.stop()
                if pump.idle:
                    drained.set()
                    wake.set()  # the loop looks at `drained` at once instead of after its rest
                    return 0
            return await pump.step()

        await run(
            f"distribute {channel}",
            step,
            wake=wake,
            stop=drained,
            rest=lambda: pump.rest,
            failed=self._failed,
            poll=self._timings.poll,
        )


def open_pump(platform: Platform, channel: Channel, *, calls: OpenCalls, times: CallTimes = CALL_TIMES) -> Distribute:
    """Make the pump of a channel."""
    preparation = Preparation(
        keyring=platform.keyring,
        templates=platform.templates,
        contents=platform.contents,
        renderer=platform.renderer,
        accounts=calls.accounts,
        clock=platform.clock,
        public_url=platform.settings.public_url,
    )
    return Distribute(
        queue=platform.store,
        routes={channel: platform.accounts[channel]},
        preparation=preparation,
        calls=calls,
        clock=platform.clock,
        ids=platform.ids,
        times=times,
    )


def open_slots(platform: Platform, channel: Channel, *, given: int | None = None) -> Slots:
    """Make the call slots of a channel's pump, no more than its account takes."""
    provider = platform.providers[platform.accounts[channel]]
    return Slots(given, calls_max=provider.calls_max if isinstance(provider, Limited) else None)


async def guarded(call: Coroutine[None, None, None]) -> None:
    """Run a call and log what it raises: an adapter with a defect must not end the other calls."""
    try:
        await call
    except Exception:
        log.exception("a provider adapter raised what it should have answered")

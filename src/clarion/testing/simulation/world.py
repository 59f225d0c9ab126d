"""The world: one installation with its processes, the people around it, and everything that goes wrong in it.

It owns the store, starts and restarts nodes, carries requests to doors and receipts to the platform, and collects what
the invariants find. Nothing in the world itself fails: it belongs to no process.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, TypeVar, cast

from clarion.adapters.stores.sqlite import InlineRunner, SqliteStore
from clarion.adapters.stores.sqlite.clock import microseconds
from clarion.adapters.stores.sqlite.core import SqliteCore
from clarion.adapters.stores.sqlite.location import MEMORY, Location
from clarion.adapters.stores.sqlite.session import Session
from clarion.domain.call import Call
from clarion.domain.claim import Gate
from clarion.domain.identity import Channel
from clarion.errors import ClarionError
from clarion.ports.blobs import Blobs
from clarion.ports.catalog import AuditEntry, NewTemplate
from clarion.ports.provider import Provider
from clarion.ports.store import Store
from clarion.ports.track import ProviderEvent
from clarion.ports.vault import Vault
from clarion.producers.plugin import Plugin
from clarion.testing.blobs import MemoryBlobs
from clarion.testing.simulation import calling, content
from clarion.testing.simulation.broadcast import Broadcasting
from clarion.testing.simulation.calm import Calm
from clarion.testing.simulation.coverage import Coverage
from clarion.testing.simulation.directory import Directory
from clarion.testing.simulation.door import NoAnswer, ask_door
from clarion.testing.simulation.founding import found, found_automation
from clarion.testing.simulation.ledger import Ledger, LedgerCall, Receipt, RowName
from clarion.testing.simulation.loop import Process, SimulationLoop
from clarion.testing.simulation.node import START_AT, Node, StoreHostClock, Worker
from clarion.testing.simulation.notes import Asked, Send
from clarion.testing.simulation.option import Fault, JobPlan, Options
from clarion.testing.simulation.outside import Account, Outside
from clarion.testing.simulation.register import Register, RoomPlugin
from clarion.testing.simulation.scene import Claim, Scene
from clarion.testing.simulation.truth import Truth
from clarion.testing.simulation.verdict import Evidence, Violation
from clarion.testing.simulation.watch import Watch
from clarion.testing.simulation.weather import Sheltered, Weather
from clarion.testing.vault import SeededVault
from clarion.workers.wake_up import Topic, WakeUp

DOORS: Final = 2
CLOCKS_OFF: Final = (-86_400, -3600, -10, 0, 10, 3600, 86_400)
"""Seconds by which a process's wall clock may be wrong."""

BACK_MAX: Final = 120.0
"""Seconds by which the store's time may fall behind the true time: together with the longest pause of a process less
than the margin of a replay (300), which is counted by the store's time."""

RECEIPT_AGAIN: Final = (2.0, 20.0)
"""Seconds after which a provider brings a receipt again that was not taken."""

T = TypeVar("T")

StoreChange = Callable[[SqliteStore, Session], object]
"""Puts something in front of the store: a planted bug, in tests of the simulation itself."""

ProviderChange = Callable[[Provider], Provider]

CallerChange = Callable[[Store], object]
"""Puts something in front of the weather: a planted bug of the process that calls the store."""


BlobsChange = Callable[[Blobs], Blobs]


class World:
    """Everything of one run."""

    def __init__(
        self,
        options: Options,
        loop: SimulationLoop,
        *,
        timeline: list[str] | None = None,
        change_store: StoreChange | None = None,
        change_provider: ProviderChange | None = None,
        change_caller: CallerChange | None = None,
        change_blobs: BlobsChange | None = None,
    ) -> None:
        """Make a world of these options; `timeline` takes the trace, if one is wanted."""
        self.options = options
        self.loop = loop
        self.timeline = timeline
        self.violations: list[Violation] = []
        self.ledger = Ledger()
        self.coverage = Coverage()
        self.chance = options.chance("world")
        self.weather = Weather(options, loop, coverage=self.coverage, trace=self.trace)
        self.weather.crashed = self._crashed
        self.outside = Outside(options, loop, weather=self.weather, ledger=self.ledger, host=self)
        self.scene = Scene()
        poison = frozenset(plan.correlation_id for plan in options.jobs if plan.poison)
        self.truth = Truth(options, self.ledger)
        self.directory = Directory()
        self.register = Register(seconds=loop.time, store_seconds=self.store_seconds)
        self.evidence = Evidence(
            self.scene,
            self.ledger,
            self.truth,
            self.coverage,
            self.outside.replay,
            self.directory,
            poison,
            stormy=options.stormy,
        )
        self.workers: dict[int, Worker] = {}
        self.doors: dict[int, Node] = {}
        self.away = False  # whether all workers are gone for long
        self._generations = 0
        self._change_store = change_store
        self._change_provider = change_provider
        self._change_caller = change_caller
        self._store_clock = StoreHostClock(loop)
        self._session = Session(Location.parse(MEMORY), clock=self._store_clock)
        self._real_store = SqliteStore(SqliteCore(self._session), runner=InlineRunner())
        self._real_vault = SeededVault(str(options.seed))
        blobs: Blobs = MemoryBlobs()
        self._real_blobs = blobs if change_blobs is None else change_blobs(blobs)
        self.watch = Watch(
            self._session,
            self.evidence,
            store_now=lambda: microseconds(self._store_clock.store_now),
            seconds=loop.time,
            fail=self.fail,
            trace=self.trace,
        )

    async def open(self) -> None:
        """Set the installation up in good weather: tenant, templates, people, then its processes."""
        await self._real_store.open()
        store = cast(Store, self._real_store)
        calm = Calm(loop=self.loop, store=store, vault=self._real_vault, blobs=self._real_blobs, provider=self.provider)
        first = Node(calm, "setup")
        platform = first.platform
        await platform.dispatcher.ensure_tenant(content.TENANT)
        await self.publish(platform.store, edition=1)
        self.directory.open(await platform.keyring.get(content.TENANT))
        for plan in self.options.jobs:
            for number in plan.to if plan.by_address else ():
                self.directory.learn_bare(content.bare_channel(plan.type), content.bare_address(plan.type, number))
        await found(first, self.directory)
        if self.options.agenda is not None:
            await found_automation(first)
        for number in range(DOORS):
            self._start_door(number)
        for number in range(self.options.workers):
            self.start_worker(number)

    def close(self) -> None:
        """Close the database, after everything that used it has ended."""
        self._session.close()

    async def publish(
        self, store: Store, *, edition: int, published: Callable[[str, int], None] = lambda _key, _version: None
    ) -> None:
        """Publish every type in one edition; `published` hears of each and of the version that stands."""
        for row in content.templates(edition):
            new = NewTemplate(template_key=row.template_key, content_hash=row.content_hash, bundle=row.bundle)
            (answer,) = await store.publish_templates(content.TENANT, [new], actor="person")
            published(row.template_key, answer.record.version)

    def now(self) -> datetime:
        """Tell the true time."""
        return START_AT + timedelta(seconds=self.loop.time())

    def store_seconds(self) -> float:
        """Tell the store's time, in seconds since 1970."""
        return microseconds(self._store_clock.store_now) / 1_000_000

    def note_send(self, plan: JobPlan, payload: str, *, store_not_before: float | None) -> Send:
        """Note that a client asks for a notification."""
        send = Send(
            plan, payload, at=self.loop.time(), store_at=self.store_seconds(), store_not_before=store_not_before
        )
        self.truth.notes.sends.append(send)
        return send

    def trace(self, line: str) -> None:
        """Write a line of the timeline, if anybody wants it."""
        if self.timeline is not None:
            self.timeline.append(f"{self.loop.time():10.3f}  {line}")

    def fail(self, violation: Violation) -> None:
        """Note what is wrong, and end the run at the next step."""
        self.violations.append(violation)
        self.trace(f"VIOLATION {violation}")
        self.loop.abort(RunFailed(str(violation)))

    def store(self) -> Store:
        """Open the store, behind the weather and under the watch."""
        real = Broadcasting(self.calm_store(), self.options, self.scene)
        store = cast(Store, Sheltered(real, weather=self.weather, observer=self.watch))
        return store if self._change_caller is None else cast(Store, self._change_caller(store))

    def calm_store(self) -> Store:
        """Open the store in good weather, with the bug that is planted in it, if any."""
        real: object = self._real_store
        if self._change_store is not None:
            real = self._change_store(self._real_store, self._session)
        return cast(Store, real)

    async def audit_log(self) -> list[AuditEntry]:
        """Read the audit log as the platform shows it, in good weather."""
        store, entries = self.calm_store(), list[AuditEntry]()
        while page := await store.list_audit(content.TENANT, after=len(entries), limit=100):
            entries += page
        return entries

    def leap(self, seconds: float, *, wall_off_by: float) -> None:
        """Have the store's time leap, forwards or back, and its host's wall clock be set, which must change nothing.

        Back means back to the mark that the database keeps, as a store does that is opened with a clock set back.
        """
        clock = self._store_clock
        if seconds < 0:
            ((mark,),) = self._session.connection.execute("SELECT high_water FROM store_clock").fetchall()
            since_mark = (microseconds(clock.store_now) - int(mark)) / 1_000_000
            seconds = -max(0.0, min(-seconds, since_mark, clock.leaped + BACK_MAX))
            self.truth.notes.set_back -= seconds
        clock.leaped += seconds
        clock.off_by = timedelta(seconds=wall_off_by)
        for node in (*self.workers.values(), *self.doors.values()):
            if node.process.alive:
                node.process.suffers(Fault.STORE_CLOCK, since=self.loop.time())
        self.trace(f"the store's clock leaps by {seconds:.1f} s")

    @property
    def stands_still(self) -> bool:
        """Whether a process, or a task of one, has yet to go on from where it was stopped: what it does then counts."""
        nodes = (*self.workers.values(), *self.doors.values())
        return any(node.process.alive and node.process.disturbed_at > self.loop.time() for node in nodes)

    async def open_gate(self) -> None:
        """Open the broadcast if it is paused, as somebody does sooner or later; what is paused is not lost."""
        if self.scene.gate is Gate.PAUSED:
            asked = self.truth.notes.asks("open", f"broadcast {content.BROADCAST}", at=self.loop.time())
            answer = await self.store().set_gate(content.TENANT, content.BROADCAST, Gate.OPEN, actor="person")
            asked.done(answer, at=self.loop.time())

    def plugins(self) -> Sequence[Plugin]:
        """Open the plugin of the rooms in a process, in a run with automation."""
        return () if self.options.agenda is None else (RoomPlugin(self.register, self.weather),)

    def vault(self) -> Vault:
        """Open the vault, behind the weather."""
        return cast(Vault, Sheltered(self._real_vault, weather=self.weather))

    def blobs(self) -> Blobs:
        """Open the blobs, behind the weather."""
        return cast(Blobs, Sheltered(self._real_blobs, weather=self.weather))

    def provider(self, channel: Channel) -> Provider:
        """Open a channel's account."""
        account: Provider = Account(self.outside, channel)
        return account if self._change_provider is None else self._change_provider(account)

    def poisoned(self, process: Process) -> None:
        """Let a process vanish that touched a poisoned job, in any weather."""
        self.coverage.met(f"fault: {Fault.POISON}")
        self.trace(f"{process} touches poison")
        self.weather.crash(process)

    def call_begins(self, process: Process | None, call: Call) -> Claim | None:
        """Look at a call when its adapter is entered; return the claim that it belongs to."""
        claim = calling.claim_for(process, call, self.evidence)
        for violation in calling.begins(process, call, claim, now=self.loop.time(), evidence=self.evidence):
            self.fail(violation)
        return claim

    def row_of(self, call: Call) -> RowName:
        """Say which row a call is for; one that is for none is named by what it says itself."""
        row = self.scene.row_of(call)
        key_hash = call.idempotency_key.rpartition(":")[2]
        return RowName(call.message_id, call.channel, key_hash) if row is None else row.name

    def call_leaves(self, call: LedgerCall, claim: Claim | None) -> None:
        """Look at a call when its bytes leave."""
        for violation in calling.leaves(call, claim, now=self.loop.time(), evidence=self.evidence):
            self.fail(violation)

    def call_delivered(self, call: LedgerCall) -> None:
        """Look at a message that its recipient got."""
        for violation in calling.delivered(call, self.evidence):
            self.fail(violation)

    def receipt_offered(self, receipt: Receipt) -> None:
        """Note that a destination may be suppressed from now on, if that is what a receipt says of it."""
        if receipt.suppresses:
            receipt.suppression = Asked("report", receipt.event_id, at=self.loop.time())
            self.truth.notes.stopped.change(receipt.destination, receipt.suppression, True)

    async def take_receipt(self, tenant_id: str, event: ProviderEvent) -> None:
        """Bring a receipt to a door again and again until it is taken, as providers do."""
        while True:
            try:
                await self.ask(lambda door: door.platform.store.keep_events(tenant_id, [event]))
            except (ClarionError, NoAnswer):
                await asyncio.sleep(self.chance.uniform(*RECEIPT_AGAIN))
            else:
                return

    async def ask(self, work: Callable[[Node], Awaitable[T]]) -> T:
        """Have one of the doors do something, and wait for its answer; raise what it raises, or NoAnswer."""
        return await ask_door(self.loop, self.doors.get(self.chance.randrange(DOORS)), work)

    def start_worker(self, number: int) -> None:
        """Start a worker, or the next one in its place."""
        name = self._name("worker", number)
        worker = Worker(
            self,
            name,
            slots=self.options.slots,
            paged=self.options.paged,
            lease=None if self.options.agenda is None else timedelta(seconds=self.options.agenda.lease),
            wake_up=WakeUp(partial(self._wake, name)),
        )
        self._set_clock(worker)
        self.workers[number] = worker
        worker.running.add_done_callback(partial(self._ended, worker))
        self.trace(f"{name} starts")

    async def leave(self, seconds: float) -> None:
        """Have no worker at all for a long time, as over a night."""
        self.away = True
        self.trace(f"all workers are gone for {seconds / 3600.0:.1f} hours")
        for worker in self.workers.values():
            self.weather.crash(worker.process)
        await asyncio.sleep(seconds)
        self.away = False
        for number in self.workers:
            self.start_worker(number)

    def _start_door(self, number: int) -> None:
        door = Node(self, self._name("door", number))
        self._set_clock(door)
        self.doors[number] = door
        self.trace(f"{door.process} starts")

    def _set_clock(self, node: Node) -> None:
        """Start a process on a host whose wall clock may be wrong."""
        if self.weather.strikes(Fault.CLOCK):
            seconds = self.weather.stream(Fault.CLOCK).choice(CLOCKS_OFF)
            node.clock.off_by = timedelta(seconds=seconds)
            self.trace(f"{node.process} has a wall clock that is off by {seconds} s")

    def _name(self, role: str, number: int) -> str:
        self._generations += 1
        return f"{role}-{number}.{self._generations}"

    def _wake(self, sender: str, topic: Topic) -> None:
        """Carry a wake-up to the other workers, where this installation does that and the wake-up is not lost."""
        if not self.options.wake_ups or self.weather.strikes(Fault.WAKE_UP_LOST):
            return
        for worker in self.workers.values():
            if worker.process.name != sender:
                worker.hear(topic)

    def _ended(self, worker: Worker, running: "asyncio.Task[None]") -> None:
        """Take note that a supervisor came to its end, which it may only when it was asked to."""
        if not running.cancelled() and (running.exception() is not None or not worker.stopping):
            self.fail(Violation("defect", f"the supervisor of {worker.process} ended by {running.exception()!r}"))

    def _crashed(self, process: Process) -> None:
        """Start a node again in the place of the one that vanished, after a while."""
        delay = self.chance.uniform(0.5, 15.0)
        for number, worker in self.workers.items():
            if worker.process is process:
                self.loop.start(None, self.restart_worker(number, delay))
        for number, door in self.doors.items():
            if door.process is process:
                self.loop.start(None, self._restart_door(number, delay))

    async def restart_worker(self, number: int, delay: float) -> None:
        """Start a worker anew, unless all of them are away."""
        await asyncio.sleep(delay)
        if not self.away and (not self.workers[number].process.alive or self.workers[number].running.done()):
            self.start_worker(number)

    async def _restart_door(self, number: int, delay: float) -> None:
        await asyncio.sleep(delay)
        self._start_door(number)


class RunFailed(Exception):
    """A violation was found; nothing after it means anything."""

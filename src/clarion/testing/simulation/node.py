"""Nodes: the processes of an installation, each built as bootstrap builds it, on ports that go through the weather.

A worker runs the real supervisor; a door answers requests, receipts and people. A node that vanished is started again
as a new process with empty memory.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

import msgspec

from clarion.bootstrap import Platform, Settings
from clarion.catalog.library import Library
from clarion.catalog.people import People
from clarion.dispatch import DeliveryDispatcher
from clarion.domain.identity import Channel
from clarion.pipeline.generate import Sizes
from clarion.ports.blobs import Blobs
from clarion.ports.provider import Provider
from clarion.ports.renderer import Bundle, NotMerged, Renderer
from clarion.ports.store import Store
from clarion.ports.vault import Vault
from clarion.producers.direct import DirectSends
from clarion.producers.opening import open_automation
from clarion.producers.plugin import Plugin
from clarion.producers.records import Records
from clarion.producers.registration import report_plugins
from clarion.producers.report_plugin import Reports
from clarion.producers.sources import Sources
from clarion.sealing.contents import MessagingContents
from clarion.sealing.keyring import Keyring
from clarion.sealing.recipients import RecipientSets
from clarion.testing.clock import SeededIds
from clarion.testing.simulation import content
from clarion.testing.simulation.loop import Process, SimulationLoop
from clarion.testing.simulation.option import CHANNELS
from clarion.workers.supervisor import Supervisor
from clarion.workers.timings import TIMINGS
from clarion.workers.wake_up import Topic, WakeUp

START_AT: Final = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)


SMALL: Final = Sizes(inline=2, page=2, step=2)
"""Sizes with which a few recipients fill several pages, and their rows are made in several steps."""


class NodeClock:
    """A process's own clock: its wall clock may be set wrong, its monotonic one counts true."""

    def __init__(self, loop: SimulationLoop) -> None:
        """Start right."""
        self._loop = loop
        self.off_by = timedelta()

    def now(self) -> datetime:
        """Return the wall clock."""
        return START_AT + timedelta(seconds=self._loop.time()) + self.off_by

    def monotonic(self) -> float:
        """Return seconds since the start of the run."""
        return self._loop.time()

    def boot(self) -> str:
        """Name the one machine that all processes run on."""
        return "simulation"


class StoreHostClock(NodeClock):
    """The clock of the host that the store is on.

    `leaped` is by how many seconds the store's time is ahead of the true one, or behind it: what comes of a store that
    was opened anew after its host's clock had been set.
    """

    def __init__(self, loop: SimulationLoop) -> None:
        """Start right."""
        super().__init__(loop)
        self.leaped = 0.0

    def now(self) -> datetime:
        """Return the wall clock, which nothing may depend on once the store is open (I-37)."""
        return super().now() + timedelta(seconds=self.leaped)

    def monotonic(self) -> float:
        """Return the seconds that the store counts."""
        return super().monotonic() + self.leaped

    @property
    def store_now(self) -> datetime:
        """The store's time as it must be."""
        return START_AT + timedelta(seconds=self.monotonic())


class Ports(Protocol):
    """What nodes are built on."""

    loop: SimulationLoop

    def store(self) -> Store:
        """Open the store, behind the weather."""
        ...

    def vault(self) -> Vault:
        """Open the vault, behind the weather."""
        ...

    def blobs(self) -> Blobs:
        """Open the blobs, behind the weather."""
        ...

    def provider(self, channel: Channel) -> Provider:
        """Open a channel's account."""
        ...

    def plugins(self) -> Sequence[Plugin]:
        """Open the plugins that are installed, behind the weather."""
        ...

    def poisoned(self, process: Process) -> None:
        """Let a process vanish that touched a poisoned job."""
        ...


class Brittle:
    """The real renderer, which crashes its worker on poisoned data, as a segmentation fault would."""

    is_apart = False

    def __init__(self, die: Callable[[], None]) -> None:
        """Render as the real one does."""
        self._die = die
        self.compile = content.renderer().compile
        self.render = content.renderer().render
        self.check = content.renderer().check
        self.check_request = content.renderer().check_request
        self.missing = content.renderer().missing

    async def find_missing(
        self,
        bundle: Bundle,
        data: Sequence[Mapping[str, object]],
        *,
        entities: Sequence[Mapping[str, object]] = (),
        tenant_id: str,
        seconds_max: float,
    ) -> list[tuple[str, ...] | NotMerged]:
        """Name what is missing; crash if any data is poisoned."""
        if any(str(one.get("text")).endswith(content.POISON) for one in data):
            self._die()
        return await content.renderer().find_missing(
            bundle, data, entities=entities, tenant_id=tenant_id, seconds_max=seconds_max
        )


class Node:
    """One process and all that it holds in memory."""

    def __init__(self, ports: Ports, name: str, *, renderer: Renderer | None = None) -> None:
        """Build a process from nothing."""
        self.process = Process(name)
        self.clock = NodeClock(ports.loop)
        store = ports.store()
        keyring, templates = Keyring(store, ports.vault()), Library(store)
        ids = SeededIds(name)
        dispatcher = DeliveryDispatcher(store=store, blobs=ports.blobs(), keyring=keyring)
        recipient_sets = RecipientSets(blobs=ports.blobs(), keyring=keyring)
        providers: Mapping[str, Provider] = {channel: ports.provider(channel) for channel in CHANNELS}
        sends = DirectSends(dispatcher=dispatcher, templates=templates, renderer=content.renderer())
        sources = Sources(Records(store, keyring), ports.plugins())
        self.platform = Platform(
            settings=Settings(store="", blobs="", vault="", providers={}),
            store=store,
            blobs=ports.blobs(),
            keyring=keyring,
            dispatcher=dispatcher,
            recipient_sets=recipient_sets,
            contents=MessagingContents(blobs=ports.blobs(), keyring=keyring),
            templates=templates,
            renderer=renderer or content.renderer(),
            accounts={channel: channel for channel in CHANNELS},
            providers=providers,
            reports=Reports(report_plugins({})),
            sends=sends,
            sources=sources,
            automation=open_automation(store, sources=sources, sends=sends),
            clock=self.clock,
            ids=ids,
            randomness=bytes,  # nobody asks for any here: keys of the API are not made in a simulation
        )
        self.people = People(catalog=store, dispatcher=dispatcher, keyring=keyring)


class Worker(Node):
    """A process that runs the pipeline."""

    def __init__(
        self, ports: Ports, name: str, *, slots: int, paged: bool, lease: timedelta | None, wake_up: WakeUp
    ) -> None:
        """Start the supervisor; one with a lease for what is told and falls due works on that too."""
        super().__init__(ports, name, renderer=Brittle(lambda: ports.poisoned(self.process)))
        self.wake_up = wake_up
        self.stopping = False
        self.supervisor = Supervisor(
            self.platform,
            wake_up=wake_up,
            channels=CHANNELS,
            slots=slots,
            sizes=SMALL if paged else None,
            automates=lease is not None,
            timings=TIMINGS if lease is None else msgspec.structs.replace(TIMINGS, event_lease=lease, due_lease=lease),
        )
        self.running: asyncio.Task[None] = ports.loop.spawn(self.process, self.supervisor.run())

    def hear(self, topic: Topic) -> None:
        """Take a wake-up from another process."""
        if self.process.alive and not self.running.done():
            self.wake_up.hear(topic)

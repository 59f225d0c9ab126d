"""One run: options of a seed, a world, faults, heal, judgement. The same seed gives the same run, to the last step.

1. The seed deals the options. 2. The world is set up in good weather. 3. Clients, people and faults are let loose for
40 to 160 virtual seconds, and every commit is judged; then ports heal, while providers and people go on for a while.
4. Everything heals, and the platform has until the bound to finish what it was asked for. 5. The end is judged against
the ledger.
"""

import asyncio
import gc
import sys
import traceback
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

import msgspec
import structlog

from clarion.testing.simulation import audited, counted, ending
from clarion.testing.simulation.application import Application
from clarion.testing.simulation.client import Clients, Promise
from clarion.testing.simulation.ending import Tally
from clarion.testing.simulation.loop import BudgetSpent, Deadlock, SimulationLoop, nothing_happens
from clarion.testing.simulation.moment import Moments
from clarion.testing.simulation.nemesis import Nemesis
from clarion.testing.simulation.option import Fault, Options
from clarion.testing.simulation.outside import AdapterBroken
from clarion.testing.simulation.person import People
from clarion.testing.simulation.steward import Stewards
from clarion.testing.simulation.verdict import Violation
from clarion.testing.simulation.world import BlobsChange, CallerChange, ProviderChange, RunFailed, StoreChange, World

STEPS_MAX: Final = 300_000
"""Several times what the longest sound run takes."""

BOUND: Final = 3000.0
"""Virtual seconds after the heal (I-25): the longest stall and the leases behind it, an account that rests for five
minutes, and a last wait of the backoff that was reached while the weather was bad (eight minutes)."""

LOOK: Final = 5.0
"""Virtual seconds between two looks whether work is left."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What one run came to."""

    seed: int
    violations: tuple[str, ...]
    tally: Tally
    coverage: dict[str, int]
    seconds: float
    digest: str = ""
    timeline: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether anything is wrong."""
        return bool(self.violations or self.tally.lost or self.tally.duplicate or self.tally.phantom)


def run(
    options: Options,
    *,
    with_timeline: bool = False,
    with_digest: bool = False,
    change_store: StoreChange | None = None,
    change_provider: ProviderChange | None = None,
    change_caller: CallerChange | None = None,
    change_blobs: BlobsChange | None = None,
) -> Report:
    """Run one seed's world to its end and judge it."""
    loop = SimulationLoop(f"loop:{options.seed}", steps_max=STEPS_MAX, with_digest=with_digest)
    timeline: list[str] | None = [] if with_timeline else None
    world = World(
        options,
        loop,
        timeline=timeline,
        change_store=change_store,
        change_provider=change_provider,
        change_caller=change_caller,
        change_blobs=change_blobs,
    )
    clients = Clients(world)
    with _without_collector(), _hearing(world):
        try:
            loop.run_until_complete(_play(world, clients))
        except RunFailed:
            pass  # its violation is noted
        except (Deadlock, BudgetSpent) as error:
            world.violations.append(Violation("I-25", str(error)))
        seconds = loop.time()
        digest = loop.digest
        violations = tuple(map(str, world.violations))  # what comes now is no part of the run
        loop.bury()
        world.close()
    return Report(
        seed=options.seed,
        violations=violations,
        tally=ending.tally(clients, world.evidence),
        coverage=dict(world.coverage.counts),
        seconds=seconds,
        digest=digest,
        timeline=tuple(timeline or ()),
    )


def shrink(options: Options, **changes: Any) -> Options:  # noqa: ANN401  what `run` takes
    """Switch off every kind of fault that a failing run can do without; what is left is the cause."""
    for kind in Fault:
        if kind in options.rates:
            fewer = options.without(kind)
            if run(fewer, **changes).failed:
                options = fewer
    return options


async def _play(world: World, clients: Clients) -> None:
    """Let a run take its course."""
    await world.open()
    clients.start()
    nemesis = Nemesis(world)
    acts = People(world, clients).acts | Stewards(world).acts | nemesis.acts
    application = _application(world)
    if application is not None:
        application.start()
        acts |= application.acts
    moments = Moments(world.options, world.weather, acts)
    world.loop.before_step = moments.at_step
    await nemesis.act_for(world.options.safety_seconds, moments)
    world.trace("ports heal")
    world.weather.heal_ports()
    await nemesis.act_for(world.options.provider_seconds, moments)
    world.trace("everything heals")
    world.weather.heal()
    world.loop.before_step = nothing_happens
    await _until_quiet(world, clients, application)
    if application is not None:
        await _over_nights(world, clients, application)
    world.trace("the end is judged")
    remember(clients, world)
    world.violations += ending.judge(
        clients,
        world.evidence,
        world.watch.books(),
        now=world.loop.time(),
        store_now=world.store_seconds(),
        calm=not world.options.rates,
    )
    world.violations += audited.judge(await world.audit_log(), world.truth.notes)
    world.violations += await counted.judge(world.calm_store(), world.evidence)


def _application(world: World) -> Application | None:
    """Open the application, in a run with automation."""
    agenda, reminding = world.options.agenda, world.truth.reminding
    return None if agenda is None or reminding is None else Application(world, agenda, reminding, world.register)


def remember(clients: Clients, world: World) -> None:
    """Count what was handed over among what was promised: it must reach everybody, or end with a reason."""
    for one in {} if world.truth.reminding is None else world.truth.reminding.handed.values():
        clients.promises[UUID(one.job_guid)] = Promise(job_id=UUID(one.job_guid), plan=one.plan, payload="")


async def _until_quiet(world: World, clients: Clients, application: Application | None) -> None:
    """Wait until the platform has nothing to do any more, or until the bound."""
    healed_at = world.loop.time()
    while world.loop.time() < healed_at + BOUND:
        await asyncio.sleep(LOOK)
        await world.open_gate()
        under_way = clients.busy or world.outside.receipts_under_way or world.stands_still
        if application is not None:
            under_way = under_way or application.busy or world.watch.waiting().now
        if not under_way and not ending.is_open(world.evidence, world.watch.books()):
            break


async def _over_nights(world: World, clients: Clients, application: Application) -> None:
    """Let the time pass in which repairs find what was lost, and what failed is tried again."""
    for hours in NIGHTS:
        await application.tell_all()
        await world.leave(hours * 3600.0)
        await asyncio.sleep(MORNING)
        await _until_quiet(world, clients, application)
        if not world.watch.waiting().later:
            break


MORNING: Final = 20.0
"""Seconds in which workers that have just started begin their rounds."""

NIGHTS: Final = (7.0, *(1.1,) * 4)
"""Hours: longer than the rounds of repairs are apart, and longer than the longest wait before a retry."""


@contextmanager
def _without_collector() -> Iterator[None]:
    """Keep the garbage collector from running code of dead processes in the middle of a run."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def _hearing(world: World) -> Iterator[None]:
    """Listen to the log: what the loop and the supervisor take for a defect is a violation."""

    def hear(_logger: object, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
        error = sys.exc_info()[1] if event.get("exc_info") else None
        if error is not None and not isinstance(error, AdapterBroken):
            where = "".join(traceback.format_exception(error)[-2:])
            world.fail(Violation("defect", f"{event['event']}: {' '.join(where.split())}"))
        raise structlog.DropEvent

    structlog.configure(processors=[hear])
    try:
        yield
    finally:
        structlog.reset_defaults()

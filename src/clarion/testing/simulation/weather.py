"""The weather: what fails, and when. Every call of a port goes through it.

At each call the process may crash before or after it, stand still for longer than any lease, get an error before
anything happened or after everything did. Each kind of fault draws from a stream of its own, so that switching one off
leaves the others as they were. After `heal` nothing fails any more.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Final, Protocol

from clarion.errors import OperatorError, StoreBusy, StoreFull, StoreUnreachable
from clarion.testing.simulation.coverage import Coverage
from clarion.testing.simulation.loop import PROCESS, Process, SimulationLoop
from clarion.testing.simulation.option import AT_PORTS, AT_PROVIDERS, PROVIDER_SHARE, Fault, Options

STALLS: Final = (5.0, 35.0, 70.0, 130.0)
"""Seconds: shorter and longer than a call's timeout (20) and a lease (60), on purpose; all below the margin of a
replay (300), which is what we believe a process can be paused for."""

PAUSES: Final = (0.05, 1.0, *STALLS)
"""Seconds: besides those of a stall two short ones, in which others get ahead and no lease ends."""

POLLS: Final = frozenset(
    {
        "apply_events",
        "claim_due",
        "claim_events",
        "claim_repairs",
        "claim_settings",
        "claim_stage",
        "discover_flows",
        "erase_codes",
        "find_uncertain",
        "note_heartbeat",
        "rescue_due",
        "rescue_events",
        "rescue_outgoing",
        "rescue_stages",
        "sweep_canceled",
    }
)
"""Methods that every worker calls every few seconds, mostly without finding anything."""

POLL_SHARE: Final = 0.05
"""How much rarer faults are at polls, which mostly find nothing; else workers would crash before they had work."""

WORK_STEPS: Final = 30
"""How many steps of a process follow from a call of a port that is no poll, or from a poll that found something: as
many as it takes from a claim to the beginning of its calls, or from a reply to its record."""

RARE: Final = frozenset({"apply_plans", "finish_due"})
"""What is called a few times in a run with automation, where something half done would show."""

RARE_SHARE: Final = 6.0
"""How much more often faults are at such a call."""

CALLING: Final = frozenset({"claim_due", "claim_outgoing", "finish_due", "record_outgoing", "send"})
"""What a process does with a message in hand."""

CALL_STEPS: Final = 8
"""How many steps of a process belong to such a call."""

_ERRORS: Final[tuple[type[OperatorError], ...]] = (StoreUnreachable, StoreBusy, StoreFull)


class Weather:
    """Decides about faults, and makes them happen."""

    def __init__(
        self, options: Options, loop: SimulationLoop, *, coverage: Coverage, trace: Callable[[str], None]
    ) -> None:
        """Strike as often as the options say."""
        shares = dict.fromkeys(AT_PORTS, options.port_share) | dict.fromkeys(AT_PROVIDERS, PROVIDER_SHARE)
        self._rates = {kind: rate * shares.get(kind, 1.0) for kind, rate in options.rates.items()}
        self._streams = {kind: options.chance(f"fault {kind}") for kind in Fault}
        self._loop = loop
        self._coverage = coverage
        self._trace = trace
        self._healed = False
        self.crashed: Callable[[Process], None] = lambda _: None

    def heal_ports(self) -> None:
        """Let ports work from now on; what else may fail still does."""
        self._rates = {kind: rate for kind, rate in self._rates.items() if kind not in AT_PORTS}

    def heal(self) -> None:
        """Let nothing fail from now on."""
        self._healed = True

    @property
    def healed(self) -> bool:
        """Whether nothing fails any more."""
        return self._healed

    def stream(self, kind: Fault) -> Random:
        """Return the chance that belongs to a kind."""
        return self._streams[kind]

    def strikes(self, kind: Fault, *, share: float = 1.0) -> bool:
        """Tell whether a fault of this kind happens here and now, or with a share of its rate."""
        rate = self._rates.get(kind, 0.0) * share
        if self._healed or rate == 0.0 or self._streams[kind].random() >= rate:
            return False
        self.met(kind)
        return True

    def met(self, kind: Fault) -> None:
        """Count a fault that strikes."""
        self._coverage.met(f"fault: {kind}")

    def pause(self, process: Process) -> None:
        """Let a whole process stand still: all of its tasks."""
        seconds = self._streams[Fault.PAUSE].choice(PAUSES)
        now = self._loop.time()
        process.paused_until = now + seconds
        process.suffers(Fault.PAUSE, since=now, until=process.paused_until)
        self._trace(f"{process} is paused for {seconds:g} s")

    def crash(self, process: Process) -> None:
        """Let a process vanish."""
        if process.alive:
            process.alive = False
            process.suffers("crash", since=self._loop.time(), until=float("inf"))
            self._trace(f"{process} crashes")
            self.crashed(process)

    async def before(self, what: str) -> None:
        """Give way to others, and let a call not begin, or begin late."""
        share = _share(what, answer=None)
        await asyncio.sleep(0)
        await self._trouble(Fault.CRASH_BEFORE, what, share=share)

    async def after(self, what: str, answer: object = True) -> None:
        """Give way to others once more, and let a call's caller not live to see its end, or see it late."""
        share = _share(what, answer=answer)
        if share >= 1.0:  # what becomes of a poll that found nothing is of no interest
            await asyncio.sleep(0)
        await self._trouble(Fault.CRASH_AFTER, what, share=share)

    def store_error(self, kind: Fault, what: str, answer: object = None) -> None:
        """Raise as a store does that cannot be reached, before a transaction or after its commit."""
        if not self.strikes(kind, share=_share(what, answer=answer)):
            return
        process = PROCESS.get()
        if process is not None:
            process.suffers(at_call(kind, what), since=self._loop.time(), task=asyncio.current_task())
        error = StoreUnreachable if kind is Fault.STORE_REPLY_LOST else self._streams[kind].choice(_ERRORS)
        self._trace(f"{process}: {kind}: {what}")
        raise error("the weather is bad", hint="wait for the heal")

    async def _trouble(self, crash: Fault, what: str, *, share: float) -> None:
        process = PROCESS.get()
        if process is None:
            return
        if self.strikes(crash, share=share):
            self._trace(f"{process}: {crash}: {what}")
            await self._vanish(process)
        if self.strikes(Fault.STALL, share=share):
            await self._stand_still(process, what)

    async def _vanish(self, process: Process) -> None:
        self.crash(process)
        await self._loop.create_future()

    async def _stand_still(self, process: Process, what: str) -> None:
        seconds = self._streams[Fault.STALL].choice(STALLS)
        now = self._loop.time()
        process.suffers(Fault.STALL, since=now, until=now + seconds, task=asyncio.current_task())
        self._trace(f"{process} stalls for {seconds:.0f} s at {what}")
        await asyncio.sleep(seconds)


def _share(what: str, *, answer: object) -> float:
    """Say how much of a fault's rate holds for a call of a port, and note where a process has work."""
    if what in POLLS and not getattr(answer, "heads", answer):
        return POLL_SHARE
    if (process := PROCESS.get()) is not None:
        process.steps_at_work = WORK_STEPS
        if what in CALLING:
            process.steps_at_call = CALL_STEPS
    return RARE_SHARE if what in RARE else 1.0


def at_call(kind: Fault, method: str) -> str:
    """Name a fault together with the method of the store that it struck."""
    return f"{kind}: {method}"


class Observer(Protocol):
    """Makes the call itself, and looks at what it did."""

    async def observe(
        self, name: str, method: Callable[..., Awaitable[object]], args: Sequence[object], options: dict[str, object]
    ) -> object:
        """Make one call and return what it returns."""
        ...


class Sheltered:
    """A port whose every asynchronous call goes through the weather."""

    def __init__(self, port: object, *, weather: Weather, observer: Observer | None = None) -> None:
        """Stand in front of a port; one that is observed is a store, and may fail before and after it commits."""
        self._port = port
        self._weather = weather
        self._observer = observer

    def __getattr__(self, name: str) -> object:
        """Return the port's own attribute, or its method behind the weather."""
        method = getattr(self._port, name)
        if not inspect.iscoroutinefunction(method):
            return method
        called = self._called(name, method)
        self.__dict__[name] = called
        return called

    def _called(self, name: str, method: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
        weather, observer = self._weather, self._observer

        async def called(*args: object, **options: object) -> object:
            await weather.before(name)
            if observer is None:
                answer = await method(*args, **options)
            else:
                weather.store_error(Fault.STORE_ERROR, name)
                answer = await observer.observe(name, method, args, options)
                weather.store_error(Fault.STORE_REPLY_LOST, name, answer)
            await weather.after(name, answer)
            return answer

        return called

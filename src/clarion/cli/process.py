"""A process that runs until it is told to stop: the API, the workers, or both.

The first SIGTERM or Ctrl-C stops it gracefully: no new connection, no new claim, open requests and calls come to their
end and are recorded. A second one ends it at once, which is as safe as a crash: what was claimed is settled when its
lease runs out.
"""

import asyncio
import errno
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Final

import structlog
import uvicorn

from clarion.api import logs
from clarion.bootstrap import Platform, open_wake_up
from clarion.domain.identity import Channel
from clarion.errors import BadConfiguration, InvalidInput
from clarion.operations.clock import gap_warning
from clarion.sandbox.postman import Postman
from clarion.sandbox.provider import SandboxProvider
from clarion.workers.loop import run
from clarion.workers.supervisor import Supervisor
from clarion.workers.wake_up import Topic, WakeUp

STOP_MAX: Final = timedelta(seconds=30)
"""For a graceful stop: a call may take 20 s and is recorded after it. What takes longer is canceled, which is no worse
than a crash."""

BACKLOG: Final = 1024
"""Connections that may wait to be accepted while a burst is worked off."""

log = structlog.get_logger("clarion.process")


class Server(uvicorn.Server):
    """uvicorn, without signal handlers of its own, and saying when it accepts connections."""

    def __init__(self, config: uvicorn.Config, *, ready: Callable[[], None]) -> None:
        """Serve as configured; `ready` is called once it can be reached."""
        super().__init__(config)
        self._ready = ready

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave signals to the process."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets=sockets)
        if self.started:
            self._ready()


def listen(host: str, port: int, *, host_option: str = "--host", port_option: str = "--port") -> socket.socket:
    """Open a port, or say why it cannot be and which option names another."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        opened = socket.socket(family, kind, protocol)
    except socket.gaierror:
        raise _no_address(host, host_option) from None
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen(BACKLOG)
    except OSError as error:
        opened.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise _no_address(host, host_option) from None
        raise _unusable_port(host, port, error, port_option) from None
    opened.setblocking(False)
    return opened


def process_name() -> str:
    """Name this process as people can find it: its machine and its number there."""
    return f"{socket.gethostname()}:{os.getpid()}"


def set_up_logs(platform: Platform, *, quiet: bool = False) -> None:
    """Send this process's logs to standard error: lines for a person at a terminal, JSON for everything else.

    A quiet process leaves out what is as it should be, such as every request that was answered.
    """
    level = logging.WARNING if quiet else logging.INFO
    logs.set_up(correlation_id=str(platform.ids.new_guid()), json_lines=not sys.stderr.isatty(), level=level)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)  # that it starts and stops, we say ourselves


async def look_at_clock(platform: Platform) -> None:
    """Say in the log where this machine's clock and the store's time differ: the store's decides all the same."""
    gap = gap_warning(await platform.store.now() - platform.clock.now())
    if gap is not None:
        log.warning(gap)  # all of it, since a value beside the words would be masked


def served_channels(platform: Platform, wanted: Sequence[Channel]) -> tuple[Channel, ...]:
    """Choose the channels to work on: those that are named, else all that have a provider."""
    served = tuple(channel for channel in Channel if channel in platform.accounts)
    if not served:
        raise InvalidInput(
            "no channel has a provider",
            field="CLARION_PROVIDERS",
            hint="name at least one as channel=url, or leave the setting out for the sandbox",
        )
    for channel in wanted:
        if channel not in served:
            raise InvalidInput(
                f"no provider is set for {channel}",
                field="--channels",
                hint=f"choose from {', '.join(served)}, or name one in CLARION_PROVIDERS",
            )
    return tuple(wanted) or served


@asynccontextmanager
async def open_process_wake_up(platform: Platform) -> AsyncIterator[WakeUp]:
    """Make this process's wake-ups; where the store can, they reach other processes, and theirs come here."""
    wake_up: WakeUp | None = None

    def hear(topic: str) -> None:
        if wake_up is not None and topic in set(Topic):
            wake_up.hear(Topic(topic))

    async with open_wake_up(platform.settings, hear=hear) as forward:
        wake_up = WakeUp(forward)
        yield wake_up


def postmen(platform: Platform, url: str) -> list[Postman]:
    """Make those who bring the sandbox's receipts to a server, one for each of its accounts in this process."""
    return [
        Postman(provider, account=account, url=url, clock=platform.clock)
        for account, provider in platform.providers.items()
        if isinstance(provider, SandboxProvider)
    ]


async def run_postman(postman: Postman) -> None:
    """Bring receipts until canceled, which costs nothing: what was not answered is brought again."""
    try:
        await run("postman", postman.step, wake=asyncio.Event(), stop=asyncio.Event())
    finally:
        await postman.close()


async def run_until_told(
    *,
    server: Server | None = None,
    sockets: list[socket.socket] | None = None,
    watch: tuple[Server, socket.socket] | None = None,
    supervisor: Supervisor | None = None,
    beside: Sequence[Coroutine[None, None, None]] = (),
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Run what is given until a signal comes, then stop it within bounds; `ready` is for a process without a server.

    `watch` is a second server, with its socket. What runs `beside` is canceled as soon as the rest is to stop.
    """
    told = asyncio.Event()
    with _signals(told.set):
        async with asyncio.TaskGroup() as tasks:
            errands = [tasks.create_task(one) for one in beside]
            running = []
            if supervisor is not None:
                running.append(tasks.create_task(supervisor.run()))
            if server is not None:
                running.append(tasks.create_task(server.serve(sockets=sockets)))
                if watch is not None:
                    running.append(tasks.create_task(watch[0].serve(sockets=[watch[1]])))
            else:
                ready()
            waiting = tasks.create_task(told.wait())
            await asyncio.wait([waiting, *running], return_when=asyncio.FIRST_COMPLETED)
            for task in (waiting, *errands):
                task.cancel()
            log.info("stopping")
            if server is not None:
                server.should_exit = True
                if watch is not None:
                    watch[0].should_exit = True
            if supervisor is not None:
                supervisor.stop()
            _, late = await asyncio.wait(running, timeout=STOP_MAX.total_seconds())
            for task in late:
                log.warning("stopped in the middle of its work, which is settled later")
                task.cancel()
    if server is not None and not server.started:
        raise BadConfiguration("the API could not be started", hint="the lines above say why")


@contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at the first signal, and let the second do what it does by itself: end the process."""
    loop = asyncio.get_running_loop()
    both = (signal.SIGTERM, signal.SIGINT)

    def heard() -> None:
        for one in both:
            loop.remove_signal_handler(one)
            signal.signal(one, signal.SIG_DFL)
        stop()

    for one in both:
        loop.add_signal_handler(one, heard)
    try:
        yield
    finally:
        for one in both:
            loop.remove_signal_handler(one)


def _no_address(host: str, option: str) -> InvalidInput:
    return InvalidInput(
        f"{host!r} is no address of this machine", field=option, hint="use 127.0.0.1, or 0.0.0.0 for all"
    )


def _unusable_port(host: str, port: int, error: OSError, option: str) -> BadConfiguration:
    """Say in one line why a port cannot be opened."""
    match error.errno:
        case errno.EADDRINUSE:
            return BadConfiguration(
                f"the port {port} of {host} is in use",
                hint=f"stop what uses it (another Clarion?), or choose another with {option}",
            )
        case errno.EACCES:
            return BadConfiguration(
                f"this user may not open the port {port}", hint=f"choose one above 1023 with {option}"
            )
        case _:
            return BadConfiguration(
                f"the port {port} of {host} cannot be opened ({error.strerror})", hint=f"choose another with {option}"
            )

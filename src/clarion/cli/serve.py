"""`clarion serve` and `clarion work`: the processes that do the work.

The platform, the server and the workers are imported inside the functions that start them: a command that is asked
wrongly needs none of them.
"""

from collections.abc import Callable
from contextlib import ExitStack
from socket import socket
from typing import TYPE_CHECKING, Annotated

import typer

from clarion.cli import option
from clarion.cli.output import print_json, print_pairs
from clarion.cli.session import settings_with
from clarion.domain.identity import Channel
from clarion.errors import InvalidInput

if TYPE_CHECKING:
    from clarion.bootstrap import Settings

HOST = "127.0.0.1"
PORT = 8025

OPEN = {"metrics": "/metrics", "openapi": "/openapi.json", "page": "/"}
"""What anybody may see and an operator may close, and where it is."""

Host = Annotated[str, typer.Option(help="The address to serve on; 0.0.0.0 for every one of this machine.")]
Port = Annotated[int, typer.Option(help="The port to serve on; 0 for any that is free.", min=0, max=65535)]
Channels = Annotated[str, typer.Option(help="Send on these channels only, separated by commas.", metavar="CHANNEL,...")]
Slots = Annotated[
    int | None,
    typer.Option(
        help="Calls to providers at once, for each channel; without it as many as the provider keeps up with.",
        min=1,
        max=10_000,
    ),
]
Watch = Annotated[
    str, typer.Option("--metrics", help="Serve /metrics and /health here; 0 for any free port.", metavar="[HOST:]PORT")
]


def serve(
    *,
    host: Host = HOST,
    port: Port = PORT,
    channels: Channels = "",
    slots: Slots = None,
    workers: Annotated[bool, typer.Option(help="Run the workers in this process too.")] = True,
    shown: Annotated[
        str | None,
        typer.Option(
            "--open",
            help="What anybody may see on this port without a key, of metrics, openapi and page; none for nothing.",
            metavar="NAME,...",
        ),
    ] = None,
    metrics: Annotated[
        str,
        typer.Option(
            "--metrics",
            help="Serve /metrics, /openapi.json and /health here, and the first two no longer on the API's port unless "
            "--open names them.",
            metavar="[HOST:]PORT",
        ),
    ] = "",
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Serve the API and run the workers, in one process, until Ctrl-C or SIGTERM."""
    wanted, watch = read_channels(channels), read_place(metrics) if metrics else None
    names = read_open(shown, moved=watch is not None)

    from clarion.sandbox.provider import sandbox_url

    settings = settings_with(store)

    def ready(url: str, watch_url: str | None) -> None:
        if as_json:
            reached = {
                "reached_by": who_reaches(host),
                "metrics_url": watch_url,
                "metrics_reached_by": who_reaches(watch[0]) if watch else None,
            }
            print_json({"url": url, "workers": workers, "open": names, **reached})
        else:
            typer.echo(f"serving {url}" + ("" if workers else ", without workers"))
            watched = (watch[0], watch_url) if watch and watch_url else None
            print_doors(
                host,
                names,
                has_outbox=sandbox_url(settings.providers) is not None,
                has_pages=settings.public_url is not None,
                watch=watched,
            )

    from clarion.cli.long_running import run_service
    from clarion.cli.process import listen

    with ExitStack() as stack:
        opened = stack.enter_context(listen(host, port))
        watching = watch and stack.enter_context(listen(*watch, host_option="--metrics", port_option="--metrics"))
        run_service(
            serve_platform(
                settings,
                host=host,
                opened=opened,
                channels=wanted,
                slots=slots,
                workers=workers,
                ready=ready,
                shown=names,
                watch=(watch[0], watching) if watch and watching else None,
            )
        )


def work(
    *,
    channels: Channels = "",
    slots: Slots = None,
    metrics: Watch = "",
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Run workers only, until Ctrl-C or SIGTERM; start as many as you like on PostgreSQL."""
    wanted = read_channels(channels)
    watch = read_place(metrics) if metrics else None

    def ready(served: tuple[Channel, ...], url: str | None) -> None:
        if as_json:
            reached = who_reaches(watch[0]) if watch else None
            print_json({"channels": served, "slots": slots, "url": url, "reached_by": reached})
        else:
            seen = f", metrics at {url}/metrics, open to {who_reaches(watch[0])}" if url and watch else ""
            typer.echo(f"working on {', '.join(served)}{seen}")

    from clarion.cli.long_running import run_service

    run_service(work_on_platform(settings_with(store), channels=wanted, slots=slots, watch=watch, ready=ready))


async def work_on_platform(
    settings: "Settings",
    *,
    channels: tuple[Channel, ...],
    slots: int | None,
    watch: tuple[str, int] | None,
    ready: Callable[[tuple[Channel, ...], str | None], None],
) -> None:
    """Run an installation's workers until told to stop; `ready` is called once they work.

    It is given the channels and, where somebody may watch, the URL at which that host and port are served.
    """
    from clarion.api.metrics import Metrics
    from clarion.bootstrap import open_platform
    from clarion.cli.process import (
        Server,
        listen,
        look_at_clock,
        open_process_wake_up,
        process_name,
        run_until_told,
        served_channels,
        set_up_logs,
    )
    from clarion.workers.supervisor import Supervisor

    with ExitStack() as stack:
        opened = watch and stack.enter_context(listen(*watch, host_option="--metrics", port_option="--metrics"))
        async with open_platform(settings, works=True) as platform, open_process_wake_up(platform) as wake_up:
            served, metrics, server = served_channels(platform, channels), Metrics(), None
            if watch and opened:
                from clarion.api.app import create_watch
                from clarion.api.server import server_config

                url, config = _url(watch[0], opened), server_config(create_watch(platform, metrics=metrics))
                server = Server(config, ready=lambda: ready(served, url))
            set_up_logs(platform)
            await look_at_clock(platform)
            await run_until_told(
                server=server,
                sockets=[opened] if opened else None,
                supervisor=Supervisor(
                    platform,
                    wake_up=wake_up,
                    channels=served,
                    slots=slots,
                    name=process_name(),
                    observe=metrics.observe_call,
                ),
                ready=lambda: ready(served, None),
            )


async def serve_platform(
    settings: "Settings",
    *,
    host: str,
    opened: socket,
    channels: tuple[Channel, ...],
    slots: int | None,
    workers: bool,
    ready: Callable[[str, str | None], None],
    shown: tuple[str, ...],
    watch: tuple[str, socket] | None = None,
    quiet: bool = False,
) -> None:
    """Serve an installation on an open port until told to stop; `ready` is called with the URL once it answers.

    `watch` is a host and an open port for those who watch; its URL is given to `ready` too. `shown` is what anybody may
    see on the API's port. A `quiet` one logs only what somebody should look at.
    """
    from clarion.api.app import create_app, create_watch
    from clarion.api.metrics import Metrics
    from clarion.api.pulse import Pulse
    from clarion.api.server import server_config
    from clarion.bootstrap import open_platform
    from clarion.cli.process import (
        Server,
        look_at_clock,
        open_process_wake_up,
        postmen,
        process_name,
        run_postman,
        run_until_told,
        served_channels,
        set_up_logs,
    )
    from clarion.workers.supervisor import Supervisor
    from clarion.workers.wake_up import Topic

    async with open_platform(settings, works=True) as platform, open_process_wake_up(platform) as wake_up:
        url = _url(host, opened)
        served, metrics = served_channels(platform, channels), Metrics()
        pulse = Pulse(platform.store, clock=platform.clock)
        app = create_app(
            platform, wake=lambda topic: wake_up.wake(Topic(topic)), metrics=metrics, pulse=pulse, shown=shown
        )
        watching, watch_url = None, _url(*watch) if watch else None
        if watch:
            config = server_config(create_watch(platform, metrics=metrics, described=True))
            watching = (Server(config, ready=lambda: None), watch[1])
        supervisor = Supervisor(
            platform,
            wake_up=wake_up,
            channels=served,
            slots=slots,
            name=process_name(),
            observe=metrics.observe_call,
            failed=pulse.note,
        )
        set_up_logs(platform, quiet=quiet)
        await look_at_clock(platform)
        await run_until_told(
            server=Server(server_config(app), ready=lambda: ready(url, watch_url)),
            sockets=[opened],
            watch=watching,
            supervisor=supervisor if workers else None,
            beside=[run_postman(postman) for postman in postmen(platform, url)],
        )


def read_channels(text: str) -> tuple[Channel, ...]:
    """Read channel names separated by commas."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    known = [channel for channel in Channel if channel is not Channel.INBOX]
    for name in names:
        if name not in known:
            raise InvalidInput(f"{name!r} is no channel", field="--channels", hint=f"choose from {', '.join(known)}")
    return tuple(channel for channel in known if channel in names)


def read_open(text: str | None, *, moved: bool) -> tuple[str, ...]:
    """Read what anybody may see, separated by commas; by itself metrics and description, unless they are moved away."""
    if text is None:
        return () if moved else ("metrics", "openapi")
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in (*OPEN, "none") or (name == "none" and len(names) > 1):
            raise InvalidInput(
                f"{name!r} cannot be opened", field="--open", hint=f"choose from {', '.join(OPEN)}, or none alone"
            )
    return tuple(name for name in OPEN if name in names)


def print_doors(
    host: str,
    names: tuple[str, ...],
    *,
    has_outbox: bool,
    has_pages: bool = False,
    watch: tuple[str, str] | None = None,
) -> None:
    """Say what is open to whom; `watch` is the host and the URL for those who watch, where they have their own."""
    paths = ["/health", "/ready", *(path for name, path in OPEN.items() if name in names)]
    watched = [f"{watch[1]}{path}" for path in ("/metrics", "/openapi.json", "/health")] if watch else []
    print_pairs(
        [
            ("reached by", who_reaches(host)),
            ("open to all of them", " ".join(paths)),
            ("with an API key", "/v1" + (", and by a key or a one-time link /sandbox/outbox" if has_outbox else "")),
            ("signed by providers", "/v1/receipts"),
            ("by links in mail", "/u /p" if has_pages else None),
            ("for those who watch", " ".join(watched) or None),
            ("they are", who_reaches(watch[0]) if watch else None),
        ]
    )


def who_reaches(host: str) -> str:
    """Name those who can reach a host."""
    if host == "localhost" or host.startswith("127.") or host == "::1":
        return "programs on this machine, and whoever a proxy here passes on"
    if host in ("0.0.0.0", "::", ""):  # noqa: S104  (not bound here)
        return "everybody who reaches any address of this machine"
    return f"everybody who reaches {host}"


def read_place(text: str) -> tuple[str, int]:
    """Read `[HOST:]PORT`; without a host it is this machine's own."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) <= 65535):
        raise InvalidInput(f"{text!r} names no port", field="--metrics", hint="write a port such as 9100, or HOST:PORT")
    return host.removeprefix("[").removesuffix("]") or HOST, int(port)


def _url(host: str, opened: socket) -> str:
    """Say where a socket is reached; a host that means all addresses is reached through this machine's own."""
    shown = HOST if host in ("0.0.0.0", "::", "") else f"[{host}]" if ":" in host else host  # noqa: S104  (not bound)
    return f"http://{shown}:{opened.getsockname()[1]}"

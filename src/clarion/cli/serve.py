"""`clarion serve` and `clarion work`: the processes that do the work.

What runs is imported only where it is started: the server and the workers cost every other command a quarter second.
"""

import asyncio
from collections.abc import Callable
from typing import Annotated

import typer

from clarion.bootstrap import Settings, open_platform
from clarion.cli import option
from clarion.cli.desk import settings_with
from clarion.cli.output import print_json
from clarion.domain.identity import Channel
from clarion.errors import InvalidInput

HOST = "127.0.0.1"
PORT = 8025

SLOTS = 32
"""Calls at once for each channel: with a provider that answers in 100 ms, some 300 messages a second."""

Host = Annotated[str, typer.Option(help="The address to serve on; 0.0.0.0 for every one of this machine.")]
Port = Annotated[int, typer.Option(help="The port to serve on; 0 for any that is free.", min=0, max=65535)]
Channels = Annotated[str, typer.Option(help="Send on these channels only, separated by commas.", metavar="CHANNEL,...")]
Slots = Annotated[int, typer.Option(help="Calls to providers at once, for each channel.", min=1, max=10_000)]


def serve(
    *,
    host: Host = HOST,
    port: Port = PORT,
    channels: Channels = "",
    slots: Slots = SLOTS,
    workers: Annotated[bool, typer.Option(help="Run the workers in this process too.")] = True,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Serve the API and run the workers, in one process, until Ctrl-C or SIGTERM."""
    wanted = read_channels(channels)

    def ready(url: str) -> None:
        if as_json:
            print_json({"url": url, "workers": workers})
        else:
            typer.echo(f"serving {url}" + ("" if workers else ", without workers"))

    asyncio.run(
        serve_platform(
            settings_with(store),
            host=host,
            port=port,
            channels=wanted,
            slots=slots,
            workers=workers,
            ready=ready,
        )
    )


def work(
    *,
    channels: Channels = "",
    slots: Slots = SLOTS,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Run workers only, until Ctrl-C or SIGTERM; start as many as you like on PostgreSQL."""
    wanted = read_channels(channels)

    def ready(served: tuple[Channel, ...]) -> None:
        if as_json:
            print_json({"channels": served, "slots": slots})
        else:
            typer.echo(f"working on {', '.join(served)}")

    asyncio.run(work_on_platform(settings_with(store), channels=wanted, slots=slots, ready=ready))


async def work_on_platform(
    settings: Settings, *, channels: tuple[Channel, ...], slots: int, ready: Callable[[tuple[Channel, ...]], None]
) -> None:
    """Run an installation's workers until told to stop; `ready` is called with the channels once they work."""
    from clarion.cli.process import open_process_bell, run_until_told, served_channels, set_up_logs
    from clarion.workers.supervisor import Supervisor

    async with open_platform(settings) as platform, open_process_bell(platform) as bell:
        served = served_channels(platform, channels)
        set_up_logs(platform)
        supervisor = Supervisor(platform, bell=bell, channels=served, slots=slots)
        await run_until_told(supervisor=supervisor, ready=lambda: ready(served))


async def serve_platform(
    settings: Settings,
    *,
    host: str,
    port: int,
    channels: tuple[Channel, ...],
    slots: int,
    workers: bool,
    ready: Callable[[str], None],
) -> None:
    """Serve an installation until told to stop; `ready` is called with the URL once it can be reached."""
    from clarion.api.app import create_app
    from clarion.api.metrics import Metrics
    from clarion.api.server import server_config
    from clarion.cli.process import Server, listen, open_process_bell, run_until_told, served_channels, set_up_logs
    from clarion.workers.bell import Topic
    from clarion.workers.supervisor import Supervisor

    with listen(host, port) as opened:
        async with open_platform(settings) as platform, open_process_bell(platform) as bell:
            url = f"http://{_shown_host(host)}:{opened.getsockname()[1]}"
            served, metrics = served_channels(platform, channels), Metrics()
            app = create_app(platform, ring=lambda topic: bell.ring(Topic(topic)), metrics=metrics)
            supervisor = Supervisor(platform, bell=bell, channels=served, slots=slots, observe=metrics.observe_call)
            set_up_logs(platform)
            await run_until_told(
                server=Server(server_config(app), ready=lambda: ready(url)),
                sockets=[opened],
                supervisor=supervisor if workers else None,
            )


def read_channels(text: str) -> tuple[Channel, ...]:
    """Read channel names separated by commas."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    known = [channel for channel in Channel if channel is not Channel.INBOX]
    for name in names:
        if name not in known:
            raise InvalidInput(f"{name!r} is no channel", field="--channels", hint=f"choose from {', '.join(known)}")
    return tuple(channel for channel in known if channel in names)


def _shown_host(host: str) -> str:
    """Write a host as it stands in a URL; one that means all addresses is reached through this machine's own."""
    if host in ("0.0.0.0", "::", ""):  # noqa: S104  (compared, not bound)
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host

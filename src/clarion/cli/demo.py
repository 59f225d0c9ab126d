"""`clarion demo`: a school to try everything with, in one process on this machine; `seed` does its first start."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clarion.cli import option
from clarion.cli.output import called_as, print_json, print_pairs
from clarion.cli.serve import HOST, OPEN, PORT, Host, Port, serve_platform, who_reaches

if TYPE_CHECKING:
    from clarion.bootstrap import Settings

JSON = "-H 'Content-Type: application/json'"
BODY = '{"type": "welcome", "to": [{"user": "parent-3"}], "data": {"name": "Nora"}}'
"""What the printed request over HTTP sends, and as what."""

TUTORIAL = "docs/tutorial/demo.md"
"""Named where it is there: in a clone."""


def demo(
    *,
    host: Host = HOST,
    port: Port = PORT,
    only_seed: Annotated[bool, typer.Option("--only-seed", help="Put the school in, and serve nothing.")] = False,
    as_json: option.Json = False,
) -> None:
    """Start Clarion with a small school in it: API, workers, sandbox. Ctrl-C stops it; the data stays."""
    import asyncio

    from clarion.bootstrap import load_settings
    from clarion.cli import school
    from clarion.cli.seed import key_path, seed

    settings, token = load_settings(), None
    if only_seed:
        token = asyncio.run(seed(settings))
        if as_json:
            print_json({"tenant_id": school.TENANT, "key_file": str(key_path(settings)), "new": token is not None})
        else:
            typer.echo(f"the tenant {school.TENANT} is ready, its API key is in {key_path(settings)}")
        return

    from clarion.cli.long_running import run_service
    from clarion.cli.process import listen

    def ready(url: str, _watch_url: str | None) -> None:
        if as_json:
            places = {"url": url, "tenant_id": school.TENANT, "key_file": str(key_path(settings))}
            print_json(places | {"outbox": _outbox_link(settings, url)})
        else:
            _print_places(settings, host=host, url=url, token=token)

    with listen(host, port) as opened:  # before anything is made, which would be for nothing if the port is in use
        token = asyncio.run(seed(settings))
        run_service(
            serve_platform(
                settings,
                host=host,
                opened=opened,
                channels=(),
                slots=None,
                workers=True,
                ready=ready,
                shown=tuple(OPEN),
                quiet=True,
            )
        )


def _outbox_link(settings: "Settings", url: str) -> str | None:
    """Make a one-time link to what the school was sent, where the sandbox has it."""
    from clarion.cli import school
    from clarion.cli.outbox import link_to
    from clarion.sandbox.provider import sandbox_url

    if sandbox_url(settings.providers) is None:
        return None
    return link_to(settings, server=url, tenant_id=school.TENANT)


def _print_places(settings: "Settings", *, host: str, url: str, token: str | None) -> None:
    """Say where everything is and what to try."""
    import shlex

    from clarion.bootstrap import DEFAULT_HOME
    from clarion.cli import school
    from clarion.cli.seed import key_path

    typer.echo("Clarion is running, with a small school in it. Ctrl-C stops it; the data stays.\n")
    print_pairs(
        [
            ("start", f"{url}/"),
            ("outbox", _outbox_link(settings, url)),
            ("API", f"{url}/openapi.json"),
            ("ready", f"{url}/ready"),
            ("reached by", None if host == HOST else who_reaches(host)),
            ("data", settings.home or "where CLARION_STORE says"),
            ("API key", None if token else f"in {key_path(settings)}, for this user only"),
            ("tutorial", TUTORIAL if Path(TUTORIAL).is_file() else None),
        ]
    )
    if token is not None:
        typer.echo(f"\nThe API key, shown this once; {key_path(settings)} keeps it for this user only:\n\n  {token}")
    clarion, key = called_as(), shlex.quote(str(key_path(settings)))
    commands = [
        f"""{clarion} send welcome --to user@example.com --data '{{"name": "you"}}'""",
        f"{clarion} outbox",
        f"{clarion} outbox --opened 1",
        f"{clarion} history {school.CHILD.type}:{school.CHILD.guid}",
        f"{clarion} settings",
        f"{clarion} explain --would newsletter --user parent-12",
        f"{clarion} upcoming",
        f"{clarion} automation list held",
        f"{clarion} rehearse --days 30",
        f"{clarion} uncertain list",
        f"{clarion} types",
        f"""curl -s {url}/v1/notifications -H "Authorization: Bearer $(cat {key})" {JSON} -d '{BODY}'""",
    ]
    if settings.home is not None and settings.home != Path.cwd() / DEFAULT_HOME:
        commands.insert(0, f"export CLARION_HOME={shlex.quote(str(settings.home))}")
    lines = "".join(f"  {command}\n" for command in commands)
    typer.echo(f"\nTry, in another terminal in this folder:\n\n{lines}")

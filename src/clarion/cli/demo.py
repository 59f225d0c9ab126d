"""`clarion demo`: a school to try everything with, in one process on this machine.

The first start makes the installation, publishes the sample notifications, puts in people and groups, makes an API key
and sends what a first day brings. Every step is idempotent and the key's file is written last, so a start that was
interrupted is simply made again, and a later one finds the file and changes nothing.
"""

import asyncio
import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from clarion.bootstrap import DEFAULT_HOME, Platform, Settings, load_settings, open_platform, prepare
from clarion.catalog.access import Access
from clarion.catalog.people import People
from clarion.catalog.publish import Publisher
from clarion.cli import option, school
from clarion.cli.access import grant
from clarion.cli.long_running import run_service
from clarion.cli.output import called_as, print_json, print_pairs, progress
from clarion.cli.serve import HOST, PORT, Host, Port, serve_platform
from clarion.cli.session import Session, acting, open_session
from clarion.errors import BadConfiguration, InvalidInput
from clarion.ports.catalog import Role

KEY_FILE = "demo-api-key"
ACTOR = "demo"

JSON = "-H 'Content-Type: application/json'"
BODY = '{"type": "welcome", "to": [{"user": "parent-3"}], "data": {"name": "Nora"}}'
"""What the printed request over HTTP sends, and as what."""


def demo(
    *,
    host: Host = HOST,
    port: Port = PORT,
    definitions: Annotated[
        Path, typer.Option(help="The folder with the sample notifications.", metavar="FOLDER")
    ] = Path("definitions"),
    only_seed: Annotated[bool, typer.Option("--only-seed", help="Put the school in, and serve nothing.")] = False,
    as_json: option.Json = False,
) -> None:
    """Start Clarion with a small school in it: API, workers, sandbox. Ctrl-C stops it; the data stays."""
    if not definitions.is_dir():
        raise InvalidInput(
            f"there is no folder {str(definitions)!r} here",
            field="--definitions",
            hint="start the demo in the clone's folder, or name the folder with the sample notifications",
        )
    settings, token = load_settings(), None
    if only_seed:
        token = asyncio.run(seed(settings, definitions))
        if as_json:
            print_json({"tenant_id": school.TENANT, "key_file": str(key_path(settings)), "new": token is not None})
        else:
            typer.echo(f"the tenant {school.TENANT} is ready, its API key is in {key_path(settings)}")
        return

    from clarion.cli.process import listen

    def ready(url: str) -> None:
        if as_json:
            print_json({"url": url, "tenant_id": school.TENANT, "key_file": str(key_path(settings))})
        else:
            _print_places(settings, url=url, token=token)

    with listen(host, port) as opened:  # before anything is made, which would be for nothing if the port is in use
        token = asyncio.run(seed(settings, definitions))
        run_service(
            serve_platform(settings, host=host, opened=opened, channels=(), slots=None, workers=True, ready=ready)
        )


async def seed(settings: Settings, definitions: Path) -> str | None:
    """Make the school unless it is there; return its new API key, or None where there was one."""
    with progress("preparing") as step:
        step("database")
        await prepare(settings)
        async with open_platform(settings) as platform:
            if await _is_seeded(platform, key_path(settings)):
                return None
            await platform.dispatcher.ensure_tenant(school.TENANT, actor=acting())
            session = await open_session(platform, tenant=school.TENANT)
            publisher = Publisher(catalog=session.store, renderer=platform.renderer)
            await publisher.publish(school.TENANT, folder=definitions, actor=session.actor, progress=step)
            step("people")
            people = People(catalog=session.store, dispatcher=platform.dispatcher, keyring=platform.keyring)
            await people.put(school.TENANT, [*school.PARENTS, *school.EMPLOYEES], trace=session.trace)
            for group in school.GROUPS:
                await people.put_group(school.TENANT, group)
            step("the first day")
            await _send_first_day(session)
            minted = await grant(session, actor=ACTOR, role=Role.ADMIN)
            _write_key(key_path(settings), minted.token)
            return minted.token


def key_path(settings: Settings) -> Path:
    """Say where the demo's API key is kept: in the home, or where the program was started if nothing lies there."""
    return (settings.home or Path.cwd()) / KEY_FILE


async def _is_seeded(platform: Platform, path: Path) -> bool:
    """Tell whether an earlier start came to its end: its key is there and opens the door."""
    caller = await Access(platform.store, clock=platform.clock).check(_read_key(path))
    return caller is not None and caller.tenant_id == school.TENANT


async def _send_first_day(session: Session) -> None:
    for key, asked in school.FIRST_DAY.items():
        await session.operations.notifications.send(
            session.tenant_id, asked, key=key, actor=session.actor, trace=session.trace
        )


def _read_key(path: Path) -> str:
    """Read the key that an earlier start kept; empty where there is none."""
    try:
        return path.read_text(encoding="ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return ""
    except OSError as error:
        raise _unusable(path, error) from None


def _write_key(path: Path, token: str) -> None:
    """Keep the key for this user only, in place of one that opens nothing."""
    try:
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(f"{token}\n")
    except OSError as error:
        raise _unusable(path, error) from None


def _unusable(path: Path, error: OSError) -> BadConfiguration:
    return BadConfiguration(
        f"the API key cannot be kept in {path} ({error.strerror})", hint="let this user write a file there"
    )


def _print_places(settings: Settings, *, url: str, token: str | None) -> None:
    """Say where everything is and what to try."""
    typer.echo("Clarion is running, with a small school in it. Ctrl-C stops it; the data stays.\n")
    print_pairs(
        [
            ("outbox", f"{url}/sandbox/outbox"),
            ("API", f"{url}/openapi.json"),
            ("ready", f"{url}/ready"),
            ("API key", f"in {key_path(settings)}, for this user only"),
            ("data", settings.home or "where CLARION_STORE says"),
            ("tutorial", "docs/tutorial/demo.md"),
        ]
    )
    if token is not None:
        typer.echo(f"\nThe API key, shown this once:\n\n  {token}")
    clarion, key = called_as(), shlex.quote(str(key_path(settings)))
    commands = [
        f"""{clarion} send welcome --to user@example.com --data '{{"name": "you"}}'""",
        f"{clarion} outbox",
        f"{clarion} outbox --opened 1",
        f"{clarion} history {school.CHILD.type}:{school.CHILD.guid}",
        f"{clarion} uncertain list",
        f"{clarion} types",
        f"""curl -s {url}/v1/notifications -H "Authorization: Bearer $(cat {key})" {JSON} -d '{BODY}'""",
    ]
    if settings.home is not None and settings.home != Path.cwd() / DEFAULT_HOME:
        commands.insert(0, f"export CLARION_HOME={shlex.quote(str(settings.home))}")
    lines = "".join(f"  {command}\n" for command in commands)
    typer.echo(f"\nTry, in another terminal in this folder:\n\n{lines}")

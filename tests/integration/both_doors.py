"""The same question at both doors: a command with `--json` and a request to the API, over one installation."""

import asyncio
import shlex
from pathlib import Path
from typing import Any

import httpx
import msgspec
from typer.testing import CliRunner, Result

from clarion.api.app import create_app
from clarion.bootstrap import Platform, Settings, load_settings, open_platform
from clarion.cli.program import program
from clarion.domain.call import CallOutcome
from clarion.domain.claim import ClaimedMessage
from clarion.domain.identity import Channel
from clarion.pipeline.generate import Generate
from clarion.pipeline.schedule import Schedule
from clarion.workers.supervisor import Supervisor
from clarion.workers.wake_up import WakeUp

DATA = shlex.quote('{"name": "Sam"}')
"""What `{data}` stands for in a line."""


def said(home: Path, line: str, **ids: str) -> dict[str, Any]:
    answer: dict[str, Any] = msgspec.json.decode(printed(home, line, **ids))
    return answer


def printed(home: Path, line: str, **ids: str) -> bytes:
    """Run a command and return what it prints."""
    done = invoked(home, line, **ids)
    assert done.exit_code == 0, done
    return done.stdout_bytes.removesuffix(b"\n")


def invoked(home: Path, line: str, **ids: str) -> Result:
    arguments = shlex.split(line.format(data=DATA, **ids))
    return CliRunner().invoke(program, [*arguments, "--json"], env={"CLARION_HOME": str(home)})


def answered(home: Path, method: str, path: str, **options: Any) -> bytes:
    """Ask the API and return its body."""

    async def ask() -> bytes:
        async with open_platform(settings_of(home)) as platform:
            app: Any = create_app(platform, wake=lambda _topic: None)
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                headers = {"authorization": f"Bearer {(home / 'key').read_text()}", **options.pop("headers", {})}
                answer = await client.request(method, path, headers=headers, **options)
                assert answer.status_code < 300, answer.text
                return answer.content

    return asyncio.run(ask())


def settings_of(home: Path) -> Settings:
    return load_settings({"CLARION_HOME": str(home)})


async def work(platform: Platform, *, calls: int) -> None:
    """Do what the workers do, until so many calls were made."""
    store = platform.store
    generate = Generate(
        queue=store,
        facts=store,
        templates=platform.templates,
        renderer=platform.renderer,
        dispatcher=platform.dispatcher,
        keyring=platform.keyring,
        sets=platform.recipient_sets,
        contents=platform.contents,
        clock=platform.clock,
    )
    schedule = Schedule(queue=store, facts=store)
    while await schedule.step() + await generate.step():
        pass
    made: list[CallOutcome] = []

    def observe(_message: ClaimedMessage, outcome: CallOutcome, _seconds: float) -> None:
        made.append(outcome)
        if len(made) == calls:
            supervisor.stop()

    supervisor = Supervisor(platform, wake_up=WakeUp(), channels=(Channel.EMAIL,), slots=4, observe=observe)
    await supervisor.run()

"""An installation under test, used as anybody would: by the program `clarion` and over HTTP.

`House` is a folder with everything in it; `House.serving` starts a real process on a free port. `until` is the one way
to wait: it looks again and again until something is so, and fails with what it saw last.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from clarion.adapters.host import HostClock
from clarion.sandbox.ledger import Ledger, SandboxMessage
from tests.warm import COMMANDS

PROGRAM = Path(sys.executable).with_name("clarion")
ROOT = Path(__file__).parents[2]
DEFINITIONS = ROOT / "src/clarion/cli/definitions"

PATIENCE = 30.0
"""Seconds: ten times what a step takes on a machine that is busy with other tests; only a failure waits so long."""

LOOK_EVERY = 0.03
"""Seconds between two looks: short for a person, and longer than a look takes."""

T = TypeVar("T")


def until(look: Callable[[], T], *, so: Callable[[T], object] = bool, seconds: float = PATIENCE) -> T:
    """Look until the condition holds and return what was seen; fail with the last thing seen if it never does."""
    clock, rest = HostClock(), threading.Event()
    end = clock.monotonic() + seconds
    while True:
        seen = look()
        if so(seen):
            return seen
        assert clock.monotonic() < end, f"it did not come to pass within {seconds} s; last seen: {seen!r}"
        rest.wait(LOOK_EVERY)


def is_sent(timeline: list[str]) -> bool:
    """Tell whether a timeline says that a provider has it; a receipt may come before the record of its own call."""
    return "sent" in timeline or "delivered" in timeline


class Answer(msgspec.Struct, frozen=True):
    """What came back over HTTP."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.content)


class Served:
    """A running `clarion serve`, or another command that says where it serves in one line of JSON."""

    def __init__(self, process: "subprocess.Popen[str]", *, token: str, log: Path) -> None:
        self.process = process
        self.log = log
        self._token = token
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, f"it did not start: {log.read_text()}"
        self.ready: dict[str, Any] = msgspec.json.decode(line)
        self.url: str = self.ready.get("url", "")

    def call(
        self, method: str, path: str, body: object = None, *, token: str | None = None, headers: Mapping[str, str] = {}
    ) -> Answer:
        """Make one request, as JSON unless the body is bytes."""
        sent = {"authorization": f"Bearer {self._token if token is None else token}", **headers}
        content = body if isinstance(body, bytes) else None if body is None else msgspec.json.encode(body)
        if content is not None:
            sent.setdefault("content-type", "application/json")
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=PATIENCE)
        try:
            connection.request(method, path, body=content, headers=sent)
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def send(self, body: object, *, key: str | None = None) -> Answer:
        """Ask for a notification."""
        return self.call("POST", "/v1/notifications", body, headers={"idempotency-key": key} if key else {})

    def timeline(self, ident: str) -> list[str]:
        """What happened, in order, over HTTP; nothing as long as nobody knows the id."""
        answer = self.call("GET", f"/v1/messages/{ident}/timeline")
        return [line["what"] for line in answer.json["lines"]] if answer.status == 200 else []

    def stop(self, by: signal.Signals = signal.SIGTERM) -> int:
        """Tell it to stop and return its exit code."""
        self.process.send_signal(by)
        return self.process.wait(timeout=PATIENCE)

    def kill(self) -> None:
        """End it at once, as a power cut would."""
        self.process.kill()
        self.process.wait(timeout=PATIENCE)


class House:
    """One installation in a folder."""

    def __init__(self, home: Path, **environment: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CLARION_")}
        self.home = home
        self.environment = {**kept, "CLARION_HOME": str(home), **environment}
        self.token = ""

    def copy(self, home: Path) -> "House":
        """Make another installation with the same content; nothing may run in this one."""
        shutil.copytree(self.home, home)
        other = House(home)
        other.token = self.token
        return other

    def run(
        self, *arguments: str, given: str | None = None, off_by: timedelta = timedelta()
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end, whatever that is; with a wall clock that is off by so much."""
        return subprocess.run(
            [*(program(off_by) if off_by else COMMANDS[-1:]), *arguments],
            env=self.environment,
            input=given,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE,
            check=False,
            cwd=ROOT,
        )

    def ask(self, *arguments: str, off_by: timedelta = timedelta()) -> Any:
        """Run a command that must succeed, with `--json`, and return what it says."""
        done = self.run(*arguments, "--json", off_by=off_by)
        assert (done.returncode, done.stderr) == (0, ""), done
        return msgspec.json.decode(done.stdout)

    def outbox(self) -> list[SandboxMessage]:
        """What was delivered, oldest first, read from the sandbox itself: that is the outside world."""
        ledger = Ledger(self.home / "sandbox.db")
        try:
            return list(ledger.page(limit=200).messages[::-1])
        finally:
            ledger.close()

    def sent(self, message_id: str) -> list[SandboxMessage]:
        """What was delivered of one message."""
        return [one for one in self.outbox() if str(one.message_id) == message_id]

    def timeline(self, ident: str) -> list[str]:
        """What happened, in order, by the shell."""
        return [line["what"] for line in self.ask("explain", ident)["lines"]]

    @contextmanager
    def serving(self, *options: str, command: str = "serve", off_by: timedelta = timedelta()) -> Iterator[Served]:
        """Start a process on a free port, and end it whatever happens."""
        port = ("--port", "0") if command in ("serve", "demo") else ()
        log = self.home.parent / f"{self.home.name}.log"
        with log.open("a") as stderr:
            process = subprocess.Popen(
                [*program(off_by), command, *port, "--json", *options],
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                cwd=ROOT,
            )
        try:
            yield Served(process, token=self.token, log=log)
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


def program(off_by: timedelta) -> list[str]:
    """Name the program, on a machine whose wall clock is off by so much."""
    if not off_by:
        return [str(PROGRAM)]
    return [sys.executable, "-m", "tests.acceptance.off_clock", str(off_by.total_seconds())]


def build(home: Path, **environment: str) -> House:
    """Make an installation with one tenant, the sample notifications and a key, by the program's own commands."""
    house = House(home, **environment)
    assert house.run("migrate").returncode == 0
    house.ask("tenants", "create", "school")
    house.ask("publish", str(DEFINITIONS))
    house.token = house.ask("keys", "create", "--actor", "tests", "--role", "admin")["token"]
    return house

"""A program under soak: `clarion serve` or `clarion work`, started, killed and started again as an operator would."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec

from clarion.ports.clock import Clock
from clarion.testing.postgres import death_with_parent

READY_WITHIN: Final = 60.0
"""Seconds until a program that was started says that it is ready: one or two, on a machine that is free."""

LOG_TAIL: Final = 600
"""Characters of a program's log that are shown where it ended by itself."""


class Life(msgspec.Struct, kw_only=True):
    """One process of a program: when it was started, and when and in the middle of what it was killed."""

    program: str
    started_at: datetime
    killed_at: datetime | None = None
    moment: str = ""
    open_calls: int = 0
    open_requests: int = 0


class Program:
    """One command, and the process that runs it now."""

    def __init__(
        self,
        name: str,
        options: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: Path,
        lease: timedelta | None,
        clock: Clock,
    ) -> None:
        """Describe a command; with a lease its workers have a shorter one than users have (`short`)."""
        self.name = name
        self.lives: list[Life] = []
        self.said: dict[str, Any] = {}
        self._options = list(options)
        self._environment = {**os.environ, **environment}
        self._log = folder / f"{name}.log"
        self._clock = clock
        self._process: Process | None = None
        self._ready = asyncio.Event()
        short = [sys.executable, "-m", "clarion.testing.soak.short", str(lease and lease.total_seconds())]
        self._command = short if lease else [str(Path(sys.executable).with_name("clarion"))]

    @property
    def life(self) -> Life:
        """The process that runs now, or ran last."""
        return self.lives[-1]

    async def start(self) -> None:
        """Start a process and wait until it says that it is ready."""
        self._process = None
        self.lives.append(Life(program=self.name, started_at=self._clock.now()))
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(*self._command, self.name, "--json", *self._options),
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=log,
                env=self._environment,
                preexec_fn=death_with_parent(),
            )
        output = self._process.stdout
        async with asyncio.timeout(READY_WITHIN):
            line = await output.readline() if output is not None else b""
        if not line:
            raise RuntimeError(f"clarion {self.name} did not start: {self._tail()}")
        self.said = msgspec.json.decode(line)
        self._ready.set()

    async def ready(self) -> None:
        """Wait until it is ready."""
        await self._ready.wait()

    def kill(self, *, moment: str, open_calls: int, open_requests: int) -> bool:
        """End it at once, without a word; False where it is being started again already."""
        if self._process is None or self.life.killed_at is not None:
            return False
        self._process.send_signal(signal.SIGKILL)
        self._ready.clear()
        self.life.killed_at = self._clock.now()
        self.life.moment = moment
        self.life.open_calls = open_calls
        self.life.open_requests = open_requests
        return True

    async def start_again(self) -> None:
        """Start it again after a kill."""
        if self._process is not None:
            await self._process.wait()
        await self.start()

    def serve_on(self, port: int) -> None:
        """Serve on the same port when started again: clients know no other."""
        self._options += ["--port", str(port)]

    def ended_by_itself(self) -> str | None:
        """Say how it ended where nobody told it to."""
        if self._process is None or self._process.returncode is None or self.life.killed_at is not None:
            return None
        return f"clarion {self.name} ended by itself with {self._process.returncode}: {self._tail()}"

    async def stop(self) -> None:
        """Stop it as an operator would."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()

    def _tail(self) -> str:
        return self._log.read_text(errors="replace")[-LOG_TAIL:]

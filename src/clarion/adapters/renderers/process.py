"""One process that merges, as the pool sees it: started, asked one request at a time, ended when it does not answer.

It is started as a program of its own and not forked off: this process has threads, and a fork would copy their locks
as they happen to be. Its environment is empty but for where Python finds its modules. Writes requests and reads
replies; what they are about is the pool's business.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Final

import msgspec

from clarion.adapters.renderers.frame import BUNDLES_BYTES_MAX, REPLIES, Answer, Frames, Reply, Request, framed
from clarion.domain.held import Held
from clarion.ports.renderer import Bundle

SILENT_MAX: Final = 5.0
"""Seconds in which a process that was asked says nothing before it is ended. One merge has a second of processor time
and answers are not held back, so this is for a process that was stopped, or that waits for something."""

START_MAX: Final = 30.0
"""Seconds until a process says for the first time that it is ready; half a second on a machine that is not busy."""

MODULE: Final = "clarion.adapters.renderers.child"


class Process(asyncio.Protocol):
    """A process and the request that it works on."""

    def __init__(self, *, idle: Callable[["Process"], None], ended: Callable[["Process"], None]) -> None:
        """Say when the process can be asked again, and when it has ended."""
        self.is_idle = False
        self.was_ready = False
        self._idle, self._ended = idle, ended
        self._frames = Frames()
        self._answered: Callable[[list[Answer]], None] = lambda _answers: None
        self._held = Held[str, None](BUNDLES_BYTES_MAX)
        self._silence: asyncio.TimerHandle | None = None
        self._closing = asyncio.Event()
        self._reads = False
        self._program: subprocess.Popen[bytes] | None = None
        self._requests: asyncio.WriteTransport | None = None

    @property
    def pid(self) -> int | None:
        """The id of the process, once it was started."""
        return None if self._program is None else self._program.pid

    async def start(self, module: str) -> None:
        """Start it; `idle` is called when it is ready."""
        self._program = subprocess.Popen(  # noqa: ASYNC220, S603  (begun in a few ms; all that it is given is ours)
            [sys.executable, "-P", "-m", module, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PYTHONUTF8": "1"},
            process_group=0,  # Ctrl-C in a terminal is for this process, which lets its work come to an end
        )
        loop = asyncio.get_running_loop()
        self._watch(START_MAX)
        writer, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, self._program.stdin)
        self._requests = writer
        self._reads = True
        await loop.connect_read_pipe(lambda: self, self._program.stdout)

    def ask(self, request: Request, bundle: Bundle, answered: Callable[[list[Answer]], None]) -> None:
        """Ask an idle process; `answered` is called with answers as they come, and `idle` when there are no more."""
        self.is_idle = False
        if request.content_hash not in self._held:
            request = msgspec.structs.replace(request, bundle=bundle)
            self._held.put(request.content_hash, None, size=bundle.size)
        self._answered = answered
        self._watch(SILENT_MAX)
        if self._requests is not None:
            self._requests.write(framed(request))

    def data_received(self, data: bytes) -> None:
        """Pass answers on."""
        for message in self._frames.feed(data):
            self._heard(REPLIES.decode(message))

    def connection_lost(self, exc: Exception | None) -> None:
        """Say that it has ended, by itself or because it was killed."""
        del exc
        self.kill()
        self._rest()
        if self._requests is not None and not self._requests.is_closing():
            self._requests.abort()
        if self._program is not None:
            self._program.wait()  # it was killed: there is nothing to wait for but its last breath
        self._closing.set()
        self.is_idle = False
        self._ended(self)

    def kill(self) -> None:
        """End it at once; `ended` is called soon."""
        if self._program is not None:
            self._program.kill()

    async def close(self, *, seconds_max: float) -> None:
        """Let an idle process end by itself, and kill it where it does not."""
        if self._requests is not None:
            self._requests.close()
        if not self.is_idle:
            self.kill()
        if not self._reads:  # it was not started, or not to the end
            if self._program is not None:
                self._program.wait()
            return
        try:
            async with asyncio.timeout(seconds_max):
                await self._closing.wait()
        except TimeoutError:
            self.kill()
            await self._closing.wait()

    def _heard(self, reply: Reply) -> None:
        if reply.answers:
            self._answered(reply.answers)
        if not reply.is_last:
            self._watch(SILENT_MAX)
            return
        self._rest()
        self.is_idle = self.was_ready = True
        self._idle(self)

    def _watch(self, seconds: float) -> None:
        self._rest()
        self._silence = asyncio.get_running_loop().call_later(seconds, self.kill)

    def _rest(self) -> None:
        if self._silence is not None:
            self._silence.cancel()

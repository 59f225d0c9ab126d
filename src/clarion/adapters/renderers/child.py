"""A process that merges and does nothing else: started by the pool, asked through a pipe, ended with its parent.

It has no environment, no open file but its pipes, and a limit of memory. Each merge has a limit of processor time that
the kernel enforces: a merge that runs on ends the process, whatever code it is stuck in, and the pool starts another.
Reads requests and writes replies; nothing else.
"""

import ctypes
import gc
import os
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from traceback import extract_tb
from typing import Final

from clarion.adapters.host import HostClock
from clarion.adapters.renderers.frame import (
    BUNDLES_BYTES_MAX,
    LENGTH_BYTES,
    MERGES,
    READY,
    REQUESTS,
    Answer,
    Broken,
    Checked,
    Failed,
    Lacks,
    Refused,
    Reply,
    Request,
    Waits,
    Work,
    framed,
)
from clarion.adapters.renderers.renderer import LiquidRenderer
from clarion.domain.held import Held
from clarion.errors import BadConfiguration, InvalidInput, RenderFailed
from clarion.ports.renderer import Bundle, Merge

MEMORY_MAX: Final = 256 * 1024 * 1024
"""Bytes beside what the process has when it starts: hundreds of times what the step limits let a merge hold, and room
for the parsed templates of all tenants."""

PROCESSOR_SECONDS_MAX: Final = 1.0
"""For one merge. The step limits allow some 50 ms on the machine of the benchmark; what takes twenty times as long is
stuck in work that they do not see."""

PARSING_SECONDS_MAX: Final = 4.0
"""For parsing a channel's templates in one locale, once in each process. The largest that may be published takes half a
second."""

REPLY_AFTER: Final = 0.002
"""Seconds for which answers wait for others to share a reply: small ones come by the dozen, heavy ones one by one."""

_DIE_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG of Linux

OUT_OF_MEMORY: Final = 3
"""The exit code of a process whose memory was not enough."""


def main(parent_id: int) -> None:
    """Answer requests until the parent closes the pipe or ends."""
    _end_with(parent_id)
    incoming, outgoing = _take_pipes()
    _limit_memory()
    gc.freeze()
    _write(outgoing, READY)
    child = Child(LiquidRenderer(), HostClock().monotonic, lambda reply: _write(outgoing, reply))
    with suppress(BrokenPipeError):
        while (message := _read(incoming)) is not None:
            child.serve(REQUESTS.decode(message))


class Child:
    """The bundles of one process, and what is done with them."""

    def __init__(self, renderer: LiquidRenderer, seconds: Callable[[], float], reply: Callable[[Reply], None]) -> None:
        """Work with this renderer by this clock, and say what comes of it."""
        self._renderer = renderer
        self._seconds = seconds
        self._reply = reply
        self._held = Held[str, Bundle](BUNDLES_BYTES_MAX)

    def serve(self, request: Request) -> None:
        """Answer the items of a request until its time is over."""
        if request.bundle is not None:
            self._held.put(request.content_hash, request.bundle, size=request.bundle.size)
        bundle = self._held.get(request.content_hash)
        if bundle is None:
            raise LookupError("the bundle is not held")  # ends this process: the parent's count differs from ours
        signal.setitimer(signal.ITIMER_PROF, PARSING_SECONDS_MAX)
        merges = [MERGES.decode(item) for item in request.items]
        with suppress(RenderFailed):  # where it has nothing for the channel or cannot be parsed; each merge says so
            locales = {merge.locale for merge in merges}
            self._renderer.parse_here(bundle, request.channel, locales, begin=self._begin_parsing)
        replied_at = now = self._seconds()
        until = now + request.seconds
        answers: list[Answer] = []
        for merge in merges:
            signal.setitimer(signal.ITIMER_PROF, PROCESSOR_SECONDS_MAX)
            answers.append(self._answer(request, bundle, merge))
            now = self._seconds()
            if now >= until:
                break
            if request.each or now - replied_at > REPLY_AFTER:
                self._reply(Reply(answers, is_last=False))
                answers, replied_at = [], now
        signal.setitimer(signal.ITIMER_PROF, 0)
        self._reply(Reply(answers, is_last=True))

    def _begin_parsing(self) -> None:
        """Give one locale its time, and have the parent wait: a check needs all locales, and there can be many."""
        signal.setitimer(signal.ITIMER_PROF, PARSING_SECONDS_MAX)
        self._reply(Reply([], is_last=False))

    def _answer(self, request: Request, bundle: Bundle, merge: Merge) -> Answer:
        """Do the work on one item."""
        try:
            match request.work:
                case Work.MERGE | Work.PREVIEW if request.channel is not None:
                    return self._renderer.merge(bundle, request.channel, merge)
                case Work.MISSING:
                    return Lacks(self._renderer.missing(bundle, merge.data, entity=merge.entity))
                case _:
                    is_look = request.work is Work.LOOK
                    return Checked(self._renderer.check(bundle, merge.data, entity=merge.entity, briefly=is_look))
        except RenderFailed as error:
            return Failed.of(error)
        except InvalidInput as error:
            return Refused.of(error)
        except BadConfiguration as error:
            return Waits(str(error))
        except MemoryError:  # what is left of the heap is not to be trusted with another message
            os._exit(OUT_OF_MEMORY)
        except Exception as error:  # noqa: BLE001  (told to the parent, which logs it)
            place = extract_tb(error.__traceback__)[-1]
            return Broken(f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}")


def _end_with(parent_id: int) -> None:
    """Have the kernel end this process when its parent ends, however that comes; signals are the parent's to hear."""
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)  # they come to a whole group; the parent ends us when its work is done
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent_id:  # it ended before the kernel was told
        os._exit(0)


def _take_pipes() -> tuple[int, int]:
    """Keep the pipes for frames alone: what a library prints must not end up between them."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return incoming, outgoing


def _limit_memory() -> None:
    """Let this process have no more memory than it needs, and leave no image of it behind when it is ended."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) if sys.platform == "linux" else 0
    most = pages * resource.getpagesize() + MEMORY_MAX
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _read(pipe: int) -> bytes | None:
    """Read one message; None where the parent has closed the pipe."""
    head = _read_exactly(pipe, LENGTH_BYTES)
    return None if head is None else _read_exactly(pipe, int.from_bytes(head, "big"))


def _read_exactly(pipe: int, count: int) -> bytes | None:
    pieces: list[bytes] = []
    while count:
        piece = os.read(pipe, count)
        if not piece:
            return None
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def _write(pipe: int, reply: Reply) -> None:
    """Write one reply."""
    rest = memoryview(framed(reply))
    while rest:
        rest = rest[os.write(pipe, rest) :]


if __name__ == "__main__":
    main(int(sys.argv[1]))

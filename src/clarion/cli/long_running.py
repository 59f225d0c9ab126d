"""How a process runs that serves or sends until it is stopped."""

import asyncio
import gc
import resource
import sys
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

SWEEP_EVERY: Final = 50_000
"""New objects between two runs of the garbage collector: a message makes dozens, and no cycles for it to find."""

GIVE_WAY_AFTER: Final = 0.0005
"""Seconds until the interpreter gives way to a thread that waits for it, such as an HTTP client's with its replies."""

FILES_MAX: Final = 65_536
"""Open files of a process that serves or sends: more connections than its channels and its callers have together."""


def run_service(work: Coroutine[Any, Any, T]) -> T:
    """Run a process that serves or sends, with the settings of decision 0020."""
    import uvloop  # here, because loading it would make short commands slower

    gc.freeze()
    gc.set_threshold(SWEEP_EVERY)
    sys.setswitchinterval(GIVE_WAY_AFTER)
    _allow_connections()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def _allow_connections() -> None:
    """Have as many connections as the system allows: a process may have 1,024 unless it asks, a pump alone 1,000."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, FILES_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

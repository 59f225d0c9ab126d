"""The loop: runs one step again and again, wakes on a hint, rests when idle, stops between steps.

An error that the installation causes (the store is down) is logged and waited out; any other is a defect, logged with
its trace, and waited out too, because one bad batch must not end the work of all others. Nothing is lost by it: what
was claimed comes back when its lease runs out.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from clarion.errors import OperatorError

POLL: Final = 1.0
"""Seconds between looks without a wake-up, and so the most that a lost one costs."""

AFTER_ERROR: Final = 1.0
"""Seconds before a failed step is tried again: a store can recover meanwhile, and people hardly notice the wait."""

log = structlog.get_logger("clarion.workers")


async def run(
    name: str,
    step: Callable[[], Awaitable[int]],
    *,
    wake: asyncio.Event,
    stop: asyncio.Event,
    rest: Callable[[], float] = lambda: float("inf"),
    worked: Callable[[], None] = lambda: None,
    failed: Callable[[OperatorError], None] = lambda _error: None,
    after_error: float = AFTER_ERROR,
    poll: float = POLL,
) -> None:
    """Run a step until told to stop; `worked` is called whenever it has done something.

    `failed` hears of every error that the installation causes, beside the log.

    An idle step rests until it is woken, for `rest()` seconds or for `poll`, whichever is less.
    """
    while not stop.is_set():
        wake.clear()
        try:
            done = await step()
        except OperatorError as error:
            log.warning("step failed, trying again", step=name, code=error.code, error=str(error))
            failed(error)
            await doze(stop, after_error)
            continue
        except Exception:
            log.exception("step failed by a defect, trying again", step=name)
            await doze(stop, after_error)
            continue
        if done:
            worked()
        else:
            await doze(wake, min(poll, rest()))


async def doze(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, but not for longer than this, in whole milliseconds: a timer may fire that much too early."""
    try:
        async with asyncio.timeout(math.ceil(seconds * 1000) / 1000):
            await event.wait()
    except TimeoutError:
        return

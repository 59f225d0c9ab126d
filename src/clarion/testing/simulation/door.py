"""A door of the simulated installation, as somebody outside meets it: it answers, refuses, or says nothing in time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from clarion.errors import ClarionError
from clarion.testing.simulation.loop import SimulationLoop
from clarion.testing.simulation.node import Node

ANSWER_SECONDS: Final = 15.0
"""How long somebody waits for a door: as long as an HTTP client would."""

T = TypeVar("T")


class NoAnswer(Exception):
    """A door did not answer: it is down, it died, or it is too slow."""


async def ask_door(loop: SimulationLoop, door: Node | None, work: Callable[[Node], Awaitable[T]]) -> T:
    """Have a door do something, and wait for its answer; raise what it raises, or NoAnswer."""
    if door is None or not door.process.alive:
        raise NoAnswer("connection refused")
    answer: asyncio.Future[T] = loop.create_future()
    loop.start(door.process, _answered(door, work, answer))
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await answer
    except TimeoutError:
        raise NoAnswer("no answer in time") from None


async def _answered(door: Node, work: Callable[[Node], Awaitable[T]], answer: "asyncio.Future[T]") -> None:
    """Do a door's work, and answer if anybody still waits."""
    try:
        result = await work(door)
    except ClarionError as error:
        if not answer.done():
            answer.set_exception(error)
    else:
        if not answer.done():
            answer.set_result(result)

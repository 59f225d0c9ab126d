"""Asking: how somebody has something done at one of the doors, and how that is noted.

What is asked for is noted before, and that it is done when the door has done it, whether or not anybody still waits.
"""

from collections.abc import Awaitable, Callable, Coroutine

from clarion.errors import ClarionError
from clarion.testing.simulation.door import NoAnswer
from clarion.testing.simulation.moment import Act
from clarion.testing.simulation.node import Node
from clarion.testing.simulation.notes import Asked
from clarion.testing.simulation.world import World


class Asking:
    """Somebody who asks."""

    def __init__(self, world: World, *, chance: str) -> None:
        """Ask in a world, by chance from a stream of this name."""
        self._world = world
        self._chance = world.options.chance(chance)

    def _begin(self, act: Callable[[], Coroutine[None, None, None]]) -> Act:
        """Make an act of something that takes time: it goes on beside everything else."""
        return lambda _process: self._world.loop.start(None, act())

    def _notes(self, kind: str, subject: str) -> Asked:
        """Note what is asked for, in the words of the audit log."""
        return self._world.truth.notes.asks(kind, subject, at=self._world.loop.time())

    async def _ask(self, work: Callable[[Node], Awaitable[object]], asked: Asked | None = None) -> None:
        """Ask once, without waiting longer for the answer than a person would; note when the door has done it."""

        async def noted(door: Node) -> None:
            answer = await work(door)
            if asked is not None:
                asked.done(answer, at=self._world.loop.time())

        try:
            await self._world.ask(noted)
        except (ClarionError, NoAnswer) as error:
            self._world.trace(f"person: no answer ({error})")

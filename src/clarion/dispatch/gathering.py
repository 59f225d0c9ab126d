"""Gathering: what is asked for while a set is under way waits, and goes together as the next set.

A commit costs nearly the same for one item as for a hundred, so callers who come at the same time share one. Whoever
comes alone is served at once: nobody waits for company.

Sets are kept apart by a key (a tenant), and keys take turns, so that many requests of one do not hold up those of
another. What goes wrong with one item is told to its own caller only. Knows nothing of what is gathered; holds nothing
but what waits.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from copy import copy
from typing import Final, Generic, TypeVar

from clarion.errors import OperatorError
from clarion.ports.ensure import ITEMS_MAX

SETS_MAX: Final = 4
"""Sets under way at once, of different keys: less than half of a process's connections to its store, so that a stream
of requests leaves the others to the workers and to those who read."""

BYTES_MAX: Final = 1024 * 1024
"""Of one set. Sixteen of the largest items or thousands of usual ones; nobody behind it waits long for its writing."""

PATIENCE: Final = 0.03
"""Seconds after which the next set of a key no longer waits for the one before it: more than a set of a hundred takes
on a quiet machine. On a busy one sets then overlap, and one that waits for a lock, or for a store that hangs, holds up
nobody but those who are in it."""

K = TypeVar("K", bound=Hashable)
I = TypeVar("I")  # noqa: E741  an item
O = TypeVar("O")  # noqa: E741  an outcome


class _Asked(Generic[I, O]):
    """One item and whoever waits for it."""

    __slots__ = ("answer", "item", "size")

    def __init__(self, item: I, size: int) -> None:
        self.item = item
        self.size = size
        self.answer: asyncio.Future[O] = asyncio.get_running_loop().create_future()


class Gathering(Generic[K, I, O]):
    """Makes sets of what single callers ask for."""

    def __init__(self, work: Callable[[K, Sequence[I]], Awaitable[Sequence[O]]]) -> None:
        """Have sets done by `work`, which is given a key and its items and answers them in the order given.

        It must be safe to repeat: items of a set that failed are tried again in smaller sets.
        """
        self._work = work
        self._waiting: dict[K, deque[_Asked[I, O]]] = {}
        self._turns: deque[K] = deque()  # keys with items that wait, and no set under way
        self._under_way: set[K] = set()
        self._tasks: set[asyncio.Task[None]] = set()  # the loop itself holds them only weakly

    async def ask(self, key: K, item: I, *, size: int = 0) -> O:
        """Have an item done, alone or with others; answer or raise as for a set of its own.

        A caller that is canceled while it waits leaves the others as they are. Its own item is left out if no set has
        taken it yet; else it is done, and nobody hears of it.
        """
        asked: _Asked[I, O] = _Asked(item, size)
        waiting = self._waiting.get(key)
        if waiting is None:
            waiting = self._waiting[key] = deque()
            if key not in self._under_way:
                self._turns.append(key)
        waiting.append(asked)
        self._begin()
        return await asked.answer

    def _begin(self) -> None:
        """Begin as many sets as may be under way; each takes its items when its task first runs."""
        while self._turns and len(self._under_way) < SETS_MAX:
            key = self._turns.popleft()
            self._under_way.add(key)
            task = asyncio.get_running_loop().create_task(self._serve(key))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, key: K) -> None:
        """Do one set of a key, then let the next one begin; that is not kept waiting by a set that takes too long."""
        gone_on = False

        def go_on() -> None:
            nonlocal gone_on
            if not gone_on:
                gone_on = True
                self._under_way.discard(key)
                if key in self._waiting:
                    self._turns.append(key)
                self._begin()

        late = asyncio.get_running_loop().call_later(PATIENCE, go_on)
        taken = self._take(key)
        try:
            await self._do(key, taken)
        finally:
            late.cancel()
            for asked in taken:
                asked.answer.cancel()  # nothing but a canceled task leaves any without an answer
            go_on()

    def _take(self, key: K) -> list[_Asked[I, O]]:
        """Take what waits, up to the bounds of a set and without those whose callers have gone."""
        waiting, taken, size = self._waiting[key], list[_Asked[I, O]](), 0
        while waiting and len(taken) < ITEMS_MAX and (not taken or size + waiting[0].size <= BYTES_MAX):
            asked = waiting.popleft()
            if not asked.answer.done():
                taken.append(asked)
                size += asked.size
        if not waiting:
            del self._waiting[key]
        return taken

    async def _do(self, key: K, taken: Sequence[_Asked[I, O]]) -> None:
        """Do a set and answer each of its callers.

        What the store or the installation is at fault for hits all of them alike, and all are told. Any other error is
        about an item, which is looked for by halves, so that the others proceed.
        """
        if not taken:
            return
        try:
            outcomes = await self._work(key, [asked.item for asked in taken])
        except OperatorError as error:
            for asked in taken:
                _fail(asked, copy(error), cause=error)
        except Exception as error:  # noqa: BLE001  it is the caller's, who gets it
            if len(taken) == 1:
                _fail(taken[0], error, cause=error.__cause__)
                return
            half = len(taken) // 2
            await self._do(key, taken[:half])
            await self._do(key, taken[half:])
        else:
            for asked, outcome in zip(taken, outcomes, strict=True):
                if not asked.answer.done():
                    asked.answer.set_result(outcome)


def _fail(asked: _Asked[I, O], error: Exception, *, cause: BaseException | None) -> None:
    """Tell a caller of an error, unless it has gone."""
    error.__cause__ = cause
    if not asked.answer.done():
        asked.answer.set_exception(error)

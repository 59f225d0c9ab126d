"""Whose merges come next: tenants take turns, and each turn is short.

What a caller wants at once is a batch; its items wait in their tenant's line. A turn takes items of one tenant that a
process can be asked together: the same work with the same bundle. The process works on them for a moment and gives back
what it did not begin, so a tenant with a thousand heavy merges keeps another one waiting for one turn and no longer.
Memory of one pool; reads and writes nothing.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Final

from clarion.adapters.renderers.frame import Answer, Work
from clarion.domain.identity import Channel
from clarion.ports.renderer import Bundle, NotMerged

ITEMS_MAX: Final = 200
"""Items of one turn: more than are merged in its time, unless they are very small."""

BYTES_MAX: Final = 1024 * 1024
"""Data of one turn, except that one item may have more."""


class Care(IntEnum):
    """How an item is merged after a process ended in the middle of it and of others."""

    NONE = 0
    EACH = 1  # each item is answered at once, so that the next end shows whose merge it was
    ALONE = 2  # and that one is tried by itself


class Batch:
    """What one caller wants, and what came of it so far."""

    __slots__ = ("answers", "bundle", "channel", "done", "open", "tenant_id", "until", "work")

    def __init__(
        self, work: Work, bundle: Bundle, channel: Channel | None, *, tenant_id: str, count: int, until: float
    ) -> None:
        """Have nothing answered yet; `until` is when nobody waits for it any more."""
        self.work, self.bundle, self.channel = work, bundle, channel
        self.tenant_id, self.until = tenant_id, until
        self.answers: list[Answer | NotMerged | None] = [None] * count
        self.open = count
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Item:
    """One of the items of a batch."""

    __slots__ = ("batch", "care", "data", "position")

    def __init__(self, batch: Batch, position: int, data: bytes) -> None:
        """Begin without special care."""
        self.batch, self.position, self.data, self.care = batch, position, data, Care.NONE

    @property
    def is_answered(self) -> bool:
        """Whether it was answered, by a process or for want of time."""
        return self.batch.answers[self.position] is not None

    def answer(self, answer: Answer | NotMerged) -> None:
        """Answer it, unless that was done."""
        if self.is_answered:
            return
        self.batch.answers[self.position] = answer
        self.batch.open -= 1
        if not self.batch.open and not self.batch.done.done():
            self.batch.done.set_result(None)

    def goes_with(self, other: "Item") -> bool:
        """Tell whether a process can be asked both at once."""
        mine, its = self.batch, other.batch
        return (
            self.care is other.care
            and mine.work is its.work
            and mine.channel is its.channel
            and mine.bundle.content_hash == its.bundle.content_hash
        )


class Turns:
    """The lines of all tenants, in the order of their turns."""

    def __init__(self) -> None:
        """Start with nobody waiting."""
        self._lines: dict[str, deque[Item]] = {}

    def __bool__(self) -> bool:
        """Whether anybody waits."""
        return bool(self._lines)

    def add(self, items: Iterable[Item]) -> None:
        """Put items at the end of their tenants' lines."""
        for item in items:
            self._lines.setdefault(item.batch.tenant_id, deque()).append(item)

    def put_back(self, items: list[Item]) -> None:
        """Put items of one tenant at the beginning of its line; its next turn comes after those of the others."""
        if items:
            self._lines.setdefault(items[0].batch.tenant_id, deque()).extendleft(reversed(items))

    def take(self, may: Callable[[str], bool]) -> list[Item]:
        """Take the next turn of a tenant that may have one; empty where there is none."""
        for tenant_id in self._lines:
            if may(tenant_id):
                line = self._lines.pop(tenant_id)
                turn = _turn(line)
                if line:
                    self._lines[tenant_id] = line  # behind everybody else
                return turn
        return []

    def clear(self) -> list[Item]:
        """Take everything."""
        items = [item for line in self._lines.values() for item in line]
        self._lines.clear()
        return items


def _turn(line: deque[Item]) -> list[Item]:
    """Take what goes with the first of a line."""
    turn = [line.popleft()]
    size = len(turn[0].data)
    alone = turn[0].care is Care.ALONE
    while line and not alone and len(turn) < ITEMS_MAX and turn[0].goes_with(line[0]):
        size += len(line[0].data)
        if size > BYTES_MAX:
            break
        turn.append(line.popleft())
    return turn

"""Settle: decide about sends of which nobody knows whether they arrived, as `domain.uncertain` says.

A worker judges the accounts that it serves, and leaves the others to those who know them.
"""

from collections.abc import Mapping
from typing import Final

from clarion.domain.uncertain import settlement
from clarion.ports.provider import Provider
from clarion.ports.queue import QueueStore

BATCH: Final = 200
"""As for every step: a bounded set."""


class Settle:
    """The step that decides about uncertain sends."""

    def __init__(self, *, queue: QueueStore, providers: Mapping[str, Provider]) -> None:
        """Work on this queue; `providers` by account."""
        self._queue = queue
        self._providers = providers

    async def step(self) -> int:
        """Decide about a batch of uncertain sends; return how many."""
        uncertain = await self._queue.find_uncertain(accounts=tuple(self._providers), limit=BATCH)
        if uncertain:
            settlements = [settlement(send, self._providers[send.account].replay) for send in uncertain]
            await self._queue.settle_uncertain(settlements, actor="settle")
        return len(uncertain)

"""Settle: decide about sends of which nobody knows whether they arrived.

A doubt is replayed where the provider de-duplicates or replaces and its window is still open (I-10), after a pause that
grows with every call that was not answered, and for as many of those as any message has attempts; else the notification
type's policy decides: `prefer_duplicate` replays once, counted apart, `prefer_loss` lets it rest in `Uncertain`, with
the decision on its timeline. Evidence that comes later still settles it; absence of evidence never does (I-13). A
worker judges the accounts that it serves, and leaves the others to those who know them.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from clarion.domain.backoff import ATTEMPTS_IN_DOUBT_MAX, ATTEMPTS_MAX, retry_delay
from clarion.domain.call import Replay
from clarion.domain.claim import Doubt, DoubtVerdict
from clarion.domain.outgoing import DoubtPolicy
from clarion.ports.provider import Provider
from clarion.ports.queue import QueueStore

BATCH: Final = 200
"""As for every step: a bounded set."""


class Settle:
    """The stage for doubts."""

    def __init__(self, *, queue: QueueStore, providers: Mapping[str, Provider]) -> None:
        """Work on this queue; `providers` by account."""
        self._queue = queue
        self._providers = providers

    async def step(self) -> int:
        """Decide about a batch of doubts; return how many."""
        doubts = await self._queue.find_doubts(accounts=tuple(self._providers), limit=BATCH)
        if doubts:
            verdicts = [_verdict(doubt, self._providers[doubt.account].replay) for doubt in doubts]
            await self._queue.settle_doubts(verdicts, actor="settle")
        return len(doubts)


def _verdict(doubt: Doubt, replay: Replay) -> DoubtVerdict:
    """Judge one doubt."""
    if doubt.is_over:
        return _judged(doubt, replay=False, reason="left as it is: it was canceled, or its time has run out")
    if doubt.unanswered >= ATTEMPTS_MAX or doubt.attempts >= ATTEMPTS_IN_DOUBT_MAX:
        return _judged(
            doubt, replay=False, reason=f"left as it is: of {doubt.attempts} calls none was answered for good"
        )
    if replay.allows(unproven_for=doubt.unproven_for):
        return _judged(doubt, replay=True, reason="replayed: the provider makes a second one harmless")
    if doubt.doubt_policy is DoubtPolicy.PREFER_DUPLICATE and doubt.replays == 0:
        return _judged(
            doubt, replay=True, duplicate=True, reason="replayed once: this type prefers a duplicate to a loss"
        )
    return _judged(doubt, replay=False, reason="left as it is: it may have arrived, and a duplicate would be worse")


def _judged(doubt: Doubt, *, replay: bool, duplicate: bool = False, reason: str) -> DoubtVerdict:
    return DoubtVerdict(
        id=doubt.id,
        bucket=doubt.bucket,
        version=doubt.version,
        replay=replay,
        counts_as_duplicate=duplicate,
        reason=reason,
        delay=_pause(doubt) if replay else timedelta(),
    )


def _pause(doubt: Doubt) -> timedelta:
    """Wait longer after each call that the provider did not answer; a worker that was lost is no fault of its own."""
    return retry_delay(key=f"{doubt.message_id}:{doubt.channel}", attempt=max(doubt.unanswered, 1))

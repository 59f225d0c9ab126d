"""Schedule: decide whether a pending job goes on. Reads settings; moves scheduler rows to generate or to Skipped.

Who receives what on which channel is decided in generate, where the recipients are frozen.
"""

from datetime import timedelta
from typing import Final

from clarion.domain.claim import StageClaim, StageResult
from clarion.domain.identity import Lane
from clarion.domain.notification import STAGE_LEASE, NotificationStatus, Stage
from clarion.ports.facts import FactStore
from clarion.ports.queue import QueueStore

BATCH: Final = 200
"""Enough that statements are shared, few enough that a worker that dies leaves little behind."""


class Schedule:
    """The first stage."""

    def __init__(self, *, queue: QueueStore, facts: FactStore, lease: timedelta = STAGE_LEASE) -> None:
        """Work on this queue with these facts."""
        self._queue = queue
        self._facts = facts
        self._lease = lease

    async def step(self) -> int:
        """Decide about a batch of pending jobs; return how many."""
        claims = await self._queue.claim_stage(Stage.SCHEDULE, lanes=tuple(Lane), limit=BATCH, lease=self._lease)
        if not claims:
            return 0
        disabled = await self._facts.find_disabled_types({(claim.tenant_id, claim.job.event_type) for claim in claims})
        await self._queue.finish_stage([_decided(claim, disabled) for claim in claims])
        return len(claims)


def _decided(claim: StageClaim, disabled: set[tuple[str, str]]) -> StageResult:
    """Skip what the tenant has switched off; send the rest on."""
    if (claim.tenant_id, claim.job.event_type) in disabled:
        reason = f"the notification type {claim.job.event_type!r} is switched off for this tenant"
        return claim.ended(NotificationStatus.SKIPPED, stage=Stage.SCHEDULE, reason=reason)
    return claim.ended(NotificationStatus.READY, stage=Stage.GENERATE)

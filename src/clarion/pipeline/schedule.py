"""Schedule: decide whether a pending job goes on. Reads settings; moves scheduler rows to generate or to Skipped.

Who receives what on which channel is decided in generate, where the recipients are frozen.
"""

from datetime import timedelta
from typing import Final
from uuid import UUID

from clarion.domain.claim import StageClaim, StageResult
from clarion.domain.identity import Lane
from clarion.domain.notification import STAGE_LEASE, NotificationStatus, Stage
from clarion.domain.setting import EffectiveSetting, switched_off
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
        settings = await self._facts.find_settings({_asked(claim) for claim in claims})
        await self._queue.finish_stage([_decided(claim, settings[_asked(claim)]) for claim in claims])
        return len(claims)


def _asked(claim: StageClaim) -> tuple[str, str, UUID | None]:
    return claim.tenant_id, claim.job.event_type, claim.job.business_unit


def _decided(claim: StageClaim, setting: EffectiveSetting) -> StageResult:
    """Skip what is switched off; send the rest on."""
    off = switched_off(claim.job.event_type, setting)
    if off is not None:
        rule, why = off
        return claim.ended(NotificationStatus.SKIPPED, stage=Stage.SCHEDULE, reason=why, rule=rule)
    return claim.ended(NotificationStatus.READY, stage=Stage.GENERATE)

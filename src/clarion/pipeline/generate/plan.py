"""One job on its way through generate, and the ways in which it ends early. Pure values."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Final

import msgspec

from clarion.dispatch.request import Payload
from clarion.domain.claim import StageClaim, StageResult
from clarion.domain.notification import NotificationStatus, Stage
from clarion.ports.renderer import Bundle, NotMerged

TENANT_RESTS_FOR: Final = timedelta(minutes=5)
"""How long jobs are put off if something is wrong with their whole tenant, so that somebody has time to mend it."""

NOT_MERGED_FOR: Final = timedelta(seconds=1)
"""How long a job waits whose inbox line was not merged for want of time, or because a renderer ended."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One job with all that making its rows needs."""

    claim: StageClaim
    bundle: Bundle
    payload: Payload

    @property
    def job_id(self) -> int:
        """The stored job's id."""
        return self.claim.job.id or 0


def by_bundle(plans: Sequence[Plan]) -> Collection[list[Plan]]:
    """Put jobs together whose templates are the same."""
    batches: dict[str, list[Plan]] = defaultdict(list)
    for plan in plans:
        batches[plan.bundle.content_hash].append(plan)
    return batches.values()


def put_off(claim: StageClaim, delay: timedelta, reason: str) -> StageResult:
    """Give a claim back for a while."""
    return claim.ended(NotificationStatus.READY, stage=Stage.GENERATE, reason=reason, delay=delay)


def not_merged(claim: StageClaim, why: NotMerged) -> StageResult:
    """Give a claim back because of a merge that was not made."""
    return put_off(claim, TENANT_RESTS_FOR if why.counts or why.is_held else NOT_MERGED_FOR, why.reason)


def fail(claim: StageClaim, reason: str) -> StageResult:
    """End a job for good."""
    return claim.ended(NotificationStatus.FAILED, stage=Stage.GENERATE, reason=reason)

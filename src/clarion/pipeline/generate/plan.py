"""One job on its way through generate, and the ways in which it ends early. Pure values."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from clarion.dispatch.request import Payload
from clarion.domain.claim import StageClaim, StageResult
from clarion.domain.notification import NotificationStatus, Stage
from clarion.domain.recipient import MANIFEST_BEGINS
from clarion.domain.skip import SkipRule
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
    claimed_at: datetime | None
    """By the store's clock."""

    @property
    def job_id(self) -> int:
        """The stored job's id."""
        return self.claim.job.id or 0

    @property
    def is_large(self) -> bool:
        """Whether it is made in steps: its set lies, or will lie, in pages, or its lines were too many for one."""
        return self.claim.scheduler.cursor is not None or (self.claim.job.recipients or "").startswith(MANIFEST_BEGINS)

    @property
    def expires_at(self) -> datetime | None:
        """When its time to live is over; None where it lives for ever."""
        ttl, job = self.payload.ttl_seconds or self.bundle.definition.ttl_seconds, self.claim.job
        starts_at = max(job.source_at, self.payload.due_at or job.source_at)
        if self.claimed_at is not None:
            # A job that was accepted in a time that was taken back since lives from now on, not from then.
            starts_at = min(starts_at, self.claimed_at)
        return None if ttl is None else starts_at + timedelta(seconds=ttl)


def by_bundle(plans: Sequence[Plan]) -> Collection[list[Plan]]:
    """Put jobs together whose templates are the same."""
    batches: dict[str, list[Plan]] = defaultdict(list)
    for plan in plans:
        batches[plan.bundle.content_hash].append(plan)
    return batches.values()


def put_off(claim: StageClaim, delay: timedelta, reason: str) -> StageResult:
    """Give a claim back for a while."""
    return claim.ended(NotificationStatus.READY, stage=Stage.GENERATE, reason=reason, delay=delay)


def rest(plan: Plan, reason: str) -> StageResult:
    """Give a job back until somebody has mended something, but end it with its time to live.

    After that nobody has any use for it, and the data of a one-time code must not lie there for ever (X-23).
    """
    delay = TENANT_RESTS_FOR
    if plan.expires_at is not None and plan.claimed_at is not None:
        delay = min(delay, plan.expires_at - plan.claimed_at)
    if delay <= timedelta():
        return fail(plan.claim, f"its time ran out while it waited: {reason}")
    return put_off(plan.claim, delay, reason)


def not_merged(plan: Plan, why: NotMerged) -> StageResult:
    """Give a job back because of a merge that was not made."""
    return rest(plan, why.reason) if why.counts or why.is_held else put_off(plan.claim, NOT_MERGED_FOR, why.reason)


def fail(claim: StageClaim, reason: str) -> StageResult:
    """End a job for good."""
    return claim.ended(NotificationStatus.FAILED, stage=Stage.GENERATE, reason=reason)


def nobody(claim: StageClaim, reason: str) -> StageResult:
    """End a job that is for nobody."""
    return claim.ended(NotificationStatus.SKIPPED, stage=Stage.GENERATE, reason=reason, rule=SkipRule.NOBODY)

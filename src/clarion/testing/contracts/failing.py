"""Failing: a job that failed for good opens a support case, and runs again when a person retries it."""

from datetime import timedelta

import msgspec
import pytest

from clarion.domain.claim import StageClaim
from clarion.domain.notification import NotificationScheduler, NotificationStatus, Stage
from clarion.domain.support import SupportCase, SupportKind
from clarion.errors import InvalidInput
from clarion.testing.contracts.harness import StoreHarness, everything
from clarion.testing.contracts.pump import near
from clarion.testing.contracts.stages import FINISHED, PAST_LEASE, claim, finished, make_pending, row_of
from clarion.testing.factories import TEXT, guid, notification_job

FAILED, READY = NotificationStatus.FAILED, NotificationStatus.READY


async def fail(harness: StoreHarness, one: StageClaim, reason: str = "no template") -> None:
    """Finish a claim with a permanent error."""
    assert await harness.store.finish_stage([finished(one, FAILED, reason=reason)]) == {one.scheduler.id}


async def make_failed(harness: StoreHarness) -> int:
    """Store a job that was rescued, retried and has failed in its second stage."""
    scheduler_id = await make_pending(harness)
    await claim(harness)
    await harness.elapse(PAST_LEASE)
    await harness.store.rescue_stages(limit=10, rescues_max=5)
    (one,) = await claim(harness)
    await harness.store.finish_stage([finished(one, READY, is_retry=True)])
    (one,) = await claim(harness, Stage.GENERATE)
    await fail(harness, one)
    return scheduler_id


async def retry(harness: StoreHarness, tenant_id: str | None = None, actor: str = "sam") -> bool:
    """Retry the first job by hand."""
    tenant = tenant_id or harness.tenant_id
    return await harness.store.retry_job(tenant, notification_job(1).guid, actor=actor, reason=TEXT)


async def cases(harness: StoreHarness) -> list[SupportCase]:
    """Read the tenant's support cases."""
    return await harness.rows(harness.tenant_id, SupportCase)


class FailingContract:
    """Jobs that ended in `Failed`."""

    async def test_a_job_that_fails_opens_its_case_with_the_reason(self, harness: StoreHarness) -> None:
        """Whichever stage found it; a job that ends in another way opens none."""
        for n in range(len(FINISHED)):
            await make_pending(harness, n)
        claims = await claim(harness)
        results = [finished(one, to, reason=f"{to}: {TEXT}") for one, to in zip(claims, FINISHED, strict=True)]
        assert len(await harness.store.finish_stage(results)) == len(FINISHED)
        (case,) = await cases(harness)
        failed = claims[FINISHED.index(FAILED)].scheduler
        assert (case.kind, case.record, case.seen_count) == (SupportKind.DEAD_LETTER, "NotificationScheduler", 1)
        assert msgspec.json.decode(case.record_key) == list(failed.key)
        assert msgspec.json.decode(case.details) == {"stage": Stage.GENERATE, "reason": f"Failed: {TEXT}"}

    async def test_a_claim_that_is_lost_opens_no_case(self, harness: StoreHarness) -> None:
        """A worker that lost its claim opens no case: the present holder decides."""
        await make_pending(harness)
        (one,) = await claim(harness)
        stale = msgspec.structs.replace(finished(one, FAILED, reason="no"), version=one.scheduler.version - 1)
        assert await harness.store.finish_stage([stale]) == set()
        assert await cases(harness) == []

    async def test_a_retried_job_goes_on_where_it_failed(self, harness: StoreHarness) -> None:
        """It is due at once, its counts of rescues and retries start again, and one worker claims it."""
        scheduler_id = await make_failed(harness)
        failed = await row_of(harness, scheduler_id)
        assert (failed.status, failed.rescue_count, failed.retry_count) == (FAILED, 1, 1)
        assert await retry(harness)
        row = await row_of(harness, scheduler_id)
        assert (row.status, row.stage, row.version) == (READY, Stage.GENERATE, failed.version + 1)
        assert (row.rescue_count, row.retry_count, row.reason) == (0, 0, "retried by sam")
        assert near(row.due_at, await harness.now())
        (claimed,) = await claim(harness, Stage.GENERATE)
        assert claimed.scheduler.id == scheduler_id

    async def test_a_failed_job_that_was_canceled_is_not_brought_back(self, harness: StoreHarness) -> None:
        """I-07: a cancel is never undone by a retry."""
        scheduler_id = await make_failed(harness)
        assert await harness.store.cancel_job(harness.tenant_id, notification_job(1).guid, actor="kim")
        assert (await row_of(harness, scheduler_id)).status is NotificationStatus.CANCELED
        assert not await retry(harness)
        assert (await row_of(harness, scheduler_id)).status is NotificationStatus.CANCELED

    async def test_a_retry_is_audited_with_its_reason(self, harness: StoreHarness) -> None:
        """The case stays open until a person resolves it."""
        await make_failed(harness)
        before = await cases(harness)
        assert await retry(harness)
        (entry,) = await harness.store.list_audit(harness.tenant_id)
        subject = f"job {notification_job(1).guid}"
        assert (entry.actor, entry.act, entry.subject, entry.reason) == ("sam", "retry", subject, TEXT)
        assert await cases(harness) == before

    async def test_a_job_that_fails_again_is_the_same_case_seen_again(self, harness: StoreHarness) -> None:
        """There is one case for each job, whatever the reason."""
        await make_failed(harness)
        await retry(harness)
        (one,) = await claim(harness, Stage.GENERATE)
        await fail(harness, one, reason="still no template")
        (case,) = await cases(harness)
        assert case.seen_count == 2

    @pytest.mark.parametrize("status", [status for status in NotificationStatus if status is not FAILED])
    async def test_what_has_not_failed_is_not_retried(self, harness: StoreHarness, status: NotificationStatus) -> None:
        """Nothing is changed and nothing audited; a second retry comes too late as well."""
        scheduler_id = await make_failed(harness)
        later = await harness.now() + timedelta(hours=1)
        moved = msgspec.structs.replace(
            await row_of(harness, scheduler_id),
            status=status,
            due_at=later if status is READY else None,
            lease_until=later if status is NotificationStatus.PROCESSING else None,
        )
        await harness.overwrite(harness.tenant_id, moved)
        before = await everything(harness)
        assert not await retry(harness)
        assert await everything(harness) == before
        assert await harness.store.list_audit(harness.tenant_id) == []

    async def test_a_job_of_another_tenant_is_not_retried(self, harness: StoreHarness) -> None:
        """Neither is an unknown job, nor any job without an actor."""
        await make_failed(harness)
        before = await harness.rows(harness.tenant_id, NotificationScheduler)
        assert not await retry(harness, f"{harness.tenant_id}-2")
        assert not await harness.store.retry_job(harness.tenant_id, guid(99), actor="sam", reason=TEXT)
        with pytest.raises(InvalidInput, match="names nobody"):
            await retry(harness, actor=" ")
        assert await harness.rows(harness.tenant_id, NotificationScheduler) == before

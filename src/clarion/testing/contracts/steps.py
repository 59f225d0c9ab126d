"""Stages that take several steps: how far one has come is kept, and who was noted to have a job."""

from clarion.domain.notification import RESCUES_MAX, NotificationStatus, Stage
from clarion.domain.recipient import RecipientJob
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.stages import PAST_LEASE, claim, finished, make_pending, row_of

READY = NotificationStatus.READY


def lines(job_id: int, *people: int) -> list[RecipientJob]:
    """Make lines of a job."""
    return [RecipientJob(recipient_id_hash=f"{n:032x}", job_key="key", job_id=job_id) for n in people]


class StepContract:
    """A job that gives its row back between two steps."""

    async def test_the_place_is_kept_until_the_next_one_or_the_next_stage(self, harness: StoreHarness) -> None:
        """Whoever only puts a job off says nothing of its place."""
        scheduler_id = await make_pending(harness)
        places = []
        for stage, cursor in [
            (Stage.SCHEDULE, None),
            (Stage.SCHEDULE, "one"),
            (Stage.SCHEDULE, None),
            (Stage.SCHEDULE, "two"),
            (Stage.GENERATE, None),
        ]:
            (claimed,) = await claim(harness)
            await harness.store.finish_stage([finished(claimed, READY, stage, cursor=cursor)])
            places.append((await row_of(harness, scheduler_id)).cursor)
        assert places == [None, "one", "one", "two", None]
        (claimed,) = await claim(harness, Stage.GENERATE)
        assert (claimed.scheduler.cursor, claimed.scheduler.retry_count) == (None, 0)

    async def test_a_claim_carries_the_place_and_a_rescue_keeps_it(self, harness: StoreHarness) -> None:
        """Whoever takes over goes on where the one before him came to."""
        await make_pending(harness)
        (claimed,) = await claim(harness)
        await harness.store.finish_stage([finished(claimed, READY, Stage.SCHEDULE, cursor="one")])
        assert [one.scheduler.cursor for one in await claim(harness)] == ["one"]
        await harness.elapse(PAST_LEASE)
        await harness.store.rescue_stages(limit=10, rescues_max=5)
        assert [one.scheduler.cursor for one in await claim(harness)] == ["one"]

    async def test_a_job_that_comes_on_outlives_any_number_of_workers(self, harness: StoreHarness) -> None:
        """I-23 is about jobs that come to nothing: a long one is bound to lose workers to restarts."""
        scheduler_id = await make_pending(harness)
        for step in range(RESCUES_MAX + 3):
            await claim(harness)
            await harness.elapse(PAST_LEASE)
            await harness.store.rescue_stages(limit=10, rescues_max=RESCUES_MAX)
            (claimed,) = await claim(harness)
            assert claimed.scheduler.rescue_count == 1
            await harness.store.finish_stage([finished(claimed, READY, Stage.SCHEDULE, cursor=f"step {step}")])
            assert (await row_of(harness, scheduler_id)).rescue_count == 0

    async def test_recipients_are_noted_once_while_the_claim_stands(self, harness: StoreHarness) -> None:
        """Not after a cancel, nor by somebody who was overtaken."""
        await make_pending(harness)
        (claimed,) = await claim(harness)
        job_id, note = claimed.job.id or 0, harness.store.note_recipients
        assert await note(harness.tenant_id, claimed.hold, lines(job_id, 1, 2))
        assert await note(harness.tenant_id, claimed.hold, lines(job_id, 2, 3))
        assert await note(harness.tenant_id, claimed.hold, [])
        scheduler_id, version = claimed.hold
        assert not await note(harness.tenant_id, (scheduler_id, version + 1), lines(job_id, 4))
        assert not await note(f"{harness.tenant_id}-2", claimed.hold, lines(job_id, 5))
        await harness.store.cancel_job(harness.tenant_id, claimed.job.guid, actor="sam")
        assert not await note(harness.tenant_id, claimed.hold, lines(job_id, 6))
        assert await harness.rows(harness.tenant_id, RecipientJob) == lines(job_id, 1, 2, 3)
        assert await harness.rows(f"{harness.tenant_id}-2", RecipientJob) == []

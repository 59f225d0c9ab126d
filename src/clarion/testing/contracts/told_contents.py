"""Jobs that tell of the content of a messaging job: its pending row is theirs, and so are its outgoing rows."""

from datetime import timedelta
from typing import Final

from clarion.domain.call import Accepted
from clarion.domain.claim import ClaimedMessage
from clarion.domain.guard import JobEntry
from clarion.domain.identity import Identity
from clarion.domain.messaging import MessagingJob
from clarion.domain.notification import ArtifactType, NotificationJob, NotificationStatus, Stage
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.recipient import FrozenSet
from clarion.domain.skip import SkipRule
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pump import PAYLOAD, Pump
from clarion.testing.contracts.stages import claim, finished
from clarion.testing.factories import (
    address_version,
    messaging_job,
    notification_job,
    outgoing_item,
    scheduler_of_content,
)

MINUTE: Final = timedelta(minutes=1)


async def make_told(harness: StoreHarness, n: int = 1) -> tuple[NotificationJob, MessagingJob]:
    """Store a content and the job that tells of it, with their one pending row."""
    content = messaging_job(n, template_key="welcome", template_version=2)
    job = notification_job(n, payload=PAYLOAD, template_version=2, messaging_job=str(content.guid))
    (held,) = await harness.store.ensure_messaging_jobs(harness.tenant_id, [content])
    entry = JobEntry(job=job, scheduler=scheduler_of_content(content))
    (told,) = await harness.store.ensure_notification_jobs(harness.tenant_id, [entry])
    return told.record, held.record


async def send(harness: StoreHarness, content: MessagingJob, to: int = 1) -> None:
    """Store a message of a content to a person, as direct jobs have theirs."""
    (address,) = await harness.store.ensure_address_versions(harness.tenant_id, [address_version(to)])
    item = outgoing_item(content, address.record, broadcast="")
    await harness.store.ensure_outgoing_messages(harness.tenant_id, [item])


async def claim_one(harness: StoreHarness) -> ClaimedMessage:
    """Claim the only message."""
    return await Pump(harness).claim_one()


class ToldContentContract:
    """What is asked about a job is asked about its content as well."""

    async def test_a_stage_takes_the_row_of_a_content_with_the_job_that_tells_of_it(
        self, harness: StoreHarness
    ) -> None:
        """In both stages; and one of which nobody tells is left alone."""
        alone = messaging_job(2)
        await harness.store.ensure_messaging_jobs(harness.tenant_id, [alone])
        await harness.store.ensure_notification_schedulers(harness.tenant_id, [scheduler_of_content(alone)])
        job, content = await make_told(harness)
        for stage in Stage:
            (claimed,) = await claim(harness, stage)
            assert claimed.job == job
            assert claimed.scheduler.artifact_type is ArtifactType.MESSAGING_JOB
            assert claimed.scheduler.artifact_rk == claimed.job.messaging_job == str(content.guid)
            await harness.store.finish_stage([finished(claimed, NotificationStatus.READY)])

    async def test_the_content_is_told_apart_by_its_fingerprint_when_a_message_is_claimed(
        self, harness: StoreHarness
    ) -> None:
        """What a call needs is the content's, not the payload of the job that tells of it."""
        _, content = await make_told(harness)
        await send(harness, content)
        message = await claim_one(harness)
        assert (message.job_guid, message.blob_hash, message.payload) == (content.guid, content.content_hash.text, None)
        assert (message.template_key, message.template_version) == ("welcome", 2)

    async def test_a_timeline_is_found_by_either_guid_and_has_the_rows_of_the_content(
        self, harness: StoreHarness
    ) -> None:
        """A person may know the one or the other, or the id of a message."""
        job, content = await make_told(harness)
        await send(harness, content)
        claimed = await claim_one(harness)
        await Pump(harness).record(Accepted(), claimed)
        for guid in (job.guid, content.guid):
            timeline = await harness.store.find_job_timeline(harness.tenant_id, guid)
            assert timeline is not None
            assert (timeline.job, [row.status for row in timeline.outgoing]) == (job, [OutgoingStatus.SENT_TO_PROVIDER])
            assert timeline.scheduler is not None
            some = await harness.store.find_job_timeline(harness.tenant_id, guid, messages=[claimed.message_id])
            assert some is not None
            assert some.outgoing == timeline.outgoing
            assert await harness.store.find_job(harness.tenant_id, guid) == job
        assert await harness.store.find_job_of_message(harness.tenant_id, claimed.message_id) == job.guid
        assert await harness.store.find_job(f"{harness.tenant_id}-2", content.guid) is None

    async def test_standings_and_histories_count_the_rows_of_the_content(self, harness: StoreHarness) -> None:
        """The state of its work is that of the content's pending row."""
        job, content = await make_told(harness)
        await send(harness, content)
        (claimed,) = await claim(harness)
        recipient = address_version(1).recipient_id_hash
        frozen = FrozenSet(job_id=job.id or 0, job_key="key", text="[]", recipients=[recipient])
        await harness.store.freeze_recipients(harness.tenant_id, [frozen])
        skipped = finished(claimed, NotificationStatus.SKIPPED, rule=SkipRule.NOBODY)
        await harness.store.finish_stage([skipped])
        standing = (await harness.store.find_standings(harness.tenant_id, [job.guid]))[job.guid]
        assert (standing.work, standing.addressed) == (NotificationStatus.SKIPPED, 1)
        assert standing.outgoing == {OutgoingStatus.CREATED: 1}
        (line,) = await harness.store.list_jobs_of_recipient(
            harness.tenant_id, recipient, partition_key=f"user:{Identity.user('1').id}"
        )
        assert (line.guid, line.work, line.messaging_job) == (job.guid, NotificationStatus.SKIPPED, str(content.guid))

    async def test_canceling_by_either_guid_ends_the_row_and_the_messages_of_the_content(
        self, harness: StoreHarness
    ) -> None:
        """What waits is canceled at once, as of a direct job."""
        for n in (1, 2):
            job, content = await make_told(harness, n)
            await send(harness, content, to=n)
            assert await harness.store.cancel_job(harness.tenant_id, (job, content)[n - 1].guid, actor="sam")
            timeline = await harness.store.find_job_timeline(harness.tenant_id, job.guid)
            assert timeline is not None
            assert timeline.scheduler is not None
            assert timeline.scheduler.status is NotificationStatus.CANCELED
            assert [row.status for row in timeline.outgoing] == [OutgoingStatus.CANCELED]
            assert not await harness.store.cancel_job(harness.tenant_id, content.guid, actor="sam")

    async def test_a_person_has_the_work_of_a_content_tried_again(self, harness: StoreHarness) -> None:
        """By either guid, at the stage where it failed."""
        _, content = await make_told(harness)
        (claimed,) = await claim(harness)
        await harness.store.finish_stage([finished(claimed, NotificationStatus.FAILED, reason="it cannot be read")])
        assert await harness.store.retry_job(harness.tenant_id, content.guid, actor="sam", reason="mended")
        (again,) = await claim(harness, Stage.GENERATE)
        assert again.job == claimed.job

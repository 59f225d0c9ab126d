"""Everything that one recipient got: their jobs by the table of recipients, and the rows that each is for them."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from clarion.domain.call import Accepted
from clarion.domain.guard import JobEntry
from clarion.domain.key import recipient_job_key
from clarion.domain.notification import NotificationJob
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.recipient import FrozenRecipient, FrozenSet, Manifest, Totals, encode, encode_manifest
from clarion.ports.insights import PAGE_MAX, JobOfRecipient, JobSet, MessageCounts
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pump import Pump
from clarion.testing.factories import SOURCE_AT, guid, notification_job, person, user_message

SAM, KIM = person(1).recipient_id_hash, person(2).recipient_id_hash
PLACE = "user:1"


class PersonalHistoryContract:
    """The promises of `list_jobs_of_recipient`, `count_messages` and `find_sets`."""

    async def test_a_recipients_jobs_are_listed_newest_first_whatever_they_are_about(
        self, harness: StoreHarness
    ) -> None:
        """Each in whose set they are, and nobody else's."""
        jobs = await _jobs(harness, 4)
        await _freeze(harness, jobs[0], SAM)
        await _freeze(harness, jobs[1], KIM)
        await _freeze(harness, jobs[3], KIM, SAM)
        listed = await _listed(harness, SAM)
        assert [job.guid for job in listed] == [jobs[3].guid, jobs[0].guid]
        assert listed[0] == JobOfRecipient(
            guid=jobs[3].guid,
            row_key=jobs[3].row_key,
            job_key=_key(jobs[3]),
            event_type=jobs[3].event_type,
            source_at=jobs[3].source_at,
            created_at=listed[0].created_at,
            work=None,
            is_decided=True,
            recipients=2,
        )
        assert [job.guid for job in await _listed(harness, KIM)] == [jobs[3].guid, jobs[1].guid]
        assert await harness.store.list_jobs_of_recipient(f"{harness.tenant_id}-2", SAM, partition_key=PLACE) == []

    async def test_jobs_that_are_filed_under_them_are_listed_before_anybody_is_decided_on(
        self, harness: StoreHarness
    ) -> None:
        """And once afterwards, since both places have the same key for it."""
        jobs = await _jobs(harness, 3, partition_key=PLACE)
        listed = await _listed(harness, SAM)
        assert [(job.guid, job.is_decided, job.recipients) for job in listed] == [
            (job.guid, False, 0) for job in reversed(jobs)
        ]
        await _freeze(harness, jobs[1], SAM)
        listed = await _listed(harness, SAM)
        assert [(job.guid, job.is_decided) for job in listed] == [(job.guid, job is jobs[1]) for job in reversed(jobs)]
        assert [job.guid for job in await _listed(harness, KIM, place="user:2")] == []

    @pytest.mark.parametrize("limit", [1, 2, 3, 7])
    async def test_pages_of_both_places_make_the_whole(self, harness: StoreHarness, limit: int) -> None:
        """None twice, none left out, in one order."""
        jobs = await _jobs(harness, 6)
        filed = await _jobs(harness, 6, partition_key=PLACE, first=6)
        for job in (*jobs[::2], *filed[::3]):
            await _freeze(harness, job, SAM)
        expected = [job.guid for job in reversed([*jobs[::2], *filed])]
        listed: list[JobOfRecipient] = []
        while page := await harness.store.list_jobs_of_recipient(
            harness.tenant_id, SAM, partition_key=PLACE, after=listed[-1].job_key if listed else "", limit=limit
        ):
            assert len(page) <= limit
            listed += page
        assert [job.guid for job in listed] == expected

    async def test_a_page_of_what_somebody_got_has_a_bound(self, harness: StoreHarness) -> None:
        """Whatever a caller asks for."""
        await _jobs(harness, PAGE_MAX + 1, partition_key=PLACE)
        assert len(await _listed(harness, SAM, limit=10**6)) == PAGE_MAX

    async def test_a_large_set_says_by_its_manifest_how_many_they_are(self, harness: StoreHarness) -> None:
        """Its recipients stand in pages."""
        (job,) = await _jobs(harness, 1)
        manifest = encode_manifest(Manifest(totals=Totals(recipients=40_000, addressed=9), pages=("f" * 32,)))
        await _freeze(harness, job, SAM, text=manifest)
        (listed,) = await _listed(harness, SAM)
        assert (listed.recipients, listed.is_decided) == (40_000, True)
        assert await harness.store.find_sets(harness.tenant_id, [job.guid, guid(99)]) == [
            JobSet(guid=job.guid, recipients=manifest)
        ]
        assert await harness.store.find_sets(harness.tenant_id, []) == []
        assert await harness.store.find_sets(f"{harness.tenant_id}-2", [job.guid]) == []

    async def test_messages_are_counted_for_each_recipient_by_itself(self, harness: StoreHarness) -> None:
        """Outgoing ones in the state in which they are, and lines in the inbox; who has none is left out."""
        pump = Pump(harness)
        sent = await pump.message(1, to=1)
        await pump.record(Accepted(), await pump.claim_one())
        waiting = await pump.message(1, to=2)
        line = user_message(1, message_id=sent.message_id)
        await harness.store.ensure_user_messages(harness.tenant_id, [line])
        asked = [sent.message_id, waiting.message_id, guid(99)]
        assert await harness.store.count_messages(harness.tenant_id, asked) == {
            sent.message_id: MessageCounts(inbox=1, outgoing={OutgoingStatus.SENT_TO_PROVIDER: 1}),
            waiting.message_id: MessageCounts(inbox=0, outgoing={OutgoingStatus.CREATED: 1}),
        }
        assert await harness.store.count_messages(f"{harness.tenant_id}-2", asked) == {}
        assert await harness.store.count_messages(harness.tenant_id, []) == {}


async def _jobs(
    harness: StoreHarness, number: int, *, partition_key: str | None = None, first: int = 0
) -> list[NotificationJob]:
    """Store direct jobs, a second apart, and return them as stored, the oldest first."""
    jobs = []
    for n in range(first, first + number):
        at, job_guid = SOURCE_AT + timedelta(seconds=n), guid(n, "job")
        key = recipient_job_key(source_at=at, job_guid=job_guid)
        job = notification_job(
            n, guid=job_guid, row_key=key, source_at=at, partition_key=partition_key or f"about-{n % 2}"
        )
        jobs.append(JobEntry(job=job))
    stored: list[NotificationJob] = []
    for start in range(0, number, 100):
        answers = await harness.store.ensure_notification_jobs(harness.tenant_id, jobs[start : start + 100])
        stored += [answer.record for answer in answers]
    return stored


def _key(job: NotificationJob) -> str:
    return recipient_job_key(source_at=job.source_at, job_guid=job.guid)


async def _freeze(harness: StoreHarness, job: NotificationJob, *hashes: str, text: str | None = None) -> None:
    """Freeze a set of these recipients."""
    frozen = tuple(
        FrozenRecipient(recipient_id_hash=one, domain=person(1).domain, person_id=one, decisions=()) for one in hashes
    )
    given = FrozenSet(job_id=job.id or 0, job_key=_key(job), text=text or encode(frozen), recipients=hashes)
    await harness.store.freeze_recipients(harness.tenant_id, [given])


async def _listed(
    harness: StoreHarness, recipient: str, *, place: str = PLACE, limit: int = 50
) -> Sequence[JobOfRecipient]:
    return await harness.store.list_jobs_of_recipient(harness.tenant_id, recipient, partition_key=place, limit=limit)

"""The latest jobs of a tenant, and what decides the result of each."""

from datetime import timedelta

import pytest

from clarion.domain.call import Accepted
from clarion.domain.guard import JobEntry
from clarion.domain.identity import Identity
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.recipient import FrozenRecipient, FrozenSet, encode
from clarion.domain.result import Standing
from clarion.ports.insights import PAGE_MAX, JobLine
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pump import Pump
from clarion.testing.factories import address_version, guarded_entry, guid, notification_job, user_message


class LatestContract:
    """A tenant's jobs, newest first, and counts of their messages."""

    async def test_the_latest_jobs_of_a_tenant_come_newest_first_whatever_they_are_about(
        self, harness: StoreHarness
    ) -> None:
        """By time, page by page, whoever made them; jobs of other tenants are not among them."""
        first = guarded_entry("key-0").job
        entries = [
            guarded_entry(
                f"key-{n}", created_at=first.source_at + timedelta(seconds=n), partition_key=f"entity-{n % 3}"
            )
            for n in (3, 0, 4, 1)
        ]
        made = notification_job(9, source_at=first.source_at + timedelta(seconds=2))  # whose key begins with no time
        entries.append(JobEntry(job=made))
        await harness.store.ensure_notification_jobs(harness.tenant_id, entries)
        await harness.store.ensure_tenant(f"{harness.tenant_id}-2", {})
        await harness.store.ensure_notification_jobs(f"{harness.tenant_id}-2", [guarded_entry("theirs")])
        newest_first = sorted((entry.job for entry in entries), key=lambda job: job.source_at, reverse=True)
        listed: list[JobLine] = []
        while page := await harness.store.list_latest_jobs(
            harness.tenant_id, after=(listed[-1].source_at, listed[-1].guid) if listed else None, limit=2
        ):
            assert len(page) <= 2
            listed += page
        assert [line.guid for line in listed] == [job.guid for job in newest_first]
        assert listed[0].source_at == newest_first[0].source_at
        assert listed == await harness.store.list_latest_jobs(harness.tenant_id)

    @pytest.mark.parametrize("limit", [1, 2, 3, 5])
    async def test_pages_of_the_latest_jobs_make_the_whole(self, harness: StoreHarness, limit: int) -> None:
        """None twice, none left out, whatever order of letters the database has."""
        keys = ["a", "A", "_", "~", "0", "9", "ä", "b:c", "B"]
        jobs = [notification_job(n, row_key=row_key, guid=guid(n, "job")) for n, row_key in enumerate(keys)]
        await harness.store.ensure_notification_jobs(harness.tenant_id, [JobEntry(job=job) for job in jobs])
        listed: list[JobLine] = []
        for _ in range(len(keys) + 1):
            after = (listed[-1].source_at, listed[-1].guid) if listed else None
            page = await harness.store.list_latest_jobs(harness.tenant_id, after=after, limit=limit)
            assert len(page) <= limit
            listed += page
        assert sorted(line.row_key for line in listed) == sorted(keys)
        assert [line.guid for line in listed] == sorted((line.guid for line in listed), reverse=True), (
            "all are of one moment"
        )

    async def test_a_page_of_the_latest_jobs_has_a_bound(self, harness: StoreHarness) -> None:
        """Whatever a caller asks for."""
        jobs = [notification_job(n) for n in range(PAGE_MAX + 1)]
        await harness.store.ensure_notification_jobs(harness.tenant_id, [JobEntry(job=job) for job in jobs])
        assert len(await harness.store.list_latest_jobs(harness.tenant_id, limit=10**6)) == PAGE_MAX
        assert len(await harness.store.list_latest_jobs(harness.tenant_id)) == 50

    async def test_a_standing_counts_recipients_messages_and_inbox_rows(self, harness: StoreHarness) -> None:
        """Each message once, in the state in which it is; a recipient once, however many messages there are."""
        pump = Pump(harness)
        job = await pump.job(1)
        await pump.message(1, to=1)
        await pump.record(Accepted(), await pump.claim_one())
        await pump.message(1, to=2)
        inbox = [user_message(n, job_row_key=job.row_key, message_id=guid(n, "reader")) for n in (1, 2)]
        await harness.store.ensure_user_messages(harness.tenant_id, inbox)
        tricky = Identity.user('a name with "recipient_id_hash": in it')
        recipients = [
            FrozenRecipient(recipient_id_hash=f"{n:032}", domain=tricky.domain, person_id=tricky.id, decisions=())
            for n in range(5)
        ]
        assert job.id is not None
        await harness.store.freeze_recipients(
            harness.tenant_id, [FrozenSet(job_id=job.id, job_key="key", text=encode(tuple(recipients)))]
        )
        await pump.message(2)
        assert await harness.store.find_standings(harness.tenant_id, [job.guid, guid(99)]) == {
            job.guid: Standing(
                work=None,
                recipients=5,
                addressed=4,
                inbox=2,
                outgoing={OutgoingStatus.CREATED: 1, OutgoingStatus.SENT_TO_PROVIDER: 1},
            )
        }
        assert await harness.store.find_standings(f"{harness.tenant_id}-2", [job.guid]) == {}
        assert await harness.store.find_standings(harness.tenant_id, []) == {}

    async def test_what_jobs_were_asked_for_is_found_by_their_guids_as_it_was_stored(
        self, harness: StoreHarness
    ) -> None:
        """Sealed, those of the tenant only, and nothing of a job whose own is erased."""
        jobs = [notification_job(n, guid=guid(n, "job"), payload=f"sealed {n}".encode()) for n in (1, 2)]
        erased = notification_job(3, guid=guid(3, "job"), payload=None)
        await harness.store.ensure_notification_jobs(harness.tenant_id, [JobEntry(job=job) for job in (*jobs, erased)])
        wanted = [*(job.guid for job in jobs), erased.guid, guid(99)]
        assert await harness.store.find_payloads(harness.tenant_id, wanted) == {job.guid: job.payload for job in jobs}
        assert await harness.store.find_payloads(harness.tenant_id, []) == {}
        assert await harness.store.find_payloads(f"{harness.tenant_id}-2", wanted) == {}

    async def test_address_versions_are_found_by_id_as_they_were_stored(self, harness: StoreHarness) -> None:
        """Sealed, in the order of their ids, and those of the tenant only."""
        made = await harness.store.ensure_address_versions(harness.tenant_id, [address_version(n) for n in (3, 1, 2)])
        records = sorted((one.record for one in made), key=lambda record: record.id or 0)
        ids = [record.id or 0 for record in records]
        assert await harness.store.find_addresses(harness.tenant_id, {*ids, 2**40}) == records
        assert await harness.store.find_addresses(harness.tenant_id, ids[:1]) == records[:1]
        assert await harness.store.find_addresses(harness.tenant_id, ()) == []
        assert await harness.store.find_addresses(f"{harness.tenant_id}-2", ids) == []

    async def test_a_message_that_has_both_an_outgoing_row_and_an_inbox_row_is_one(self, harness: StoreHarness) -> None:
        """A recipient who is reached by mail and in the inbox is one recipient."""
        pump = Pump(harness)
        sent = await pump.message(1)
        job = await pump.job(1)
        both = user_message(1, job_row_key=job.row_key, message_id=sent.message_id)
        await harness.store.ensure_user_messages(harness.tenant_id, [both])
        standing = (await harness.store.find_standings(harness.tenant_id, [job.guid]))[job.guid]
        assert (standing.addressed, standing.inbox, standing.recipients) == (1, 1, 0)

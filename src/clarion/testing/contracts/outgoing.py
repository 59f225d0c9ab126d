"""Outgoing messages: rows made from their parents and address versions, keyed as the domain says."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from clarion.domain import key
from clarion.domain.address import AddressVersion
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.guard import JobEntry
from clarion.domain.identity import Channel, Lane
from clarion.domain.messaging import MessagingJob
from clarion.domain.notification import NotificationJob
from clarion.domain.outgoing import OutgoingItem, OutgoingMessage, OutgoingStatus, UncertainPolicy
from clarion.errors import InvalidInput
from clarion.ports.ensure import ITEMS_MAX
from clarion.testing.contracts.harness import StoreHarness, by_key, everything, without_cases
from clarion.testing.contracts.kind import TOLD, changed_item
from clarion.testing.contracts.sets import CALLERS, SIZES, outcomes
from clarion.testing.factories import (
    BUCKET,
    address_version,
    guid,
    messaging_job,
    notification_job,
    outgoing_item,
    outgoing_items,
)
from clarion.testing.row import QueueEntry

AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
Parent = NotificationJob | MessagingJob


async def make_addresses(harness: StoreHarness, count: int) -> list[AddressVersion]:
    """Store the addresses of some people."""
    answers = await harness.store.ensure_address_versions(
        harness.tenant_id, [address_version(n) for n in range(1, count + 1)]
    )
    return [answer.record for answer in answers]


async def make_job(harness: StoreHarness, n: int = 1) -> NotificationJob:
    """Store a notification job that has a trace."""
    entry = JobEntry(job=notification_job(n, traceparent="00-trace"))
    (answer,) = await harness.store.ensure_notification_jobs(harness.tenant_id, [entry])
    return answer.record


async def make_campaign(harness: StoreHarness) -> MessagingJob:
    """Store a messaging job."""
    (answer,) = await harness.store.ensure_messaging_jobs(harness.tenant_id, [messaging_job()])
    return answer.record


async def ensure(harness: StoreHarness, items: Sequence[OutgoingItem]) -> list[Ensured[OutgoingMessage]]:
    """Ensure a set for the test's tenant."""
    return await harness.store.ensure_outgoing_messages(harness.tenant_id, items)


async def assert_refused(harness: StoreHarness, items: Sequence[OutgoingItem], *, field: str) -> None:
    """Expect a set to be refused over one field, and nothing to be written."""
    before = await everything(harness)
    with pytest.raises(InvalidInput) as refused:
        await ensure(harness, items)
    assert refused.value.field == field
    assert await everything(harness) == before


class OutgoingContract:
    """Rows of a parent."""

    async def test_a_row_is_keyed_by_its_parent_and_its_recipient(self, harness: StoreHarness) -> None:
        """Partition, row key and bucket are those of the domain; the month is the parent's, whatever month is now."""
        job, addresses = await make_job(harness), await make_addresses(harness, 2)
        items = outgoing_items(job, addresses)
        answers = await ensure(harness, items)
        assert outcomes(answers) == [Outcome.CREATED, Outcome.CREATED]
        for item, address, answer in zip(items, addresses, answers, strict=True):
            assert answer.record == OutgoingMessage(
                id=answer.record.id,
                bucket=key.month_bucket(job.source_at),
                pk=key.outgoing_pk(job_rk=job.row_key),
                rk=key.outgoing_rk(recipient_key_hash=address.key_hash, channel=Channel.EMAIL),
                message_id=item.message_id,
                address_id=item.address_id,
                channel=Channel.EMAIL,
                status=OutgoingStatus.CREATED,
                version=1,
                correlation_id=job.correlation_id,
            )
        rows = await harness.rows(harness.tenant_id, OutgoingMessage)
        assert by_key(rows) == by_key([answer.record for answer in answers])

    async def test_a_messaging_jobs_rows_are_keyed_by_its_guid(self, harness: StoreHarness) -> None:
        """A campaign's rows stand under the campaign."""
        campaign, (address,) = await make_campaign(harness), await make_addresses(harness, 1)
        (answer,) = await ensure(harness, outgoing_items(campaign, [address]))
        assert (answer.record.pk, answer.record.bucket) == (
            key.outgoing_pk(messaging_job_guid=campaign.guid),
            campaign.bucket,
        )
        assert answer.record.bucket == BUCKET

    async def test_the_bucket_is_read_from_the_parents_row_and_never_recomputed(self, harness: StoreHarness) -> None:
        """It was set once when the parent was inserted, perhaps by another program."""
        job, (address,) = await make_job(harness), await make_addresses(harness, 1)
        await harness.overwrite(harness.tenant_id, msgspec.structs.replace(job, bucket=202407))
        (answer,) = await ensure(harness, outgoing_items(job, [address]))
        assert answer.record.bucket == 202407

    async def test_a_row_waits_in_the_queue_that_its_item_names(self, harness: StoreHarness) -> None:
        """Only its trace is the parent's; nothing has happened to it yet."""
        job, addresses = await make_job(harness), await make_addresses(harness, 2)
        where = {"lane": Lane.CRITICAL, "broadcast": "a broadcast", "due_at": AT}
        first = {
            "route": "email:marketing",
            "order_key": "a" * 32,
            "uncertain_policy": UncertainPolicy.PREFER_DUPLICATE,
            "category": "news",
        }
        items = [
            outgoing_item(job, addresses[0], **where, **first),
            outgoing_item(job, addresses[1], **where, expires_at=AT + timedelta(days=1)),
        ]
        answers = await ensure(harness, items)
        entries = {entry.rk: entry for entry in await harness.rows(harness.tenant_id, QueueEntry)}
        assert [entries[answer.record.rk] for answer in answers] == [
            QueueEntry(
                pk=job.row_key,
                rk=answer.record.rk,
                lane=Lane.CRITICAL,
                route=item.route,
                broadcast="a broadcast",
                order_key=item.order_key,
                due_at=AT,
                expires_at=item.expires_at,
                uncertain_policy=item.uncertain_policy,
                category=item.category,
                traceparent="00-trace",
            )
            for item, answer in zip(items, answers, strict=True)
        ]

    async def test_a_row_has_every_value_of_its_item_that_its_timeline_shows(self, harness: StoreHarness) -> None:
        """A column that an insert forgets shows here, also one that is added later."""
        job, (address,) = await make_job(harness), await make_addresses(harness, 1)
        item = changed_item(outgoing_item(job, address))
        await ensure(harness, [item])
        timeline = await harness.store.find_job_timeline(harness.tenant_id, job.guid)
        assert timeline is not None
        assert [[getattr(row, name) for name in TOLD] for row in timeline.outgoing] == [
            [getattr(item, name) for name in TOLD]
        ]

    async def test_rows_of_many_queues_go_in_one_set(self, harness: StoreHarness) -> None:
        """Each item has its own route; a queue that is there already is used."""
        job, addresses = await make_job(harness), await make_addresses(harness, 6)
        items = [outgoing_item(job, one, route=f"r{n % 3}") for n, one in enumerate(addresses)]
        await ensure(harness, items[:2])
        answers = await ensure(harness, items)
        entries = {entry.rk: entry for entry in await harness.rows(harness.tenant_id, QueueEntry)}
        assert [entries[answer.record.rk].route for answer in answers] == ["r0", "r1", "r2", "r0", "r1", "r2"]

    async def test_a_message_that_does_not_say_when_is_due_at_once_by_the_stores_clock(
        self, harness: StoreHarness
    ) -> None:
        """As a scheduler row is."""
        job, (address,) = await make_job(harness), await make_addresses(harness, 1)
        if harness.clock is not None:
            harness.clock.advance(timedelta(seconds=90))
        await ensure(harness, outgoing_items(job, [address]))
        (entry,) = await harness.rows(harness.tenant_id, QueueEntry)
        assert entry.due_at is not None
        assert harness.clock is None or entry.due_at == harness.clock.now()

    async def test_a_row_that_is_there_is_found_and_nothing_is_written(self, harness: StoreHarness) -> None:
        """I-03; where and when it waits is decided once, and no reason for a conflict."""
        job, addresses = await make_job(harness), await make_addresses(harness, 3)
        created = await ensure(harness, outgoing_items(job, addresses))
        before = await everything(harness)
        another = {"lane": Lane.HIGH, "broadcast": "another", "route": "another", "order_key": "b" * 32}
        policy = {"uncertain_policy": UncertainPolicy.PREFER_DUPLICATE}
        items = outgoing_items(job, addresses[::-1], due_at=AT, expires_at=AT, **another, **policy)
        found = await ensure(harness, items)
        assert found == [Ensured(outcome=Outcome.FOUND, record=answer.record) for answer in created[::-1]]
        assert await everything(harness) == before

    @pytest.mark.parametrize("status", OutgoingStatus)
    async def test_a_row_is_reused_untouched_in_every_state(
        self, harness: StoreHarness, status: OutgoingStatus
    ) -> None:
        """The claim decides whether it is sent again; an ensure never does."""
        job, (address,) = await make_job(harness), await make_addresses(harness, 1)
        (created,) = await ensure(harness, outgoing_items(job, [address]))
        row = msgspec.structs.replace(created.record, status=status, version=4)
        await harness.overwrite(harness.tenant_id, row)
        before = await everything(harness)
        assert await ensure(harness, outgoing_items(job, [address])) == [Ensured(outcome=Outcome.FOUND, record=row)]
        assert await everything(harness) == before

    async def test_a_deliberate_second_send_is_a_row_beside_the_first(self, harness: StoreHarness) -> None:
        """Its number is part of its key, so that a double click is one send."""
        job, (address,) = await make_job(harness), await make_addresses(harness, 1)
        items = [outgoing_item(job, address, attempt_no=attempt_no) for attempt_no in (None, 2, 3)]
        answers = await ensure(harness, [*items, items[1]])
        assert outcomes(answers) == [Outcome.CREATED, Outcome.CREATED, Outcome.CREATED, Outcome.FOUND]
        assert [(answer.record.rk, answer.record.attempt_no) for answer in answers[:3]] == [
            (
                key.outgoing_rk(
                    recipient_key_hash=address.key_hash, channel=address.channel, attempt_no=item.attempt_no
                ),
                item.attempt_no,
            )
            for item in items
        ]
        assert len(await harness.rows(harness.tenant_id, OutgoingMessage)) == 3

    async def test_one_address_has_a_row_under_each_parent(self, harness: StoreHarness) -> None:
        """Two jobs to one person are two messages."""
        (address,) = await make_addresses(harness, 1)
        parents: list[Parent] = [await make_job(harness, 1), await make_job(harness, 2), await make_campaign(harness)]
        for parent in parents:
            assert outcomes(await ensure(harness, outgoing_items(parent, [address]))) == [Outcome.CREATED]
        assert len(await harness.rows(harness.tenant_id, OutgoingMessage)) == 3

    async def test_another_message_under_a_rows_key_is_a_conflict_of_that_row_alone(
        self, harness: StoreHarness
    ) -> None:
        """The others of the set are made."""
        job, addresses = await make_job(harness), await make_addresses(harness, 3)
        (created,) = await ensure(harness, outgoing_items(job, addresses[1:2]))
        items = outgoing_items(job, addresses)
        odd = msgspec.structs.replace(items[1], message_id=guid(99))
        answers = await ensure(harness, [items[0], odd, items[2]])
        assert outcomes(answers) == [Outcome.CREATED, Outcome.CONFLICT, Outcome.CREATED]
        assert (answers[1].record, answers[1].differing) == (created.record, ("message_id",))
        (case,) = await harness.store.list_support_cases(harness.tenant_id)
        assert (case.case_id, case.record, case.correlation_id) == (
            answers[1].case_id,
            "OutgoingMessage",
            job.correlation_id,
        )

    async def test_another_version_with_the_same_destination_under_a_rows_key_is_a_conflict(
        self, harness: StoreHarness
    ) -> None:
        """The set of recipients was frozen with one of them; the row stays with that one.

        There were such versions while owners gave the serials.
        """
        job = await make_job(harness)
        answers = await harness.store.ensure_address_versions(
            harness.tenant_id, [address_version(1, 1), address_version(1, 2)]
        )
        first, other = (answer.record for answer in answers)
        second = msgspec.structs.replace(other, key_hash=first.key_hash, destination_index=first.destination_index)
        await harness.overwrite(harness.tenant_id, second)
        (created,) = await ensure(harness, outgoing_items(job, [first]))
        before = await everything(harness)
        (answer,) = await ensure(harness, outgoing_items(job, [second]))
        assert (answer.outcome, answer.record, answer.differing) == (
            Outcome.CONFLICT,
            created.record,
            ("address_id",),
        )
        assert without_cases(await everything(harness)) == without_cases(before)

    @pytest.mark.parametrize("size", SIZES)
    async def test_a_set_of_rows_is_created_whole_in_its_order_and_then_found_whole(
        self, harness: StoreHarness, size: int
    ) -> None:
        """From one row to as many as a set may have; then one differs, and only that one is touched by nothing."""
        job, addresses = await make_job(harness), await make_addresses(harness, size)
        items = outgoing_items(job, addresses)
        created = await ensure(harness, items)
        assert outcomes(created) == [Outcome.CREATED] * size
        assert [answer.record.address_id for answer in created] == [address.id for address in addresses]
        before = await everything(harness)
        assert await ensure(harness, items) == [
            Ensured(outcome=Outcome.FOUND, record=answer.record) for answer in created
        ]
        assert await everything(harness) == before
        answers = await ensure(harness, [*items[:-1], msgspec.structs.replace(items[-1], message_id=guid(99))])
        assert outcomes(answers) == [*[Outcome.FOUND] * (size - 1), Outcome.CONFLICT]
        assert without_cases(await everything(harness)) == without_cases(before)
        assert len(await harness.store.list_support_cases(harness.tenant_id)) == 1

    async def test_a_set_of_rows_over_the_limit_is_refused_and_nothing_of_it_is_written(
        self, harness: StoreHarness
    ) -> None:
        """One item too many."""
        job, (address,) = await make_job(harness), await make_addresses(harness, 1)
        await assert_refused(harness, [outgoing_item(job, address)] * (ITEMS_MAX + 1), field="items")

    async def test_an_empty_set_of_rows_has_no_answers(self, harness: StoreHarness) -> None:
        """No parent is looked up."""
        assert await ensure(harness, []) == []

    @pytest.mark.parametrize("parent", [notification_job(), messaging_job()], ids=["job", "campaign"])
    async def test_an_unknown_parent_is_refused(self, harness: StoreHarness, parent: Parent) -> None:
        """Every row has a parent."""
        addresses = await make_addresses(harness, 2)
        await assert_refused(harness, outgoing_items(parent, addresses), field="parent")

    async def test_a_job_is_not_taken_for_a_campaign_with_its_key(self, harness: StoreHarness) -> None:
        """A campaign's history anchor has the campaign's guid as its row key, and is not its parent of rows."""
        campaign, (address,) = messaging_job(), await make_addresses(harness, 1)
        anchor = notification_job(row_key=key.campaign_job_rk(campaign_guid=campaign.guid))
        await harness.store.ensure_notification_jobs(harness.tenant_id, [JobEntry(job=anchor)])
        await assert_refused(harness, outgoing_items(campaign, [address]), field="parent")

    @pytest.mark.parametrize("place", [0, 1, 2])
    async def test_an_unknown_address_is_refused_and_takes_the_whole_set_with_it(
        self, harness: StoreHarness, place: int
    ) -> None:
        """It is a mistake of the caller's, not a conflict of one item: nothing of the set is made."""
        job, addresses = await make_job(harness), await make_addresses(harness, 3)
        items = outgoing_items(job, addresses)
        await ensure(harness, items[2:])
        items[place] = msgspec.structs.replace(items[place], address_id=2**40)
        await assert_refused(harness, items, field="address_id")

    async def test_another_tenants_job_and_addresses_are_unknown(self, harness: StoreHarness) -> None:
        """I-38: an id of another tenant's row is treated as unknown."""
        job, addresses = await make_job(harness), await make_addresses(harness, 1)
        theirs = f"{harness.tenant_id}-2"
        with pytest.raises(InvalidInput, match="no job"):
            await harness.store.ensure_outgoing_messages(theirs, outgoing_items(job, addresses))
        await harness.store.ensure_notification_jobs(theirs, [JobEntry(job=notification_job())])
        with pytest.raises(InvalidInput, match="no address version"):
            await harness.store.ensure_outgoing_messages(theirs, outgoing_items(job, addresses))
        assert await harness.rows(theirs, OutgoingMessage) == []

    async def test_of_many_generators_at_once_each_row_is_created_by_one_and_found_by_the_others(
        self, harness: StoreHarness
    ) -> None:
        """F-04: two generators of one job, each with its order of recipients."""
        job, addresses = await make_job(harness), await make_addresses(harness, 20)
        sets = [outgoing_items(job, addresses if caller % 2 else addresses[::-1]) for caller in range(CALLERS)]
        answers = await asyncio.gather(*(ensure(harness, one) for one in sets))
        rows = await harness.rows(harness.tenant_id, OutgoingMessage)
        created = [answer.record.key for one in answers for answer in one if answer.outcome is Outcome.CREATED]
        assert sorted(created) == sorted(row.key for row in rows)
        assert len(rows) == len(addresses)
        assert all(answer.proceeds for one in answers for answer in one)

    @pytest.mark.parametrize("campaign", [False, True], ids=["job", "campaign"])
    @pytest.mark.parametrize("their_bucket", [202401, 202402], ids=["same month", "another month"])
    async def test_the_same_rows_in_two_tenants_never_meet(
        self, harness: StoreHarness, campaign: bool, their_bucket: int
    ) -> None:
        """Parents with the same key, addresses, message ids, queues: each takes its own."""
        tenants = {harness.tenant_id: 202401, f"{harness.tenant_id}-2": their_bucket}
        created = {}
        for tenant_id, bucket in tenants.items():
            job, sent = notification_job(bucket=bucket), messaging_job(bucket=bucket)
            await harness.store.ensure_notification_jobs(tenant_id, [JobEntry(job=job)])
            await harness.store.ensure_messaging_jobs(tenant_id, [sent])
            (address,) = await harness.store.ensure_address_versions(tenant_id, [address_version()])
            items = outgoing_items(sent if campaign else job, [address.record])
            (answer,) = await harness.store.ensure_outgoing_messages(tenant_id, items)
            assert (answer.outcome, answer.record.address_id) == (Outcome.CREATED, address.record.id)
            assert answer.record.bucket == bucket
            created[tenant_id] = items, answer.record
        for tenant_id, (items, row) in created.items():
            (again,) = await harness.store.ensure_outgoing_messages(tenant_id, items)
            assert again == Ensured(outcome=Outcome.FOUND, record=row)
            assert await harness.rows(tenant_id, OutgoingMessage) == [row]
            assert [entry.rk for entry in await harness.rows(tenant_id, QueueEntry)] == [row.rk]

    @pytest.mark.parametrize("campaign", [False, True], ids=["job", "campaign"])
    async def test_a_parent_of_another_tenant_is_unknown_though_the_addresses_are_known(
        self, harness: StoreHarness, campaign: bool
    ) -> None:
        """Another tenant's parent is treated as unknown."""
        parent: Parent = await make_campaign(harness) if campaign else await make_job(harness)
        theirs = f"{harness.tenant_id}-2"
        (address,) = await harness.store.ensure_address_versions(theirs, [address_version()])
        with pytest.raises(InvalidInput, match="no job"):
            await harness.store.ensure_outgoing_messages(theirs, outgoing_items(parent, [address.record]))
        assert await harness.rows(theirs, OutgoingMessage) == []

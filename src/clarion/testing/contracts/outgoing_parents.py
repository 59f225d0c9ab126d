"""Outgoing messages of many parents in one set: a batch of jobs is generated together, each row under its own."""

import msgspec
import pytest

from clarion.domain.ensured import Outcome
from clarion.domain.guard import JobEntry
from clarion.domain.identity import Channel
from clarion.domain.outgoing import OutgoingMessage, OutgoingStatus
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.outgoing import (
    Parent,
    assert_refused,
    ensure,
    make_addresses,
    make_campaign,
    make_job,
)
from clarion.testing.contracts.sets import outcomes
from clarion.testing.factories import messaging_job, notification_job, outgoing_item, outgoing_items
from clarion.testing.row import FlowCount, QueueEntry


class ManyParentsContract:
    """Items that have nothing in common but their tenant."""

    async def test_each_row_takes_bucket_correlation_and_trace_from_its_own_parent(self, harness: StoreHarness) -> None:
        """Jobs and campaigns, in the order asked and not in that of their keys."""
        jobs = [
            notification_job(n, bucket=202400 + n, correlation_id=f"c-{n}", traceparent=f"00-{n}") for n in (1, 2, 3)
        ]
        await harness.store.ensure_notification_jobs(harness.tenant_id, [JobEntry(job=job) for job in jobs])
        campaign = messaging_job(bucket=202412, correlation_id="c-campaign", traceparent="00-campaign")
        await harness.store.ensure_messaging_jobs(harness.tenant_id, [campaign])
        (address,) = await make_addresses(harness, 1)
        parents: list[Parent] = [jobs[2], campaign, jobs[0], jobs[1]]
        answers = await ensure(harness, [outgoing_item(parent, address) for parent in parents])
        assert outcomes(answers) == [Outcome.CREATED] * 4
        assert [(answer.record.bucket, answer.record.correlation_id) for answer in answers] == [
            (parent.bucket, parent.correlation_id) for parent in parents
        ]
        entries = {entry.pk: entry for entry in await harness.rows(harness.tenant_id, QueueEntry)}
        assert [entries[answer.record.pk].traceparent for answer in answers] == [
            parent.traceparent for parent in parents
        ]

    async def test_a_set_of_many_parents_is_found_again_and_completed(self, harness: StoreHarness) -> None:
        """Whatever of it was there: each row is created once."""
        jobs, addresses = [await make_job(harness, n) for n in range(1, 6)], await make_addresses(harness, 3)
        items = [outgoing_item(job, address) for job in jobs for address in addresses]
        await ensure(harness, items[4:9])
        answers = await ensure(harness, items[::-1])
        assert outcomes(answers[::-1]) == [
            Outcome.FOUND if 4 <= place < 9 else Outcome.CREATED for place in range(len(items))
        ]
        assert len(await harness.rows(harness.tenant_id, OutgoingMessage)) == len(items)

    @pytest.mark.parametrize("place", [0, 1, 2])
    async def test_one_unknown_parent_refuses_the_whole_set(self, harness: StoreHarness, place: int) -> None:
        """The caller made a mistake, so no row of the set is made, not even for the parents that are known."""
        (address,) = await make_addresses(harness, 1)
        parents: list[Parent] = [await make_job(harness, 1), await make_campaign(harness)]
        await ensure(harness, [outgoing_item(parents[0], address)])
        parents.insert(place, notification_job(9))
        await assert_refused(harness, [outgoing_item(parent, address) for parent in parents], field="parent")

    @pytest.mark.parametrize("wrong", [{"recipient_id_hash": "0" * 32}, {"channel": Channel.SMS}], ids=["who", "how"])
    async def test_an_address_version_of_another_recipient_or_channel_is_unknown(
        self, harness: StoreHarness, wrong: dict[str, object]
    ) -> None:
        """The id is refused as if there were no such address."""
        job, addresses = await make_job(harness), await make_addresses(harness, 2)
        items = outgoing_items(job, addresses)
        items[1] = msgspec.structs.replace(items[1], **wrong)
        await assert_refused(harness, items, field="address_id")

    async def test_rows_of_a_broadcast_are_counted_when_they_are_made_and_never_again(
        self, harness: StoreHarness
    ) -> None:
        """I-41; what has no broadcast is not counted."""
        campaign, job, addresses = (
            await make_campaign(harness),
            await make_job(harness),
            await make_addresses(harness, 3),
        )
        items = [*outgoing_items(campaign, addresses), *outgoing_items(job, addresses)]
        await ensure(harness, items[:2])
        for _ in range(2):
            await ensure(harness, items)
        counts = await harness.rows(harness.tenant_id, FlowCount)
        assert [(one.broadcast, one.status, one.reason_class, one.n) for one in counts] == [
            (str(campaign.guid), OutgoingStatus.CREATED, "", 3)
        ]

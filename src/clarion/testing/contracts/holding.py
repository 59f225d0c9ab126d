"""The hold: outgoing and inbox rows are made only under a scheduler row that is still claimed (F-10, F-11)."""

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec
import pytest

from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.guard import JobEntry
from clarion.domain.inbox import UserMessage
from clarion.domain.notification import NotificationJob, NotificationScheduler, NotificationStatus, Stage
from clarion.domain.outgoing import OutgoingMessage
from clarion.errors import InvalidInput
from clarion.testing.contracts.harness import StoreHarness, everything
from clarion.testing.contracts.outgoing import ensure, make_addresses, make_job
from clarion.testing.contracts.sets import outcomes
from clarion.testing.factories import (
    guid,
    notification_job,
    notification_scheduler,
    outgoing_item,
    outgoing_items,
    user_message,
)

LEASE_UNTIL = datetime(2026, 1, 15, 12, 5, tzinfo=UTC)
CLAIMED = {
    "status": NotificationStatus.PROCESSING,
    "stage": Stage.GENERATE,
    "version": 4,
    "due_at": None,
    "lease_until": LEASE_UNTIL,
}
FREE: Mapping[str, object] = {"lease_until": None, "version": 5}
# What may have become of the row while its worker was away.
LOST: Mapping[str, Mapping[str, object]] = {
    "canceled": {**FREE, "status": NotificationStatus.CANCELED},
    "canceled-under-the-same-version": {**FREE, "status": NotificationStatus.CANCELED, "version": 4},
    "taken-over": {"version": 5},
    "given-back": {**FREE, "status": NotificationStatus.READY, "due_at": LEASE_UNTIL},
    "done-by-another": {**FREE, "status": NotificationStatus.DONE},
    "skipped": {**FREE, "status": NotificationStatus.SKIPPED},
    "failed": {**FREE, "status": NotificationStatus.FAILED},
}
each_loss = pytest.mark.parametrize("lost", LOST.values(), ids=LOST)


async def claim(harness: StoreHarness, tenant_id: str | None = None, n: int = 1) -> NotificationScheduler:
    """Store the scheduler row of the n-th job as a worker holds it."""
    tenant = tenant_id or harness.tenant_id
    await harness.store.ensure_notification_jobs(tenant, [JobEntry(job=notification_job(n))])
    (created,) = await harness.store.ensure_notification_schedulers(tenant, [notification_scheduler(n)])
    row = msgspec.structs.replace(created.record, **CLAIMED)
    await harness.overwrite(tenant, row)
    return row


def hold_of(row: NotificationScheduler) -> tuple[int, int]:
    """Name the claim of a scheduler row."""
    assert row.id is not None
    return row.id, row.version


async def assert_superseded(harness: StoreHarness, job: NotificationJob, *, hold: tuple[int, int]) -> None:
    """Expect that no row is made under a hold, and each item be answered with the row that it would have been."""
    items = outgoing_items(job, await make_addresses(harness, 2), hold=hold)
    before = await everything(harness)
    answers = await ensure(harness, items)
    assert outcomes(answers) == [Outcome.SUPERSEDED, Outcome.SUPERSEDED]
    assert not any(answer.proceeds for answer in answers)
    assert [(answer.record.id, answer.record.message_id, answer.record.pk) for answer in answers] == [
        (None, item.message_id, job.row_key) for item in items
    ]
    assert await everything(harness) == before


class HoldingContract:
    """No row is inserted after a cancel, nor by a worker that lost its claim."""

    async def test_rows_are_made_while_the_claim_is_held(self, harness: StoreHarness) -> None:
        """The claim itself is left as it is."""
        job, row, addresses = await make_job(harness), await claim(harness), await make_addresses(harness, 2)
        answers = await ensure(harness, outgoing_items(job, addresses, hold=hold_of(row)))
        assert outcomes(answers) == [Outcome.CREATED, Outcome.CREATED]
        assert await harness.rows(harness.tenant_id, NotificationScheduler) == [row]

    @each_loss
    async def test_no_row_is_made_once_the_claim_is_lost(
        self, harness: StoreHarness, lost: Mapping[str, object]
    ) -> None:
        """Canceled, taken over or finished by another: whoever comes late stops."""
        job, row = await make_job(harness), await claim(harness)
        await harness.overwrite(harness.tenant_id, msgspec.structs.replace(row, **lost))
        await assert_superseded(harness, job, hold=hold_of(row))

    async def test_a_scheduler_row_that_does_not_exist_holds_nothing(self, harness: StoreHarness) -> None:
        """Nor does another tenant's."""
        job = await make_job(harness)
        theirs = await claim(harness, f"{harness.tenant_id}-2")
        await assert_superseded(harness, job, hold=hold_of(theirs))
        await assert_superseded(harness, job, hold=(2**40, 1))

    @each_loss
    async def test_rows_that_are_all_there_are_found_though_the_claim_is_lost(
        self, harness: StoreHarness, lost: Mapping[str, object]
    ) -> None:
        """No row has to be made, so the lost claim does not matter."""
        job, row, addresses = await make_job(harness), await claim(harness), await make_addresses(harness, 2)
        created = await ensure(harness, outgoing_items(job, addresses, hold=hold_of(row)))
        await harness.overwrite(harness.tenant_id, msgspec.structs.replace(row, **lost))
        before = await everything(harness)
        found = await ensure(harness, outgoing_items(job, addresses, hold=hold_of(row)))
        assert found == [Ensured(outcome=Outcome.FOUND, record=answer.record) for answer in created]
        assert await everything(harness) == before

    async def test_of_a_lost_claim_the_rows_that_are_there_are_found_and_the_others_are_not_made(
        self, harness: StoreHarness
    ) -> None:
        """Item by item: what was made before the cancel is answered as ever."""
        job, row, addresses = await make_job(harness), await claim(harness), await make_addresses(harness, 3)
        created = await ensure(harness, outgoing_items(job, addresses[:2], hold=hold_of(row)))
        await harness.overwrite(harness.tenant_id, msgspec.structs.replace(row, **LOST["canceled"]))
        before = await everything(harness)
        answers = await ensure(harness, outgoing_items(job, addresses, hold=hold_of(row)))
        assert outcomes(answers) == [Outcome.FOUND, Outcome.FOUND, Outcome.SUPERSEDED]
        assert [answer.record for answer in answers[:2]] == [answer.record for answer in created]
        assert await everything(harness) == before

    async def test_a_lost_claim_costs_its_own_items_and_no_other_jobs(self, harness: StoreHarness) -> None:
        """In one set: a job whose claim stands, one whose claim is lost, and one that asks for no claim."""
        (address,) = await make_addresses(harness, 1)
        jobs = [await make_job(harness, n) for n in (1, 2, 3)]
        held, lost = await claim(harness, n=1), await claim(harness, n=2)
        await harness.overwrite(harness.tenant_id, msgspec.structs.replace(lost, **LOST["taken-over"]))
        holds = (hold_of(held), hold_of(lost), None)
        items = [outgoing_item(job, address, hold=hold) for job, hold in zip(jobs, holds, strict=True)]
        answers = await ensure(harness, [*items, items[1]])
        created, superseded = Outcome.CREATED, Outcome.SUPERSEDED
        assert outcomes(answers) == [created, superseded, created, superseded]
        rows = await harness.rows(harness.tenant_id, OutgoingMessage)
        assert sorted(row.pk for row in rows) == sorted([jobs[0].row_key, jobs[2].row_key])

    async def test_a_conflict_is_answered_though_the_claim_is_lost(self, harness: StoreHarness) -> None:
        """The row is there; that it differs must be seen by a person all the same."""
        job, row, (address,) = await make_job(harness), await claim(harness), await make_addresses(harness, 1)
        item = outgoing_item(job, address, hold=hold_of(row))
        (created,) = await ensure(harness, [item])
        await harness.overwrite(harness.tenant_id, msgspec.structs.replace(row, **LOST["taken-over"]))
        (answer,) = await ensure(harness, [msgspec.structs.replace(item, message_id=guid(99))])
        assert (answer.outcome, answer.record) == (Outcome.CONFLICT, created.record)

    async def test_an_unknown_address_is_refused_under_a_claim_too(self, harness: StoreHarness) -> None:
        """A claim that stands does not change that."""
        job, row, (address,) = await make_job(harness), await claim(harness), await make_addresses(harness, 1)
        item = outgoing_item(job, address, hold=hold_of(row))
        unknown = msgspec.structs.replace(item, address_id=2**40)
        with pytest.raises(InvalidInput, match="no address version"):
            await ensure(harness, [item, unknown])
        assert await harness.rows(harness.tenant_id, OutgoingMessage) == []


async def ensure_inbox(
    harness: StoreHarness, *numbers: int, holds: Mapping[int, tuple[int, int]]
) -> list[Ensured[UserMessage]]:
    """Ensure the lines of these people, those that are named under a hold."""
    rows = {n: user_message(n) for n in numbers}
    keyed = {rows[n].key: hold for n, hold in holds.items()}
    return await harness.store.ensure_user_messages(harness.tenant_id, list(rows.values()), holds=keyed)


class InboxHoldingContract:
    """The same for inbox rows: a canceled job leaves no new line in anybody's inbox."""

    async def test_inbox_rows_are_made_while_the_claim_is_held(self, harness: StoreHarness) -> None:
        """The claim itself is left as it is."""
        row = await claim(harness)
        answers = await ensure_inbox(harness, 1, 2, holds={1: hold_of(row), 2: hold_of(row)})
        assert outcomes(answers) == [Outcome.CREATED, Outcome.CREATED]
        assert await harness.rows(harness.tenant_id, NotificationScheduler) == [row]

    @each_loss
    async def test_no_inbox_row_is_made_once_the_claim_is_lost(
        self, harness: StoreHarness, lost: Mapping[str, object]
    ) -> None:
        """What was there before is found, and what asks for no claim is made."""
        row = await claim(harness)
        (created,) = await ensure_inbox(harness, 1, holds={1: hold_of(row)})
        await harness.overwrite(harness.tenant_id, msgspec.structs.replace(row, **lost))
        answers = await ensure_inbox(harness, 1, 2, 3, holds={1: hold_of(row), 2: hold_of(row)})
        assert outcomes(answers) == [Outcome.FOUND, Outcome.SUPERSEDED, Outcome.CREATED]
        assert (answers[0].record, answers[1].record) == (created.record, user_message(2))
        rows = await harness.rows(harness.tenant_id, UserMessage)
        assert {one.partition_key for one in rows} == {user_message(n).partition_key for n in (1, 3)}

    async def test_a_scheduler_row_of_another_tenant_holds_no_inbox_row(self, harness: StoreHarness) -> None:
        """Nor does one that is not there."""
        theirs = await claim(harness, f"{harness.tenant_id}-2")
        before = await everything(harness)
        answers = await ensure_inbox(harness, 1, 2, holds={1: hold_of(theirs), 2: (2**40, 1)})
        assert outcomes(answers) == [Outcome.SUPERSEDED, Outcome.SUPERSEDED]
        assert await everything(harness) == before

"""What a retry finds after half of the work was done: the table of the architecture seed, a test for each row."""

import pytest

from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.fingerprint import Fingerprint
from clarion.domain.guard import IdempotencyGuard, JobEntry
from clarion.domain.inbox import UserMessage
from clarion.domain.notification import NotificationScheduler, NotificationStatus
from clarion.domain.outgoing import OutgoingMessage
from clarion.testing.contracts.harness import StoreHarness, everything, with_row, without_cases
from clarion.testing.contracts.kind import COMPARED, Kind, changed, contradicted
from clarion.testing.contracts.outgoing import ensure, make_addresses, make_job
from clarion.testing.contracts.sets import outcomes
from clarion.testing.factories import (
    guarded_entry,
    messaging_job,
    notification_job,
    notification_scheduler,
    outgoing_items,
    user_message,
)

HASHED = tuple(
    (kind, name)
    for kind in COMPARED
    for name in kind.given_fields
    if isinstance(getattr(kind.make(), name), Fingerprint)
)


class PartialFailureContract:
    """After a crash an ensure uses what is stored, makes what is missing, and stops at what contradicts it."""

    @pytest.mark.parametrize("guarded", [True, False])
    async def test_a_job_whose_scheduler_row_is_missing_gets_it_through_the_dispatch_key(
        self, harness: StoreHarness, guarded: bool
    ) -> None:
        """F-02: one job, one scheduler row, ready for work."""
        plain = JobEntry(job=notification_job(), scheduler=notification_scheduler())
        entry = guarded_entry() if guarded else plain
        (created,) = await harness.store.ensure_notification_jobs(harness.tenant_id, [entry])
        (scheduler,) = await harness.rows(harness.tenant_id, NotificationScheduler)
        await harness.remove(harness.tenant_id, scheduler)
        (answer,) = await harness.store.ensure_notification_jobs(harness.tenant_id, [entry])
        assert answer == Ensured(outcome=Outcome.FOUND, record=created.record)
        (again,) = await harness.rows(harness.tenant_id, NotificationScheduler)
        assert (again.key, again.status) == (scheduler.key, NotificationStatus.READY)

    async def test_a_recipient_whose_inbox_row_is_missing_gets_it_under_its_key(self, harness: StoreHarness) -> None:
        """The rows of the others stay as they are."""
        await harness.store.ensure_user_messages(harness.tenant_id, [user_message(n) for n in (1, 3)])
        before = await harness.rows(harness.tenant_id, UserMessage)
        answers = await harness.store.ensure_user_messages(harness.tenant_id, [user_message(n) for n in (1, 2, 3)])
        assert outcomes(answers) == [Outcome.FOUND, Outcome.CREATED, Outcome.FOUND]
        assert answers[1].record.key == user_message(2).key
        rows = await harness.rows(harness.tenant_id, UserMessage)
        assert [row for row in rows if row.key != user_message(2).key] == before

    async def test_outgoing_rows_that_were_made_before_a_crash_are_used_and_the_rest_is_made(
        self, harness: StoreHarness
    ) -> None:
        """F-09: k of n rows are there; the retry makes the others and leaves no gap."""
        job, addresses = await make_job(harness), await make_addresses(harness, 5)
        made = await ensure(harness, outgoing_items(job, addresses[1:3]))
        answers = await ensure(harness, outgoing_items(job, addresses))
        created, found = Outcome.CREATED, Outcome.FOUND
        assert outcomes(answers) == [created, found, found, created, created]
        assert [answer.record for answer in answers[1:3]] == [answer.record for answer in made]
        assert len(await harness.rows(harness.tenant_id, OutgoingMessage)) == 5

    async def test_a_messaging_job_whose_blob_does_not_fit_stops_and_is_reported(self, harness: StoreHarness) -> None:
        """The row carries the content's hash; other content under the same guid is a conflict."""
        (created,) = await harness.store.ensure_messaging_jobs(harness.tenant_id, [messaging_job()])
        other = messaging_job(content_hash=Fingerprint.of({"subject": "Autumn"}))
        (answer,) = await harness.store.ensure_messaging_jobs(harness.tenant_id, [other])
        assert (answer.outcome, answer.record, answer.differing, answer.proceeds) == (
            Outcome.CONFLICT,
            created.record,
            ("content_hash",),
            False,
        )
        assert len(await harness.store.list_support_cases(harness.tenant_id)) == 1

    @pytest.mark.parametrize("kind, name", HASHED, ids=str)
    async def test_any_hash_that_does_not_fit_stops_and_is_reported(
        self, harness: StoreHarness, kind: Kind, name: str
    ) -> None:
        """Of every record that has one; what is stored stays, and an occurrence waits on hold."""
        (created,) = await kind.ensure(harness.store, harness.tenant_id, [kind.make()])
        before = with_row(await everything(harness), contradicted(created.record))
        (answer,) = await kind.ensure(harness.store, harness.tenant_id, [changed(kind.make(), name)])
        assert (answer.differing, answer.proceeds) == ((name,), False)
        assert without_cases(await everything(harness)) == without_cases(before)
        assert len(await harness.store.list_support_cases(harness.tenant_id)) == 1

    async def test_a_guards_hash_that_does_not_fit_stops_and_is_reported(self, harness: StoreHarness) -> None:
        """The one hash that is not a record's of its own."""
        await harness.store.ensure_notification_jobs(harness.tenant_id, [guarded_entry()])
        before = await harness.rows(harness.tenant_id, IdempotencyGuard)
        (answer,) = await harness.store.ensure_notification_jobs(
            harness.tenant_id, [guarded_entry(payload="something else")]
        )
        assert not answer.proceeds
        assert await harness.rows(harness.tenant_id, IdempotencyGuard) == before

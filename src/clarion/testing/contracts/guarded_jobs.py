"""Notification jobs with what is committed together with them: the idempotency guard and the scheduler row."""

import asyncio
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.guard import IdempotencyGuard, JobEntry
from clarion.domain.identity import Lane
from clarion.domain.key import month_bucket
from clarion.domain.notification import ArtifactType, NotificationJob, NotificationScheduler, NotificationStatus, Stage
from clarion.domain.skip import SkipRule
from clarion.errors import InvalidInput
from clarion.testing.contracts.harness import StoreHarness, everything, without_cases
from clarion.testing.contracts.sets import CALLERS, outcomes
from clarion.testing.factories import (
    SOURCE_AT,
    ensure_artifacts,
    guard_of,
    guarded_entry,
    guid,
    messaging_job,
    notification_job,
    notification_scheduler,
    payload_hash,
    scheduler_of,
    scheduler_of_content,
)

LATER = SOURCE_AT + timedelta(days=1)
"""When a second caller comes with a key that was used: in another month, so that its own bucket would be another."""

DUE_AT = datetime(2026, 3, 1, tzinfo=UTC)


async def ensure(harness: StoreHarness, *entries: JobEntry) -> list[Ensured[NotificationJob]]:
    """Ensure entries for the test's tenant."""
    return await harness.store.ensure_notification_jobs(harness.tenant_id, entries)


async def ensure_one(harness: StoreHarness, entry: JobEntry) -> Ensured[NotificationJob]:
    """Ensure one entry."""
    (answer,) = await ensure(harness, entry)
    return answer


async def the_guard(harness: StoreHarness) -> IdempotencyGuard:
    """Read the only guard."""
    (guard,) = await harness.rows(harness.tenant_id, IdempotencyGuard)
    return guard


async def count(harness: StoreHarness) -> tuple[int, int, int]:
    """Count guards, jobs and scheduler rows."""
    guards = await harness.rows(harness.tenant_id, IdempotencyGuard)
    jobs = await harness.rows(harness.tenant_id, NotificationJob)
    return len(guards), len(jobs), len(await harness.rows(harness.tenant_id, NotificationScheduler))


class GuardedJobContract:
    """Guard, job and scheduler row: together or not at all."""

    async def test_guard_job_and_scheduler_row_are_made_together(self, harness: StoreHarness) -> None:
        """What the door acknowledges is all there (I-24)."""
        entry = guarded_entry()
        answer = await ensure_one(harness, entry)
        (scheduler,) = await harness.rows(harness.tenant_id, NotificationScheduler)
        assert answer.outcome is Outcome.CREATED
        assert await the_guard(harness) == entry.guard
        assert await harness.rows(harness.tenant_id, NotificationJob) == [answer.record]
        assert answer.record == msgspec.structs.replace(entry.job, id=answer.record.id)
        assert (scheduler.artifact_pk, scheduler.artifact_rk) == (answer.record.partition_key, answer.record.row_key)
        assert (scheduler.stage, scheduler.status) == (Stage.SCHEDULE, NotificationStatus.READY)

    async def test_the_second_caller_with_a_key_is_led_to_the_coordinates_of_the_first(
        self, harness: StoreHarness
    ) -> None:
        """F-03, F-04: it brought a time and so a row key of its own, and still one job is made."""
        first = await ensure_one(harness, guarded_entry())
        before = await everything(harness)
        second = guarded_entry(created_at=LATER)
        assert second.job.row_key != first.record.row_key
        assert await ensure_one(harness, second) == Ensured(outcome=Outcome.FOUND, record=first.record)
        assert await everything(harness) == before

    async def test_a_guard_is_found_by_its_key(self, harness: StoreHarness) -> None:
        """In its own tenant, and only once the key was used."""
        guard = guarded_entry().guard
        assert guard is not None
        place = (guard.operation, guard.key_hash)
        assert await harness.store.find_guard(harness.tenant_id, place) is None
        await ensure_one(harness, guarded_entry())
        assert await harness.store.find_guard(harness.tenant_id, place) == guard
        assert await harness.store.find_guard(f"{harness.tenant_id}-2", place) is None
        assert await harness.store.find_guard(harness.tenant_id, (guard.operation, "another")) is None

    async def test_a_key_used_with_another_payload_is_a_conflict_and_makes_nothing(self, harness: StoreHarness) -> None:
        """F-05: the case names the job and what differs."""
        first = await ensure_one(harness, guarded_entry())
        before = await everything(harness)
        answer = await ensure_one(harness, guarded_entry(payload="something else", created_at=LATER))
        assert (answer.outcome, answer.record, answer.differing) == (
            Outcome.CONFLICT,
            first.record,
            ("payload_hash",),
        )
        assert without_cases(await everything(harness)) == without_cases(before)
        (case,) = await harness.store.list_support_cases(harness.tenant_id)
        assert (case.case_id, case.record) == (answer.case_id, "NotificationJob")
        assert case.record_key == msgspec.json.encode(first.record.key).decode()
        assert list(msgspec.json.decode(case.details)["differing"]) == ["payload_hash"]

    async def test_a_conflict_behind_a_guard_names_every_field_that_differs(self, harness: StoreHarness) -> None:
        """Another payload to another recipient: both are named."""
        await ensure_one(harness, guarded_entry())
        other = guarded_entry(payload="something else", partition_key="user:8", event_type="another")
        answer = await ensure_one(harness, other)
        assert answer.differing == ("partition_key", "event_type", "payload_hash")

    async def test_a_guard_with_another_payload_is_a_conflict_even_if_the_job_is_the_same(
        self, harness: StoreHarness
    ) -> None:
        """The guard's hash covers the whole request, and by itself decides."""
        entry = guarded_entry()
        assert entry.guard is not None
        first = await ensure_one(harness, entry)
        before = await everything(harness)
        guard = msgspec.structs.replace(entry.guard, payload_hash=payload_hash("something else"))
        answer = await ensure_one(harness, msgspec.structs.replace(entry, guard=guard))
        assert (answer.outcome, answer.record, answer.differing) == (
            Outcome.CONFLICT,
            first.record,
            ("payload_hash",),
        )
        assert without_cases(await everything(harness)) == without_cases(before)

    @pytest.mark.parametrize("payload", ["hello", "something else"])
    async def test_a_retired_key_is_gone_and_makes_nothing(self, harness: StoreHarness, payload: str) -> None:
        """F-06: whatever it is used for, and though its job was removed by retention."""
        first = await ensure_one(harness, guarded_entry())
        (scheduler,) = await harness.rows(harness.tenant_id, NotificationScheduler)
        retired = msgspec.structs.replace(await the_guard(harness), retired_at=DUE_AT)
        await harness.overwrite(harness.tenant_id, retired)
        await harness.remove(harness.tenant_id, first.record)
        await harness.remove(harness.tenant_id, scheduler)
        before = await everything(harness)
        answer = await ensure_one(harness, guarded_entry(payload=payload, created_at=LATER))
        assert (answer.outcome, answer.proceeds) == (Outcome.GONE, False)
        assert answer.record.row_key == first.record.row_key
        assert await everything(harness) == before

    async def test_a_guard_without_its_job_has_the_job_made_where_it_says(self, harness: StoreHarness) -> None:
        """Where guard and job cannot share a transaction the guard comes first, and a retry does the rest (F-02)."""
        first = await ensure_one(harness, guarded_entry())
        (scheduler,) = await harness.rows(harness.tenant_id, NotificationScheduler)
        await harness.remove(harness.tenant_id, first.record)
        await harness.remove(harness.tenant_id, scheduler)
        answer = await ensure_one(harness, guarded_entry(created_at=LATER))
        assert answer.outcome is Outcome.CREATED
        assert (answer.record.row_key, answer.record.source_at, answer.record.bucket) == (
            first.record.row_key,
            SOURCE_AT,
            month_bucket(SOURCE_AT),
        )
        (made,) = await harness.rows(harness.tenant_id, NotificationScheduler)
        assert made.key == scheduler.key

    async def test_a_message_id_is_stored_only_where_it_derives_from_the_jobs_key(self, harness: StoreHarness) -> None:
        """Whoever comes second has derived its own from a row key that no job has."""
        first = await ensure_one(harness, guarded_entry(message_id=guid(1, "message")))
        second = guarded_entry(created_at=LATER, message_id=guid(2, "message"))
        assert (await ensure_one(harness, second)).record.message_id == guid(1, "message")
        await harness.remove(harness.tenant_id, first.record)
        assert (await ensure_one(harness, second)).record.message_id is None

    async def test_a_guard_without_its_job_still_refuses_another_payload(self, harness: StoreHarness) -> None:
        """The key was used; what became of its job is another matter."""
        first = await ensure_one(harness, guarded_entry())
        await harness.remove(harness.tenant_id, first.record)
        before = await everything(harness)
        answer = await ensure_one(harness, guarded_entry(payload="something else", created_at=LATER))
        assert (answer.outcome, answer.differing) == (Outcome.CONFLICT, ("payload_hash",))
        assert answer.record.row_key == first.record.row_key
        assert without_cases(await everything(harness)) == without_cases(before)
        assert len(await harness.store.list_support_cases(harness.tenant_id)) == 1

    async def test_a_job_in_conflict_takes_its_new_guard_and_scheduler_row_with_it(self, harness: StoreHarness) -> None:
        """Nothing of the entry stays, so that the key is not spent on a job that was never made."""
        job = notification_job()
        await ensure_one(harness, JobEntry(job=job))
        other = msgspec.structs.replace(job, template_key="another")
        entry = JobEntry(job=other, scheduler=scheduler_of(other), guard=guard_of(other, "key-1"))
        theirs = f"{harness.tenant_id}-2"
        await harness.store.ensure_notification_jobs(theirs, [entry])
        before = [await everything(harness), await everything(harness, theirs)]
        answer = await ensure_one(harness, entry)
        assert (answer.outcome, answer.differing) == (Outcome.CONFLICT, ("template_key",))
        assert without_cases(await everything(harness)) == without_cases(before[0])
        assert await everything(harness, theirs) == before[1], "another tenant's guard with the same key stays"

    async def test_without_a_guard_the_jobs_own_key_decides(self, harness: StoreHarness) -> None:
        """An event, a reminder or a campaign needs none."""
        entry = JobEntry(job=notification_job(), scheduler=notification_scheduler())
        first = await ensure_one(harness, entry)
        assert await ensure_one(harness, entry) == Ensured(outcome=Outcome.FOUND, record=first.record)
        assert await count(harness) == (0, 1, 1)

    async def test_a_job_without_a_scheduler_row_gets_none(self, harness: StoreHarness) -> None:
        """A campaign's history anchor: another artifact's row does the work."""
        await ensure_one(harness, JobEntry(job=notification_job()))
        await ensure_one(harness, JobEntry(job=notification_job()))
        assert await count(harness) == (0, 1, 0)

    async def test_the_same_row_key_under_another_partition_key_is_a_conflict(self, harness: StoreHarness) -> None:
        """A row key is unique by itself, for the rows of a job derive from it alone."""
        await ensure_one(harness, JobEntry(job=notification_job(), scheduler=notification_scheduler()))
        before = await everything(harness)
        job = notification_job(partition_key="user:8")
        answer = await ensure_one(harness, JobEntry(job=job, scheduler=scheduler_of(job)))
        assert (answer.outcome, answer.differing) == (Outcome.CONFLICT, ("partition_key",))
        assert without_cases(await everything(harness)) == without_cases(before)

    async def test_two_keys_and_two_operations_are_apart(self, harness: StoreHarness) -> None:
        """A guard belongs to one operation; the same key of another one is free."""
        entries = [guarded_entry("key-1"), guarded_entry("key-2"), _with_operation(guarded_entry("key-3"), "invite")]
        assert outcomes(await ensure(harness, *entries)) == [Outcome.CREATED] * 3
        assert await count(harness) == (3, 3, 3)

    async def test_in_a_set_every_entry_is_judged_by_itself(self, harness: StoreHarness) -> None:
        """Found, in conflict, gone and new side by side, in the order asked."""
        known = [guarded_entry(f"key-{n}") for n in range(3)]
        await ensure(harness, *known)
        assert known[2].guard is not None
        await harness.overwrite(harness.tenant_id, msgspec.structs.replace(known[2].guard, retired_at=DUE_AT))
        answers = await ensure(
            harness,
            guarded_entry("key-9"),
            guarded_entry("key-2"),
            guarded_entry("key-1", payload="something else", created_at=LATER),
            JobEntry(job=notification_job(), scheduler=notification_scheduler()),
            guarded_entry("key-0", created_at=LATER),
        )
        assert outcomes(answers) == [
            Outcome.CREATED,
            Outcome.GONE,
            Outcome.CONFLICT,
            Outcome.CREATED,
            Outcome.FOUND,
        ]
        assert answers[4].record.row_key == known[0].job.row_key
        assert await count(harness) == (4, 5, 5)

    async def test_of_equal_keys_in_one_set_the_first_decides_where_the_job_is(self, harness: StoreHarness) -> None:
        """The second and third are as second and third callers."""
        first, second, third = await ensure(
            harness,
            guarded_entry(created_at=LATER),
            guarded_entry(),
            guarded_entry(payload="something else"),
        )
        assert (first.outcome, second.outcome, third.outcome) == (Outcome.CREATED, Outcome.FOUND, Outcome.CONFLICT)
        assert first.record == second.record == third.record
        assert first.record.source_at == LATER
        assert await count(harness) == (1, 1, 1)

    async def test_of_many_callers_at_once_with_one_key_one_makes_the_job_and_all_are_led_to_it(
        self, harness: StoreHarness
    ) -> None:
        """F-04: each brought a time of its own; one with another payload comes after them."""
        entries = [guarded_entry(created_at=SOURCE_AT + timedelta(hours=n)) for n in range(CALLERS)]
        answers = await asyncio.gather(*(ensure_one(harness, entry) for entry in entries))
        odd = await ensure_one(harness, guarded_entry(payload="something else"))
        assert sorted(outcomes(answers)) == [Outcome.CREATED, *[Outcome.FOUND] * (CALLERS - 1)]
        assert len({answer.record.row_key for answer in answers}) == 1
        assert odd.outcome is Outcome.CONFLICT
        assert await count(harness) == (1, 1, 1)

    async def test_the_same_key_in_two_tenants_is_two_jobs(self, harness: StoreHarness) -> None:
        """A guard is its tenant's alone, retired or not, and leads to its tenant's own job."""
        theirs = f"{harness.tenant_id}-2"
        await ensure_one(harness, guarded_entry())
        guard = await the_guard(harness)
        await harness.overwrite(harness.tenant_id, msgspec.structs.replace(guard, retired_at=DUE_AT))
        other = guarded_entry(payload="something else", created_at=LATER)
        (created,) = await harness.store.ensure_notification_jobs(theirs, [other])
        assert (created.outcome, created.record.row_key) == (Outcome.CREATED, other.job.row_key)
        assert await harness.rows(theirs, IdempotencyGuard) == [other.guard]
        assert len(await harness.rows(theirs, NotificationScheduler)) == 1
        (again,) = await harness.store.ensure_notification_jobs(theirs, [guarded_entry(payload="something else")])
        assert again == Ensured(outcome=Outcome.FOUND, record=created.record)
        assert (await ensure_one(harness, guarded_entry())).outcome is Outcome.GONE


class NotificationSchedulerContract:
    """The dispatch key: one pending row for an artifact and an event type, ever."""

    @pytest.mark.parametrize("through_the_job", [True, False])
    @pytest.mark.parametrize("status", NotificationStatus)
    async def test_a_row_is_returned_as_it_is_in_every_state_and_never_reset(
        self, harness: StoreHarness, status: NotificationStatus, through_the_job: bool
    ) -> None:
        """What is done stays done, what is canceled stays canceled (F-11)."""
        entry = JobEntry(job=notification_job(), scheduler=notification_scheduler())
        await ensure_one(harness, entry)
        (created,) = await harness.rows(harness.tenant_id, NotificationScheduler)
        row = msgspec.structs.replace(
            created,
            status=status,
            stage=Stage.GENERATE,
            version=5,
            due_at=DUE_AT if status is NotificationStatus.READY else None,
            lease_until=DUE_AT if status is NotificationStatus.PROCESSING else None,
            retry_count=2,
            rescue_count=1,
            reason="a reason",
            rule=SkipRule.NOBODY,
            diagnostics="notes",
        )
        await harness.overwrite(harness.tenant_id, row)
        before = await everything(harness)
        if through_the_job:
            assert (await ensure_one(harness, entry)).outcome is Outcome.FOUND
        else:
            (answer,) = await harness.store.ensure_notification_schedulers(
                harness.tenant_id, [notification_scheduler(lane=Lane.CRITICAL)]
            )
            assert answer == Ensured(outcome=Outcome.FOUND, record=row)
        assert await everything(harness) == before

    async def test_a_row_is_due_when_it_says(self, harness: StoreHarness) -> None:
        """A later time is simply not before."""
        await ensure_one(harness, JobEntry(job=notification_job()))
        (answer,) = await harness.store.ensure_notification_schedulers(
            harness.tenant_id, [notification_scheduler(due_at=DUE_AT)]
        )
        assert answer.record.due_at == DUE_AT

    async def test_a_row_that_does_not_say_when_is_due_at_once_by_the_stores_clock(self, harness: StoreHarness) -> None:
        """Not by the caller's: a caller has no say in what is due."""
        if harness.clock is not None:
            harness.clock.advance(timedelta(seconds=90))
        rows = [notification_scheduler(1), notification_scheduler(2)]
        await ensure_artifacts(harness.store, harness.tenant_id, rows)
        first, second = await harness.store.ensure_notification_schedulers(harness.tenant_id, rows)
        assert first.record.due_at == second.record.due_at is not None
        assert harness.clock is None or first.record.due_at == harness.clock.now()

    async def test_a_messaging_job_gets_its_row_too(self, harness: StoreHarness) -> None:
        """Both keys of the row are its guid."""
        await harness.store.ensure_messaging_jobs(harness.tenant_id, [messaging_job()])
        (answer,) = await harness.store.ensure_notification_schedulers(
            harness.tenant_id, [scheduler_of_content(messaging_job())]
        )
        assert (answer.outcome, answer.record.artifact_rk) == (Outcome.CREATED, str(messaging_job().guid))

    @pytest.mark.parametrize(
        "row",
        [
            notification_scheduler(2),
            notification_scheduler(1, artifact_pk="elsewhere"),
            notification_scheduler(1, artifact_type=ArtifactType.MESSAGING_JOB),
            scheduler_of_content(messaging_job(2)),
            msgspec.structs.replace(scheduler_of_content(messaging_job(1)), artifact_pk="elsewhere"),
            msgspec.structs.replace(
                scheduler_of_content(messaging_job(1)), artifact_type=ArtifactType.NOTIFICATION_JOB
            ),
        ],
        ids=["no-such-job", "other-pk", "other-kind", "no-such-content", "content-other-pk", "content-other-kind"],
    )
    async def test_a_row_of_a_job_that_is_not_there_is_refused_and_nothing_is_written(
        self, harness: StoreHarness, row: NotificationScheduler
    ) -> None:
        """Nobody would ever work on it; a job of another tenant is not there either."""
        jobs, contents = [JobEntry(job=notification_job(1))], [messaging_job(1)]
        for tenant_id in (harness.tenant_id, f"{harness.tenant_id}-2"):
            await harness.store.ensure_notification_jobs(tenant_id, jobs)
            await harness.store.ensure_messaging_jobs(tenant_id, contents)
            jobs, contents = [JobEntry(job=notification_job(2))], [messaging_job(2)]
        before = await everything(harness)
        with pytest.raises(InvalidInput, match=r"the tenant has no job .*: ensure the job before") as refused:
            await harness.store.ensure_notification_schedulers(harness.tenant_id, [notification_scheduler(1), row])
        assert refused.value.field == "artifact_rk"
        assert await everything(harness) == before


def _with_operation(entry: JobEntry, operation: str) -> JobEntry:
    """Ask for the same as the first key's entry, for another operation."""
    first = guarded_entry("key-1").guard
    assert entry.guard is not None
    assert first is not None
    guard = msgspec.structs.replace(entry.guard, operation=operation, key_hash=first.key_hash)
    return msgspec.structs.replace(entry, guard=guard)

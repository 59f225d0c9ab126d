"""Stages: pending jobs are taken under a lease, finished by the version of their claim, rescued a bounded time."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import msgspec
import pytest

from clarion.domain.claim import StageClaim, StageResult
from clarion.domain.guard import JobEntry
from clarion.domain.identity import Lane
from clarion.domain.notification import (
    NOTIFICATION_SCHEDULER,
    NotificationJob,
    NotificationScheduler,
    NotificationStatus,
    Stage,
)
from clarion.domain.recipient import FrozenSet, RecipientJob
from clarion.domain.skip import SkipRule
from clarion.domain.support import SupportKind
from clarion.errors import IllegalMove
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pump import LEASE, near
from clarion.testing.factories import TEXT, messaging_job, notification_job, scheduler_of, scheduler_of_content

SECOND: Final = timedelta(seconds=1)
PAST_LEASE: Final = LEASE + SECOND
FINISHED: Final = tuple(
    to
    for to in NOTIFICATION_SCHEDULER.table[NotificationStatus.PROCESSING]
    if to is not NotificationStatus.CANCELED  # that is a cancel's, not a worker's
)


async def make_pending(harness: StoreHarness, n: int = 1, tenant_id: str | None = None, **fields: object) -> int:
    """Store a job with its pending row; return the row's id."""
    job = notification_job(n, payload=b"sealed", template_key="welcome")
    pending = msgspec.structs.replace(scheduler_of(job), **fields)
    tenant = tenant_id or harness.tenant_id
    await harness.store.ensure_notification_jobs(tenant, [JobEntry(job=job, scheduler=pending)])
    (row,) = [row for row in await harness.rows(tenant, NotificationScheduler) if row.key == pending.key]
    assert row.id is not None
    return row.id


async def claim(harness: StoreHarness, stage: Stage = Stage.SCHEDULE, limit: int = 100) -> list[StageClaim]:
    """Claim what is due of a stage, of all lanes."""
    return await harness.store.claim_stage(stage, lanes=tuple(Lane), limit=limit, lease=LEASE)


async def row_of(harness: StoreHarness, scheduler_id: int) -> NotificationScheduler:
    """Read one pending row."""
    rows = await harness.rows(harness.tenant_id, NotificationScheduler)
    (row,) = [row for row in rows if row.id == scheduler_id]
    return row


def finished(one: StageClaim, to: NotificationStatus, stage: Stage = Stage.GENERATE, **fields: object) -> StageResult:
    """Make the result of a claim."""
    assert one.scheduler.id is not None
    plain = StageResult(scheduler_id=one.scheduler.id, version=one.scheduler.version, to=to, stage=stage)
    return msgspec.structs.replace(plain, **fields)


def frozen_set(job_id: int, text: str, *people: int) -> FrozenSet:
    """Make a set of a job; each job has a key of its own."""
    return FrozenSet(
        job_id=job_id, job_key=f"key-{job_id}", text=text, recipients=[f"{number:032}" for number in people]
    )


def ids(claims: Sequence[StageClaim]) -> list[int | None]:
    """Name the rows that were claimed."""
    return [one.scheduler.id for one in claims]


class StageContract:
    """Work that waits in two stages."""

    async def test_a_due_job_is_claimed_once_under_a_lease(self, harness: StoreHarness) -> None:
        """The claim carries the job as it is stored, and its version is the token."""
        scheduler_id = await make_pending(harness)
        (claimed,) = await claim(harness)
        (job,) = await harness.rows(harness.tenant_id, NotificationJob)
        assert (claimed.tenant_id, claimed.job) == (harness.tenant_id, job)
        row = await row_of(harness, scheduler_id)
        assert claimed.scheduler == row
        assert (row.status, row.version, row.due_at) == (NotificationStatus.PROCESSING, 2, None)
        assert near(row.lease_until, await harness.now() + LEASE)
        assert await claim(harness) == []

    async def test_urgent_lanes_come_first_and_within_a_lane_the_oldest(self, harness: StoreHarness) -> None:
        """The order in which the rows were made does not matter, but for the age within a lane."""
        now = await harness.now()
        asked = [(Lane.BULK, 50), (Lane.CRITICAL, 10), (Lane.NORMAL, 20), (Lane.CRITICAL, 30), (Lane.HIGH, 1)]
        rows = {
            (lane, age): await make_pending(harness, n, lane=lane, due_at=now - timedelta(seconds=age))
            for n, (lane, age) in enumerate(asked, start=1)
        }
        order = [(Lane.CRITICAL, 30), (Lane.CRITICAL, 10), (Lane.HIGH, 1), (Lane.NORMAL, 20), (Lane.BULK, 50)]
        first = await claim(harness, limit=1)
        assert ids(first) == [rows[order[0]]]
        assert ids(await claim(harness)) == [rows[name] for name in order[1:]]

    async def test_a_backlog_in_an_urgent_lane_does_not_stop_the_others(self, harness: StoreHarness) -> None:
        """A batch of 15 is divided as 8 : 4 : 2 : 1, and what a lane does not need goes to the urgent ones first."""
        for n in range(40):
            await make_pending(harness, n, lane=Lane.CRITICAL)
        for n, lane in enumerate([Lane.HIGH] * 6 + [Lane.NORMAL] * 3 + [Lane.BULK], start=40):
            await make_pending(harness, n, lane=lane)
        taken = [Counter(one.scheduler.lane for one in await claim(harness, limit=15)) for _ in range(4)]
        assert taken == [
            {Lane.CRITICAL: 8, Lane.HIGH: 4, Lane.NORMAL: 2, Lane.BULK: 1},
            {Lane.CRITICAL: 12, Lane.HIGH: 2, Lane.NORMAL: 1},
            {Lane.CRITICAL: 15},
            {Lane.CRITICAL: 5},
        ]

    async def test_only_the_lanes_and_the_stage_asked_for_are_claimed(self, harness: StoreHarness) -> None:
        """A worker of one lane leaves the others alone."""
        rows = {lane: await make_pending(harness, n, lane=lane) for n, lane in enumerate(Lane)}
        assert await claim(harness, Stage.GENERATE) == []
        lanes = (Lane.HIGH, Lane.BULK)
        claims = await harness.store.claim_stage(Stage.SCHEDULE, lanes=lanes, limit=9, lease=LEASE)
        assert ids(claims) == [rows[Lane.HIGH], rows[Lane.BULK]]

    async def test_a_job_whose_time_has_not_come_is_not_claimed(self, harness: StoreHarness) -> None:
        """By the store's clock, and by no other."""
        scheduler_id = await make_pending(harness, due_at=await harness.now() + timedelta(seconds=100))
        assert await claim(harness) == []
        await harness.elapse(timedelta(seconds=50))
        assert await claim(harness) == []
        await harness.elapse(timedelta(seconds=51))
        assert ids(await claim(harness)) == [scheduler_id]

    async def test_jobs_of_all_tenants_are_claimed_together(self, harness: StoreHarness) -> None:
        """And each claim says whose it is."""
        theirs = f"{harness.tenant_id}-2"
        await make_pending(harness)
        await make_pending(harness, tenant_id=theirs)
        claims = await claim(harness)
        assert sorted(one.tenant_id for one in claims) == [harness.tenant_id, theirs]
        assert {one.job.id for one in claims} == {
            job.id for tenant in (harness.tenant_id, theirs) for job in await harness.rows(tenant, NotificationJob)
        }

    async def test_jobs_of_tenants_that_are_not_wanted_are_left_and_take_nobodys_place(
        self, harness: StoreHarness
    ) -> None:
        """However old and urgent they are: the others get the whole limit, beyond their lane's part too."""
        now, theirs = await harness.now(), f"{harness.tenant_id}-2"
        for n in range(4):
            due_at = now - timedelta(seconds=100 + n)
            await make_pending(harness, n, tenant_id=theirs, lane=Lane.CRITICAL, due_at=due_at)
        await make_pending(harness, 10, lane=Lane.CRITICAL, due_at=now - SECOND)
        await make_pending(harness, 11, lane=Lane.BULK, due_at=now - SECOND)

        async def claim_without(*tenants: str) -> list[str]:
            claims = await harness.store.claim_stage(
                Stage.SCHEDULE, lanes=tuple(Lane), limit=2, lease=LEASE, without=tenants
            )
            return [one.tenant_id for one in claims]

        assert await claim_without(theirs, harness.tenant_id) == []
        assert await claim_without(theirs) == [harness.tenant_id] * 2
        assert await claim_without(harness.tenant_id, "nobody") == [theirs] * 2
        assert await claim_without() == [theirs] * 2

    async def test_what_has_no_notification_job_is_not_claimed(self, harness: StoreHarness) -> None:
        """A row whose job is missing, and one that is pending for another kind of artifact, wait for others."""
        await make_pending(harness, 1)
        (job,) = await harness.rows(harness.tenant_id, NotificationJob)
        await harness.remove(harness.tenant_id, job)
        (answer,) = await harness.store.ensure_messaging_jobs(harness.tenant_id, [messaging_job(2)])
        await harness.store.ensure_notification_schedulers(harness.tenant_id, [scheduler_of_content(answer.record)])
        assert await claim(harness) == []

    async def test_two_claims_at_once_never_share_a_job(self, harness: StoreHarness) -> None:
        """F-26: each row is in one of them."""
        rows = [await make_pending(harness, n) for n in range(20)]
        claims = await asyncio.gather(*(claim(harness, limit=7) for _ in range(4)))
        taken = [scheduler_id for one in claims for scheduler_id in ids(one)]
        assert len(taken) == len(set(taken))
        rest = ids(await claim(harness))
        assert sorted(taken + rest, key=str) == sorted(rows, key=str)

    async def test_a_finished_stage_makes_the_row_ready_for_the_next(self, harness: StoreHarness) -> None:
        """A next stage is no retry."""
        scheduler_id = await make_pending(harness)
        (claimed,) = await claim(harness)
        assert await harness.store.finish_stage([finished(claimed, NotificationStatus.READY)]) == {scheduler_id}
        row = await row_of(harness, scheduler_id)
        assert (row.status, row.stage, row.retry_count, row.lease_until) == (
            NotificationStatus.READY,
            Stage.GENERATE,
            0,
            None,
        )
        assert row.version > claimed.scheduler.version
        assert await claim(harness, Stage.SCHEDULE) == []
        assert ids(await claim(harness, Stage.GENERATE)) == [scheduler_id]

    async def test_a_retry_is_counted_and_waits_for_its_delay(self, harness: StoreHarness) -> None:
        """In the same stage."""
        scheduler_id = await make_pending(harness)
        (claimed,) = await claim(harness)
        again = finished(
            claimed, NotificationStatus.READY, Stage.SCHEDULE, is_retry=True, delay=timedelta(seconds=30), reason="busy"
        )
        assert await harness.store.finish_stage([again]) == {scheduler_id}
        row = await row_of(harness, scheduler_id)
        assert (row.retry_count, row.stage, row.reason) == (1, Stage.SCHEDULE, "busy")
        assert near(row.due_at, await harness.now() + timedelta(seconds=30))
        assert await claim(harness) == []
        await harness.elapse(timedelta(seconds=31))
        assert ids(await claim(harness)) == [scheduler_id]

    @pytest.mark.parametrize("to", FINISHED)
    async def test_a_result_says_where_the_row_ends_and_why(
        self, harness: StoreHarness, to: NotificationStatus
    ) -> None:
        """Every end that a worker can bring about."""
        scheduler_id = await make_pending(harness)
        (claimed,) = await claim(harness)
        end = finished(claimed, to, reason=TEXT, rule=SkipRule.SETTING, diagnostics='{"tried": 1}')
        assert await harness.store.finish_stage([end]) == {scheduler_id}
        row = await row_of(harness, scheduler_id)
        assert (row.status, row.reason, row.rule) == (to, TEXT, SkipRule.SETTING)
        assert row.diagnostics == '{"tried": 1}'
        assert (row.lease_until, row.due_at is None) == (None, to is not NotificationStatus.READY)
        assert await harness.store.finish_stage([end]) == set()

    async def test_a_move_that_the_table_does_not_have_is_an_error_and_changes_nothing(
        self, harness: StoreHarness
    ) -> None:
        """For example, a result cannot leave the row in `Processing`."""
        scheduler_id = await make_pending(harness)
        (claimed,) = await claim(harness)
        with pytest.raises(IllegalMove):
            await harness.store.finish_stage([finished(claimed, NotificationStatus.PROCESSING)])
        assert await row_of(harness, scheduler_id) == claimed.scheduler

    async def test_several_results_move_together_and_stale_ones_hold_up_nobody(self, harness: StoreHarness) -> None:
        """F-10: whoever lost its claim changes nothing, whatever else is in the set."""
        rows = [await make_pending(harness, n) for n in range(4)]
        claims = await claim(harness)
        results = [finished(one, NotificationStatus.DONE) for one in claims]
        results[1] = msgspec.structs.replace(results[1], version=results[1].version - 1)
        results[2] = msgspec.structs.replace(results[2], version=results[2].version + 1)
        results.append(msgspec.structs.replace(results[0], scheduler_id=2**40))
        moved = await harness.store.finish_stage(results)
        assert moved == {claims[0].scheduler.id, claims[3].scheduler.id}
        statuses = [(await row_of(harness, scheduler_id)).status for scheduler_id in rows]
        assert statuses.count(NotificationStatus.PROCESSING) == 2
        assert await harness.store.finish_stage([]) == set()

    async def test_a_worker_that_was_overtaken_moves_nothing(self, harness: StoreHarness) -> None:
        """F-10: its row was rescued, then claimed and finished by another worker, before it went on."""
        scheduler_id = await make_pending(harness)
        (first,) = await claim(harness)
        await harness.elapse(PAST_LEASE)
        assert await harness.store.rescue_stages(limit=10, rescues_max=5) == 1
        assert await harness.store.finish_stage([finished(first, NotificationStatus.FAILED)]) == set()
        (second,) = await claim(harness)
        assert await harness.store.finish_stage([finished(first, NotificationStatus.FAILED)]) == set()
        assert await harness.store.finish_stage([finished(second, NotificationStatus.DONE)]) == {scheduler_id}
        assert await harness.store.finish_stage([finished(first, NotificationStatus.FAILED)]) == set()
        assert (await row_of(harness, scheduler_id)).status is NotificationStatus.DONE


class StageRescueContract:
    """Work whose worker is gone, and what a job keeps from stage to stage."""

    async def test_a_claim_is_not_rescued_before_its_lease_ran_out(self, harness: StoreHarness) -> None:
        """I-19: not even a moment before."""
        scheduler_id = await make_pending(harness)
        (claimed,) = await claim(harness)
        await harness.elapse(LEASE - timedelta(seconds=20))
        assert await harness.store.rescue_stages(limit=10, rescues_max=5) == 0
        assert await row_of(harness, scheduler_id) == msgspec.structs.replace(
            claimed.scheduler, lease_until=(await row_of(harness, scheduler_id)).lease_until
        )

    async def test_an_expired_claim_is_ready_again_in_its_stage(self, harness: StoreHarness) -> None:
        """F-09: rescue_count + 1, due at once."""
        scheduler_id = await make_pending(harness)
        await claim(harness)
        await harness.elapse(PAST_LEASE)
        assert await harness.store.rescue_stages(limit=10, rescues_max=5) == 1
        row = await row_of(harness, scheduler_id)
        assert (row.status, row.stage, row.rescue_count, row.retry_count) == (
            NotificationStatus.READY,
            Stage.SCHEDULE,
            1,
            0,
        )
        (again,) = await claim(harness)
        assert again.scheduler.version > row.version
        assert await harness.store.rescue_stages(limit=10, rescues_max=5) == 0

    async def test_a_job_that_outlives_too_many_workers_fails_with_a_case_and_its_neighbours_go_on(
        self, harness: StoreHarness
    ) -> None:
        """F-13, I-23: two rescues are allowed, the third is the end."""
        poison, rescues_max = await make_pending(harness, 1), 2
        for _ in range(rescues_max):
            assert ids(await claim(harness)) == [poison]
            await harness.elapse(PAST_LEASE)
            assert await harness.store.rescue_stages(limit=10, rescues_max=rescues_max) == 1
            assert (await row_of(harness, poison)).status is NotificationStatus.READY
        assert ids(await claim(harness)) == [poison]
        neighbour = await make_pending(harness, 2)
        assert ids(await claim(harness)) == [neighbour]
        await harness.elapse(PAST_LEASE)
        assert await harness.store.rescue_stages(limit=10, rescues_max=rescues_max) == 2
        row = await row_of(harness, poison)
        assert row.status is NotificationStatus.FAILED
        assert row.reason
        assert (await row_of(harness, neighbour)).status is NotificationStatus.READY
        (case,) = await harness.store.list_support_cases(harness.tenant_id)
        assert (case.kind, case.record, case.correlation_id) == (
            SupportKind.DEAD_LETTER,
            "NotificationScheduler",
            row.correlation_id,
        )
        assert ids(await claim(harness)) == [neighbour]

    async def test_a_rescue_takes_no_more_than_asked_and_the_rest_next_time(self, harness: StoreHarness) -> None:
        """After many workers died at once."""
        for n in range(5):
            await make_pending(harness, n)
        await claim(harness)
        await harness.elapse(PAST_LEASE)
        assert [await harness.store.rescue_stages(limit=2, rescues_max=5) for _ in range(4)] == [2, 2, 1, 0]

    async def test_the_first_recipient_set_of_a_job_stands(self, harness: StoreHarness) -> None:
        """I-06: a second set is not stored; its caller gets the first."""
        await make_pending(harness, 1)
        await make_pending(harness, 2)
        one, two = [one.job.id or 0 for one in await claim(harness)]
        freeze, tenant_id = harness.store.freeze_recipients, harness.tenant_id
        assert await freeze(f"{tenant_id}-2", [frozen_set(one, "[9]", 9)]) == {}
        assert await freeze(tenant_id, [frozen_set(one, "[1]", 1, 2)]) == {one: "[1]"}
        assert await freeze(tenant_id, [frozen_set(one, "[2]", 3), frozen_set(two, "[3]", 2)]) == {
            one: "[1]",
            two: "[3]",
        }
        assert await freeze(tenant_id, [frozen_set(2**40, "[4]", 4)]) == {}
        assert await freeze(tenant_id, []) == {}
        lines = await harness.rows(tenant_id, RecipientJob)
        assert [(int(line.recipient_id_hash), line.job_id, line.job_key) for line in lines] == [
            (1, one, f"key-{one}"),
            (2, one, f"key-{one}"),
            (2, two, f"key-{two}"),
        ]
        frozen = {job.id: job.recipients for job in await harness.rows(harness.tenant_id, NotificationJob)}
        assert frozen == {one: "[1]", two: "[3]"}

    async def test_a_claim_after_the_freeze_carries_the_set(self, harness: StoreHarness) -> None:
        """F-16: the retry reads the first snapshot and never the directory again."""
        await make_pending(harness)
        (first,) = await claim(harness)
        await harness.store.freeze_recipients(harness.tenant_id, [frozen_set(first.job.id or 0, "[1]")])
        await harness.elapse(PAST_LEASE)
        await harness.store.rescue_stages(limit=10, rescues_max=5)
        (second,) = await claim(harness)
        assert second.job.recipients == "[1]"

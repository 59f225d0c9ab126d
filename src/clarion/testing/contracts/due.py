"""What is due: claimed in turns under a lease, finished by version, rescued; and what people see and do of it."""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec
import pytest

from clarion.domain.automation import AutomationScheduler, AutomationStatus, AutomationType, CanceledBy
from clarion.domain.due import DUE_LEASE
from clarion.domain.ensured import Outcome
from clarion.domain.entity_event import HistoryKind
from clarion.domain.occurrence_line import occurrence_line
from clarion.domain.planning import EndReason
from clarion.domain.support import SupportCase, SupportKind, SupportStatus
from clarion.errors import InvalidInput
from clarion.ports.automation import DueClaim, DueEnd, Standing
from clarion.testing.contracts.harness import StoreHarness, everything
from clarion.testing.contracts.planning import PLANNED_AT, ended, occurrence, plan, told
from clarion.testing.contracts.pump import near
from clarion.testing.factories import TEXT, automation_scheduler, guid

PENDING, PROCESSING = AutomationStatus.PENDING, AutomationStatus.PROCESSING
COMPLETED, FAILED = AutomationStatus.COMPLETED, AutomationStatus.FAILED
LEASE: Final = timedelta(minutes=1)
PAST_LEASE: Final = timedelta(minutes=1, seconds=1)


async def make_due(
    harness: StoreHarness, n: int = 1, *, ago: timedelta = timedelta(hours=1), tenant_id: str | None = None
) -> AutomationScheduler:
    """Store an occurrence that has been due for so long; a negative time lies ahead."""
    row = automation_scheduler(n, scheduled_at=await harness.now() - ago)
    (made,) = await harness.store.ensure_automation_schedulers(tenant_id or harness.tenant_id, [row])
    return made.record


async def claim(harness: StoreHarness, limit: int = 10) -> list[DueClaim]:
    """Claim what is due."""
    return await harness.store.claim_due(limit=limit, lease=LEASE)


def end(one: DueClaim, to: AutomationStatus, **fields: object) -> DueEnd:
    """End a claim."""
    made = DueEnd(tenant_id=one.tenant_id, scheduler_key=one.row.scheduler_key, version=one.row.version, to=to)
    return msgspec.structs.replace(made, **fields)


async def row_of(harness: StoreHarness, row: AutomationScheduler) -> AutomationScheduler:
    """Read an occurrence."""
    found = await harness.store.find_occurrence(harness.tenant_id, row.scheduler_key)
    assert found is not None
    return found


async def cases(harness: StoreHarness) -> list[SupportCase]:
    """Read the tenant's support cases."""
    return await harness.rows(harness.tenant_id, SupportCase)


async def hold(harness: StoreHarness, row: AutomationScheduler) -> bool:
    """Put an occurrence on hold by hand."""
    return await harness.store.hold_occurrence(harness.tenant_id, row.scheduler_key, actor="sam", reason=TEXT)


async def run_now(harness: StoreHarness, row: AutomationScheduler) -> bool:
    """Make an occurrence due by hand."""
    return await harness.store.run_occurrence_now(harness.tenant_id, row.scheduler_key, actor="sam", reason=TEXT)


class DueContract:
    """Claims, their ends and their rescue."""

    async def test_what_is_due_is_claimed_the_oldest_first_and_once(self, harness: StoreHarness) -> None:
        """Not what lies ahead, waits for a retry or is on hold; the version is the token and one higher."""
        rows = [await make_due(harness, n, ago=timedelta(hours=n)) for n in (1, 3, 2)]
        await make_due(harness, 4, ago=-timedelta(hours=1))
        waiting, held = await make_due(harness, 5), await make_due(harness, 6)
        later_at = await harness.now() + timedelta(minutes=5)
        await harness.overwrite(harness.tenant_id, msgspec.structs.replace(waiting, next_retry_at=later_at))
        await hold(harness, held)
        claims = await claim(harness)
        assert [one.row.key for one in claims] == [rows[n].key for n in (1, 2, 0)]
        for one in claims:
            assert (one.row.status, one.row.version, one.tenant_id) == (PROCESSING, 2, harness.tenant_id)
            assert near(one.row.lease_until, await harness.now() + LEASE)
            assert await row_of(harness, one.row) == one.row
        assert await claim(harness) == []
        await harness.elapse(timedelta(minutes=6))
        assert [one.row.key for one in await claim(harness)] == [waiting.key]

    async def test_tenants_take_turns_whatever_one_of_them_has_due(self, harness: StoreHarness) -> None:
        """The one row of a tenant that came last is in the first claim of a few."""
        for n in range(20):
            await make_due(harness, n, ago=timedelta(hours=2))
        other = f"{harness.tenant_id}-2"
        await make_due(harness, ago=timedelta(minutes=1), tenant_id=other)
        claims = await claim(harness, 4)
        assert [one.tenant_id for one in claims] == [harness.tenant_id] * 3 + [other]
        assert len(await claim(harness, 100)) == 17

    async def test_more_tenants_than_one_claim_takes_are_served_the_longest_waiting_first(
        self, harness: StoreHarness
    ) -> None:
        """One each, until none is left."""
        tenants = [f"{harness.tenant_id}-{n}" for n in range(3)]
        for n, tenant_id in enumerate(tenants):
            for row in range(3):
                await make_due(harness, row, ago=timedelta(hours=9 - n), tenant_id=tenant_id)
        assert [one.tenant_id for one in await claim(harness, 2)] == tenants[:2]
        assert len(await claim(harness, 100)) == 7

    async def test_a_completed_occurrence_keeps_what_came_of_it_and_begins_the_next(
        self, harness: StoreHarness
    ) -> None:
        """One transaction: result, trace, the following occurrence, and a line about each of the two."""
        await make_due(harness)
        (one,) = await claim(harness)
        following = automation_scheduler(2)
        line = occurrence_line(one.row, HistoryKind.HANDED_OVER, cause="claim:2", at=PLANNED_AT, text=TEXT)
        given = end(one, COMPLETED, dispatch_result='{"job":1}', trace_blob="a/1", next=following, line=line)
        assert await harness.store.finish_due([given, given]) == {(harness.tenant_id, one.row.scheduler_key)}
        row = await row_of(harness, one.row)
        assert row == msgspec.structs.replace(
            one.row, status=COMPLETED, version=3, lease_until=None, dispatch_result='{"job":1}', trace_blob="a/1"
        )
        assert (await row_of(harness, following)).status is PENDING
        assert await told(harness) == [
            (HistoryKind.HANDED_OVER, one.row.scheduler_key, "claim:2"),
            (HistoryKind.PLANNED, following.scheduler_key, "claim 2"),
        ]
        before = await everything(harness)
        assert await harness.store.finish_due([given]) == set()
        assert await everything(harness) == before

    async def test_a_claim_that_is_lost_finishes_nothing(self, harness: StoreHarness) -> None:
        """F-10: neither its row, nor the next, nor a line, nor a case."""
        await make_due(harness)
        (late,) = await claim(harness)
        await harness.elapse(PAST_LEASE)
        assert await harness.store.rescue_due(limit=10) == 1
        await harness.elapse(timedelta(minutes=6))
        (present,) = await claim(harness)
        before = await everything(harness)
        line = occurrence_line(late.row, HistoryKind.FAILED, cause="c", at=PLANNED_AT, text=TEXT)
        given = end(late, FAILED, next=automation_scheduler(2), line=line)
        assert await harness.store.finish_due([given]) == set()
        assert await everything(harness) == before
        assert present.row.version > late.row.version

    async def test_a_failure_that_may_pass_waits_for_as_long_as_it_is_told(self, harness: StoreHarness) -> None:
        """One more retry, no case; on hold with one, and claimed again only when it is released."""
        row = await make_due(harness)
        (one,) = await claim(harness)
        await harness.store.finish_due([end(one, PENDING, delay=timedelta(minutes=5), failure_reason="no answer")])
        again = await row_of(harness, row)
        assert (again.status, again.retry_count, again.failure_reason) == (PENDING, 1, "no answer")
        assert near(again.next_retry_at, await harness.now() + timedelta(minutes=5))
        assert await claim(harness) == []
        assert await cases(harness) == []
        await harness.elapse(timedelta(minutes=6))
        (one,) = await claim(harness)
        await harness.store.finish_due([end(one, PENDING, hold=True, failure_reason="still no answer")])
        held = await row_of(harness, row)
        assert (held.status, held.on_support_hold, held.retry_count, held.next_retry_at) == (PENDING, True, 2, None)
        (case,) = await cases(harness)
        assert (case.kind, msgspec.json.decode(case.details)) == (SupportKind.HOLD, {"reason": "still no answer"})
        assert await claim(harness) == []
        asked = {"actor": "sam", "reason": TEXT}
        assert await harness.store.release_occurrence(harness.tenant_id, row.scheduler_key, **asked)
        (one,) = await claim(harness)
        assert one.row.retry_count == 0  # what failed before is forgiven

    async def test_what_goes_back_because_nothing_failed_counts_no_retry(self, harness: StoreHarness) -> None:
        """However often: it is behind what is due already, and claimed again at once."""
        row, other = await make_due(harness), await make_due(harness, 2)
        for _ in range(5):
            (one,) = await claim(harness, 1)
            await harness.store.finish_due(
                [end(one, PENDING, delay=timedelta(), is_retry=False, failure_reason="wait")]
            )
        claims = {one.row.key: one.row for one in await claim(harness)}
        assert {key: (found.status, found.retry_count) for key, found in claims.items()} == {
            row.key: (PROCESSING, 0),
            other.key: (PROCESSING, 0),
        }
        assert await cases(harness) == []

    @pytest.mark.parametrize(
        "to, expected",
        [
            (FAILED, {}),
            (AutomationStatus.DEACTIVATED, {"end_reason": "SourceNoLongerValid"}),
            (COMPLETED, {"end_reason": "NoRecipients"}),
            (AutomationStatus.CANCELED, {"canceled_by": CanceledBy.SYSTEM}),
        ],
    )
    async def test_each_end_is_stored_with_its_reason_and_only_a_failure_is_a_case(
        self, harness: StoreHarness, to: AutomationStatus, expected: dict[str, object]
    ) -> None:
        """I-21: and none of them is claimed again."""
        await make_due(harness)
        (one,) = await claim(harness)
        reason = EndReason(str(expected["end_reason"])) if "end_reason" in expected else None
        await harness.store.finish_due([end(one, to, reason=reason, failure_reason="why")])
        assert await row_of(harness, one.row) == msgspec.structs.replace(
            one.row, status=to, version=3, lease_until=None, failure_reason="why", **expected
        )
        assert [case.kind for case in await cases(harness)] == ([SupportKind.DEAD_LETTER] if to is FAILED else [])
        await harness.elapse(timedelta(days=2))
        assert await claim(harness) == []

    async def test_a_worker_that_is_lost_costs_its_lease_then_waits_and_in_the_end_a_person(
        self, harness: StoreHarness
    ) -> None:
        """I-23: each time one more retry, 5 minutes, 15 and an hour from its claim, then a hold with a case."""
        row = await make_due(harness)
        for retries, wait in enumerate((timedelta(minutes=5), timedelta(minutes=15), timedelta(hours=1))):
            assert len(await claim(harness)) == 1
            assert await harness.store.rescue_due(limit=10) == 0
            await harness.elapse(PAST_LEASE)
            assert await harness.store.rescue_due(limit=10) == 1
            lost = await row_of(harness, row)
            assert (lost.status, lost.retry_count, lost.lease_until) == (PENDING, retries + 1, None)
            assert lost.version == 3 + 2 * retries  # I-18: each claim and each rescue is one more
            assert near(lost.next_retry_at, await harness.now() + wait - DUE_LEASE)
            await harness.elapse(wait)
        assert len(await claim(harness)) == 1
        await harness.elapse(PAST_LEASE)
        assert await harness.store.rescue_due(limit=10) == 1
        assert (await row_of(harness, row)).on_support_hold
        (case,) = await cases(harness)
        assert (case.kind, case.record) == (SupportKind.HOLD, "AutomationScheduler")
        assert await told(harness) == [  # each under the claim that was lost
            (HistoryKind.HELD, row.scheduler_key, "claim 8"),
            *((HistoryKind.MOVED, row.scheduler_key, f"claim {version}") for version in (2, 4, 6)),
        ]
        await harness.elapse(timedelta(days=2))
        assert await claim(harness) == []


class OccurrenceActContract:
    """Lists, and the words of people."""

    async def test_each_standing_lists_its_own_by_when_it_is_due_page_by_page(self, harness: StoreHarness) -> None:
        """What waits for a retry waits, whenever it was planned for."""
        names = {
            n: (await make_due(harness, n, ago=timedelta(hours=hours))).key
            for n, hours in enumerate((5, 4, 3, 2, 1, -1, -2, -3))
        }
        claims = await claim(harness, 4)
        ends = [COMPLETED, FAILED, PENDING]
        await harness.store.finish_due(
            [end(one, to, delay=timedelta(minutes=30)) for one, to in zip(claims, ends, strict=False)]
        )
        held = automation_scheduler(6)
        await hold(harness, held)
        expected = {
            Standing.ENDED: [0],
            Standing.FAILED: [1],
            Standing.PROCESSING: [3],
            Standing.DUE: [4],
            Standing.HELD: [6],
            Standing.WAITING: [2, 5, 7],
        }
        for standing, numbers in expected.items():
            for automation_type in (None, AutomationType.REMINDER):
                listed: list[AutomationScheduler] = []
                while page := await harness.store.list_occurrences(
                    harness.tenant_id,
                    standing=standing,
                    automation_type=automation_type,
                    after=(listed[-1].due_at, listed[-1].id or 0) if listed else None,
                    limit=2,
                ):
                    listed += page
                assert [row.key for row in listed] == [names[n] for n in numbers], standing
            assert not await harness.store.list_occurrences(
                harness.tenant_id, standing=standing, automation_type=AutomationType.REPORT_SUBSCRIPTION, limit=9
            )
            assert not await harness.store.list_occurrences(f"{harness.tenant_id}-2", standing=standing, limit=9)
        until: datetime = await harness.now() + timedelta(minutes=90)
        soon = await harness.store.list_occurrences(harness.tenant_id, standing=Standing.WAITING, until=until, limit=9)
        assert [row.key for row in soon] == [names[n] for n in (2, 5)]

    async def test_a_person_holds_releases_runs_and_deactivates_each_audited_and_told(
        self, harness: StoreHarness
    ) -> None:
        """And what does not apply changes nothing: no verb works on what is over."""
        row = await make_due(harness, ago=-timedelta(days=9))
        store, tenant_id, key = harness.store, harness.tenant_id, row.scheduler_key
        asked = {"actor": "sam", "reason": TEXT}
        assert not await store.release_occurrence(tenant_id, key, **asked)
        assert await hold(harness, row)
        assert not await hold(harness, row)
        assert (await row_of(harness, row)).failure_reason == "held by sam"
        assert await store.release_occurrence(tenant_id, key, **asked)
        assert (await row_of(harness, row)).failure_reason is None
        assert await store.deactivate_occurrence(tenant_id, key, **asked)
        over = await row_of(harness, row)
        assert (over.status, over.canceled_by) == (AutomationStatus.CANCELED, CanceledBy.PERSON)
        assert over.end_reason == EndReason.DEACTIVATED_BY_HAND
        before = await everything(harness)
        for verb in (
            store.hold_occurrence,
            store.release_occurrence,
            store.run_occurrence_now,
            store.deactivate_occurrence,
        ):
            assert not await verb(tenant_id, key, **asked)
            assert not await verb(tenant_id, "reminder:none", **asked)
            assert not await verb(f"{tenant_id}-2", key, **asked)
            with pytest.raises(InvalidInput, match="names nobody"):
                await verb(tenant_id, key, actor=" ", reason=TEXT)
        assert await everything(harness) == before
        (answer,) = await store.ensure_automation_schedulers(tenant_id, [automation_scheduler()])
        assert (answer.outcome, answer.record) == (Outcome.FOUND, over)  # I-07
        entries = await store.list_audit(tenant_id)
        assert [(one.actor, one.act, one.subject, one.reason) for one in entries] == [
            ("sam", act, f"occurrence {key}", TEXT) for act in ("hold", "release", "deactivate")
        ]
        lines = await store.list_history(tenant_id, UUID(row.primary_entity), limit=9)
        assert {line.kind for line in lines} == {HistoryKind.HELD, HistoryKind.RELEASED, HistoryKind.DEACTIVATED}
        assert all(line.text.startswith(("hold by sam", "release by sam", "deactivate by sam")) for line in lines)

    async def test_what_is_on_hold_can_be_deactivated_by_hand_whoever_held_it(self, harness: StoreHarness) -> None:
        """What a worker put on hold, and what a person did; both are told of as they became."""
        rows = [await make_due(harness, n) for n in (1, 2)]
        for one in await claim(harness, 1):
            line = occurrence_line(one.row, HistoryKind.HELD, cause="claim 2", at=PLANNED_AT, text=TEXT)
            await harness.store.finish_due([end(one, PENDING, hold=True, failure_reason="no answer", line=line)])
        assert await hold(harness, rows[1])
        for row in rows:
            assert (await row_of(harness, row)).on_support_hold
            assert await harness.store.deactivate_occurrence(
                harness.tenant_id, row.scheduler_key, actor="sam", reason=TEXT
            )
            over = await row_of(harness, row)
            assert (over.status, over.on_support_hold) == (AutomationStatus.CANCELED, False)
            lines = await harness.store.list_history(harness.tenant_id, UUID(row.primary_entity), limit=9)
            assert {line.kind for line in lines} == {HistoryKind.HELD, HistoryKind.DEACTIVATED}
        assert await claim(harness) == []

    @pytest.mark.parametrize("word", ["release_occurrence", "run_occurrence_now", "deactivate_occurrence"])
    async def test_whoever_ends_a_hold_resolves_its_case_and_a_hold_again_opens_it(
        self, harness: StoreHarness, word: str
    ) -> None:
        """Audited once, by the act; another occurrence's case stays open, and so does this one's while it is held."""
        held, _ = await make_due(harness), await make_due(harness, 2)
        for one in await claim(harness):
            await harness.store.finish_due([end(one, PENDING, hold=True, failure_reason="no answer")])
        asked = {"actor": "sam", "reason": TEXT}
        assert {case.status for case in await cases(harness)} == {SupportStatus.OPEN}
        assert await getattr(harness.store, word)(harness.tenant_id, held.scheduler_key, **asked)
        seen = {case.record_key: case for case in await cases(harness)}
        assert len(seen) == 2
        case = seen.pop(msgspec.json.encode([held.scheduler_key]).decode())
        assert (case.status, case.resolved_by) == (SupportStatus.RESOLVED, "sam")
        assert near(case.resolved_at, await harness.now())
        assert TEXT in (case.resolution or "")
        assert {other.status for other in seen.values()} == {SupportStatus.OPEN}
        (entry,) = await harness.store.list_audit(harness.tenant_id)
        assert entry.subject == f"occurrence {held.scheduler_key}"
        for one in await claim(harness):
            await harness.store.finish_due([end(one, PENDING, hold=True, failure_reason="still no answer")])
            again = await harness.store.find_support_case(harness.tenant_id, case.case_id)
            assert again is not None
            assert (again.status, again.seen_count) == (SupportStatus.OPEN, 2)

    async def test_a_plan_does_not_take_back_that_a_person_has_one_run_now(self, harness: StoreHarness) -> None:
        """It may move what was planned; the row is due all the same, on hold or not, until it was claimed."""
        row = await make_due(harness, ago=-timedelta(days=30))
        await hold(harness, row)
        assert await run_now(harness, row)
        moved = automation_scheduler(scheduled_at=row.scheduled_at + timedelta(days=1))
        (applied,) = await harness.store.apply_plans(harness.tenant_id, [plan(ensure=(moved,))])
        assert applied.ensured[0].record.scheduled_at == moved.scheduled_at
        (one,) = await claim(harness)
        assert (one.row.key, one.row.on_support_hold) == (row.key, False)
        await harness.store.finish_due([end(one, PENDING, delay=timedelta(minutes=5))])
        assert await claim(harness) == []
        await harness.elapse(timedelta(minutes=6))
        assert len(await claim(harness)) == 1

    async def test_what_a_plan_no_longer_wants_ends_though_a_person_had_it_run(self, harness: StoreHarness) -> None:
        """A plan that knows of the person's word, that is: one that was made before it leaves the row alone."""
        (made,) = (await harness.store.apply_plans(harness.tenant_id, [plan(ensure=(occurrence(),))]))[0].ensured
        assert await run_now(harness, made.record)
        (early,) = await harness.store.apply_plans(
            harness.tenant_id, [plan(serial=1, deactivate=(ended(made.record),))]
        )
        assert early.deactivated == ()
        present = await row_of(harness, made.record)
        (late,) = await harness.store.apply_plans(harness.tenant_id, [plan(serial=2, deactivate=(ended(present),))])
        assert late.deactivated == (present.scheduler_key,)
        assert await harness.store.find_occurrence(harness.tenant_id, str(guid(1))) is None

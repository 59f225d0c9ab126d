"""Due occurrences: what an ensure makes of a scheduler row in each of its states (docs/explanation/ensure.md).

The table below is the whole contract: for every state that a row can be in, the outcome, what is written and, by
leaving it out, what is preserved.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Final

import msgspec
import pytest

from clarion.domain.automation import (
    TIMING_FIELDS,
    AutomationScheduler,
    AutomationStatus,
    CanceledBy,
    TriggerType,
)
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.fingerprint import Fingerprint
from clarion.domain.support import SupportCase
from clarion.testing.contracts.harness import StoreHarness, everything, with_row, without_cases
from clarion.testing.contracts.kind import contradicted
from clarion.testing.contracts.sets import outcomes
from clarion.testing.factories import automation_scheduler

AT: Final = datetime(2026, 1, 20, 10, 0, tzinfo=UTC)
"""Some instant at which a worker did something to the row."""

# What was noted along the way; an ensure never loses it.
NOTES: Final = {
    "retry_count": 3,
    "failure_reason": "the template is broken",
    "dispatch_result": '{"skipped":"no recipient"}',
    "trace_blob": "acme/traces/1",
    "version": 7,
}
NEW_TIME: Final = {
    "scheduled_at": datetime(2026, 1, 29, 7, 0, tzinfo=UTC),
    "local_date": date(2026, 1, 30),
    "local_time": "08:00",
    "tz_id": "Europe/Athens",
    "tzdata_version": "2026a",
}
AWAKE: Final = {
    "status": AutomationStatus.PENDING,
    "canceled_by": None,
    "next_retry_at": None,
    "run_now_at": None,
    "end_reason": None,
    "version": 8,
}


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table: a stored state, and what an ensure with an equal or a new send time comes to."""

    name: str
    stored: Mapping[str, object]
    outcome: Outcome = Outcome.FOUND
    written: Mapping[str, object] = {}
    written_with_new_time: Mapping[str, object] = {}


def _asleep(name: str, **stored: object) -> Case:
    """Describe a state that an ensure wakes, with the time that it brings."""
    return Case(
        name=name,
        stored=stored,
        outcome=Outcome.REACTIVATED,
        written=AWAKE,
        written_with_new_time={**AWAKE, **NEW_TIME},
    )


def _moved() -> dict[str, object]:
    return {**NEW_TIME, "version": 8}


STATES: Final = (
    Case(name="pending", stored={}, written_with_new_time=_moved()),
    Case(name="waiting for a retry", stored={"next_retry_at": AT, "run_now_at": AT}, written_with_new_time=_moved()),
    Case(name="held for support", stored={"on_support_hold": True}),
    Case(name="processing", stored={"status": AutomationStatus.PROCESSING, "lease_until": AT}),
    Case(name="completed", stored={"status": AutomationStatus.COMPLETED}),
    _asleep("failed", status=AutomationStatus.FAILED, next_retry_at=AT),
    _asleep("deactivated", status=AutomationStatus.DEACTIVATED, end_reason="SourceChanged", run_now_at=AT),
    _asleep("canceled by the system", status=AutomationStatus.CANCELED, canceled_by=CanceledBy.SYSTEM),
    Case(
        name="canceled by a person",
        stored={"status": AutomationStatus.CANCELED, "canceled_by": CanceledBy.PERSON},
    ),
)
each_state = pytest.mark.parametrize("case", STATES, ids=[case.name for case in STATES])


async def put(harness: StoreHarness, case: Case, *, tenant_id: str | None = None) -> AutomationScheduler:
    """Store an occurrence in the state of a case."""
    tenant = tenant_id or harness.tenant_id
    (created,) = await harness.store.ensure_automation_schedulers(tenant, [automation_scheduler()])
    row = msgspec.structs.replace(created.record, **{**NOTES, **case.stored})
    await harness.overwrite(tenant, row)
    assert await harness.rows(tenant, AutomationScheduler) == [row]
    return row


class AutomationContract:
    """The one record that an ensure may also change."""

    @each_state
    @pytest.mark.parametrize("new_time", [False, True], ids=["same time", "new time"])
    async def test_an_ensure_does_to_each_state_what_the_table_says_and_nothing_else(
        self, harness: StoreHarness, case: Case, new_time: bool
    ) -> None:
        """I-07, I-21: and having done it, the next one writes nothing."""
        stored = await put(harness, case)
        given = automation_scheduler(**(NEW_TIME if new_time else {}))
        written = case.written_with_new_time if new_time else case.written
        expected = msgspec.structs.replace(stored, **written)

        (answer,) = await harness.store.ensure_automation_schedulers(harness.tenant_id, [given])
        assert answer == Ensured(outcome=case.outcome, record=expected)
        assert await harness.rows(harness.tenant_id, AutomationScheduler) == [expected]

        before = await everything(harness)
        (again,) = await harness.store.ensure_automation_schedulers(harness.tenant_id, [given])
        assert again == Ensured(outcome=Outcome.FOUND, record=expected)
        assert await everything(harness) == before

    @each_state
    async def test_another_input_hash_is_a_conflict_in_every_state(self, harness: StoreHarness, case: Case) -> None:
        """I-04: it never overwrites, wakes or moves a row; a person is told, and what would be claimed is held back."""
        stored = await put(harness, case)
        before = await everything(harness)
        given = automation_scheduler(input_hash=Fingerprint.of("another occurrence"), **NEW_TIME)
        (answer,) = await harness.store.ensure_automation_schedulers(harness.tenant_id, [given])
        assert (answer.outcome, answer.differing) == (Outcome.CONFLICT, ("input_hash",))
        assert len(await harness.store.list_support_cases(harness.tenant_id)) == 1
        if stored.status is AutomationStatus.PENDING and not stored.on_support_hold:
            assert answer.record == contradicted(stored)
            before = with_row(before, answer.record)
        assert without_cases(await everything(harness)) == without_cases(before)

    async def test_a_row_that_is_held_back_is_the_same_case_when_it_is_contradicted_again(
        self, harness: StoreHarness
    ) -> None:
        """And an ensure that agrees with it does not let it go: only a person does."""
        await put(harness, STATES[0])
        odd = automation_scheduler(input_hash=Fingerprint.of("another occurrence"))
        (first,) = await harness.store.ensure_automation_schedulers(harness.tenant_id, [odd])
        (second,) = await harness.store.ensure_automation_schedulers(harness.tenant_id, [odd])
        assert second == first
        (case,) = await harness.rows(harness.tenant_id, SupportCase)
        assert (case.case_id, case.seen_count) == (first.case_id, 2)
        (again,) = await harness.store.ensure_automation_schedulers(harness.tenant_id, [automation_scheduler()])
        assert again == Ensured(outcome=Outcome.FOUND, record=first.record)

    @pytest.mark.parametrize("name", TIMING_FIELDS)
    async def test_each_part_of_the_send_time_moves_a_pending_row(self, harness: StoreHarness, name: str) -> None:
        """Not only the instant: a zone's new rules may leave it and change the rest."""
        stored = await put(harness, STATES[0])
        given = automation_scheduler(**{name: NEW_TIME[name]})
        (answer,) = await harness.store.ensure_automation_schedulers(harness.tenant_id, [given])
        expected = msgspec.structs.replace(stored, **{name: NEW_TIME[name]}, version=8)
        assert answer == Ensured(outcome=Outcome.FOUND, record=expected)
        assert await harness.rows(harness.tenant_id, AutomationScheduler) == [expected]

    async def test_a_send_time_without_local_parts_clears_those_of_the_row(self, harness: StoreHarness) -> None:
        """All parts are the new ones, the empty ones as well."""
        stored = await put(harness, STATES[0])
        bare = dict.fromkeys(TIMING_FIELDS[1:])
        (answer,) = await harness.store.ensure_automation_schedulers(harness.tenant_id, [automation_scheduler(**bare)])
        assert answer.record == msgspec.structs.replace(stored, **bare, version=8)
        assert await harness.rows(harness.tenant_id, AutomationScheduler) == [answer.record]

    async def test_the_same_instant_in_another_zone_is_no_new_send_time(self, harness: StoreHarness) -> None:
        """Instants are compared, not their spelling."""
        stored = await put(harness, STATES[0])
        spelled = stored.scheduled_at.astimezone(_hours_east(5))
        (answer,) = await harness.store.ensure_automation_schedulers(
            harness.tenant_id, [automation_scheduler(scheduled_at=spelled)]
        )
        assert answer == Ensured(outcome=Outcome.FOUND, record=stored)
        assert await harness.rows(harness.tenant_id, AutomationScheduler) == [stored]

    @pytest.mark.parametrize("case", [STATES[0], STATES[5]], ids=["moved", "woken"])
    @pytest.mark.parametrize("who", [0, 1], ids=["whoever came first", "whoever came second"])
    async def test_an_occurrence_of_another_tenant_is_neither_moved_nor_woken(
        self, harness: StoreHarness, case: Case, who: int
    ) -> None:
        """Though it has the same key, state and version."""
        tenants = [harness.tenant_id, f"{harness.tenant_id}-2"]
        for tenant_id in tenants:
            await put(harness, case, tenant_id=tenant_id)
        mine, theirs = tenants[who], tenants[1 - who]
        before = await everything(harness, theirs)
        (answer,) = await harness.store.ensure_automation_schedulers(mine, [automation_scheduler(**NEW_TIME)])
        assert await harness.rows(mine, AutomationScheduler) == [answer.record]
        assert answer.record.version == 8
        assert await everything(harness, theirs) == before

    async def test_a_row_keeps_what_else_it_was_made_with(self, harness: StoreHarness) -> None:
        """A new send time brings no new trigger type, key version or correlation."""
        stored = await put(harness, STATES[0])
        given = automation_scheduler(
            **NEW_TIME, trigger_type=TriggerType.RECURRING, key_version=2, correlation_id="another", traceparent="00-1"
        )
        (answer,) = await harness.store.ensure_automation_schedulers(harness.tenant_id, [given])
        assert answer.record == msgspec.structs.replace(stored, **_moved())

    async def test_in_a_set_each_occurrence_is_settled_by_itself(self, harness: StoreHarness) -> None:
        """One is new, one sleeps, one moves, one is in conflict, one is done."""
        rows = {}
        for n, case in enumerate(STATES):
            (created,) = await harness.store.ensure_automation_schedulers(harness.tenant_id, [automation_scheduler(n)])
            rows[case.name] = msgspec.structs.replace(created.record, **{**NOTES, **case.stored})
            await harness.overwrite(harness.tenant_id, rows[case.name])
        asked = [automation_scheduler(n, **NEW_TIME) for n in range(len(STATES))]
        odd = automation_scheduler(3, input_hash=Fingerprint.of("another"))  # a worker has it
        new = automation_scheduler(len(STATES))
        answers = await harness.store.ensure_automation_schedulers(harness.tenant_id, [odd, *asked[::-1], new])
        expected = [Outcome.CONFLICT, *(case.outcome for case in STATES[::-1]), Outcome.CREATED]
        assert outcomes(answers) == expected
        for case, answer in zip(STATES[::-1], answers[1:-1], strict=True):
            assert answer.record == msgspec.structs.replace(rows[case.name], **case.written_with_new_time)
        stored = {row.key: row for row in await harness.rows(harness.tenant_id, AutomationScheduler)}
        assert [stored[answer.record.key] for answer in answers[1:]] == [answer.record for answer in answers[1:]]

    async def test_of_two_send_times_in_one_set_the_later_in_the_set_stands(self, harness: StoreHarness) -> None:
        """The set is answered as if its items came one after the other."""
        first, second, third = await harness.store.ensure_automation_schedulers(
            harness.tenant_id,
            [automation_scheduler(), automation_scheduler(**NEW_TIME), automation_scheduler(local_time="07:00")],
        )
        assert (first.outcome, second.outcome, third.outcome) == (Outcome.CREATED, Outcome.FOUND, Outcome.FOUND)
        assert [answer.record.version for answer in (first, second, third)] == [1, 2, 3]
        (row,) = await harness.rows(harness.tenant_id, AutomationScheduler)
        assert row == third.record == msgspec.structs.replace(first.record, local_time="07:00", version=3)

    async def test_of_two_that_wake_a_row_in_one_set_the_first_does(self, harness: StoreHarness) -> None:
        """The second finds it awake."""
        await put(harness, STATES[5])
        first, second = await harness.store.ensure_automation_schedulers(
            harness.tenant_id, [automation_scheduler(), automation_scheduler()]
        )
        assert (first.outcome, second.outcome) == (Outcome.REACTIVATED, Outcome.FOUND)
        assert await harness.rows(harness.tenant_id, AutomationScheduler) == [first.record]
        assert first.record == second.record


def _hours_east(hours: int) -> timezone:
    return timezone(timedelta(hours=hours))

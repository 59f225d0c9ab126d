"""What an ensure makes of an occurrence that is there: `settled`, over every state and against the state table."""

from datetime import UTC, datetime
from itertools import product

import msgspec
import pytest

from clarion.domain.automation import (
    AUTOMATION_SCHEDULER,
    TIMING_FIELDS,
    AutomationScheduler,
    AutomationStatus,
    CanceledBy,
    remade,
    settled,
)
from clarion.domain.ensured import Outcome
from clarion.domain.fingerprint import Fingerprint
from clarion.domain.machine import Cause
from clarion.testing.factories import automation_scheduler

AT = datetime(2026, 1, 20, 10, 0, tzinfo=UTC)
NOTES = {
    "version": 7,
    "retry_count": 3,
    "failure_reason": "broken",
    "dispatch_result": '{"skipped":"none"}',
    "trace_blob": "acme/traces/1",
}


def stored(status: AutomationStatus, *, by: CanceledBy | None = None, held: bool = False) -> AutomationScheduler:
    return automation_scheduler(
        **NOTES,
        status=status,
        canceled_by=by,
        on_support_hold=held,
        next_retry_at=AT,
        lease_until=AT if status is AutomationStatus.PROCESSING else None,
        id=11,
    )


EVERY_STATE = (
    stored(AutomationStatus.PENDING),
    stored(AutomationStatus.PENDING, held=True),
    stored(AutomationStatus.PROCESSING),
    stored(AutomationStatus.COMPLETED),
    stored(AutomationStatus.FAILED),
    stored(AutomationStatus.DEACTIVATED),
    stored(AutomationStatus.CANCELED, by=CanceledBy.SYSTEM),
    stored(AutomationStatus.CANCELED, by=CanceledBy.PERSON),
    stored(AutomationStatus.CANCELED),
)
WOKEN = EVERY_STATE[4:7]
UNTOUCHED = (*EVERY_STATE[1:4], *EVERY_STATE[7:])

SAME_TIME = automation_scheduler()
NEW_TIME = automation_scheduler(
    scheduled_at=AT, local_date=AT.date(), local_time="12:00", tz_id="Europe/Athens", tzdata_version="2026a"
)


@pytest.mark.parametrize("given", [SAME_TIME, NEW_TIME], ids=["same time", "new time"])
@pytest.mark.parametrize("found", WOKEN)
def test_what_the_system_gave_up_wakes_with_the_time_that_is_given(
    found: AutomationScheduler, given: AutomationScheduler
) -> None:
    outcome, row = settled(given, found)
    timing = {name: getattr(given, name) for name in TIMING_FIELDS}
    assert outcome is Outcome.REACTIVATED
    assert row == msgspec.structs.replace(
        found, **timing, status=AutomationStatus.PENDING, canceled_by=None, next_retry_at=None, version=8
    )


@pytest.mark.parametrize("given", [SAME_TIME, NEW_TIME], ids=["same time", "new time"])
@pytest.mark.parametrize("found", UNTOUCHED)
def test_what_is_held_worked_on_done_or_canceled_by_a_person_stays_the_very_same_row(
    found: AutomationScheduler, given: AutomationScheduler
) -> None:
    outcome, row = settled(given, found)
    assert outcome is Outcome.FOUND
    assert row is found


def test_a_pending_row_takes_a_new_time_and_keeps_all_else() -> None:
    found = EVERY_STATE[0]
    outcome, row = settled(NEW_TIME, found)
    timing = {name: getattr(NEW_TIME, name) for name in TIMING_FIELDS}
    assert outcome is Outcome.FOUND
    assert row == msgspec.structs.replace(found, **timing, version=8)


def test_a_pending_row_with_the_same_time_is_not_written() -> None:
    assert settled(SAME_TIME, EVERY_STATE[0])[1] is EVERY_STATE[0]


ANOTHER = automation_scheduler(input_hash=Fingerprint.of("another"), scheduled_at=AT)


def test_another_occurrence_under_the_key_holds_a_pending_row_back_and_changes_nothing_else() -> None:
    found = EVERY_STATE[0]
    outcome, row = settled(ANOTHER, found)
    assert outcome is Outcome.CONFLICT
    assert row == msgspec.structs.replace(
        found, on_support_hold=True, failure_reason="another occurrence was asked for under its key", version=8
    )
    assert settled(ANOTHER, row) == (Outcome.CONFLICT, row)


@pytest.mark.parametrize("found", EVERY_STATE[1:])
def test_another_occurrence_under_the_key_is_a_conflict_and_no_more_in_every_other_state(
    found: AutomationScheduler,
) -> None:
    outcome, row = settled(ANOTHER, found)
    assert outcome is Outcome.CONFLICT
    assert row is found


@pytest.mark.parametrize("found", EVERY_STATE)
def test_a_row_that_a_newer_program_hashed_is_left_to_it_in_every_state(found: AutomationScheduler) -> None:
    newer = msgspec.structs.replace(found, input_hash=Fingerprint.stored("h9:00"))
    outcome, row = settled(NEW_TIME, newer)
    assert outcome is Outcome.NEWER
    assert row is newer


@pytest.mark.parametrize("found, given", list(product(EVERY_STATE, [SAME_TIME, NEW_TIME])))
def test_whatever_is_written_is_a_legal_move_of_an_ensure_and_raises_the_version(
    found: AutomationScheduler, given: AutomationScheduler
) -> None:
    _, row = settled(given, found)
    if row is not found:
        assert AUTOMATION_SCHEDULER.may(from_=found.status, to=row.status)
        assert found.status in AUTOMATION_SCHEDULER.sources(Cause.ENSURE)
        assert row.version == found.version + 1


@pytest.mark.parametrize("found, given", list(product(EVERY_STATE, [SAME_TIME, NEW_TIME])))
def test_settling_twice_is_settling_once(found: AutomationScheduler, given: AutomationScheduler) -> None:
    _, once = settled(given, found)
    outcome, twice = settled(given, once)
    assert outcome is Outcome.FOUND
    assert twice is once


OTHER_INPUT = automation_scheduler(
    business_unit="7d6e3f2c-0000-4000-8000-000000000001",
    input_hash=Fingerprint.stored("h1:other"),
    scheduled_at=AT,
    local_date=AT.date(),
)


@pytest.mark.parametrize("row", [EVERY_STATE[0], EVERY_STATE[1], *WOKEN], ids=str)
def test_an_occurrence_that_was_not_handed_over_is_made_anew_with_its_notes_and_its_hold(
    row: AutomationScheduler,
) -> None:
    made = remade(OTHER_INPUT, row)
    assert made is not None
    assert (made.business_unit, made.input_hash, made.scheduled_at) == (
        OTHER_INPUT.business_unit,
        OTHER_INPUT.input_hash,
        AT,
    )
    assert (made.status, made.version, made.on_support_hold) == (AutomationStatus.PENDING, 8, row.on_support_hold)
    assert {name: getattr(made, name) for name in NOTES if name != "version"} == {
        name: value for name, value in NOTES.items() if name != "version"
    }


@pytest.mark.parametrize("row", [*EVERY_STATE[2:4], *EVERY_STATE[7:]], ids=str)
def test_an_occurrence_that_a_worker_has_or_that_is_over_is_not_made_anew(row: AutomationScheduler) -> None:
    assert remade(OTHER_INPUT, row) is None

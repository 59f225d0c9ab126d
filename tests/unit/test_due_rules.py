"""When a due occurrence is tried again, and what is written of a hand-over."""

from datetime import timedelta
from uuid import UUID

import pytest

from clarion.domain.due import DispatchResult, DueOutcome, read_result, skipped, wait_after_failure
from clarion.domain.planning import EndReason


@pytest.mark.parametrize(
    "failed_before, wait",
    [(0, timedelta(minutes=5)), (1, timedelta(minutes=15)), (2, timedelta(hours=1)), (3, None), (40, None)],
)
def test_an_occurrence_waits_longer_each_time_and_then_for_a_person(failed_before: int, wait: timedelta | None) -> None:
    assert wait_after_failure(failed_before) == wait


@pytest.mark.parametrize("failed_before, hours", [(2, 1), (3, 24), (40, 24)])
def test_an_approved_long_runner_is_tried_daily_instead_of_being_held(failed_before: int, hours: int) -> None:
    assert wait_after_failure(failed_before, is_long_runner=True) == timedelta(hours=hours)


def test_a_result_is_read_back_as_it_was_written_and_one_of_a_newer_program_is_left() -> None:
    handed = DispatchResult(outcome=DueOutcome.HANDED_OVER, job=UUID(int=7), partition_key="p", row_key="r", named=3)
    assert read_result(handed.text) == handed
    assert skipped(EndReason.NO_RECIPIENTS).text == '{"outcome":"Skipped","reason":"NoRecipients"}'
    assert read_result('{"outcome":"Postponed"}') is None
    assert read_result(None) is None

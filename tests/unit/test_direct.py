"""The door for direct notifications: what is refused there, whoever calls."""

from datetime import datetime, timedelta

import pytest

from clarion.errors import InvalidInput
from clarion.producers.direct import HORIZON
from clarion.testing.clock import START_AT, ManualClock
from clarion.testing.memory import MemoryStore
from tests.unit.pipeline_line import TENANT, Line, Scripted


@pytest.fixture
async def line() -> Line:
    clock = ManualClock()
    line = Line(MemoryStore(clock), clock, Scripted())
    await line.seed()
    return line


@pytest.mark.parametrize(
    "not_before_at,says",
    [
        (START_AT + HORIZON + timedelta(microseconds=1), "it is too far ahead"),
        (START_AT.replace(tzinfo=None), "it has no zone"),
    ],
)
async def test_a_time_that_cannot_be_kept_is_refused_and_nothing_is_stored(
    line: Line, not_before_at: datetime, says: str
) -> None:
    with pytest.raises(InvalidInput, match=says) as refused:
        await line.send(not_before_at=not_before_at)
    assert refused.value.field == "not_before_at"
    assert (await line.store.measure()).stages_waiting == 0
    assert await line.store.next_stage_due_in() is None


@pytest.mark.parametrize("ahead", [-HORIZON, timedelta(), HORIZON])
async def test_a_year_ahead_and_any_time_that_has_passed_are_accepted(line: Line, ahead: timedelta) -> None:
    receipt = await line.send(not_before_at=line.clock.now() + ahead)
    assert await line.store.find_job_story(TENANT, receipt.job_id) is not None

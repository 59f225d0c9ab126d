"""An occurrence is read back from its row as it went in, so that what is handed over has the key that was planned."""

from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clarion.dispatch.occurrence import automation_scheduler, stored_occurrence
from clarion.dispatch.request import Occurrence, Trace
from clarion.domain import key
from clarion.domain.key import FiringPolicy
from clarion.domain.occurrence import DateTrigger, Reminder, ReportRun, ThresholdTrigger
from clarion.errors import InvalidKey

AT = datetime(2026, 3, 4, 5, 6, 7, 250_000, tzinfo=UTC)
GUIDS = st.sampled_from([UUID("6f9619ff-8b86-4d01-b42d-00c04fc964ff"), UUID("0b8f5d5e-1c3a-4e0e-9a53-0f6f2f7b1a11")])
NAMES = st.sampled_from(["a", "retry", ":", "a:retry:1", "2026-01-01", "7", "threshold", "%3A", "all"])
DAYS = st.dates(date(1970, 1, 1), date(2040, 1, 1))


@st.composite
def triggers(draw: st.DrawFn) -> DateTrigger | ThresholdTrigger:
    if draw(st.booleans()):
        return DateTrigger(target_date=draw(DAYS), offset_days=draw(st.integers(-3660, 3660)))
    policy = draw(st.sampled_from(FiringPolicy))
    return ThresholdTrigger(
        metric=draw(NAMES),
        value=None if policy is FiringPolicy.ONCE_PER_SOURCE else draw(st.sampled_from([0.0, -2.5, 1e21, 90.0])),
        firing_policy=policy,
        scope=draw(NAMES),
        local_date=draw(DAYS) if policy is FiringPolicy.ONCE_PER_DAY else None,
        edge_no=draw(st.integers(1, 9)) if policy is FiringPolicy.FALSE_TO_TRUE else None,
    )


@st.composite
def occurrences(draw: st.DrawFn) -> Occurrence:
    unit = draw(st.none() | GUIDS)
    what: Reminder | ReportRun
    if draw(st.booleans()):
        what = Reminder(
            setting=draw(NAMES),
            source_type=draw(NAMES),
            source=draw(NAMES),
            trigger_key=draw(NAMES),
            trigger=draw(triggers()),
            primary_entity=draw(GUIDS),
            business_unit=unit,
            notification_type="due",
        )
    else:
        by_hand = draw(st.none() | GUIDS)
        began_at = draw(st.sampled_from([AT, AT + timedelta(microseconds=3), AT.replace(microsecond=0)]))
        what = ReportRun(
            subscription=draw(GUIDS),
            period_start_at=began_at if by_hand is None else None,
            manual_run=by_hand,
            recurring=by_hand is None and draw(st.booleans()),
            business_unit=unit,
            notification_type="weekly",
        )
    rerun = draw(st.none() | st.integers(1, 12))
    return Occurrence(what=what, scheduled_at=AT, tz_id="Europe/Vienna", rerun=rerun, trace=Trace(correlation_id="c"))


@given(occurrences())
def test_an_occurrence_comes_back_from_its_row_as_it_went_in(occurrence: Occurrence) -> None:
    row = automation_scheduler(occurrence)
    assert stored_occurrence(row) == occurrence
    assert key.read_first_run(row.scheduler_key)[1] == occurrence.rerun


def test_what_is_no_key_of_an_occurrence_is_not_taken_apart() -> None:
    with pytest.raises(InvalidKey, match="it is not a scheduler key"):
        key.read_first_run("reminder:a:b")

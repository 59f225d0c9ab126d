"""Why an occurrence is due, as people read it."""

from datetime import date
from typing import Any

import pytest

from clarion.domain.automation import TriggerType
from clarion.domain.key import FiringPolicy
from clarion.domain.occurrence_why import why_in_words
from clarion.testing.factories import automation_scheduler

DATED: dict[str, Any] = {"trigger_key": "due_on", "target_date": date(2026, 3, 31)}
MET: dict[str, Any] = {
    "trigger_type": TriggerType.THRESHOLD_CONDITION,
    "target_date": None,
    "offset_days": None,
    "metric": "booked",
    "threshold_value": "0.9",
    "firing_policy": FiringPolicy.ONCE_PER_DAY,
    "scope": "all",
}


@pytest.mark.parametrize(
    "fields, words",
    [
        ({**DATED, "offset_days": 7}, "7 days before due_on 2026-03-31"),
        ({**DATED, "offset_days": 1}, "1 day before due_on 2026-03-31"),
        ({**DATED, "offset_days": 0}, "on due_on 2026-03-31"),
        ({**DATED, "offset_days": -3}, "3 days after due_on 2026-03-31"),
        (MET, "booked meets the threshold 0.9, every day while it is met"),
        (
            {**MET, "scope": "room 7", "firing_policy": FiringPolicy.FALSE_TO_TRUE},
            "booked of room 7 meets the threshold 0.9, each time that it becomes true",
        ),
        (
            {**MET, "threshold_value": None, "firing_policy": FiringPolicy.ONCE_PER_SOURCE},
            "booked meets its threshold, once for the source",
        ),
        ({"trigger_type": TriggerType.RECURRING}, "the rule of its subscription"),
        ({"trigger_type": TriggerType.SCHEDULED_RUN}, "the one run that its subscription plans"),
        ({"trigger_type": TriggerType.MANUAL_RUN}, "somebody asked for this run"),
    ],
)
def test_an_occurrence_says_what_it_counts_from(fields: dict[str, Any], words: str) -> None:
    assert why_in_words(automation_scheduler(**fields)) == words

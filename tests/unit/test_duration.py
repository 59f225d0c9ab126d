"""Durations in words."""

from datetime import timedelta

import pytest

from clarion.domain.duration import spoken


@pytest.mark.parametrize(
    "duration, said",
    [
        (timedelta(days=30), "30 days"),
        (timedelta(days=30) - timedelta(seconds=2), "30 days"),
        (-timedelta(days=3), "3 days"),
        (timedelta(days=1), "24 hours"),
        (timedelta(minutes=90), "2 hours"),
        (timedelta(minutes=61), "61 minutes"),
        (timedelta(seconds=61), "61 seconds"),
        (timedelta(seconds=1), "1 second"),
        (timedelta(milliseconds=300), "less than a second"),
    ],
)
def test_a_duration_is_said_in_the_largest_unit_that_it_has_two_of(duration: timedelta, said: str) -> None:
    assert spoken(duration) == said

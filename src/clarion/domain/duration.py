"""Durations in words, for messages to people. Pure."""

from datetime import timedelta
from typing import Final

_UNITS: Final = (
    ("day", timedelta(days=1)),
    ("hour", timedelta(hours=1)),
    ("minute", timedelta(minutes=1)),
    ("second", timedelta(seconds=1)),
)


def spoken(duration: timedelta) -> str:
    """Say how long it is, to the nearest of the largest unit that it has two of."""
    for unit, length in _UNITS:
        count = round(abs(duration) / length)
        if count >= 2:
            return f"{count} {unit}s"
    return "1 second" if abs(duration) >= timedelta(seconds=1) else "less than a second"

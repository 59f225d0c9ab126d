"""The store's time beside that of this machine: whether they agree, in words."""

from datetime import timedelta
from typing import Final

from clarion.domain.duration import spoken

AGREE: Final = timedelta(minutes=1)
"""Clocks that differ by less agree: no time that a person names is meant more exactly."""


def gap_in_words(ahead: timedelta) -> str | None:
    """Say that the store's time is so much ahead of this machine's clock, or behind it; None where they agree."""
    if abs(ahead) < AGREE:
        return None
    return f"the store's time is {spoken(ahead)} {'ahead of' if ahead > timedelta() else 'behind'} this machine's clock"


def gap_warning(ahead: timedelta) -> str | None:
    """Say the same to somebody who did not ask, with where to look."""
    gap = gap_in_words(ahead)
    return gap and f"{gap}; `clarion clock show` shows both"

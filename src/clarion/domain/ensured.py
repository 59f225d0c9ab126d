"""What an ensure comes to: a value, never an exception.

A set is answered item by item in the order asked; a conflict withholds its own item and the others proceed.
"""

from enum import StrEnum
from typing import Generic, TypeVar
from uuid import UUID

import msgspec


class Outcome(StrEnum):
    """What became of one item."""

    CREATED = "created"  # it was missing and is now there
    FOUND = "found"  # it was there and is compatible
    REACTIVATED = "reactivated"  # it was there, at rest, and is wanted again
    CONFLICT = "conflict"  # it was there with other content: nothing was changed, a support case is open
    GONE = "gone"  # its key was used and retired by retention: nothing is made again
    SUPERSEDED = "superseded"  # the claim under which it was to be made is gone: nothing was made
    NEWER = "newer"  # it was written by a newer program, to which it is left; the record may be as it was given


R = TypeVar("R")


class Ensured(msgspec.Struct, Generic[R], frozen=True, kw_only=True):
    """One item's answer: the row as it is stored, whose coordinates never change."""

    outcome: Outcome
    record: R
    differing: tuple[str, ...] = ()
    case_id: UUID | None = None

    @property
    def proceeds(self) -> bool:
        """Whether the caller may go on with this item."""
        return self.outcome in (Outcome.CREATED, Outcome.FOUND, Outcome.REACTIVATED)

"""One-time codes: when the data of such a job is erased, and what is said to whoever wants it sent again (X-23).

A code is worth something to a thief for as long as it lies somewhere. So the data of a job whose type is a one-time
code is kept only while a call may still need it: until its work is over and no message of it can be sent any more
without a person's word. What is left is who got it, when, and what came of it. Pure.
"""

from typing import Final

import msgspec

from clarion.domain.notification import NotificationStatus
from clarion.errors import Gone

OVER: Final = frozenset(NotificationStatus) - {NotificationStatus.READY, NotificationStatus.PROCESSING}
"""A job that failed is over too: by the time that somebody has mended its cause, the code is worth nothing."""


class CodeStanding(msgspec.Struct, frozen=True):
    """How a job of a one-time code stands: its work, and how many of its messages may still be called.

    `waiting` are those that are to be sent or are being sent. `undecided` are those of which nobody knows whether they
    arrived and that still have time: they may be sent once more.
    """

    id: int
    work: NotificationStatus | None
    waiting: int
    undecided: int


class Erasure(msgspec.Struct, frozen=True):
    """How many jobs' data was erased, and behind which job to look next; 0 is from the beginning."""

    erased: int
    next_after: int


def is_spent(standing: CodeStanding) -> bool:
    """Tell whether no call can need the data any more; a job whose pending row is missing will be worked on yet."""
    return standing.work in OVER and not standing.waiting and not standing.undecided


def erased() -> Gone:
    """Say why it cannot be sent again."""
    return Gone("it was a one-time code, and its data was erased when it was over", hint="send a new code")

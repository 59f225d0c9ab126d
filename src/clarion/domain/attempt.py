"""Attempt: one provider call, and what is known of its outcome.

Nothing here reads or writes anything. A claim that is known to have ended without a call leaves no attempt.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, assert_never
from uuid import UUID

import msgspec

from clarion.domain.call import Accepted, CallOutcome, Deferred, Misconfigured, NotCalled, Refused, Unknown
from clarion.domain.machine import Cause, Machine, by


class AttemptStatus(StrEnum):
    """What the provider did with the call, as far as we know."""

    ACCEPTED = "Accepted"
    REFUSED = "Refused"
    DEFERRED = "Deferred"
    MISCONFIGURED = "Misconfigured"
    UNKNOWN = "Unknown"


ATTEMPT_IN_WORDS: Final[Mapping[AttemptStatus, str]] = {
    AttemptStatus.ACCEPTED: "accepted",
    AttemptStatus.REFUSED: "refused",
    AttemptStatus.DEFERRED: "put off",
    AttemptStatus.MISCONFIGURED: "the account is at fault",
    AttemptStatus.UNKNOWN: "nobody knows the outcome",
}
"""What people read; the names above are stored."""

DELIVERY_ATTEMPT = Machine(
    name="DeliveryAttempt",
    initial=frozenset(AttemptStatus),  # an attempt is written when its outcome is, even if the outcome is Unknown
    table={
        AttemptStatus.ACCEPTED: {},
        AttemptStatus.REFUSED: {},
        AttemptStatus.DEFERRED: {},
        AttemptStatus.MISCONFIGURED: {},
        AttemptStatus.UNKNOWN: {
            AttemptStatus.ACCEPTED: by(Cause.EVIDENCE),
            AttemptStatus.REFUSED: by(Cause.LATE_REPLY),
        },
    },
)


class Attempt(msgspec.Struct, frozen=True, gc=False):
    """One call of a row, as far as it is known; the fields are those of the statements that read and write it."""

    bucket: int
    outgoing_id: int
    attempt: int
    claim_token: UUID | None
    status: AttemptStatus
    provider_message_id: str | None = None
    reason: str | None = None
    content_hash: str | None = None
    latency_ms: int | None = None


def attempt_status(outcome: CallOutcome) -> AttemptStatus | None:
    """Say what an outcome makes of its attempt; None where no byte left."""
    match outcome:
        case Accepted():
            return AttemptStatus.ACCEPTED
        case Refused():
            return AttemptStatus.REFUSED
        case Deferred():
            return AttemptStatus.DEFERRED
        case Misconfigured():
            return AttemptStatus.MISCONFIGURED
        case Unknown():
            return AttemptStatus.UNKNOWN
        case NotCalled():
            return None
        case _:
            assert_never(outcome)


def is_told_of(*, accepted_id: str | None, told_id: str | None) -> bool:
    """Tell whether a receipt may be about a call that is known to be accepted: two different ids rule it out."""
    return None in (accepted_id, told_id) or accepted_id == told_id

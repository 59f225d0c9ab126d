"""Attempt: one provider call, and what is known of its outcome.

Nothing here reads or writes anything. A claim that is known to have ended without a call leaves no attempt.
"""

from enum import StrEnum

from clarion.domain.machine import Cause, Machine, by


class AttemptStatus(StrEnum):
    """What the provider did with the call, as far as we know."""

    ACCEPTED = "Accepted"
    REFUSED = "Refused"
    DEFERRED = "Deferred"
    MISCONFIGURED = "Misconfigured"
    UNKNOWN = "Unknown"


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

"""Outgoing: one recipient on one channel, the states of its row, and how evidence is merged into them.

Nothing here reads or writes anything. What a provider call came to is in `attempt.py`; the keys live in `key.py`.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Final, NamedTuple
from uuid import UUID

import msgspec

from clarion.domain.identity import Channel, Lane
from clarion.domain.machine import Cause, Machine, Move, by
from clarion.domain.part import END
from clarion.errors import BrokenInvariant


class OutgoingStatus(StrEnum):
    """Where a message to one recipient on one channel stands."""

    CREATED = "Created"
    RETRY_READY = "RetryReady"
    SENDING = "Sending"
    UNCERTAIN = "Uncertain"
    SENT_TO_PROVIDER = "SentToProvider"
    BLOCKED = "Blocked"
    DELIVERED = "Delivered"
    OPENED = "Opened"
    BOUNCED = "Bounced"
    COMPLAINED = "Complained"
    FAILED_FINAL = "FailedFinal"
    NOT_SUPPORTED = "NotSupported"
    SUPPRESSED = "Suppressed"
    EXPIRED = "Expired"
    CANCELED = "Canceled"


STATUS_IN_WORDS: Final[Mapping[OutgoingStatus, str]] = {
    OutgoingStatus.CREATED: "waiting to be sent",
    OutgoingStatus.RETRY_READY: "waiting for a retry",
    OutgoingStatus.SENDING: "being sent",
    OutgoingStatus.UNCERTAIN: "uncertain",
    OutgoingStatus.SENT_TO_PROVIDER: "sent",
    OutgoingStatus.BLOCKED: "blocked",
    OutgoingStatus.DELIVERED: "delivered",
    OutgoingStatus.OPENED: "opened",
    OutgoingStatus.BOUNCED: "bounced",
    OutgoingStatus.COMPLAINED: "complained about",
    OutgoingStatus.FAILED_FINAL: "failed",
    OutgoingStatus.NOT_SUPPORTED: "not supported",
    OutgoingStatus.SUPPRESSED: "suppressed",
    OutgoingStatus.EXPIRED: "expired",
    OutgoingStatus.CANCELED: "canceled",
}
"""What people read; the names above are stored, and are what programs compare."""


class UncertainPolicy(StrEnum):
    """What to do with a send of which nobody can know whether it arrived, where the provider does not de-duplicate."""

    PREFER_LOSS = "prefer_loss"
    PREFER_DUPLICATE = "prefer_duplicate"


class ReasonClass(StrEnum):
    """The reasons that counts and recipient codes tell apart; any other reason is only shown."""

    THROTTLED = "throttled"
    RECIPIENT_NOT_FOUND = "recipient-not-found"
    PREFERENCE = "preference"


# What evidence can show, lowest first. The order is total, so that receipts in any order end in the same state (I-31).
EVIDENCE_ORDER = (
    OutgoingStatus.SENT_TO_PROVIDER,
    OutgoingStatus.BLOCKED,
    OutgoingStatus.DELIVERED,
    OutgoingStatus.OPENED,
    OutgoingStatus.BOUNCED,
    OutgoingStatus.COMPLAINED,
)
RANK: Mapping[OutgoingStatus, int] = {status: rank for rank, status in enumerate(EVIDENCE_ORDER, start=1)}

_BEFORE_A_CALL: Mapping[OutgoingStatus, Move] = {
    OutgoingStatus.SENDING: by(Cause.CLAIM),
    OutgoingStatus.CANCELED: by(Cause.CANCEL),
    OutgoingStatus.EXPIRED: by(Cause.RULE),
    OutgoingStatus.SUPPRESSED: by(Cause.RULE),
    OutgoingStatus.NOT_SUPPORTED: by(Cause.RULE),
    OutgoingStatus.FAILED_FINAL: by(Cause.RULE, note="cannot be rendered, or no destination"),
}

_OWN_MOVES: Mapping[OutgoingStatus, Mapping[OutgoingStatus, Move]] = {
    OutgoingStatus.CREATED: _BEFORE_A_CALL,
    OutgoingStatus.RETRY_READY: {
        **_BEFORE_A_CALL,
        OutgoingStatus.UNCERTAIN: by(
            Cause.RULE, Cause.CANCEL, note="canceled, out of time or suppressed, and an earlier call may have arrived"
        ),
    },
    OutgoingStatus.SENDING: {
        OutgoingStatus.SENT_TO_PROVIDER: by(Cause.RECORD),
        OutgoingStatus.RETRY_READY: by(
            Cause.RECORD, note="provably refused, or not called (then the attempt does not count)"
        ),
        OutgoingStatus.FAILED_FINAL: by(Cause.RECORD),
        OutgoingStatus.UNCERTAIN: by(Cause.RECORD, Cause.RESCUE, note="the outcome is unknown, or the lease ran out"),
    },
    OutgoingStatus.UNCERTAIN: {
        OutgoingStatus.RETRY_READY: by(Cause.REPLAY, Cause.AUDITED, Cause.LATE_REPLY),
        OutgoingStatus.FAILED_FINAL: by(Cause.AUDITED, Cause.LATE_REPLY),
        OutgoingStatus.UNCERTAIN: by(Cause.RULE, note="it is decided to leave it so; the line says why"),
    },
    OutgoingStatus.FAILED_FINAL: {OutgoingStatus.RETRY_READY: by(Cause.AUDITED)},
}

_EVIDENCE_NOTE = "the row has an attempt, and this is higher in rank"


def _with_evidence(from_: OutgoingStatus) -> dict[OutgoingStatus, Move]:
    """Add to a state's own moves those that evidence makes: from any state that can have an attempt, up in rank."""
    exits = dict(_OWN_MOVES.get(from_, {}))
    if from_ is OutgoingStatus.CREATED:
        return exits  # the only state before the first claim, so the only one that no attempt can belong to
    for to in EVIDENCE_ORDER[RANK.get(from_, 0) :]:
        own = exits.get(to)
        exits[to] = by(*own.by, Cause.EVIDENCE, note=own.note) if own else by(Cause.EVIDENCE, note=_EVIDENCE_NOTE)
    return exits


OUTGOING_MESSAGE = Machine(
    name="OutgoingMessage",
    initial=frozenset({OutgoingStatus.CREATED}),
    table={status: _with_evidence(status) for status in OutgoingStatus},
)

# A row has a `due_at` exactly while it can be claimed and a `lease_until` exactly while it is claimed.
DUE = OUTGOING_MESSAGE.sources(Cause.CLAIM)
LEASED = OUTGOING_MESSAGE.targets(Cause.CLAIM)
OPEN = DUE | LEASED
# `Uncertain` is in neither set: nobody works on it, but a replay or a late reply may bring it back.
FINAL = OUTGOING_MESSAGE.final


class Ending(NamedTuple):
    """What becomes of a row that is not sent any more, and why."""

    to: OutgoingStatus
    reason: str


def called_off(*, may_have_arrived: bool) -> Ending:
    """End a row that was canceled; of one with a call of which nobody knows, nobody can say that it was not sent."""
    if may_have_arrived:
        return Ending(OutgoingStatus.UNCERTAIN, "canceled, and an earlier call may have arrived")
    return Ending(OutgoingStatus.CANCELED, "canceled before it was sent")


def out_of_time(*, may_have_arrived: bool) -> Ending:
    """End a row whose time ran out, with the same care."""
    if may_have_arrived:
        return Ending(OutgoingStatus.UNCERTAIN, "its time ran out, and an earlier call may have arrived")
    return Ending(OutgoingStatus.EXPIRED, "its time ran out before it was sent")


def suppressed(why: str, *, may_have_arrived: bool) -> Ending:
    """End a row whose recipient is not to get it, with the same care."""
    if may_have_arrived:
        return Ending(OutgoingStatus.UNCERTAIN, f"{why}, and an earlier call may have arrived")
    return Ending(OutgoingStatus.SUPPRESSED, why)


def merge(*, current: OutgoingStatus, evidence: OutgoingStatus) -> OutgoingStatus:
    """Give the higher of the two in rank: what evidence can show is above every other state."""
    if evidence not in RANK:
        raise BrokenInvariant(f"{evidence} is no state that evidence can show")
    if RANK.get(current, 0) >= RANK[evidence]:
        return current
    OUTGOING_MESSAGE.require(from_=current, to=evidence)
    return evidence


class OutgoingItem(msgspec.Struct, frozen=True, kw_only=True):
    """One row to ensure: its parent says most, its address version who, where and on which channel.

    The parent is a notification job (by row key) or a messaging job (by guid), whichever is given; its key is the row's
    partition key. `hold` is the scheduler row (id, version) whose claim allows the row to be made: once that row is
    canceled or taken over, none is inserted. `recipient_id_hash` and `channel` must be those of the address version.
    `person_version_id`, `locale` and `tz_id` are what its content is merged with besides the data of its job.
    `category` is the one that the recipient may opt out of, written as in a scope; a required message has none.
    """

    notification_job: str | None = None
    messaging_job: UUID | None = None
    hold: tuple[int, int] | None = None
    lane: Lane
    broadcast: Annotated[str, msgspec.Meta(max_length=512, pattern="^[ -~]*" + END)] = ""  # ASCII, for a limit in bytes
    route: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    address_id: int
    recipient_id_hash: str
    channel: Channel
    message_id: UUID
    attempt_no: Annotated[int, msgspec.Meta(ge=2, le=32767)] | None = None
    order_key: str | None = None
    due_at: datetime | None = None
    expires_at: datetime | None = None
    uncertain_policy: UncertainPolicy = UncertainPolicy.PREFER_LOSS
    attempts_max: Annotated[int, msgspec.Meta(ge=1, le=32767)] | None = None
    person_version_id: int | None = None
    locale: str | None = None
    tz_id: str | None = None
    category: str | None = None

    @property
    def pk(self) -> str:
        """The partition key of the row."""
        if (self.notification_job is None) == (self.messaging_job is None):
            raise BrokenInvariant("an outgoing row has exactly one parent")
        return self.notification_job if self.notification_job is not None else str(self.messaging_job)


class OutgoingMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of one row: what an ensure compares and hands back. What happens to the row is the queue's."""

    GIVEN: ClassVar[tuple[str, ...]] = ("message_id", "address_id")

    bucket: int
    pk: str
    rk: str
    message_id: UUID
    address_id: int
    channel: Channel
    attempt_no: int | None = None
    status: OutgoingStatus = OutgoingStatus.CREATED
    version: int = 1
    correlation_id: str
    id: int | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What is unique within the tenant."""
        return (str(self.bucket), self.pk, self.rk)

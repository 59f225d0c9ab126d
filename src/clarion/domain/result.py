"""What came of a notification as a whole: one word for all of its messages, from what is stored about them.

The state of a job says which work for it is done; only its messages say whether anybody was reached. `overall` is the
one rule, for histories, lists, timelines and both doors. It needs numbers and no rows, so a store can count. Pure.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from clarion.domain.notification import NotificationStatus
from clarion.domain.outgoing import OPEN, OutgoingStatus
from clarion.domain.recipient import how_many
from clarion.domain.skip import SkipRule, rule_of
from clarion.domain.timeline import JobTimeline


class Result(StrEnum):
    """What came of a notification; the words that callers read."""

    WAITING = "waiting"  # something is still to be done for it
    UNCERTAIN = "uncertain"  # all is done, and of a message nobody knows whether it arrived
    DELIVERED = "delivered"  # every message is known to have arrived; a line in an inbox has
    SENT = "sent"  # providers took every message, and did not report of all of them that they arrived
    PARTLY = "partly"  # some messages were sent, others failed or were withheld, or a recipient got none
    FAILED = "failed"  # nobody was reached, and something went wrong
    NOBODY = "nobody"  # nobody was reached, and nothing went wrong: switched off, canceled, no address known


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What of a job decides its result: the state of its work, and how many messages there are in each state.

    `recipients` is how many were decided about, 0 before that; `addressed` is for how many of them there is a message,
    outgoing or in the inbox. `opted_out` are those of the suppressed messages that a preference stopped.
    """

    work: NotificationStatus | None
    recipients: int
    addressed: int
    inbox: int
    outgoing: Mapping[OutgoingStatus, int]
    opted_out: int = 0


ARRIVED: Final = frozenset({OutgoingStatus.DELIVERED, OutgoingStatus.OPENED, OutgoingStatus.COMPLAINED})
"""Who complains has got it."""

WITHHELD: Final = frozenset({OutgoingStatus.CANCELED, OutgoingStatus.SUPPRESSED})
"""Not sent on purpose, which is nobody's failure."""

FAILED: Final = frozenset(
    {
        OutgoingStatus.FAILED_FINAL,
        OutgoingStatus.BOUNCED,
        OutgoingStatus.BLOCKED,
        OutgoingStatus.EXPIRED,
        OutgoingStatus.NOT_SUPPORTED,
    }
)


class DeliveryClass(StrEnum):
    """What counts of messages tell apart."""

    SENT = "sent"  # a provider took it, and has not reported that it arrived
    DELIVERED = "delivered"
    FAILED = "failed"
    UNCERTAIN = "uncertain"
    WAITING = "waiting"
    NOT_SENT = "not_sent"  # on purpose


def _delivery_class(status: OutgoingStatus) -> DeliveryClass:
    for known, those in (
        (DeliveryClass.DELIVERED, ARRIVED),
        (DeliveryClass.NOT_SENT, WITHHELD),
        (DeliveryClass.FAILED, FAILED),
        (DeliveryClass.WAITING, OPEN),
        (DeliveryClass.UNCERTAIN, {OutgoingStatus.UNCERTAIN}),
    ):
        if status in those:
            return known
    return DeliveryClass.SENT


DELIVERY_CLASS: Final[Mapping[OutgoingStatus, DeliveryClass]] = {one: _delivery_class(one) for one in OutgoingStatus}
"""In which of them a message is, by its state."""


def overall(standing: Standing) -> Result:
    """Give the result; what may still change comes first, then what nobody knows."""
    unfinished = standing.work in (NotificationStatus.READY, NotificationStatus.PROCESSING)
    nothing_yet = standing.work is None and not standing.addressed  # its pending row is missing: it will be made again
    if unfinished or nothing_yet or _any(standing, OPEN):
        return Result.WAITING
    if _any(standing, {OutgoingStatus.UNCERTAIN}):
        return Result.UNCERTAIN
    has_failed = standing.work is NotificationStatus.FAILED or _any(standing, FAILED)
    if not standing.inbox and not _any(standing, {*ARRIVED, OutgoingStatus.SENT_TO_PROVIDER}):
        return Result.FAILED if has_failed else Result.NOBODY
    was_called_off = standing.work is NotificationStatus.CANCELED or _any(standing, WITHHELD)
    if has_failed or was_called_off or standing.addressed < standing.recipients:
        return Result.PARTLY
    return Result.SENT if _any(standing, {OutgoingStatus.SENT_TO_PROVIDER}) else Result.DELIVERED


def standing_of(timeline: JobTimeline) -> Standing:
    """Count what decides the result in a timeline, whose rows are all there."""
    outgoing = [row.status for row in timeline.outgoing]
    messages = {row.message_id for row in timeline.outgoing} | {row.message_id for _, row in timeline.inbox}
    return Standing(
        work=None if timeline.scheduler is None else timeline.scheduler.status,
        recipients=how_many(timeline.job.recipients),
        addressed=len(messages),
        inbox=len(timeline.inbox),
        outgoing={status: outgoing.count(status) for status in set(outgoing)},
        opted_out=sum(rule_of(row.status, row.reason_class) is SkipRule.PREFERENCE for row in timeline.outgoing),
    )


def _any(standing: Standing, states: Collection[OutgoingStatus]) -> bool:
    return any(standing.outgoing.get(state) for state in states)

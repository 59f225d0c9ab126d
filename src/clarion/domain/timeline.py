"""The timeline of a notification: what is stored about it, and the lines that a person reads. Pure.

The records are gathered by the store's read side; here they become one list of lines in the order in which things
happened, each with its time, what happened and why. Nothing is invented: a line stands for a stored fact.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import assert_never
from uuid import UUID

import msgspec

from clarion.domain.attempt import ATTEMPT_IN_WORDS, AttemptStatus
from clarion.domain.identity import Channel
from clarion.domain.inbox import UserMessage
from clarion.domain.notification import NotificationJob, NotificationScheduler, NotificationStatus, Stage
from clarion.domain.outgoing import STATUS_IN_WORDS, OutgoingStatus
from clarion.domain.recipient import Decision
from clarion.domain.skip import SkipRule, rule_of


class TransitionLine(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a row's state."""

    version: int
    from_status: OutgoingStatus
    to_status: OutgoingStatus
    at: datetime
    actor: str
    reason: str | None


class AttemptLine(msgspec.Struct, frozen=True, kw_only=True):
    """One provider call."""

    attempt: int
    account: str
    status: AttemptStatus
    provider_message_id: str | None
    reason: str | None
    latency_ms: int | None
    at: datetime


class EventLine(msgspec.Struct, frozen=True, kw_only=True):
    """One provider event about a row."""

    account: str
    event_id: str
    status: OutgoingStatus
    happened_at: datetime
    received_at: datetime
    applied_at: datetime | None


class OutgoingRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a message as it stands."""

    id: int
    bucket: int
    pk: str
    rk: str
    message_id: UUID
    address_id: int
    channel: Channel
    status: OutgoingStatus
    version: int
    attempts: int
    reason: str | None
    account: str | None
    provider_message_id: str | None
    due_at: datetime | None
    cancel_at: datetime | None
    cancel_actor: str | None
    created_at: datetime
    attempts_max: int | None = None
    person_version_id: int | None = None
    locale: str | None = None
    tz_id: str | None = None
    reason_class: str = ""


class OutgoingTimeline(OutgoingRow, frozen=True, kw_only=True):
    """One row of a message and all that happened to it."""

    transitions: tuple[TransitionLine, ...]
    tries: tuple[AttemptLine, ...]
    events: tuple[EventLine, ...]


class JobTimeline(msgspec.Struct, frozen=True, kw_only=True):
    """A job with its scheduler row, inbox rows and outgoing rows.

    Of the scheduler row: when it was made, when the first stage passed it on, and when it last changed its state.
    """

    job: NotificationJob
    created_at: datetime
    scheduler: NotificationScheduler | None
    scheduler_at: datetime | None
    scheduled_at: datetime | None
    moved_at: datetime | None
    inbox: tuple[tuple[datetime, UserMessage], ...]
    outgoing: tuple[OutgoingTimeline, ...]


class TimelineLine(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened; `channel` and `message_id` are None where it concerns the whole job.

    `rule` says which rule it was that kept something from being sent.
    """

    at: datetime
    what: str
    detail: str | None = None
    channel: Channel | None = None
    message_id: UUID | None = None
    rule: SkipRule | None = None


def is_canceled(timeline: JobTimeline) -> bool:
    """Tell whether a job was canceled, at least in part."""
    scheduler = timeline.scheduler
    return (scheduler is not None and scheduler.status is NotificationStatus.CANCELED) or any(
        row.status is OutgoingStatus.CANCELED or row.cancel_at is not None for row in timeline.outgoing
    )


def timeline_lines(
    timeline: JobTimeline, *, message_id: UUID | None = None, skips: Sequence[tuple[UUID, Decision]] = ()
) -> tuple[TimelineLine, ...]:
    """Tell the whole timeline in order, of the job or of one of its messages.

    `skips` are the channels on which recipients got nothing, each under the id that their message has or would have.
    """
    accepted, *lines = _job_lines(timeline)
    made_at = lines[-1].at
    for skipped_id, skip in skips:
        if message_id in (None, skipped_id):
            lines.append(
                TimelineLine(
                    at=made_at,
                    what="skipped",
                    detail=skip.skipped,
                    channel=skip.channel,
                    message_id=skipped_id,
                    rule=skip.rule or SkipRule.OTHER,  # frozen before there were rules
                )
            )
    for at, row in timeline.inbox:
        if message_id in (None, row.message_id):
            lines.append(
                TimelineLine(at=at, what="put into the inbox", channel=Channel.INBOX, message_id=row.message_id)
            )
    for sent in timeline.outgoing:
        if message_id in (None, sent.message_id):
            lines.extend(_row_lines(sent))
    # That one has the time of the door, all others that of the store; nothing can have happened before it.
    return (accepted, *sorted(lines, key=lambda line: (line.at, _ORDER.get(line.what, len(_ORDER)))))


def _job_lines(timeline: JobTimeline) -> Iterator[TimelineLine]:
    job, scheduler = timeline.job, timeline.scheduler
    yield TimelineLine(at=job.source_at, what="accepted", detail=f"{job.event_type}, by {job.actor or job.operation}")
    yield TimelineLine(at=timeline.created_at, what="stored", detail=f"job {job.guid}")
    if scheduler is None:
        return
    if timeline.scheduled_at is not None:
        yield TimelineLine(at=timeline.scheduled_at, what="scheduled", detail=f"{scheduler.lane} lane")
    at = timeline.moved_at or timeline.scheduler_at or timeline.created_at
    if scheduler.status is NotificationStatus.DONE:
        # What was generated is older than the word that all of it is, and may have been sent before that.
        at = min([at, *(made_at for made_at, _ in timeline.inbox), *(row.created_at for row in timeline.outgoing)])
    due = f"due {_moment(scheduler.due_at)}" if scheduler.due_at is not None and scheduler.due_at > at else None
    told = not scheduler.rescue_count or scheduler.status is NotificationStatus.FAILED
    lost = None if told else f"workers lost over it: {scheduler.rescue_count}"
    detail = _said(due, scheduler.reason, lost)
    yield TimelineLine(at=at, what=_standing(scheduler), detail=detail, rule=scheduler.skipped_by)


def _standing(scheduler: NotificationScheduler) -> str:
    """Say where a pending row stands."""
    done = "scheduled" if scheduler.stage is Stage.SCHEDULE else "generated"
    match scheduler.status:
        case NotificationStatus.READY:
            return f"waiting to be {done}"
        case NotificationStatus.PROCESSING:
            return f"being {done}"
        case NotificationStatus.DONE:
            return done
        case NotificationStatus.SKIPPED:
            return "skipped"
        case NotificationStatus.FAILED:
            return f"{scheduler.stage} failed"
        case NotificationStatus.CANCELED:
            return "canceled"
        case _:
            assert_never(scheduler.status)


def _row_lines(row: OutgoingTimeline) -> Iterator[TimelineLine]:
    def line(at: datetime, what: str, *detail: str | None, rule: SkipRule | None = None) -> TimelineLine:
        return TimelineLine(
            at=at, what=what, detail=_said(*detail), channel=row.channel, message_id=row.message_id, rule=rule
        )

    yield line(row.created_at, "queued")
    for move in row.transitions:
        if move.from_status is move.to_status:
            yield line(move.at, "left uncertain", _by(move.actor), move.reason)
            continue
        waits = move.version == row.version and move.to_status is OutgoingStatus.RETRY_READY
        due = f"due {_moment(row.due_at)}" if waits and row.due_at else None
        became = "claimed" if move.to_status is OutgoingStatus.SENDING else STATUS_IN_WORDS[move.to_status]
        yield line(move.at, became, _by(move.actor), move.reason, due, rule=rule_of(move.to_status, row.reason_class))
    canceled = {move.at for move in row.transitions if move.to_status is OutgoingStatus.CANCELED}
    if row.cancel_at is not None and row.cancel_at not in canceled:
        yield line(row.cancel_at, "called off", f"by {row.cancel_actor}", "while it was on its way or uncertain")
    for call in row.tries:
        took = None if call.latency_ms is None else f"{call.latency_ms} ms"
        asked = f"attempt {call.attempt} through {call.account}: {ATTEMPT_IN_WORDS[call.status]}"
        # An unknown outcome without a reason is that of a worker that said nothing, not even that it had called.
        is_silent = call.status is AttemptStatus.UNKNOWN and call.reason is None
        yield line(
            call.at, "perhaps called" if is_silent else "called", asked, took, call.provider_message_id, call.reason
        )
    for event in row.events:
        waiting = None if event.applied_at else "not applied yet"
        # Each receipt of a request has a time of its own, and all are applied at that of the first of them.
        at = event.received_at if event.applied_at is None else min(event.received_at, event.applied_at)
        yield line(at, "receipt", f"{STATUS_IN_WORDS[event.status]} from {event.account}", waiting)


def _by(actor: str) -> str | None:
    """Name who made a change, where it was a person or a program of theirs; that our own workers work is no news."""
    return None if actor in _OUR_OWN else f"by {actor}"


def _said(*parts: str | None) -> str | None:
    return ", ".join(part for part in parts if part) or None


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


_OUR_OWN = frozenset({"distribute", "track", "settle", "rescue", "sweep"})

# What comes first of things that happened in one transaction, or within the clock's grain.
_ORDER = {
    word: place
    for place, word in enumerate(
        (
            "stored",
            "scheduled",
            "generated",
            "skipped",
            "put into the inbox",
            "queued",
            "claimed",
            "called off",
            "perhaps called",
            "called",
            "sent",
            "receipt",
        )
    )
}

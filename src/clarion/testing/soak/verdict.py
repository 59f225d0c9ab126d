"""The verdict over a soak, from what clients were told, what the provider took, and when who was killed.

The store is asked only what it shows; it is never believed about what became of a message. Each message that ever was
`Uncertain` must be explained: by a call that its program had made shortly before it was killed, or, without a call, by
a kill or a crash of the store just after the claim. A kill explains no more messages than its program had call slots; a
provider that de-duplicates leaves nothing uncertain; and nine in ten messages arrived. Pure: evidence in, verdict out.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from clarion.domain.notification import NotificationStatus
from clarion.domain.outgoing import FINAL, RANK, OutgoingStatus
from clarion.domain.timeline import JobTimeline, OutgoingTimeline
from clarion.testing.soak.client import Promise
from clarion.testing.soak.program import Life
from clarion.testing.soak.provider import TakenCall

CLOCKS_APART: Final = timedelta(milliseconds=250)
"""Between the store's clock and ours, on one machine under load."""

RECORDED_WITHIN: Final = timedelta(seconds=3)
"""From a call to the record of its outcome, on a machine under load: some hundredths of a second where it is free. A
program that lived on for longer has no excuse."""

CALLED_WITHIN: Final = timedelta(seconds=3)
"""From a claim to its call; nothing but the merge of a template stands between them."""

DELIVERED_MIN: Final = 0.9

SHOWN_MAX: Final = 5
"""Examples of one kind of violation."""

_UNFINISHED: Final = (NotificationStatus.READY, NotificationStatus.PROCESSING)
_RESTING: Final = frozenset({*FINAL, *RANK, OutgoingStatus.UNCERTAIN})


class Outage(msgspec.Struct, frozen=True, kw_only=True):
    """A crash of the store, until it was there again."""

    at: datetime
    until: datetime


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known about a leg when it is over; `timelines` in the order of the promises."""

    promises: Sequence[Promise]
    timelines: Sequence[JobTimeline | None]
    calls: Sequence[TakenCall]
    deliveries: Mapping[str, int]  # by message, for every message that was ever called
    lives: Sequence[Life]
    outages: Sequence[Outage]
    slots: int
    dedupes: bool


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a soak came to."""

    messages: int
    kills: int
    kills_of_serve: int
    outages: int
    asked_again: int  # messages that were asked for more than once
    lost: int
    duplicate: int
    phantom: int
    uncertain: int
    delivered: int
    was_uncertain: int  # times that a row became `Uncertain`, over all rows
    without_call: int  # of those times, how often its program was killed between claim and call
    violations: tuple[str, ...]


class Uncertainty(msgspec.Struct, frozen=True, kw_only=True):
    """One time that a row became `Uncertain`: when it was claimed and given up, and the call that it made, if any."""

    message_id: str
    claimed_at: datetime
    ended_at: datetime
    call: TakenCall | None


def judge(evidence: Evidence) -> Verdict:
    """Judge a leg."""
    rows = [row for timeline in evidence.timelines if timeline is not None for row in timeline.outgoing]
    calls = _by_message(evidence.calls)
    uncertainties = [one for row in rows for one in _uncertainties(row, calls[str(row.message_id)])]
    unexplained = _unexplained(uncertainties, evidence)
    excused = {one.message_id for one in uncertainties} - {one.message_id for one in unexplained}
    lost = [
        promise.says
        for promise, timeline in zip(evidence.promises, evidence.timelines, strict=True)
        if _is_lost(promise, timeline, evidence.deliveries, excused=excused)
    ]
    promised = {str(promise.told.message_id) for promise in evidence.promises if promise.told is not None}
    shown = {str(row.message_id) for row in rows if row.status in RANK}
    delivered = {message for message, count in evidence.deliveries.items() if count > 0}
    uncertain = sum(row.status is OutgoingStatus.UNCERTAIN for row in rows)
    kills = [life for life in evidence.lives if life.killed_at is not None]
    return Verdict(
        messages=len(evidence.promises),
        kills=len(kills),
        kills_of_serve=sum(life.program == "serve" for life in kills),
        outages=len(evidence.outages),
        asked_again=sum(promise.asked > 1 for promise in evidence.promises),
        lost=len(lost),
        duplicate=sum(max(0, count - 1) for count in evidence.deliveries.values()),
        phantom=len(shown - delivered) + len(delivered - promised),
        uncertain=uncertain,
        delivered=len(delivered & promised),
        was_uncertain=len(uncertainties),
        without_call=sum(one.call is None for one in uncertainties),
        violations=(
            *_shown("I-24, I-25: lost", lost),
            *_shown("I-12, I-14: Uncertain, and no kill explains it", [_described(one) for one in unexplained]),
            *_answer_violations(evidence.promises),
            *_call_violations(evidence, rows, calls),
            *_end_violations(evidence, rows, uncertain=uncertain, delivered=len(delivered & promised)),
        ),
    )


def is_settled(timeline: JobTimeline | None, *, dedupes: bool) -> bool:
    """Tell whether nothing more will happen to a message by itself; uncertain ones are replayed where harmless."""
    if timeline is None or timeline.scheduler is None or timeline.scheduler.status in _UNFINISHED:
        return False
    resting = _RESTING - {OutgoingStatus.UNCERTAIN} if dedupes else _RESTING
    return all(row.status in resting for row in timeline.outgoing)


def counted_by_message(by_key: Mapping[str, int]) -> dict[str, int]:
    """Turn counts by idempotency key, which begins with the message's id, into counts by message."""
    counts: Counter[str] = Counter()
    for key, count in by_key.items():
        counts[str(UUID(key.partition(":")[0]))] += count
    return dict(counts)


def summed(verdicts: Sequence[Verdict]) -> Verdict:
    """Add up what the legs came to."""
    numbers = [name for name in Verdict.__struct_fields__ if name != "violations"]
    return Verdict(
        **{name: sum(getattr(verdict, name) for verdict in verdicts) for name in numbers},
        violations=tuple(violation for verdict in verdicts for violation in verdict.violations),
    )


def _is_lost(
    promise: Promise, timeline: JobTimeline | None, deliveries: Mapping[str, int], *, excused: set[str]
) -> bool:
    """Tell whether a message was promised, and neither arrived nor is shown as uncertain with a cause.

    The provider refuses nothing for good, so that no other end is accepted. A promise of which the store knows nothing
    is broken even if the message arrived.
    """
    if promise.told is None:
        return False
    message = str(promise.told.message_id)
    if timeline is None:
        return True
    resting = any(
        str(row.message_id) == message and row.status is OutgoingStatus.UNCERTAIN for row in timeline.outgoing
    )
    return deliveries.get(message, 0) == 0 and not (resting and message in excused)


def _answer_violations(promises: Sequence[Promise]) -> Iterator[str]:
    """What clients were told must be consistent: the same key, the same message, and known the second time."""
    yield from _shown("never answered", [promise.says for promise in promises if promise.told is None])
    yield from _shown("a client was told", [line for promise in promises for line in promise.surprises])
    changed = [
        promise.says
        for promise in promises
        for earlier, later in zip(promise.answers, promise.answers[1:], strict=False)
        if (earlier.job_id, earlier.message_id, True) != (later.job_id, later.message_id, later.repeated)
    ]
    yield from _shown("I-03: asked again and told something else", changed)


def _call_violations(
    evidence: Evidence, rows: Sequence[OutgoingTimeline], calls: Mapping[str, Sequence[TakenCall]]
) -> Iterator[str]:
    """Every call has a claim of its own (I-08), and brought what was sent to whom it was for (I-15)."""
    unclaimed = [str(row.message_id) for row in rows if not _claims_cover(row, calls[str(row.message_id)])]
    yield from _shown("I-08: a call without a claim of its own", unclaimed)
    wanted = {str(one.told.message_id): (one.address, one.says) for one in evidence.promises if one.told is not None}
    wrong = [call.message_id for call in evidence.calls if wanted.get(call.message_id) != (call.destination, call.says)]
    yield from _shown("a call that brought something else, or to somebody else", wrong)


def _end_violations(
    evidence: Evidence, rows: Sequence[OutgoingTimeline], *, uncertain: int, delivered: int
) -> Iterator[str]:
    """How everything must stand in the end."""
    ended = [row for row in rows if row.status not in RANK and row.status is not OutgoingStatus.UNCERTAIN]
    yield from _shown(
        "the provider refused nothing, and yet it ended so",
        [f"{row.message_id} {row.status} ({row.reason})" for row in ended],
    )
    if uncertain and evidence.dedupes:
        yield f"I-10: {uncertain} messages rest in Uncertain though the provider de-duplicates"
    share = delivered / max(1, len(evidence.promises))
    if share < DELIVERED_MIN:
        yield f"at least {DELIVERED_MIN:.0%} of the messages must be delivered: only {share:.0%} were"
    idle = [life for life in evidence.lives if life.killed_at is not None and not life.open_calls + life.open_requests]
    if any(life.moment != "told" for life in idle):
        yield "every kill must meet an open call or request, or the instant of an answer: one met nothing"


def _by_message(calls: Sequence[TakenCall]) -> defaultdict[str, list[TakenCall]]:
    found: defaultdict[str, list[TakenCall]] = defaultdict(list)
    for call in calls:
        found[call.message_id].append(call)
    return found


def _claims(row: OutgoingTimeline) -> Iterator[tuple[datetime, datetime | None, OutgoingStatus | None]]:
    """Yield every claim of a row: when it began, when it ended, and as what."""
    claimed_at: datetime | None = None
    for line in row.transitions:
        if claimed_at is not None:
            yield claimed_at, line.at, line.to_status
        claimed_at = line.at if line.to_status is OutgoingStatus.SENDING else None
    if claimed_at is not None:
        yield claimed_at, None, None


def _is_within(call: TakenCall, claimed_at: datetime, ended_at: datetime | None) -> bool:
    return claimed_at - CLOCKS_APART <= call.at and (ended_at is None or call.at <= ended_at + CLOCKS_APART)


def _claims_cover(row: OutgoingTimeline, calls: Sequence[TakenCall]) -> bool:
    """Tell whether each call can have a claim of its own; both are in the order of their times."""
    claims = [(claimed_at, ended_at) for claimed_at, ended_at, _ in _claims(row)]
    for call in sorted(calls, key=lambda call: call.at):
        while claims and not _is_within(call, *claims[0]):
            del claims[0]
        if not claims:
            return False
        del claims[0]
    return True


def _uncertainties(row: OutgoingTimeline, calls: Sequence[TakenCall]) -> Iterator[Uncertainty]:
    """Yield each time that a claim ended in `Uncertain`."""
    for claimed_at, ended_at, status in _claims(row):
        if status is OutgoingStatus.UNCERTAIN and ended_at is not None:
            call = next((one for one in calls if _is_within(one, claimed_at, ended_at)), None)
            yield Uncertainty(message_id=str(row.message_id), claimed_at=claimed_at, ended_at=ended_at, call=call)


def _unexplained(uncertainties: Sequence[Uncertainty], evidence: Evidence) -> list[Uncertainty]:
    """Match every uncertainty to the end of a program or of the store that explains it; return those left over.

    One with a call has one explanation: the end of the program that made it. The others are given to what ended
    soon after their claim, the oldest first, which finds a complete matching wherever there is one.
    """
    lives = [life for life in evidence.lives if life.killed_at is not None]
    room = {id(one): evidence.slots for one in lives}
    room |= {id(one): evidence.slots * len({life.program for life in lives}) for one in evidence.outages}
    ends = sorted(
        [(life.killed_at, id(life)) for life in lives if life.killed_at is not None]
        + [(outage.at, id(outage)) for outage in evidence.outages]
    )
    left = []
    for one in sorted(uncertainties, key=lambda one: (one.call is None, one.claimed_at)):
        if one.call is not None:
            life = _maker(one.call, evidence.lives)
            causes = [id(life)] if life is not None and _was_cut_off(one.call, life, evidence.outages) else []
        else:
            first, last = one.claimed_at - CLOCKS_APART, one.claimed_at + CALLED_WITHIN
            causes = [ident for at, ident in ends if first <= at <= last]
        cause = next((ident for ident in causes if room[ident] > 0), None)
        if cause is None:
            left.append(one)
        else:
            room[cause] -= 1
    return left


def _maker(call: TakenCall, lives: Sequence[Life]) -> Life | None:
    """Find the process that made a call: of its program, the last that had been started by then."""
    return max(
        (life for life in lives if life.program == call.program and life.started_at <= call.at),
        key=lambda life: life.started_at,
        default=None,
    )


def _was_cut_off(call: TakenCall, life: Life, outages: Sequence[Outage]) -> bool:
    """Tell whether a process was killed before it could record a call; while the store was away it could not."""
    if life.killed_at is None:
        return False
    until = call.at + RECORDED_WITHIN
    for outage in sorted(outages, key=lambda outage: outage.at):
        if call.at <= outage.until and outage.at <= until:
            until = max(until, outage.until + RECORDED_WITHIN)
    return life.killed_at <= until


def _described(one: Uncertainty) -> str:
    call = f"called by {one.call.program} at {one.call.at:%H:%M:%S.%f}" if one.call else "never called"
    return f"{one.message_id} claimed at {one.claimed_at:%H:%M:%S.%f}, {call}"


def _shown(what: str, found: Sequence[str]) -> Iterator[str]:
    """Name a kind of violation with a few examples."""
    if found:
        more = f", and {len(found) - SHOWN_MAX} more" if len(found) > SHOWN_MAX else ""
        yield f"{what}: {len(found)} ({'; '.join(found[:SHOWN_MAX])}{more})"

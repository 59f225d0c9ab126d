"""The verdict over a soak: what the store says happened, held against the ledger, which was never killed.

The rules of docs/explanation/proof.md: whatever became `Uncertain` was in flight when somebody was killed, no kill
left more behind than its worker had call slots, a provider that de-duplicates leaves nothing uncertain, and at least
nine in ten messages arrived. Pure: timelines and counts in, a verdict out.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from clarion.domain.notification import NotificationStatus
from clarion.domain.outgoing import FINAL, RANK, OutgoingStatus
from clarion.domain.timeline import JobTimeline, OutgoingTimeline

CLOCKS_APART: Final = timedelta(milliseconds=250)
"""Between the store's clock and ours, on one machine under load."""

DELIVERED_MIN: Final = 0.9

_UNFINISHED: Final = (NotificationStatus.READY, NotificationStatus.PROCESSING)
_RESTING: Final = frozenset({*FINAL, *RANK, OutgoingStatus.UNCERTAIN})


class Kill(msgspec.Struct, frozen=True, kw_only=True):
    """One SIGKILL: when, and how many calls of its worker the ledger had open just before."""

    at: datetime
    open_calls: int


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a soak came to."""

    messages: int
    kills: int
    lost: int
    duplicate: int
    phantom: int
    uncertain: int
    delivered: int
    in_flight: int  # rows that were `Sending` at a kill, over all kills
    was_uncertain: int  # times that a row became `Uncertain`, over all rows
    without_call: int  # of those times, how often its worker was killed between claim and call
    violations: tuple[str, ...]


def judge(
    timelines: Sequence[JobTimeline | None],
    *,
    deliveries: Mapping[str, int],
    kills: Sequence[Kill],
    slots: int,
    dedupes: bool,
) -> Verdict:
    """Judge the timelines of everything that was acknowledged; `deliveries` has every message that was ever called."""
    rows = [row for timeline in timelines if timeline is not None for row in timeline.outgoing]
    were_uncertain = [(row, *send) for row in rows for send in _uncertain_times(row)]
    unexplained = _unexplained(
        [(claimed_at, uncertain_at) for _, claimed_at, uncertain_at in were_uncertain], kills, slots=slots
    )
    in_flight = sum(_was_sending(row, kill.at) for row in rows for kill in kills)
    delivered = sum(deliveries.get(str(row.message_id), 0) > 0 for row in rows)
    uncertain = sum(row.status is OutgoingStatus.UNCERTAIN for row in rows)
    return Verdict(
        messages=len(timelines),
        kills=len(kills),
        lost=sum(_is_lost(timeline, deliveries) for timeline in timelines),
        duplicate=sum(max(0, count - 1) for count in deliveries.values()),
        phantom=sum(row.status in RANK and deliveries.get(str(row.message_id), 0) == 0 for row in rows),
        uncertain=uncertain,
        delivered=delivered,
        in_flight=in_flight,
        was_uncertain=len(were_uncertain),
        without_call=sum(str(row.message_id) not in deliveries for row, _, _ in were_uncertain),
        violations=tuple(
            _violations(
                unexplained=unexplained,
                were_uncertain=len(were_uncertain),
                in_flight=in_flight,
                uncertain=uncertain if dedupes else 0,
                share=delivered / max(1, len(timelines)),
                open_calls=[kill.open_calls for kill in kills],
            )
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


def _violations(
    *, unexplained: int, were_uncertain: int, in_flight: int, uncertain: int, share: float, open_calls: Iterable[int]
) -> Iterator[str]:
    if unexplained:
        yield f"I-12, I-14: {unexplained} times a message became Uncertain and no killed worker's call slots explain it"
    if were_uncertain > in_flight:
        yield f"I-12: {were_uncertain} messages became Uncertain and only {in_flight} were in flight at a kill"
    if uncertain:
        yield f"I-10: {uncertain} messages rest in Uncertain though the provider de-duplicates"
    if share < DELIVERED_MIN:
        yield f"at least {DELIVERED_MIN:.0%} of the messages must be delivered: only {share:.0%} were"
    if any(count < 1 for count in open_calls):
        yield "every kill must meet an open call: one did not wait for it"


def _uncertain_times(row: OutgoingTimeline) -> Iterator[tuple[datetime, datetime]]:
    """Yield, for each time that a row became Uncertain, when it had been claimed and when it was given up."""
    claimed_at = row.created_at
    for line in row.transitions:
        if line.to_status is OutgoingStatus.SENDING:
            claimed_at = line.at
        elif line.to_status is OutgoingStatus.UNCERTAIN and line.from_status is OutgoingStatus.SENDING:
            yield claimed_at, line.at


def _unexplained(were_uncertain: Sequence[tuple[datetime, datetime]], kills: Sequence[Kill], *, slots: int) -> int:
    """Match uncertain rows to kills between claim and end, at most `slots` to a kill; count those left over.

    The one that ends first is matched first, which finds a complete matching wherever there is one.
    """
    left = sorted(were_uncertain, key=lambda send: send[1])
    for kill in sorted(kills, key=lambda kill: kill.at):
        hit = [one for one in left if one[0] - CLOCKS_APART <= kill.at <= one[1] + CLOCKS_APART]
        for one in hit[:slots]:
            left.remove(one)
    return len(left)


def _was_sending(row: OutgoingTimeline, at: datetime) -> bool:
    """Tell whether a row was in flight at an instant."""
    since: datetime | None = None
    for line in row.transitions:
        if since is not None and since - CLOCKS_APART <= at <= line.at + CLOCKS_APART:
            return True
        since = line.at if line.to_status is OutgoingStatus.SENDING else None
    return since is not None and since - CLOCKS_APART <= at


def _is_lost(timeline: JobTimeline | None, deliveries: Mapping[str, int]) -> bool:
    """Tell whether a message was acknowledged and is neither accepted, ended with a reason, nor uncertain."""
    if timeline is None:
        return True
    if not timeline.outgoing:
        return timeline.scheduler is None or timeline.scheduler.reason is None
    return not all(_is_accounted(row, deliveries) for row in timeline.outgoing)


def _is_accounted(row: OutgoingTimeline, deliveries: Mapping[str, int]) -> bool:
    if deliveries.get(str(row.message_id), 0) > 0 or row.status is OutgoingStatus.UNCERTAIN:
        return True
    return row.status in FINAL and row.status not in RANK and row.reason is not None

"""The inbox of a person: its lines, what their reader made of each, and how many there are of each kind.

A user message is one line. Its row key starts with the source's time, never the time of writing, so a generator's retry
finds the row it made. `content` is sealed; it is what the recipient sees and is not compared.

What was done to all lines at once is written nowhere but at their inbox: `Inbox` numbers such acts, and a line's own
row says how many there had been when it was written. `state_of` is the one rule of what both together make of a line.
Pure.
"""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import ClassVar, Self, assert_never
from uuid import UUID

import msgspec


class UserMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One notification in one inbox."""

    GIVEN: ClassVar[tuple[str, ...]] = ("message_id", "recipient_id_hash", "job_row_key", "event_type")

    bucket: int
    partition_key: str
    row_key: str
    message_id: UUID
    recipient_id_hash: str
    job_row_key: str
    event_type: str
    category: str | None = None
    expires_at: datetime | None = None
    content: bytes | None = None
    correlation_id: str
    traceparent: str | None = None
    id: int | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What is unique within the tenant."""
        return (str(self.bucket), self.partition_key, self.row_key)


class Marking(StrEnum):
    """What a reader does to a line, or to all."""

    SEEN = "seen"  # it was on their screen
    READ = "read"  # they opened it, so they saw it too
    UNREAD = "unread"  # seen it stays
    ARCHIVE = "archive"  # read or not, it is put aside
    UNARCHIVE = "unarchive"


class LineState(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader made of a line, and when; the times of a line that nobody touched are None."""

    seen_at: datetime | None = None
    read_at: datetime | None = None
    archived_at: datetime | None = None


NEW = LineState()


class LineRow(LineState, frozen=True, kw_only=True):
    """What is stored of that at the line itself: how it stood after the first `mark` acts on the whole inbox."""

    mark: int


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How many lines an inbox has; `unseen` and `unread` count archived lines too, which the last two count alone."""

    lines: int = 0
    unseen: int = 0
    unread: int = 0
    archived: int = 0
    archived_unseen: int = 0
    archived_unread: int = 0


class Inbox(Counts, frozen=True, kw_only=True):
    """One inbox: its counts, and what was done to all of its lines.

    `mark` says how often something was. For each kind of act there is the number of the last one, 0 for none, and when
    it was, or None where its contrary came later.
    """

    mark: int = 0
    seen_mark: int = 0
    read_mark: int = 0
    unread_mark: int = 0
    archived_mark: int = 0
    unarchived_mark: int = 0
    all_seen_at: datetime | None = None
    all_read_at: datetime | None = None
    all_archived_at: datetime | None = None

    def counted(self, states: Iterable[LineState], *, sign: int = 1) -> Self:
        """Count these lines in or, with the sign -1, out."""
        numbers = msgspec.structs.asdict(counts_of(states))
        return msgspec.structs.replace(self, **{name: getattr(self, name) + sign * n for name, n in numbers.items()})


def counts_of(states: Iterable[LineState]) -> Counts:
    """Count lines."""
    lines = unseen = unread = archived = archived_unseen = archived_unread = 0
    for state in states:
        is_unseen, is_unread, is_archived = state.seen_at is None, state.read_at is None, state.archived_at is not None
        lines += 1
        unseen += is_unseen
        unread += is_unread
        archived += is_archived
        archived_unseen += is_archived and is_unseen
        archived_unread += is_archived and is_unread
    return Counts(
        lines=lines,
        unseen=unseen,
        unread=unread,
        archived=archived,
        archived_unseen=archived_unseen,
        archived_unread=archived_unread,
    )


def state_of(row: LineRow, inbox: Inbox) -> LineState:
    """Say how a line stands: as its own row says, unless something was done to all lines since that was written."""
    read_at = row.read_at if inbox.unread_mark <= row.mark else None
    archived_at = row.archived_at if inbox.unarchived_mark <= row.mark else None
    return LineState(
        seen_at=row.seen_at or (inbox.all_seen_at if inbox.seen_mark > row.mark else None),
        read_at=read_at or (inbox.all_read_at if inbox.read_mark > row.mark else None),
        archived_at=archived_at or (inbox.all_archived_at if inbox.archived_mark > row.mark else None),
    )


def after_one(state: LineState, marking: Marking, *, at: datetime) -> LineState:
    """Mark one line; the same again changes nothing, not even a time."""
    match marking:
        case Marking.SEEN:
            return msgspec.structs.replace(state, seen_at=state.seen_at or at)
        case Marking.READ:
            return msgspec.structs.replace(state, seen_at=state.seen_at or at, read_at=state.read_at or at)
        case Marking.UNREAD:
            return msgspec.structs.replace(state, read_at=None)
        case Marking.ARCHIVE:
            return msgspec.structs.replace(state, archived_at=state.archived_at or at)
        case Marking.UNARCHIVE:
            return msgspec.structs.replace(state, archived_at=None)
        case _:
            assert_never(marking)


def after_all(inbox: Inbox, marking: Marking, *, at: datetime) -> Inbox:
    """Mark all lines of an inbox, archived ones too; where all are so already, nothing changes."""
    after = _after_all(inbox, marking, at=at, mark=inbox.mark + 1)
    is_same = all(getattr(after, name) == getattr(inbox, name) for name in Counts.__struct_fields__)
    return inbox if is_same else after


def _after_all(inbox: Inbox, marking: Marking, *, at: datetime, mark: int) -> Inbox:
    change = partial(msgspec.structs.replace, inbox, mark=mark)
    match marking:
        case Marking.SEEN:
            return change(unseen=0, archived_unseen=0, seen_mark=mark, all_seen_at=at)
        case Marking.READ:
            seen = change(unseen=0, archived_unseen=0, seen_mark=mark, all_seen_at=at)
            return msgspec.structs.replace(seen, unread=0, archived_unread=0, read_mark=mark, all_read_at=at)
        case Marking.UNREAD:
            return change(unread=inbox.lines, archived_unread=inbox.archived, unread_mark=mark, all_read_at=None)
        case Marking.ARCHIVE:
            return change(
                archived=inbox.lines,
                archived_unseen=inbox.unseen,
                archived_unread=inbox.unread,
                archived_mark=mark,
                all_archived_at=at,
            )
        case Marking.UNARCHIVE:
            return change(archived=0, archived_unseen=0, archived_unread=0, unarchived_mark=mark, all_archived_at=None)
        case _:
            assert_never(marking)

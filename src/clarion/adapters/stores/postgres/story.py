"""The story of one job, gathered in seven statements whatever the number of its recipients. Reads only.

How it is told is in `domain.story`.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import UUID

import asyncpg

from clarion.adapters.stores.postgres import codec
from clarion.adapters.stores.query import load
from clarion.domain.identity import Channel
from clarion.domain.inbox import UserMessage
from clarion.domain.notification import NotificationJob, NotificationScheduler
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.story import AttemptLine, EventLine, JobStory, OutgoingStory, TransitionLine

if TYPE_CHECKING:
    from clarion.adapters.stores.postgres.session import Connection

_SQL: Final = load(__package__, "story.sql")
_read_job: Final = codec.reader(NotificationJob)
_read_scheduler: Final = codec.reader(NotificationScheduler)
_read_inbox: Final = codec.reader(UserMessage)
_read_transition: Final = codec.reader(TransitionLine)
_read_attempt: Final = codec.reader(AttemptLine)
_read_event: Final = codec.reader(EventLine)

L = TypeVar("L")

KEY_HASH_CHARS: Final = 32
"""What a row key begins with: the recipient's key hash (domain.key.outgoing_rk)."""


async def find_job_story(connection: "Connection", tenant_id: str, guid: UUID) -> JobStory | None:
    """Return everything about a job by its guid, or None."""
    found = await connection.fetchrow(_SQL["read_job"].sql, tenant_id, guid)
    if found is None:
        return None
    job = _read_job(found)
    scheduler = await connection.fetchrow(_SQL["read_scheduler_of_job"].sql, tenant_id, job.partition_key, job.row_key)
    inbox = await connection.fetch(_SQL["read_inbox_of_job"].sql, tenant_id, job.row_key)
    sent = await connection.fetch(_SQL["read_messages_of_job"].sql, tenant_id, job.bucket, job.row_key)
    return JobStory(
        job=job,
        created_at=found["created_at"],
        scheduler=None if scheduler is None else _read_scheduler(scheduler),
        scheduler_at=None if scheduler is None else scheduler["created_at"],
        scheduled_at=None if scheduler is None else scheduler["scheduled_at"],
        moved_at=None if scheduler is None else scheduler["moved_at"],
        inbox=tuple((row["created_at"], _read_inbox(row)) for row in inbox),
        outgoing=await _outgoing(connection, tenant_id, sent),
    )


async def _outgoing(
    connection: "Connection", tenant_id: str, rows: Sequence[asyncpg.Record]
) -> tuple[OutgoingStory, ...]:
    """Read what happened to some rows."""
    if not rows:
        return ()
    places = [row["bucket"] for row in rows], [row["id"] for row in rows]
    transitions = await connection.fetch(_SQL["read_transitions"].sql, *places)
    tries = await connection.fetch(_SQL["read_tries"].sql, *places)
    named = [one for one in tries if one["provider_message_id"] is not None]
    events = await connection.fetch(
        _SQL["read_events_of_messages"].sql,
        tenant_id,
        [row["id"] for row in rows],
        [row["message_id"] for row in rows],
        [row["rk"][:KEY_HASH_CHARS] for row in rows],
        [one["outgoing_id"] for one in named],
        [one["account"] for one in named],
        [one["provider_message_id"] for one in named],
    )
    moves, calls, receipts = (
        _by_row(transitions, _read_transition),
        _by_row(tries, _read_attempt),
        _by_row(events, _read_event),
    )
    return tuple(
        _story(row, transitions=moves[row["id"]], tries=calls[row["id"]], events=receipts[row["id"]]) for row in rows
    )


def _by_row(lines: Sequence[asyncpg.Record], read: Callable[[asyncpg.Record], L]) -> dict[int, list[L]]:
    """Give each row its lines, in the order in which they came."""
    by_row: dict[int, list[L]] = defaultdict(list)
    for line in lines:
        by_row[line["outgoing_id"]].append(read(line))
    return by_row


def _story(
    row: asyncpg.Record,
    *,
    transitions: Sequence[TransitionLine],
    tries: Sequence[AttemptLine],
    events: Sequence[EventLine],
) -> OutgoingStory:
    """Tell one row's part."""
    return OutgoingStory(
        id=row["id"],
        bucket=row["bucket"],
        pk=row["pk"],
        rk=row["rk"],
        message_id=row["message_id"],
        channel=codec.member(Channel, row["channel"]),
        status=codec.member(OutgoingStatus, row["status"]),
        version=row["version"],
        attempts=row["attempts"],
        reason=row["reason"],
        account=row["account"],
        provider_message_id=row["provider_message_id"],
        due_at=row["due_at"],
        cancel_at=row["cancel_at"],
        cancel_actor=row["cancel_actor"],
        created_at=row["created_at"],
        transitions=tuple(transitions),
        tries=tuple(tries),
        events=tuple(events),
    )

"""The story of one job, gathered in seven statements whatever the number of its recipients. Reads only.

How it is told is in `domain.story`.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import UUID

import asyncpg
import msgspec

from clarion.adapters.stores.postgres import codec
from clarion.adapters.stores.query import load
from clarion.domain.inbox import UserMessage
from clarion.domain.notification import NotificationJob, NotificationScheduler
from clarion.domain.story import AttemptLine, EventLine, JobStory, OutgoingRow, OutgoingStory, TransitionLine

if TYPE_CHECKING:
    from clarion.adapters.stores.postgres.session import Connection

_SQL: Final = load(__package__, "story.sql")
_read_job: Final = codec.reader(NotificationJob)
_read_scheduler: Final = codec.reader(NotificationScheduler)
_read_inbox: Final = codec.reader(UserMessage)
_read_row: Final = codec.reader(OutgoingRow)
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
        OutgoingStory(
            **msgspec.structs.asdict(row),
            transitions=tuple(moves[row.id]),
            tries=tuple(calls[row.id]),
            events=tuple(receipts[row.id]),
        )
        for row in map(_read_row, rows)
    )


def _by_row(lines: Sequence[asyncpg.Record], read: Callable[[asyncpg.Record], L]) -> dict[int, list[L]]:
    """Give each row its lines, in the order in which they came."""
    by_row: dict[int, list[L]] = defaultdict(list)
    for line in lines:
        by_row[line["outgoing_id"]].append(read(line))
    return by_row

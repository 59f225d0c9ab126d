"""The story of a job: its row, its scheduler row, its inbox rows, and of each outgoing row all that happened to it.

Seven statements however many rows there are. What becomes of them for a reader is in `domain.story`. Writes nothing.
"""

from collections import defaultdict
from datetime import datetime
from typing import Final, TypeVar
from uuid import UUID

import msgspec

from clarion.adapters.stores.query import Query, load
from clarion.adapters.stores.sqlite import codec
from clarion.adapters.stores.sqlite.clock import instant
from clarion.adapters.stores.sqlite.session import Parameter, Transaction
from clarion.domain.inbox import UserMessage
from clarion.domain.notification import NotificationJob, NotificationScheduler
from clarion.domain.story import AttemptLine, EventLine, JobStory, OutgoingRow, OutgoingStory, TransitionLine

_SQL: Final = load(__package__, "story.sql")

S = TypeVar("S", bound=msgspec.Struct)


def find_job_story(transaction: Transaction, tenant_id: str, guid: UUID) -> JobStory | None:
    """Return everything about a job by its guid, or None."""
    jobs = _with_times(transaction, NotificationJob, _SQL["read_job"], tenant_id=tenant_id, guid=str(guid))
    if not jobs:
        return None
    ((made_at, job),) = jobs
    scheduler, (scheduler_at, scheduled_at, moved_at) = _scheduler(transaction, tenant_id, job)
    inbox = _with_times(transaction, UserMessage, _SQL["read_inbox"], tenant_id=tenant_id, row_key=job.row_key)
    return JobStory(
        job=job,
        created_at=made_at,
        scheduler=scheduler,
        scheduler_at=scheduler_at,
        scheduled_at=scheduled_at,
        moved_at=moved_at,
        inbox=tuple(inbox),
        outgoing=_outgoing(transaction, tenant_id, job),
    )


def _scheduler(
    transaction: Transaction, tenant_id: str, job: NotificationJob
) -> tuple[NotificationScheduler | None, list[datetime | None]]:
    """Read the pending row of a job, and its times, which stand in the last three columns."""
    columns, rows = transaction.table(
        _SQL["read_scheduler"], tenant_id=tenant_id, partition_key=job.partition_key, row_key=job.row_key
    )
    if not rows:
        return None, [None, None, None]
    times = [None if at is None else instant(at) for at in rows[0][-3:]]
    return codec.record(NotificationScheduler, columns[:-3], rows[0][:-3]), times


def _outgoing(transaction: Transaction, tenant_id: str, job: NotificationJob) -> tuple[OutgoingStory, ...]:
    """Gather the outgoing rows of a job, each with its lines."""
    sent = transaction.records(
        OutgoingRow, _SQL["read_outgoing"], tenant_id=tenant_id, bucket=job.bucket, row_key=job.row_key
    )
    if not sent:
        return ()
    rows = codec.as_json([row.id for row in sent])
    transitions = _by_row(transaction, TransitionLine, _SQL["read_transitions"], bucket=job.bucket, rows=rows)
    attempts = _by_row(transaction, AttemptLine, _SQL["read_attempts"], bucket=job.bucket, rows=rows)
    events = _by_row(transaction, EventLine, _SQL["read_events"], bucket=job.bucket, rows=rows)
    return tuple(
        OutgoingStory(
            **msgspec.structs.asdict(row),
            transitions=tuple(transitions[row.id]),
            tries=tuple(attempts[row.id]),
            events=tuple(events[row.id]),
        )
        for row in sent
    )


def _with_times(
    transaction: Transaction, kind: type[S], query: Query, **parameters: Parameter
) -> list[tuple[datetime, S]]:
    """Read records with the time at which each was made, which stands in the last column."""
    columns, rows = transaction.table(query, **parameters)
    return [(instant(row[-1]), codec.record(kind, columns[:-1], row[:-1])) for row in rows]


def _by_row(
    transaction: Transaction, kind: type[S], query: Query, **parameters: Parameter
) -> defaultdict[int, list[S]]:
    """Read lines by the outgoing row that stands in the first column."""
    found: defaultdict[int, list[S]] = defaultdict(list)
    columns, rows = transaction.table(query, **parameters)
    for outgoing_id, *line in rows:
        found[outgoing_id].append(codec.record(kind, columns[1:], line))
    return found

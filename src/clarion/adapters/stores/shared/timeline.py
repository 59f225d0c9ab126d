"""What is stored about one job: its row, its scheduler row, its inbox rows, and all that happened to its messages.

Seven statements, however many recipients the job has; of a large set a part is asked for. What a reader makes of it is
in `domain.timeline`. Reads only.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, TypeVar
from uuid import UUID

import msgspec

from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction, first
from clarion.domain.inbox import UserMessage
from clarion.domain.notification import NotificationJob, NotificationScheduler
from clarion.domain.timeline import AttemptLine, EventLine, JobTimeline, OutgoingRow, OutgoingTimeline, TransitionLine
from clarion.ports.ensure import bounded

_SQL: Final = Statements("timeline.sql")

S = TypeVar("S", bound=msgspec.Struct)

KEY_HASH_CHARS: Final = 32
"""The first characters of a row key: the recipient's key hash (domain.key.outgoing_rk)."""


class _Job(NotificationJob, frozen=True, kw_only=True):
    created_at: datetime


class _Scheduler(NotificationScheduler, frozen=True, kw_only=True):
    created_at: datetime
    scheduled_at: datetime | None
    moved_at: datetime | None


class _UserMessage(UserMessage, frozen=True, kw_only=True):
    created_at: datetime


class _Transition(TransitionLine, frozen=True, kw_only=True):
    outgoing_id: int


class _Attempt(AttemptLine, frozen=True, kw_only=True):
    outgoing_id: int


class _Event(EventLine, frozen=True, kw_only=True):
    outgoing_id: int


async def find_job(transaction: Transaction, tenant_id: str, guid: UUID) -> NotificationJob | None:
    """Return a job by its guid, or None."""
    job = await _read_job(transaction, tenant_id, guid)
    return None if job is None else _part(NotificationJob, job)


async def find_job_timeline(
    transaction: Transaction, tenant_id: str, guid: UUID, *, messages: Collection[UUID] | None = None
) -> JobTimeline | None:
    """Return everything about a job by its guid, or None; of its rows only those of `messages`, if any are named."""
    job = await _read_job(transaction, tenant_id, guid)
    if job is None:
        return None
    place = {"tenant_id": tenant_id, "row_key": job.row_key}
    rows: dict[str, str | int] = {"tenant_id": tenant_id, "bucket": job.bucket, "outgoing_pk": job.outgoing_pk}
    kind, pk, rk = job.artifact
    pending = await transaction.fetch(
        _Scheduler,
        _SQL["read_scheduler_of_job"],
        tenant_id=tenant_id,
        artifact_type=kind,
        artifact_pk=pk,
        artifact_rk=rk,
    )
    scheduler = first(pending)
    if messages is None:
        inbox = await transaction.fetch(_UserMessage, _SQL["read_inbox_of_job"], **place)
        sent = await transaction.fetch(OutgoingRow, _SQL["read_messages_of_job"], **rows)
    else:
        wanted = bounded(sorted(set(messages)))
        inbox = await transaction.fetch(_UserMessage, _SQL["read_inbox_of_messages"], messages=wanted, **place)
        sent = await transaction.fetch(OutgoingRow, _SQL["read_messages"], messages=wanted, **rows)
    return JobTimeline(
        job=_part(NotificationJob, job),
        created_at=job.created_at,
        scheduler=None if scheduler is None else _part(NotificationScheduler, scheduler),
        scheduler_at=None if scheduler is None else scheduler.created_at,
        scheduled_at=None if scheduler is None else scheduler.scheduled_at,
        moved_at=None if scheduler is None else scheduler.moved_at,
        inbox=tuple((row.created_at, _part(UserMessage, row)) for row in inbox),
        outgoing=await _outgoing(transaction, tenant_id, sent) if sent else (),
    )


async def _read_job(transaction: Transaction, tenant_id: str, guid: UUID) -> _Job | None:
    """Read a job by its guid or by that of the messaging job whose content it tells of."""
    return first(
        await transaction.fetch(_Job, _SQL["read_job"], tenant_id=tenant_id, guid=guid, messaging_job=str(guid))
    )


async def _outgoing(
    transaction: Transaction, tenant_id: str, rows: Sequence[OutgoingRow]
) -> tuple[OutgoingTimeline, ...]:
    """Read what happened to the messages of a job."""
    transitions = await transaction.fetch(_Transition, _SQL["read_transitions_of_messages"], rows=rows)
    attempts = await transaction.fetch(_Attempt, _SQL["read_attempts_of_messages"], rows=rows)
    events = await transaction.fetch(
        _Event,
        _SQL["read_events_of_messages"],
        tenant_id=tenant_id,
        messages=[(row.id, row.message_id, row.rk[:KEY_HASH_CHARS]) for row in rows],
        calls=[
            (one.outgoing_id, one.account, one.provider_message_id)
            for one in attempts
            if one.provider_message_id is not None
        ],
    )
    moved: defaultdict[int, list[TransitionLine]] = defaultdict(list)
    called: defaultdict[int, list[AttemptLine]] = defaultdict(list)
    reported: defaultdict[int, list[EventLine]] = defaultdict(list)
    for transition in transitions:
        moved[transition.outgoing_id].append(_part(TransitionLine, transition))
    for attempt in attempts:
        called[attempt.outgoing_id].append(_part(AttemptLine, attempt))
    for event in events:
        reported[event.outgoing_id].append(_part(EventLine, event))
    return tuple(
        OutgoingTimeline(
            **msgspec.structs.asdict(row),
            transitions=tuple(moved[row.id]),
            tries=tuple(called[row.id]),
            events=tuple(reported[row.id]),
        )
        for row in rows
    )


def _part(kind: type[S], row: S) -> S:
    """Give only the fields of `kind` of a row that has others besides."""
    return kind(**{name: getattr(row, name) for name in kind.__struct_fields__})

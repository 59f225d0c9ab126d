"""Everything that one recipient got, or was left out of: their jobs, and what came of each for them. Reads only."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain.notification import NotificationStatus
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.recipient import COUNTED_BY, MANIFEST_BEGINS, how_many
from clarion.ports.insights import PAGE_MAX, JobOfRecipient, JobSet, MessageCounts

_SQL: Final = Statements("history.sql")


class _Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it is read; `recipients` counts those of a set in its row, and a larger set has its manifest there."""

    guid: UUID
    row_key: str
    messaging_job: str | None
    job_key: str
    event_type: str
    source_at: datetime
    created_at: datetime
    work: NotificationStatus | None
    is_decided: bool
    recipients: int
    manifest: str | None


class _Lines(msgspec.Struct, frozen=True):
    message_id: UUID
    lines: int


class _Outgoing(msgspec.Struct, frozen=True):
    message_id: UUID
    status: OutgoingStatus
    messages: int


async def list_jobs_of_recipient(
    transaction: Transaction,
    tenant_id: str,
    recipient_id_hash: str,
    *,
    partition_key: str,
    after: str = "",
    limit: int = 50,
) -> list[JobOfRecipient]:
    """List a recipient's jobs, and those filed under `partition_key`, in the order of their job keys."""
    rows = await transaction.fetch(
        _Job,
        _SQL["list_jobs_of_recipient"],
        tenant_id=tenant_id,
        recipient_id_hash=recipient_id_hash,
        partition_key=partition_key,
        after=after,
        limit=min(limit, PAGE_MAX),
        counted_by=COUNTED_BY,
        manifest_begins=MANIFEST_BEGINS,
    )
    return [_job(row) for row in rows]


async def count_messages(
    transaction: Transaction, tenant_id: str, message_ids: Collection[UUID]
) -> dict[UUID, MessageCounts]:
    """Count the rows of messages; one that has none is left out."""
    messages = sorted(set(message_ids))
    if not messages:
        return {}
    found = await transaction.fetch(_Lines, _SQL["count_lines_of_messages"], tenant_id=tenant_id, messages=messages)
    lines = {one.message_id: one.lines for one in found}
    outgoing: defaultdict[UUID, dict[OutgoingStatus, int]] = defaultdict(dict)
    for row in await transaction.fetch(
        _Outgoing, _SQL["count_outgoing_of_messages"], tenant_id=tenant_id, messages=messages
    ):
        outgoing[row.message_id][row.status] = row.messages
    return {
        one: MessageCounts(inbox=lines.get(one, 0), outgoing=outgoing.get(one, {}))
        for one in messages
        if one in lines or one in outgoing
    }


async def find_sets(transaction: Transaction, tenant_id: str, guids: Collection[UUID]) -> list[JobSet]:
    """Return the frozen recipient sets of jobs, or their manifests."""
    jobs = sorted(set(guids))
    if not jobs:
        return []
    return await transaction.fetch(JobSet, _SQL["find_sets"], tenant_id=tenant_id, jobs=jobs)


def _job(row: _Job) -> JobOfRecipient:
    return JobOfRecipient(
        guid=row.guid,
        row_key=row.row_key,
        messaging_job=row.messaging_job,
        job_key=row.job_key,
        event_type=row.event_type,
        source_at=row.source_at,
        created_at=row.created_at,
        work=row.work,
        is_decided=row.is_decided,
        recipients=row.recipients if row.manifest is None else how_many(row.manifest),
    )

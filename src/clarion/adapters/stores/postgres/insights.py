"""The read side: what people and support tools ask about records. Reads only; the story of a job is in `story`."""

from typing import TYPE_CHECKING, Final
from uuid import UUID

from clarion.adapters.stores.postgres import codec
from clarion.adapters.stores.query import load
from clarion.domain.identity import Lane
from clarion.domain.notification import Stage
from clarion.domain.support import SupportCase, SupportStatus
from clarion.errors import BrokenInvariant
from clarion.ports.insights import DoubtLine, Gauge, JobLine

if TYPE_CHECKING:
    from clarion.adapters.stores.postgres.session import Connection

_SQL: Final = load(__package__, "insights.sql")
_read_case: Final = codec.reader(SupportCase)
_read_job_line: Final = codec.reader(JobLine)
_read_doubt_line: Final = codec.reader(DoubtLine)

COUNTED_MAX: Final = 100_000
"""A gauge that stands here says "very many"; counting on would cost more than anybody gains by it."""


async def list_tenants(connection: "Connection", *, after: str, limit: int) -> list[str]:
    """List the tenants in the order of their ids, behind `after`."""
    return [row["tenant_id"] for row in await connection.fetch(_SQL["list_tenants"].sql, after, limit)]


async def list_support_cases(
    connection: "Connection", tenant_id: str, *, status: SupportStatus | None, after: UUID | None, limit: int
) -> list[SupportCase]:
    """Read one page of a tenant's cases."""
    if status is None:
        rows = await connection.fetch(_SQL["list_support_cases"].sql, tenant_id, after, limit)
    else:
        rows = await connection.fetch(_SQL["list_support_cases_by_status"].sql, tenant_id, status, after, limit)
    return [_read_case(row) for row in rows]


async def find_support_case(connection: "Connection", tenant_id: str, case_id: UUID) -> SupportCase | None:
    """Return one case, or None."""
    row = await connection.fetchrow(_SQL["find_support_case"].sql, tenant_id, case_id)
    return None if row is None else _read_case(row)


async def list_jobs(
    connection: "Connection", tenant_id: str, partition_key: str, *, after: str, limit: int
) -> list[JobLine]:
    """List a partition's jobs in the order of their row keys, behind `after`."""
    rows = await connection.fetch(_SQL["list_jobs"].sql, tenant_id, partition_key, after, limit)
    return [_read_job_line(row) for row in rows]


async def list_doubts(connection: "Connection", tenant_id: str, *, after: int, limit: int) -> list[DoubtLine]:
    """List rows in `Uncertain` in the order of their ids, behind `after`."""
    rows = await connection.fetch(_SQL["list_doubts"].sql, tenant_id, after, limit)
    return [_read_doubt_line(row) for row in rows]


async def find_job_of_message(connection: "Connection", tenant_id: str, message_id: UUID) -> UUID | None:
    """Return the guid of the job that a message belongs to, or None."""
    row = await connection.fetchrow(_SQL["find_job_of_message"].sql, tenant_id, message_id)
    return None if row is None else row["guid"]


async def measure(connection: "Connection") -> Gauge:
    """Measure the work of all tenants; numbers end at `COUNTED_MAX`."""
    row = await connection.fetchrow(_SQL["measure"].sql, list(Stage), list(Lane), COUNTED_MAX)
    if row is None:
        raise BrokenInvariant("a statement that always gives one row gave none")
    return Gauge(
        stages_waiting=row["stages_waiting"],
        oldest_stage_seconds=row["oldest_stage_seconds"] or 0.0,
        outgoing_waiting=row["outgoing_waiting"],
        oldest_outgoing_seconds=row["oldest_outgoing_seconds"] or 0.0,
        sending=row["sending"],
        uncertain=row["uncertain"],
        open_support_cases=row["open_support_cases"],
    )

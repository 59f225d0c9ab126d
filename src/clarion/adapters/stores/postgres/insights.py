"""The read side: single statements outside of any transaction. Writes nothing."""

from typing import TYPE_CHECKING, Final
from uuid import UUID

from clarion.adapters.stores.postgres import codec
from clarion.adapters.stores.query import load
from clarion.domain.support import SupportCase, SupportStatus

if TYPE_CHECKING:
    from clarion.adapters.stores.postgres.session import Connection

_SQL: Final = load(__package__, "insights.sql")
_read_case: Final = codec.reader(SupportCase)


async def list_support_cases(
    connection: "Connection", tenant_id: str, *, status: SupportStatus | None, after: UUID | None, limit: int
) -> list[SupportCase]:
    """List a tenant's cases in the order of their ids, starting behind `after`."""
    if status is None:
        rows = await connection.fetch(_SQL["list_support_cases"].sql, tenant_id, after, limit)
    else:
        rows = await connection.fetch(_SQL["list_support_cases_by_status"].sql, tenant_id, status, after, limit)
    return [_read_case(row) for row in rows]

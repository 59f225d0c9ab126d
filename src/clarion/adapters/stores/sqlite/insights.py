"""The read side: single statements outside of any transaction that writes. Writes nothing."""

from typing import Final
from uuid import UUID

from clarion.adapters.stores.query import load
from clarion.adapters.stores.sqlite.session import Transaction
from clarion.domain.support import SupportCase, SupportStatus

_SQL: Final = load(__package__, "insights.sql")


def list_support_cases(
    transaction: Transaction, tenant_id: str, *, status: SupportStatus | None, after: UUID | None, limit: int
) -> list[SupportCase]:
    """List a tenant's cases in the order of their ids, starting behind `after`."""
    return transaction.records(
        SupportCase,
        _SQL["list_support_cases"],
        tenant_id=tenant_id,
        status=status and status.value,
        after="" if after is None else str(after),
        limit=limit,
    )

"""Opening and resolving support cases, in the transaction of whatever they are about. Writes `support_case`."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain.machine import Cause
from clarion.domain.support import SUPPORT_CASE, SupportCase

_SQL: Final = Statements("support.sql")


async def write_cases(transaction: Transaction, tenant_id: str, cases: Sequence[SupportCase]) -> None:
    """Open cases of one tenant, or see them once more."""
    await write_cases_of_tenants(transaction, [(tenant_id, case) for case in cases])


async def write_cases_of_tenants(transaction: Transaction, cases: Sequence[tuple[str, SupportCase]]) -> None:
    """Open cases, or see them once more; one set may come upon a case several times."""
    if not cases:
        return
    seen: dict[tuple[str, UUID], SupportCase] = {}
    for tenant_id, case in cases:
        known = seen.get((tenant_id, case.case_id))
        before = 0 if known is None else known.seen_count
        seen[tenant_id, case.case_id] = msgspec.structs.replace(case, seen_count=before + case.seen_count)
    rows = [
        (
            tenant_id,
            case_id,
            case.kind,
            case.record,
            case.record_key,
            case.details,
            case.seen_count,
            case.correlation_id,
        )
        for (tenant_id, case_id), case in seen.items()
    ]
    await transaction.execute(_SQL["write_support_cases"], cases=rows)


async def resolve_case(transaction: Transaction, tenant_id: str, case_id: UUID, *, actor: str, resolution: str) -> bool:
    """Open → Resolved; False where the case is not open. Whoever calls this has it audited."""
    resolved = await transaction.execute(
        _SQL["resolve_support_case"],
        tenant_id=tenant_id,
        case_id=case_id,
        actor=actor,
        resolution=resolution,
        open=sorted(SUPPORT_CASE.sources(Cause.REQUEST)),
    )
    return bool(resolved)

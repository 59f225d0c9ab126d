"""What tenants and API keys may use in a day, and have used. Writes `usage_count` and, through `audit`, `audit_log`."""

from collections.abc import Sequence
from typing import Final

import msgspec

from clarion.adapters.stores.shared.audit import append_audit
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain import act
from clarion.domain.quota import Limits, Usage
from clarion.ports.catalog import Used

_SQL: Final = Statements("usage.sql")


async def count_usage(transaction: Transaction, uses: Sequence[Used]) -> list[Usage]:
    """Add what was used, and return what all processes have counted of the same tenants and keys."""
    rows = [(one.tenant_id, one.key_id, *msgspec.structs.astuple(one.amount)) for one in uses]
    return await transaction.fetch(Usage, _SQL["count_usage"], uses=rows) if rows else []


async def list_usage(transaction: Transaction, tenant_id: str) -> list[Usage]:
    """Return what a tenant and its keys may use and have used, the tenant itself first."""
    return await transaction.fetch(Usage, _SQL["list_usage"], tenant_id=tenant_id)


async def set_quota(transaction: Transaction, tenant_id: str, key_id: str, limits: Limits, *, actor: str) -> bool:
    """Set what a tenant, or one of its keys, may use in a day; audited; False where it is so already."""
    given = msgspec.structs.asdict(limits)
    if limits == Limits() and not any(one.key_id == key_id for one in await list_usage(transaction, tenant_id)):
        return False
    if not await transaction.execute(_SQL["set_quota"], tenant_id=tenant_id, key_id=key_id, **given):
        return False
    await append_audit(transaction, tenant_id, act.limit(tenant_id, key_id=key_id, limits=given, actor=actor))
    return True

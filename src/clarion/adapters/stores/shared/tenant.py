"""A tenant and its wrapped keys. Writes `tenant`, `tenant_key` and `audit_log`; wraps and unwraps nothing."""

from typing import Final

import msgspec

from clarion.adapters.stores.shared.audit import append_audit
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain import act
from clarion.domain.seal import Purpose
from clarion.errors import BrokenInvariant
from clarion.ports.ensure import WrappedKeys

_SQL: Final = Statements("tenant.sql")


class _TenantKey(msgspec.Struct, frozen=True):
    """One key of a tenant; all None for a tenant that has none."""

    purpose: Purpose | None
    serial: int | None
    wrapped: bytes | None


async def ensure_tenant(
    transaction: Transaction, tenant_id: str, keys: WrappedKeys, *, actor: str | None = None
) -> WrappedKeys:
    """Make the tenant with these keys unless it is there, audited if by an actor, and return the keys that it has."""
    if await transaction.execute(_SQL["insert_tenant"], tenant_id=tenant_id):
        rows = [(purpose, serial, wrapped) for (purpose, serial), wrapped in keys.items()]
        await transaction.execute(_SQL["insert_tenant_keys"], tenant_id=tenant_id, keys=rows)
        if actor is not None:
            await append_audit(transaction, tenant_id, act.create(tenant_id, actor=actor))
    stored = await find_tenant_keys(transaction, tenant_id)
    if stored is None:
        raise BrokenInvariant("a tenant was neither made nor there")
    return stored


async def find_tenant_keys(transaction: Transaction, tenant_id: str) -> WrappedKeys | None:
    """Return a tenant's wrapped keys, or None where there is no such tenant."""
    rows = await transaction.fetch(_TenantKey, _SQL["read_tenant_keys"], tenant_id=tenant_id)
    if not rows:
        return None
    return {
        (row.purpose, row.serial): row.wrapped
        for row in rows
        if row.purpose is not None and row.serial is not None and row.wrapped is not None
    }

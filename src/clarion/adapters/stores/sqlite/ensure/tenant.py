"""A tenant and its wrapped keys. Writes `tenant`, `tenant_key` and `audit_log`; wraps and unwraps nothing."""

from typing import Final

import msgspec

from clarion.adapters.stores.query import load
from clarion.adapters.stores.sqlite import codec
from clarion.adapters.stores.sqlite.audit import append_audit
from clarion.adapters.stores.sqlite.session import Transaction
from clarion.domain import act
from clarion.domain.seal import Purpose
from clarion.errors import BrokenInvariant
from clarion.ports.ensure import WrappedKeys

_SQL: Final = load(__package__, "tenant.sql")


class _TenantKey(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table; all None for a tenant that has no key."""

    purpose: Purpose | None
    serial: int | None
    wrapped: bytes | None


def ensure_tenant(
    transaction: Transaction, tenant_id: str, keys: WrappedKeys, *, actor: str | None = None
) -> WrappedKeys:
    """Make the tenant with these keys unless it is there, audited if by an actor, and read the keys that it has."""
    if transaction.rows(_SQL["insert_tenant"], tenant_id=tenant_id):
        rows = [_TenantKey(purpose=purpose, serial=serial, wrapped=key) for (purpose, serial), key in keys.items()]
        transaction.rows(_SQL["insert_tenant_keys"], tenant_id=tenant_id, items=codec.parameter(rows))
        if actor is not None:
            append_audit(transaction, tenant_id, act.create(tenant_id, actor=actor))
    stored = find_tenant_keys(transaction, tenant_id)
    if stored is None:
        raise BrokenInvariant("a tenant was neither made nor there")
    return stored


def find_tenant_keys(transaction: Transaction, tenant_id: str) -> WrappedKeys | None:
    """Read a tenant's keys, None where there is no such tenant."""
    rows = transaction.records(_TenantKey, _SQL["read_tenant_keys"], tenant_id=tenant_id)
    if not rows:
        return None
    return {
        (row.purpose, row.serial): row.wrapped
        for row in rows
        if row.purpose is not None and row.serial is not None and row.wrapped is not None
    }

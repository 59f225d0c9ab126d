"""A tenant and its wrapped keys. Writes `tenant`, `tenant_key` and `audit_log`; wraps and unwraps nothing."""

from typing import TYPE_CHECKING, Final

from clarion.adapters.stores.postgres import codec
from clarion.adapters.stores.postgres.audit import append_audit
from clarion.adapters.stores.query import load
from clarion.domain import act
from clarion.domain.seal import Purpose
from clarion.errors import BrokenInvariant
from clarion.ports.ensure import WrappedKeys

if TYPE_CHECKING:
    from clarion.adapters.stores.postgres.session import Connection

_SQL: Final = load(__package__, "tenant.sql")


async def ensure_tenant(
    connection: "Connection", tenant_id: str, keys: WrappedKeys, *, actor: str | None
) -> WrappedKeys:
    """Make the tenant with these keys unless it is there, audited if by an actor, and read the keys that it has."""
    rows = ({"purpose": purpose, "serial": serial, "wrapped": key} for (purpose, serial), key in keys.items())
    made = await connection.fetchrow(_SQL["insert_tenant"].sql, tenant_id, codec.as_json(rows))
    stored = await find_tenant_keys(connection, tenant_id)
    if stored is None:
        raise BrokenInvariant("a tenant was neither made nor there")
    if made is not None and actor is not None:
        await append_audit(connection, tenant_id, act.create(tenant_id, actor=actor))
    return stored


async def find_tenant_keys(connection: "Connection", tenant_id: str) -> WrappedKeys | None:
    """Read a tenant's keys, None where there is no such tenant."""
    rows = await connection.fetch(_SQL["read_tenant_keys"].sql, tenant_id)
    if not rows:
        return None
    return {
        (codec.member(Purpose, row["purpose"]), row["serial"]): row["wrapped"]
        for row in rows
        if row["purpose"] is not None
    }

"""The audit log: appended to in the transaction of the act itself, each entry chained to the one before by its hash.

Writes `audit_log`. What the hash covers is in `domain.audit`.
"""

from typing import TYPE_CHECKING, Final

import msgspec

from clarion.adapters.stores.postgres import codec
from clarion.adapters.stores.query import load
from clarion.domain import audit
from clarion.domain.act import Act
from clarion.errors import BrokenInvariant
from clarion.ports.catalog import AuditEntry

if TYPE_CHECKING:
    from clarion.adapters.stores.postgres.session import Connection

_SQL: Final = load(__package__, "audit.sql")
_read_entry: Final = codec.reader(AuditEntry)


async def append_audit(connection: "Connection", tenant_id: str, act: Act) -> None:
    """Add one entry to the tenant's chain: last of a transaction, so that whoever has its lock waits for nobody."""
    await connection.execute(_SQL["lock_audit_log"].sql, tenant_id)
    last = await connection.fetchrow(_SQL["read_last_audit_entry"].sql, tenant_id)
    if last is None:
        raise BrokenInvariant("a statement that always gives one row gave none")
    seq, previous = (last["seq"] or 0) + 1, audit.FIRST_PREVIOUS if last["seq"] is None else last["hash"]
    chained = audit.chained_hash(previous, tenant_id=tenant_id, seq=seq, at=last["at"], **msgspec.structs.asdict(act))
    await connection.execute(
        _SQL["insert_audit_entry"].sql,
        tenant_id,
        seq,
        last["at"],
        act.actor,
        act.act,
        act.subject,
        act.reason,
        act.details,
        previous,
        chained,
    )


async def list_audit(connection: "Connection", tenant_id: str, *, after: int, limit: int) -> list[AuditEntry]:
    """Return entries in order, starting behind `after`."""
    return [_read_entry(row) for row in await connection.fetch(_SQL["list_audit"].sql, tenant_id, after, limit)]

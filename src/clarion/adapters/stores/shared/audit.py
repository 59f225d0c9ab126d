"""The audit log: appended to in the transaction of the act itself, each entry chained to the one before by its hash.

Writes `audit_log`. What the hash covers is in `domain.audit`.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Row, Transaction
from clarion.domain import audit
from clarion.domain.act import Act
from clarion.ports.catalog import AuditEntry
from clarion.ports.insights import PAGE_MAX

_SQL: Final = Statements("audit.sql")

_BEHIND_ALL: Final = 2**63 - 1
"""A number that no entry has: what its column holds at most."""


class _Last(msgspec.Struct, frozen=True):
    at: datetime
    seq: int | None
    hash: str | None


async def append_audit(transaction: Transaction, tenant_id: str, act: Act) -> None:
    """Add one entry to the tenant's chain: last of a transaction, so that whoever has its lock waits for nobody."""
    await append_audits(transaction, tenant_id, [act])


async def append_audits(transaction: Transaction, tenant_id: str, acts: Sequence[Act]) -> None:
    """Add an entry for each act, in their order, all of one moment and in one statement."""
    if not acts:
        return
    await transaction.lock(f"clarion audit {tenant_id}")
    (last,) = await transaction.fetch(_Last, _SQL["read_last_audit_entry"], tenant_id=tenant_id)
    seq, previous = last.seq or 0, last.hash or audit.FIRST_PREVIOUS
    entries: list[Row] = []
    for act in acts:
        seq += 1
        said = msgspec.structs.asdict(act)
        chained = audit.chained_hash(previous, tenant_id=tenant_id, seq=seq, at=last.at, **said)
        entries.append((seq, last.at, *said.values(), previous, chained))
        previous = chained
    await transaction.execute(_SQL["insert_audit_entries"], tenant_id=tenant_id, entries=entries)


async def list_newest_audit(
    transaction: Transaction, tenant_id: str, *, before: int | None = None, limit: int = 50
) -> list[AuditEntry]:
    """Return entries, newest first, starting before `before` or with the last one."""
    return await transaction.fetch(
        AuditEntry,
        _SQL["list_newest_audit"],
        tenant_id=tenant_id,
        before=_BEHIND_ALL if before is None else before,
        limit=min(limit, PAGE_MAX),
    )


async def list_audit(transaction: Transaction, tenant_id: str, *, after: int = 0, limit: int = 50) -> list[AuditEntry]:
    """Return entries in order, starting behind `after`."""
    return await transaction.fetch(
        AuditEntry, _SQL["list_audit"], tenant_id=tenant_id, after=after, limit=min(limit, PAGE_MAX)
    )

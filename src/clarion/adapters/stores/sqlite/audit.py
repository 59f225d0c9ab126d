"""The audit log: acts of people and support tools, each chained to the one before by its hash.

Written by the transaction that does the act. Writes `audit_log`; the chain itself is computed in `domain.audit`.
"""

from typing import Final

import msgspec

from clarion.adapters.stores.query import load
from clarion.adapters.stores.sqlite.clock import instant
from clarion.adapters.stores.sqlite.session import Transaction
from clarion.domain import audit
from clarion.domain.act import Act
from clarion.ports.catalog import AuditEntry
from clarion.ports.insights import PAGE_MAX

_SQL: Final = load(__package__, "audit.sql")


def append_audit(transaction: Transaction, tenant_id: str, act: Act) -> None:
    """Add one entry to the tenant's chain."""
    entry = msgspec.structs.asdict(act)
    last = transaction.rows(_SQL["read_last_audit_entry"], tenant_id=tenant_id)
    seq, previous_hash = last[0] if last else (0, audit.FIRST_PREVIOUS)
    chained = audit.chained_hash(previous_hash, tenant_id=tenant_id, seq=seq + 1, at=instant(transaction.now), **entry)
    transaction.rows(
        _SQL["insert_audit_entry"],
        tenant_id=tenant_id,
        seq=seq + 1,
        **entry,
        previous_hash=previous_hash,
        hash=chained,
    )


def list_audit(transaction: Transaction, tenant_id: str, *, after: int = 0, limit: int = 50) -> list[AuditEntry]:
    """Return entries in order, starting behind `after`."""
    return transaction.records(
        AuditEntry, _SQL["list_audit"], tenant_id=tenant_id, after=after, limit=min(limit, PAGE_MAX)
    )

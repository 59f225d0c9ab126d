"""What event types lead to: put and taken away with their entry in the audit log, looked up and listed.

Writes `event_mapping` and, through `audit`, `audit_log`.
"""

from collections.abc import Collection
from typing import Final

from clarion.adapters.stores.shared.audit import append_audit
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain import act
from clarion.domain.entity_event import EventMapping
from clarion.ports.ensure import bounded
from clarion.ports.insights import PAGE_MAX

_SQL: Final = Statements("mapping.sql")


async def put_mapping(transaction: Transaction, tenant_id: str, mapping: EventMapping, *, actor: str) -> bool:
    """Say what an event type leads to; audited; False where it is so already."""
    await transaction.lock(f"clarion mapping {tenant_id} {mapping.event_type}")
    stored = (await find_mappings(transaction, tenant_id, [mapping.event_type])).get(mapping.event_type)
    if stored is not None and stored.notification_type == mapping.notification_type:
        return False
    await transaction.execute(
        _SQL["put_mapping"],
        tenant_id=tenant_id,
        event_type=mapping.event_type,
        notification_type=mapping.notification_type,
        actor=actor,
    )
    await append_audit(transaction, tenant_id, act.put_mapping(mapping, actor=actor))
    return True


async def remove_mapping(transaction: Transaction, tenant_id: str, event_type: str, *, actor: str) -> bool:
    """Take a mapping away; audited; False where there is none."""
    done = act.remove_mapping(event_type, actor=actor)
    if not await transaction.execute(_SQL["delete_mapping"], tenant_id=tenant_id, event_type=event_type):
        return False
    await append_audit(transaction, tenant_id, done)
    return True


async def find_mappings(
    transaction: Transaction, tenant_id: str, event_types: Collection[str]
) -> dict[str, EventMapping]:
    """Return the mappings of these event types; the unmapped are left out."""
    wanted = bounded(sorted(set(event_types)))
    found = await transaction.fetch(EventMapping, _SQL["find_mappings"], tenant_id=tenant_id, event_types=wanted)
    return {one.event_type: one for one in found}


async def list_mappings(transaction: Transaction, tenant_id: str, *, after: str = "", limit: int) -> list[EventMapping]:
    """Return a tenant's mappings by event type."""
    return await transaction.fetch(
        EventMapping, _SQL["list_mappings"], tenant_id=tenant_id, after=after, limit=min(limit, PAGE_MAX)
    )

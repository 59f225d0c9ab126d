"""What people are to things, such as the guardians of a child.

Writes `entity_relation` and, through `audit`, `audit_log`.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from clarion.adapters.stores.shared import member
from clarion.adapters.stores.shared.audit import append_audit
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain import act
from clarion.domain.audience import EntityKey
from clarion.domain.group import MemberChange, Relation, RelationLine
from clarion.ports.ensure import bounded

_SQL: Final = Statements("relation.sql")


async def change_relations(
    transaction: Transaction,
    tenant_id: str,
    *,
    add: Sequence[Relation],
    remove: Sequence[Relation],
    actor: str | None = None,
) -> MemberChange:
    """Add relations of people to things and remove others, audited where any came or went."""
    coming, going = _once(add), _once(remove)
    await transaction.lock(f"clarion relations {tenant_id}")  # so that of two with the same rows one waits
    removed = await transaction.fetch(
        Relation,
        _SQL["remove_relations"],
        tenant_id=tenant_id,
        relations=going,
        hashes=sorted({one.recipient_id_hash for one in going}),
    )
    added = await transaction.fetch(Relation, _SQL["add_relations"], tenant_id=tenant_id, relations=coming)
    hashes = sorted({one.recipient_id_hash for one in coming})
    unknown = await member.count_unknown(transaction, tenant_id, hashes)
    if actor is not None and (added or removed):
        await append_audit(transaction, tenant_id, act.change_relations(added=added, removed=removed, actor=actor))
    return MemberChange(
        added=len(added),
        removed=len(removed),
        unchanged=len(coming) + len(going) - len(added) - len(removed),
        unknown=unknown,
    )


async def list_relations(
    transaction: Transaction,
    tenant_id: str,
    entity: EntityKey,
    *,
    after: tuple[str, str] = ("", ""),
    limit: int = 50,
) -> list[RelationLine]:
    """Return who is related to a thing, by relation and hash, starting behind `after`."""
    (entity_type, entity_guid), (relation, recipient_id_hash) = entity, after
    return await transaction.fetch(
        RelationLine,
        _SQL["list_relations"],
        tenant_id=tenant_id,
        entity_type=entity_type,
        entity_guid=entity_guid,
        relation=relation,
        recipient_id_hash=recipient_id_hash,
        limit=member.at_most(limit),
    )


async def list_relations_of(
    transaction: Transaction,
    tenant_id: str,
    recipient_id_hash: str,
    *,
    after: tuple[str, UUID, str] | None = None,
    limit: int = 50,
) -> list[RelationLine]:
    """Return to what a person is related, by entity type, guid and relation, starting behind `after`."""
    entity_type, entity_guid, relation = after or ("", UUID(int=0), "")
    return await transaction.fetch(
        RelationLine,
        _SQL["list_relations_of"],
        tenant_id=tenant_id,
        recipient_id_hash=recipient_id_hash,
        entity_type=entity_type,
        entity_guid=entity_guid,
        relation=relation,
        limit=member.at_most(limit),
    )


def _once(relations: Sequence[Relation]) -> list[Relation]:
    """Give each once, sorted as the primary key is."""
    return sorted(set(bounded(relations)), key=msgspec.structs.astuple)

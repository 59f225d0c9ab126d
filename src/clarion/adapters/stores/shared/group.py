"""Groups of people, and groups inside them.

Writes `audience_group`, `group_member`, `group_child` and, through `audit`, `audit_log`.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from clarion.adapters.stores.shared import member
from clarion.adapters.stores.shared.audit import append_audit
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Argument, Transaction, first
from clarion.domain import act
from clarion.domain.audience import GROUP_DEPTH_MAX
from clarion.domain.group import (
    Group,
    GroupDetails,
    Member,
    MemberChange,
    Nesting,
    check_children,
    check_nesting,
)

_SQL: Final = Statements("group.sql")

LAST: Final = UUID(int=2**128 - 1)
"""Behind which there is no guid."""


class _Group(Group, frozen=True, kw_only=True):
    members: int


class _Inside(msgspec.Struct, frozen=True):
    child: UUID
    levels: int
    circles: int


class _Above(msgspec.Struct, frozen=True):
    levels: int


async def put_group(
    transaction: Transaction,
    tenant_id: str,
    *,
    guid: UUID,
    name: str,
    members: Sequence[str] | None = None,
    children: Sequence[UUID] | None = None,
    actor: str | None = None,
) -> bool:
    """Insert or replace a group, audited; members and children that are None stay."""
    if children is not None:
        await _lock_nesting(transaction, tenant_id)
    changed = await transaction.execute(_SQL["put_group"], tenant_id=tenant_id, guid=guid, name=name)
    if members is not None:
        hashes = sorted(set(members))
        names: dict[str, Argument] = {"tenant_id": tenant_id, "guid": guid, "members": hashes}
        changed += await transaction.execute(_SQL["replace_members"], **names)
        changed += len(await transaction.fetch(member.Hash, _SQL["add_members"], **names))
    if children is not None:
        changed += await _put_children(transaction, tenant_id, guid, children)
    if changed and actor is not None:
        await append_audit(transaction, tenant_id, act.put_group(guid, name=name, groups=children, actor=actor))
    return bool(changed)


async def change_group(
    transaction: Transaction,
    tenant_id: str,
    guid: UUID,
    *,
    name: str | None = None,
    children: Sequence[UUID] | None = None,
    actor: str | None = None,
) -> bool | None:
    """Change what is not None of a group, audited; None where there is no such group."""
    if children is not None:
        await _lock_nesting(transaction, tenant_id)
    if not await transaction.fetch(Group, _SQL["lock_group"], tenant_id=tenant_id, guid=guid):
        return None
    changed = 0
    if name is not None:
        changed += await transaction.execute(_SQL["rename_group"], tenant_id=tenant_id, guid=guid, name=name)
    if children is not None:
        changed += await _put_children(transaction, tenant_id, guid, children)
    if changed and actor is not None:
        await append_audit(transaction, tenant_id, act.put_group(guid, name=name, groups=children, actor=actor))
    return bool(changed)


async def _lock_nesting(transaction: Transaction, tenant_id: str) -> None:
    """Let one at a time change what lies inside what: two changes that are both right alone can make a circle."""
    await transaction.lock(f"clarion groups inside each other {tenant_id}")


async def _put_children(transaction: Transaction, tenant_id: str, guid: UUID, children: Sequence[UUID]) -> int:
    """Replace the groups inside a group, or refuse them; return how many came and went."""
    inside = sorted(set(children))
    names: dict[str, Argument] = {"tenant_id": tenant_id, "guid": guid}
    known = await transaction.fetch(member.Guid, _SQL["find_groups"], tenant_id=tenant_id, guids=inside)
    check_children(guid, inside, (row.guid for row in known))
    changed = await transaction.execute(_SQL["delete_children"], children=inside, **names)
    changed += await transaction.execute(_SQL["insert_children"], children=inside, **names)
    found = await transaction.fetch(_Inside, _SQL["read_inside"], depth=GROUP_DEPTH_MAX, **names)
    (above,) = await transaction.fetch(_Above, _SQL["count_above"], depth=GROUP_DEPTH_MAX, **names)
    nested = [Nesting(child=row.child, levels=row.levels, holds_itself=bool(row.circles)) for row in found]
    check_nesting(guid, nested, above=above.levels)
    return changed


async def find_group(transaction: Transaction, tenant_id: str, guid: UUID) -> GroupDetails | None:
    """Return a group with its children and the number of its members."""
    row = first(await transaction.fetch(_Group, _SQL["read_group"], tenant_id=tenant_id, guid=guid))
    if row is None:
        return None
    children = await transaction.fetch(member.Guid, _SQL["read_children"], tenant_id=tenant_id, guid=guid)
    return GroupDetails(
        guid=row.guid, name=row.name, members=row.members, children=tuple(child.guid for child in children)
    )


async def list_groups(
    transaction: Transaction, tenant_id: str, *, after: UUID | None = None, limit: int = 50
) -> list[Group]:
    """Return groups in the order of their guids, starting behind `after`."""
    start = 0 if after is None else after.int + 1
    if start > LAST.int:
        return []
    return await transaction.fetch(
        Group, _SQL["list_groups"], tenant_id=tenant_id, start=UUID(int=start), limit=member.at_most(limit)
    )


async def remove_group(transaction: Transaction, tenant_id: str, guid: UUID, *, actor: str | None = None) -> bool:
    """Remove a group with all that belongs to it, audited; False where there is none."""
    await _lock_nesting(transaction, tenant_id)
    if not await transaction.execute(_SQL["delete_group"], tenant_id=tenant_id, guid=guid):
        return False
    for name in ("delete_members", "delete_inside", "delete_places"):
        await transaction.execute(_SQL[name], tenant_id=tenant_id, guid=guid)
    if actor is not None:
        await append_audit(transaction, tenant_id, act.remove_group(guid, actor=actor))
    return True


async def change_members(
    transaction: Transaction,
    tenant_id: str,
    guid: UUID,
    *,
    add: Sequence[str],
    remove: Sequence[str],
    actor: str | None = None,
) -> MemberChange | None:
    """Add people to a group and take others out, audited; None where there is no such group."""
    if not await transaction.fetch(Group, _SQL["lock_group"], tenant_id=tenant_id, guid=guid):
        return None
    place = member.Place(
        add=_SQL["add_members"], remove=_SQL["remove_members"], given={"guid": guid}, subject=f"group {guid}"
    )
    return await member.change(transaction, tenant_id, place, add=add, remove=remove, actor=actor)


async def list_members(
    transaction: Transaction, tenant_id: str, guid: UUID, *, after: str = "", limit: int = 50
) -> list[Member]:
    """Return a group's own members by hash, starting behind `after`."""
    return await member.page(transaction, tenant_id, _SQL["list_members"], guid=guid, after=after, limit=limit)

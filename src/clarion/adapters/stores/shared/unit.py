"""Business units and who belongs to them.

Writes `business_unit`, `unit_member`, through `replan` `reminder_setting` and, through `audit`, `audit_log`.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from clarion.adapters.stores.shared import member, replan
from clarion.adapters.stores.shared.audit import append_audit
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Argument, Transaction, first
from clarion.domain import act
from clarion.domain.group import Member, MemberChange
from clarion.domain.person import BusinessUnit, UnitChange

_SQL: Final = Statements("unit.sql")


class _Zone(msgspec.Struct, frozen=True):
    tz_id: str | None


async def put_business_unit(
    transaction: Transaction, tenant_id: str, unit: BusinessUnit, *, actor: str | None = None
) -> bool:
    """Insert or replace a business unit, audited; False where it is so already.

    In another zone, what is pending of its sources is due at other instants.
    """
    given = msgspec.structs.asdict(unit)
    before = first(await transaction.fetch(_Zone, _SQL["lock_unit_zone"], tenant_id=tenant_id, guid=unit.guid))
    if not await transaction.execute(_SQL["put_business_unit"], tenant_id=tenant_id, **given):
        return False
    if unit.tz_id != (None if before is None else before.tz_id):
        await replan.replan_tenant(transaction, tenant_id)
    if actor is not None:
        await append_audit(transaction, tenant_id, act.put_unit(unit, actor=actor))
    return True


async def change_business_unit(
    transaction: Transaction, tenant_id: str, guid: UUID, change: UnitChange, *, actor: str
) -> BusinessUnit | None:
    """Change what is named of a business unit, audited; None where there is none."""
    await transaction.fetch(member.Guid, _SQL["lock_business_unit"], tenant_id=tenant_id, guid=guid)
    unit = await find_business_unit(transaction, tenant_id, guid)
    if unit is None:
        return None
    changed = change.of(unit)
    await put_business_unit(transaction, tenant_id, changed, actor=actor)
    return changed


async def find_business_unit(transaction: Transaction, tenant_id: str, guid: UUID) -> BusinessUnit | None:
    """Return a business unit."""
    return first(await transaction.fetch(BusinessUnit, _SQL["read_business_unit"], tenant_id=tenant_id, guid=guid))


async def list_business_units(
    transaction: Transaction, tenant_id: str, *, after: tuple[str, UUID] | None = None, limit: int = 1000
) -> list[BusinessUnit]:
    """Return a tenant's business units by name and guid, starting behind `after`."""
    names: dict[str, Argument] = {"tenant_id": tenant_id, "limit": member.at_most(limit)}
    if after is None:
        return await transaction.fetch(BusinessUnit, _SQL["list_first_business_units"], **names)
    name, guid = after
    return await transaction.fetch(BusinessUnit, _SQL["list_business_units"], name=name, guid=guid, **names)


async def change_unit_members(
    transaction: Transaction,
    tenant_id: str,
    guid: UUID,
    *,
    add: Sequence[str],
    remove: Sequence[str],
    actor: str | None = None,
) -> MemberChange | None:
    """Add people to a business unit and take others out, audited; None where there is no such unit."""
    if not await transaction.fetch(member.Guid, _SQL["lock_business_unit"], tenant_id=tenant_id, guid=guid):
        return None
    place = member.Place(
        add=_SQL["add_unit_members"],
        remove=_SQL["remove_unit_members"],
        given={"guid": guid},
        subject=f"business unit {guid}",
    )
    return await member.change(transaction, tenant_id, place, add=add, remove=remove, actor=actor)


async def list_unit_members(
    transaction: Transaction, tenant_id: str, guid: UUID, *, after: str = "", limit: int = 50
) -> list[Member]:
    """Return a business unit's members by hash, starting behind `after`."""
    return await member.page(transaction, tenant_id, _SQL["list_unit_members"], guid=guid, after=after, limit=limit)

"""Roles that people hold, in the whole tenant or in one business unit.

Writes `role_holder` and, through `audit`, `audit_log`.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from clarion.adapters.stores.shared import member
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain.audience import HELD_EVERYWHERE
from clarion.domain.group import Member, MemberChange, RoleLine

_SQL: Final = Statements("role.sql")


async def change_holders(
    transaction: Transaction,
    tenant_id: str,
    role: str,
    *,
    unit: UUID | None,
    add: Sequence[str],
    remove: Sequence[str],
    actor: str | None = None,
) -> MemberChange | None:
    """Give people a role and take it from others, audited; None where there is no such unit."""
    if unit is not None and not await transaction.fetch(member.Guid, _SQL["find_unit"], tenant_id=tenant_id, guid=unit):
        return None
    held_in = _held_in(unit)
    await transaction.lock(f"clarion role {tenant_id} {held_in} {role}")
    place = member.Place(
        add=_SQL["add_holders"],
        remove=_SQL["remove_holders"],
        given={"role": role, "unit": held_in},
        subject=f"role {role}" + (f" in business unit {unit}" if unit else ""),
    )
    return await member.change(transaction, tenant_id, place, add=add, remove=remove, actor=actor)


async def list_holders(
    transaction: Transaction, tenant_id: str, role: str, *, unit: UUID | None, after: str = "", limit: int = 50
) -> list[Member]:
    """Return who holds a role in a unit, or in the whole tenant, by hash, starting behind `after`."""
    return await transaction.fetch(
        Member,
        _SQL["list_holders"],
        tenant_id=tenant_id,
        role=role,
        unit=_held_in(unit),
        after=after,
        limit=member.at_most(limit),
    )


async def list_roles(
    transaction: Transaction, tenant_id: str, *, after: tuple[str, str] = ("", ""), limit: int = 50
) -> list[RoleLine]:
    """Return the roles that anybody holds, by role and unit, starting behind `after`."""
    role, unit = after
    return await transaction.fetch(
        RoleLine, _SQL["list_roles"], tenant_id=tenant_id, role=role, unit=unit, limit=member.at_most(limit)
    )


def _held_in(unit: UUID | None) -> str:
    return HELD_EVERYWHERE if unit is None else str(unit)

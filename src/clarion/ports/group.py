"""The store of who belongs together: groups, business units, roles, and relations of people to things.

People are named by recipient hash. Whether somebody is known is asked when a message is made, not here: `unknown` in
the answer to a change says how many are not. A change with an actor is one transaction with its entry in the audit log,
as in `catalog`; without one it is a program's that makes what it works with.
"""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from clarion.domain.audience import EntityKey
from clarion.domain.group import Group, GroupDetails, Member, MemberChange, Relation, RelationLine, RoleLine
from clarion.domain.person import BusinessUnit, UnitChange


class GroupStore(Protocol):
    """Changes to who belongs together, and lists of it; what a decision asks is in `facts`."""

    async def put_group(
        self,
        tenant_id: str,
        *,
        guid: UUID,
        name: str,
        members: Sequence[str] | None = None,
        children: Sequence[UUID] | None = None,
        actor: str | None = None,
    ) -> bool:
        """Insert or replace a group; False where it is so already. Members and children that are None stay as they are.

        A child that is not there, one that leads back to the group, also by way of others that somebody else puts at
        this moment, and a nesting that is too deep are refused.
        """
        ...

    async def change_group(
        self,
        tenant_id: str,
        guid: UUID,
        *,
        name: str | None = None,
        children: Sequence[UUID] | None = None,
        actor: str | None = None,
    ) -> bool | None:
        """Change what is not None of a group, as `put_group` does; None where there is no such group."""
        ...

    async def find_group(self, tenant_id: str, guid: UUID) -> GroupDetails | None:
        """Return a group with its children and the number of its members."""
        ...

    async def list_groups(self, tenant_id: str, *, after: UUID | None = None, limit: int = 50) -> Sequence[Group]:
        """Return groups in the order of their guids, starting behind `after`."""
        ...

    async def remove_group(self, tenant_id: str, guid: UUID, *, actor: str | None = None) -> bool:
        """Remove a group, with its members and from the groups that hold it; False where there is none."""
        ...

    async def change_members(
        self, tenant_id: str, guid: UUID, *, add: Sequence[str], remove: Sequence[str], actor: str | None = None
    ) -> MemberChange | None:
        """Add people to a group and take others out; everybody else stays. None where there is no such group."""
        ...

    async def list_members(self, tenant_id: str, guid: UUID, *, after: str = "", limit: int = 50) -> Sequence[Member]:
        """Return a group's own members by hash, starting behind `after`, without those of groups inside it."""
        ...

    async def put_business_unit(self, tenant_id: str, unit: BusinessUnit, *, actor: str | None = None) -> bool:
        """Insert or replace a business unit; its members stay. False where it is so already."""
        ...

    async def change_business_unit(
        self, tenant_id: str, guid: UUID, change: UnitChange, *, actor: str
    ) -> BusinessUnit | None:
        """Change what is named of a business unit, audited, and return it as it is then; None where there is none."""
        ...

    async def find_business_unit(self, tenant_id: str, guid: UUID) -> BusinessUnit | None:
        """Return a business unit."""
        ...

    async def list_business_units(
        self, tenant_id: str, *, after: tuple[str, UUID] | None = None, limit: int = 1000
    ) -> Sequence[BusinessUnit]:
        """Return a tenant's business units by name and guid, starting behind `after`."""
        ...

    async def change_unit_members(
        self, tenant_id: str, guid: UUID, *, add: Sequence[str], remove: Sequence[str], actor: str | None = None
    ) -> MemberChange | None:
        """Add people to a business unit and take others out; None where there is no such unit."""
        ...

    async def list_unit_members(
        self, tenant_id: str, guid: UUID, *, after: str = "", limit: int = 50
    ) -> Sequence[Member]:
        """Return a business unit's members by hash, starting behind `after`."""
        ...

    async def change_holders(
        self,
        tenant_id: str,
        role: str,
        *,
        unit: UUID | None,
        add: Sequence[str],
        remove: Sequence[str],
        actor: str | None = None,
    ) -> MemberChange | None:
        """Give people a role in a business unit, or (None) in the whole tenant, and take it from others.

        None where there is no such unit.
        """
        ...

    async def list_holders(
        self, tenant_id: str, role: str, *, unit: UUID | None, after: str = "", limit: int = 50
    ) -> Sequence[Member]:
        """Return who holds a role in a unit, or (None) in the whole tenant, by hash, starting behind `after`."""
        ...

    async def list_roles(
        self, tenant_id: str, *, after: tuple[str, str] = ("", ""), limit: int = 50
    ) -> Sequence[RoleLine]:
        """Return the roles that anybody holds, by role and unit, starting behind `after`."""
        ...

    async def change_relations(
        self, tenant_id: str, *, add: Sequence[Relation], remove: Sequence[Relation], actor: str | None = None
    ) -> MemberChange:
        """Add relations of people to things and remove others; all others stay."""
        ...

    async def list_relations(
        self, tenant_id: str, entity: EntityKey, *, after: tuple[str, str] = ("", ""), limit: int = 50
    ) -> Sequence[RelationLine]:
        """Return who is related to a thing, by relation and hash, starting behind `after`."""
        ...

    async def list_relations_of(
        self, tenant_id: str, recipient_id_hash: str, *, after: tuple[str, UUID, str] | None = None, limit: int = 50
    ) -> Sequence[RelationLine]:
        """Return to what a person is related, by entity type, guid and relation, starting behind `after`."""
        ...

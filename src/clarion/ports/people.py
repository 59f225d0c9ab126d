"""The store of people: who they are, where they are reached, and who belongs together."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from clarion.domain.person import BusinessUnit, Person


class PeopleStore(Protocol):
    """Changes to what is known of people."""

    async def put_people(self, tenant_id: str, people: Sequence[Person]) -> None:
        """Insert or replace people and their current contacts.

        An address version that is not the person's own, or not of that channel, is refused, and with it the whole set;
        so is somebody else's version of a profile.
        """
        ...

    async def put_business_unit(self, tenant_id: str, unit: BusinessUnit) -> None:
        """Insert or replace a business unit."""
        ...

    async def list_business_units(self, tenant_id: str) -> Sequence[BusinessUnit]:
        """Return a tenant's business units, by name."""
        ...

    async def put_group(self, tenant_id: str, *, guid: UUID, name: str, members: Sequence[str]) -> None:
        """Insert or replace a group and its members, by recipient hash."""
        ...

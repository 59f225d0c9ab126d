"""The store of people: who they are and where they are reached. Who belongs together is in `group`."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from clarion.domain.attribute import Attribute
from clarion.domain.person import Person, StoredPerson


class PeopleStore(Protocol):
    """Changes to what is known of people."""

    async def put_people(
        self,
        tenant_id: str,
        people: Sequence[Person],
        *,
        attributes: Mapping[str, Mapping[str, str]] = {},
        seen: Mapping[str, StoredPerson] | None = None,
        actor: str | None = None,
    ) -> Sequence[str] | None:
        """Insert or replace people with their contacts and attributes (by hash); return the hashes of those changed.

        An address version that is not the person's own, or not of that channel, is refused, and with it the whole set;
        so is somebody else's version of a profile. With `seen`, which has everybody of them who was known, nothing is
        written and None is the answer where one of them is not as it was seen. Audited where a person is the actor.
        """
        ...

    async def find_people(self, tenant_id: str, hashes: Collection[str]) -> dict[str, StoredPerson]:
        """Return people with all that is known of them, by recipient hash; the unknown are left out."""
        ...

    async def list_people(self, tenant_id: str, *, after: str = "", limit: int) -> Sequence[str]:
        """Return the recipient hashes of a tenant's people behind one, sorted."""
        ...

    async def remove_people(
        self, tenant_id: str, hashes: Collection[str], *, actor: str | None = None
    ) -> Sequence[str]:
        """Remove people from everything that they are part of, and return the hashes of those who were there.

        What was made for them stays, and so does whatever they or somebody else said that they must not get. Audited
        where a person is the actor.
        """
        ...

    async def declare_attribute(self, tenant_id: str, attribute: Attribute, *, actor: str) -> tuple[Attribute, bool]:
        """Declare an attribute; audited; return the one that stands under the name, and whether it is new."""
        ...

    async def list_attributes(self, tenant_id: str) -> Sequence[Attribute]:
        """Return the attributes that a tenant has declared, by name."""
        ...

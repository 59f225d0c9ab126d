"""The store of people: who they are and where they are reached. Who belongs together is in `group`."""

from collections.abc import Sequence
from typing import Protocol

from clarion.domain.person import Person


class PeopleStore(Protocol):
    """Changes to what is known of people."""

    async def put_people(self, tenant_id: str, people: Sequence[Person]) -> None:
        """Insert or replace people and their current contacts.

        An address version that is not the person's own, or not of that channel, is refused, and with it the whole set;
        so is somebody else's version of a profile.
        """
        ...

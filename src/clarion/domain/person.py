"""A person as stored: who they are, their sealed profile, and the addresses that are theirs now. Pure.

What a person is called and looks like is part of the profile, which is sealed before it reaches a store; a column of
its own is for what a query looks at.
"""

import msgspec

from clarion.domain.identity import Channel, Identity, IdentityDomain


class PersonRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table `person`; field names are column names. The recipient hash tells people apart."""

    recipient_id_hash: str
    domain: IdentityDomain
    person_id: str
    profile: bytes

    @property
    def identity(self) -> Identity:
        """Who it is, as the tenant knows them."""
        return Identity(domain=self.domain, id=self.person_id)


class Person(PersonRow, frozen=True, kw_only=True):
    """A person with the address versions that are current: (channel, id), sorted when read from a store."""

    contacts: tuple[tuple[Channel, int], ...] = ()

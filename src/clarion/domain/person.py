"""People as stored: who they are, where they are reached, and the profile that templates may read. Pure.

A profile is a record of its own, which never changes: an edit makes a new version, and messages keep referring to the
version that they were made with. It is sealed before it reaches a store; a column of its own is for what a query or a
rule looks at.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, Final
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from clarion.domain.identity import Channel, Identity, IdentityDomain

CONTACTS_MAX: Final = 50
"""At which a person is reached at the same time: mail, text messages, and the devices of several years."""

PROFILE_BYTES_MAX: Final = 4096
"""As JSON: names, titles and the like. It travels with every message to the person, so it is no place for documents."""


class PersonVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A profile as it was. Its hash is part of its key: the same profile is the same version, however often it comes.

    The store counts the serial, so that two who edit a person at once get two. What a caller writes there is not read.
    """

    GIVEN: ClassVar[tuple[str, ...]] = ()

    recipient_id_hash: str
    profile_hash: str
    profile: bytes
    correlation_id: str
    serial: int = 1
    id: int | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What is unique within the tenant."""
        return (self.recipient_id_hash, self.profile_hash)


class LocalForm(msgspec.Struct, frozen=True, kw_only=True):
    """In which language and zone somebody reads: a BCP 47 tag and a name of the IANA database; None says nothing."""

    locale: str | None = None
    tz_id: str | None = None


class BusinessUnit(LocalForm, frozen=True, kw_only=True):
    """A part of a tenant that has a name, and may have a language and a zone of its own."""

    guid: UUID
    name: str


class UnitChange(msgspec.Struct, frozen=True, kw_only=True):
    """What shall change of a business unit; what is unset stays."""

    name: str | UnsetType = UNSET
    locale: str | UnsetType | None = UNSET
    tz_id: str | UnsetType | None = UNSET

    def of(self, unit: BusinessUnit) -> BusinessUnit:
        """Give the unit as it is then."""
        said = {name: value for name, value in msgspec.structs.asdict(self).items() if value is not UNSET}
        return msgspec.structs.replace(unit, **said)


class PersonRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table `person`; field names are column names. The recipient hash tells people apart.

    `person_version_id` is the profile that new messages are made with.
    """

    recipient_id_hash: str
    domain: IdentityDomain
    person_id: str
    person_version_id: int | None = None
    locale: str | None = None
    tz_id: str | None = None

    @property
    def identity(self) -> Identity:
        """Who it is, as the tenant knows them."""
        return Identity(domain=self.domain, id=self.person_id)


class Contact(msgspec.Struct, frozen=True, kw_only=True):
    """One address version at which a person is reached, or was until its provider said that it knows it no longer.

    The address version says the channel and the index of the destination. `verified`: it is known to be the person's
    own, which is taken to be so unless the owner says otherwise.
    """

    channel: Channel
    address_id: int
    destination_index: str
    verified: bool = True
    retired_at: datetime | None = None

    @property
    def is_current(self) -> bool:
        """Tell whether anything goes there."""
        return self.retired_at is None


class Person(PersonRow, frozen=True, kw_only=True):
    """A person with their contacts, the retired ones too; by channel and address version when read from a store."""

    contacts: tuple[Contact, ...] = ()


class StoredPerson(msgspec.Struct, frozen=True, kw_only=True):
    """A person as whoever edits them has read them, with the attributes that the hot path never asks for."""

    person: Person
    attributes: Mapping[str, str] = {}

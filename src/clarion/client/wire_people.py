"""The shapes of the HTTP API about people: who they are, where they are reached, and the attributes of a tenant.

Beside `client.wire`, whose rules hold here too. Plain values: nothing here reads or writes anything.
"""

from datetime import datetime
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, UnsetType

from clarion.client.wire import PLAIN_NAME, RecipientName
from clarion.client.wire_groups import Locale, PersonName, Zone
from clarion.domain.attribute import NAME_CHARS_MAX, Kind
from clarion.domain.identity import Channel
from clarion.domain.person import CONTACTS_MAX

PEOPLE_MAX: Final = 500
"""People in one request: new ones with two addresses each take a second on SQLite on a loaded machine of two cores, far
within the time that an answer may take."""

PROFILE_FIELDS_MAX: Final = 100

DisplayName = Annotated[
    str,
    msgspec.Meta(min_length=1, max_length=200, pattern=PLAIN_NAME, description="templates read it as recipient.name"),
]
Region = Annotated[
    str,
    msgspec.Meta(
        min_length=2,
        max_length=2,
        description="of phone numbers without + and country code, such as AT; without it these are refused",
        examples=["AT"],
    ),
]
Value = bool | int | float | Annotated[str, msgspec.Meta(max_length=200)]
AttributeName = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_CHARS_MAX, examples=["grade"])]


class Contact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One address, phone number, push token or chat id."""

    destination: Annotated[str, msgspec.Meta(min_length=1, max_length=4096, examples=["sam@example.com"])]
    verified: Annotated[bool, msgspec.Meta(description="known to be the person's own; nothing is sent to others")] = (
        True
    )


Contacts = Annotated[tuple[Contact, ...], msgspec.Meta(max_length=CONTACTS_MAX)]


class PersonBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A person as a whole: what is left out, the person has not."""

    name: DisplayName | None = None
    profile: Annotated[
        dict[str, object],
        msgspec.Meta(
            max_length=PROFILE_FIELDS_MAX, description="what else templates may read of the recipient; 4 kB in all"
        ),
    ] = {}
    locale: Locale | None = None
    zone: Zone | None = None
    contacts: Annotated[
        dict[Channel, Contacts], msgspec.Meta(description="by channel; push takes every device of the person")
    ] = {}
    attributes: Annotated[
        dict[AttributeName, Value], msgspec.Meta(max_length=100, description="declared before, each of its kind")
    ] = {}


class PersonItem(PersonBody, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One of many people."""

    person: PersonName


class PeopleRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """People as they shall be, each as a whole."""

    people: Annotated[tuple[PersonItem, ...], msgspec.Meta(min_length=1, max_length=PEOPLE_MAX)]
    region: Region | None = None


class PersonRequest(PersonBody, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One person as a whole."""

    region: Region | None = None


class PersonChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What shall change of a person: a JSON merge patch. What is left out stays, null takes away."""

    name: DisplayName | UnsetType | None = UNSET
    profile: Annotated[
        dict[str, object], msgspec.Meta(max_length=PROFILE_FIELDS_MAX, description="the fields that change")
    ] = {}
    locale: Locale | UnsetType | None = UNSET
    zone: Zone | UnsetType | None = UNSET
    contacts: Annotated[
        dict[Channel, Contacts | None],
        msgspec.Meta(description="replaces those of the channels that are named, and of no others"),
    ] = {}
    add_contacts: Annotated[
        dict[Channel, Contacts], msgspec.Meta(description="beside those that there are, such as one more device")
    ] = {}
    remove_contacts: dict[Channel, Contacts] = {}
    attributes: Annotated[dict[AttributeName, Value | None], msgspec.Meta(max_length=100)] = {}
    region: Region | None = None


class PeopleStored(msgspec.Struct, frozen=True, kw_only=True):
    """How many people are stored as they were sent."""

    stored: int


class KnownContact(msgspec.Struct, frozen=True, kw_only=True):
    """Where a person is reached, or was."""

    channel: Channel
    destination: Annotated[str, msgspec.Meta(description="masked unless the key's role may reveal messages")]
    verified: bool
    retired_at: Annotated[
        datetime | None,
        msgspec.Meta(description="since when nothing goes there any more, because its provider does not know it"),
    ]


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """A person as stored."""

    person: RecipientName
    name: Annotated[str | None, msgspec.Meta(description="null too for a key whose role may not reveal messages")]
    profile: Annotated[
        dict[str, object] | None, msgspec.Meta(description="null for a key whose role may not reveal messages")
    ]
    locale: str | None
    zone: str | None
    contacts: tuple[KnownContact, ...]
    attributes: dict[str, Value]


class PersonPage(msgspec.Struct, frozen=True, kw_only=True):
    """People, in an order of ours that stays."""

    items: tuple[Person, ...]
    next_cursor: str | None


class Attribute(msgspec.Struct, frozen=True, kw_only=True):
    """An attribute that people may have, and what its values are."""

    name: AttributeName
    kind: Kind


class AttributeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the values of an attribute are."""

    kind: Kind


class AttributeList(msgspec.Struct, frozen=True, kw_only=True):
    """The attributes that a tenant has declared, by name."""

    items: tuple[Attribute, ...]

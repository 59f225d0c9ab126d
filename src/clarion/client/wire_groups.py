"""The shapes of the HTTP API about who belongs together: groups, business units, roles, relations.

Beside `client.wire`, whose rules hold here too. Plain values: nothing here reads or writes anything.
"""

from typing import Annotated, Final
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from clarion.client.wire import PLAIN, PLAIN_NAME, PageQuery, RecipientName
from clarion.domain.audience import Name

MEMBERS_MAX: Final = 1000
"""People in one request: one set of the store, which keeps nobody waiting for long."""

GROUPS_MAX: Final = 1000
"""Groups directly inside one: as many as one set takes."""

PersonName = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=220,
        pattern=PLAIN_NAME,
        description="user:ID or employee:GUID",
        examples=["user:parent-17"],
    ),
]
MemberName = Annotated[
    RecipientName | None,
    msgspec.Meta(description="null for somebody who is not known, or not yet: only a hash of them is stored"),
]
DisplayName = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=PLAIN_NAME)]
Inside = Annotated[
    tuple[UUID, ...],
    msgspec.Meta(max_length=GROUPS_MAX, description="groups inside it; whoever is in one of them is in it too"),
]
Locale = Annotated[str, msgspec.Meta(min_length=2, max_length=35, examples=["de-AT"])]
Zone = Annotated[str, msgspec.Meta(min_length=1, max_length=64, examples=["Europe/Vienna"])]


class GroupRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A group as it shall be; its members stay as they are."""

    name: DisplayName
    groups: Inside = ()


class GroupChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What shall change of a group; what is left out stays."""

    name: DisplayName | None = None
    groups: Inside | None = None


class GroupLine(msgspec.Struct, frozen=True, kw_only=True):
    """A group in a list."""

    guid: UUID
    name: str


class GroupPage(msgspec.Struct, frozen=True, kw_only=True):
    """Groups, in the order of their guids."""

    items: tuple[GroupLine, ...]
    next_cursor: str | None


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A group, what lies inside it, and how many people are in it themselves."""

    guid: UUID
    name: str
    groups: Annotated[tuple[UUID, ...], msgspec.Meta(description="inside it")]
    members: Annotated[int, msgspec.Meta(description="of its own, without those of groups inside it")]


class MembersRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Who is added and who is taken out; everybody else stays."""

    add: Annotated[tuple[PersonName, ...], msgspec.Meta(max_length=MEMBERS_MAX)] = ()
    remove: Annotated[tuple[PersonName, ...], msgspec.Meta(max_length=MEMBERS_MAX)] = ()


class MembersChange(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    added: int
    removed: int
    unchanged: Annotated[int, msgspec.Meta(description="of those who were named, how many were as asked for already")]
    unknown: Annotated[
        int,
        msgspec.Meta(
            description="of those who were to be added, how many are not known: they are added too, and get messages "
            "from the moment on at which they are known"
        ),
    ]


class MemberLine(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who belongs there."""

    person: MemberName


class MemberPage(msgspec.Struct, frozen=True, kw_only=True):
    """Those who belong there, in an order of ours that stays."""

    items: tuple[MemberLine, ...]
    next_cursor: str | None


class UnitRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A business unit as it shall be; its members stay as they are."""

    name: DisplayName
    locale: Annotated[Locale, msgspec.Meta(description="of its people who have no language of their own")] | None = None
    zone: Annotated[Zone, msgspec.Meta(description="of its people who have no zone of their own")] | None = None


class UnitChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What shall change of a business unit: a JSON merge patch. What is left out stays, null takes away."""

    name: DisplayName | UnsetType = UNSET
    locale: Locale | UnsetType | None = UNSET
    zone: Zone | UnsetType | None = UNSET


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """A business unit."""

    guid: UUID
    name: str
    locale: str | None
    zone: str | None


class UnitPage(msgspec.Struct, frozen=True, kw_only=True):
    """Business units, by name."""

    items: tuple[Unit, ...]
    next_cursor: str | None


class TenantRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a tenant's people read who say nothing themselves, and whose business unit says nothing."""

    locale: Locale | None = None
    zone: Zone | None = None


class Tenant(msgspec.Struct, frozen=True, kw_only=True):
    """The tenant whose key it is."""

    tenant_id: str
    locale: str | None
    zone: str | None


class HoldersQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a role is held."""

    business_unit: (
        Annotated[UUID, msgspec.Meta(description="in this business unit; without it, in the whole tenant")] | None
    ) = None


class HoldersPageQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which page of those who hold a role, and where."""

    business_unit: (
        Annotated[UUID, msgspec.Meta(description="in this business unit; without it, in the whole tenant")] | None
    ) = None


class RoleLine(msgspec.Struct, frozen=True, kw_only=True):
    """A role that somebody holds."""

    role: str
    business_unit: Annotated[UUID | None, msgspec.Meta(description="in which it is held; null for the whole tenant")]
    holders: int


class RolePage(msgspec.Struct, frozen=True, kw_only=True):
    """The roles that anybody holds, by name."""

    items: tuple[RoleLine, ...]
    next_cursor: str | None


class Thing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A thing of yours, as sends name it in `entity`."""

    type: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=PLAIN, examples=["child"])]
    guid: UUID


class Relation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What somebody is to a thing."""

    entity: Thing
    relation: Annotated[Name, msgspec.Meta(examples=["guardian"])]
    person: PersonName


class RelationsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Relations that are added and such that are removed; all others stay."""

    add: Annotated[tuple[Relation, ...], msgspec.Meta(max_length=MEMBERS_MAX)] = ()
    remove: Annotated[tuple[Relation, ...], msgspec.Meta(max_length=MEMBERS_MAX)] = ()


class RelationLine(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody is to a thing."""

    entity: Thing
    relation: str
    person: MemberName


class RelationPage(msgspec.Struct, frozen=True, kw_only=True):
    """Relations of a thing, or of a person."""

    items: tuple[RelationLine, ...]
    next_cursor: str | None


class RelationQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose relations: exactly one of `entity` and `person`."""

    entity: (
        Annotated[str, msgspec.Meta(min_length=1, max_length=240, description="TYPE:GUID: who is related to it")] | None
    ) = None
    person: Annotated[PersonName, msgspec.Meta(description="to what they are related")] | None = None

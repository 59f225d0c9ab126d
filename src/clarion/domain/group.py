"""Who belongs together: groups, the members of groups and business units, holders of roles, relatives of a thing.

People are named by their recipient hashes; somebody may belong somewhere before they are known. Who is meant by a
group, a role or a relation in one send is in `audience`. Pure.
"""

import re
from collections.abc import Collection, Iterable
from typing import Final
from uuid import UUID

import msgspec

from clarion.domain.audience import GROUP_DEPTH_MAX, HELD_EVERYWHERE, EntityKey, Name
from clarion.domain.audience import NAME_CHARS_MAX as WORD_MAX
from clarion.domain.identity import Identity, IdentityDomain
from clarion.domain.part import UNSEEN
from clarion.errors import InvalidInput

CHILDREN_MAX: Final = 1000
"""Groups directly inside one: as many as one set takes."""


NAME_CHARS_MAX: Final = 200
"""Of a group or a business unit: what somebody calls it, and no description."""

THING_BYTES_MAX: Final = 200
"""Of the type of a thing: as long as its column takes."""

_NAME: Final = re.compile(rf"(?=.*\S)[^{UNSEEN}]{{1,{NAME_CHARS_MAX}}}")


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A group of people, by name."""

    guid: UUID
    name: str


class GroupDetails(Group, frozen=True, kw_only=True):
    """A group with the groups inside it, by guid, and the number of its own members."""

    children: tuple[UUID, ...] = ()
    members: int = 0


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who belongs somewhere; nothing but the hash is there of whoever is not known, or not yet."""

    recipient_id_hash: str
    domain: IdentityDomain | None = None
    person_id: str | None = None

    @property
    def identity(self) -> Identity | None:
        """Who it is, as the tenant knows them."""
        if self.domain is None or self.person_id is None:
            return None
        return Identity(domain=self.domain, id=self.person_id)


class RoleLine(msgspec.Struct, frozen=True, kw_only=True):
    """A role that somebody holds: in one business unit, whose guid it is, or everywhere; and how many hold it there."""

    role: str
    unit: str = HELD_EVERYWHERE
    holders: int


class Relation(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody is to a thing, such as the guardian of a child."""

    entity_type: str
    entity_guid: UUID
    relation: Name
    recipient_id_hash: str

    @property
    def entity(self) -> EntityKey:
        """The thing."""
        return self.entity_type, self.entity_guid


class RelationLine(Member, frozen=True, kw_only=True):
    """A relation with who it is."""

    entity_type: str
    entity_guid: UUID
    relation: str


class MemberChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a change of members came to: how many were added and removed, and how many of all named were so already.

    `unknown`: of those who were to be added, how many are no person that is known. Whether somebody is known is asked
    when a message is made, so they belong there all the same.
    """

    added: int = 0
    removed: int = 0
    unchanged: int = 0
    unknown: int = 0


class Nesting(msgspec.Struct, frozen=True, kw_only=True):
    """What lies inside one of a group's children: on how many levels, its own among them, and if the group itself."""

    child: UUID
    levels: int
    holds_itself: bool


def check_children(guid: UUID, children: Collection[UUID], known: Iterable[UUID]) -> None:
    """Refuse children that are not there, and a group inside itself."""
    if len(children) > CHILDREN_MAX:
        raise InvalidInput(
            f"{len(children)} groups are too many", field="groups", hint=f"put at most {CHILDREN_MAX} into one"
        )
    if guid in children:
        raise InvalidInput("a group cannot be inside itself", field="groups", hint="leave it out")
    missing = sorted(set(children).difference(known))
    if missing:
        raise InvalidInput(f"there is no group {missing[0]}", field="groups", hint="put that group first")


def check_nesting(guid: UUID, inside: Collection[Nesting], *, above: int) -> None:
    """Refuse a group that holds itself by way of another, and groups inside each other deeper than anybody looks.

    `above` is on how many levels it lies in others.
    """
    for one in inside:
        if one.holds_itself:
            raise InvalidInput(
                f"the group {one.child} holds the group {guid} already, directly or in a group inside it",
                field="groups",
                hint="a group cannot hold itself: take one of the two out of the other first",
            )
    deepest = above + 1 + max((one.levels for one in inside), default=0)
    if deepest > GROUP_DEPTH_MAX:
        raise InvalidInput(
            f"groups would lie inside each other {deepest} deep",
            field="groups",
            hint=f"nest at most {GROUP_DEPTH_MAX}, the outermost counted",
        )


def check_name(name: str, *, field: str) -> str:
    """Refuse what no group and no business unit can be called."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            "it is blank, too long, or has characters that nobody sees",
            field=field,
            hint=f"use 1 to {NAME_CHARS_MAX} characters in one line",
        )
    return name


def check_word(word: str, *, field: str) -> str:
    """Refuse what is no name of a role or a relation."""
    try:
        if len(msgspec.convert(word, Name).encode()) <= WORD_MAX:
            return word
    except (msgspec.ValidationError, UnicodeEncodeError):
        pass
    raise InvalidInput("it is no name of a role or a relation", field=field, hint=f"use 1 to {WORD_MAX} bytes, no ':'")


def check_thing(entity_type: str, *, field: str) -> str:
    """Refuse what is no type of a thing."""
    if not entity_type.strip() or len(entity_type.encode()) > THING_BYTES_MAX or not _NAME.fullmatch(entity_type):
        raise InvalidInput(
            "it is no type of a thing", field=field, hint=f"use 1 to {THING_BYTES_MAX} bytes in one line"
        )
    return entity_type


def read_entity(text: str, *, field: str) -> EntityKey:
    """Read `TYPE:GUID`."""
    kind, _, guid = text.rpartition(":")
    try:
        number = UUID(guid)
    except ValueError:
        raise InvalidInput("it names no thing", field=field, hint="write TYPE:GUID") from None
    return check_thing(kind, field=field), number

"""Who there is in a simulation: people with their contacts, what they belong to, and what settings say of them.

Two of the people are employees, the others users. Some are reached at two mail addresses, one has a second that is not
verified, one has no phone. Groups lie inside each other, a role is held everywhere or in a unit, a guardian is one of a
thing. What may be changed in a run, and to what, stands here too. Pure.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple
from uuid import UUID

from clarion.catalog.people import ContactEntry, PersonEntry
from clarion.domain.audience import Addressee
from clarion.domain.identity import Channel, Identity
from clarion.domain.setting import TypeSetting

PEOPLE: Final = 6

_EMPLOYEES: Final = {
    4: UUID("0c1c9a52-7b1d-4f0e-9f39-64b1f27fd8a4"),
    5: UUID("f7a3d0d1-52c6-4a34-8c1e-0f6f1c6f2b95"),
}

GROUP: Final = UUID("6d9b1e34-52a7-4b1c-9a3e-0f6a5d6c7b81")
CLASS: Final = UUID("a2f4c1d0-9b56-4c39-8b2b-1d9d2f1f7e02")
"""A group inside the group."""

UNITS: Final = (UUID("30b7e9d2-0a8f-4a53-9f0e-5d5f7c3b8a10"), UUID("9e6c4f7a-3d21-4f58-b0c7-2a4e6d8f1b33"))
THINGS: Final = (UUID("51d8a0f3-6c47-4e92-a1b5-7f3c9e2d4a66"), UUID("c4e7b2a9-8f15-4d60-93d8-0b6a1f5e7c24"))
"""What notifications are about; nobody is guardian of the second at first."""

THING: Final = "child"
ROLE: Final = "teacher"
RELATION: Final = "guardian"


class Circle(NamedTuple):
    """Something that people belong to: a group, a unit, a role in a place, or a relation to a thing."""

    kind: str
    name: str
    place: str = ""


IN_GROUP: Final = Circle("group", str(GROUP))
IN_CLASS: Final = Circle("group", str(CLASS))


def holders(unit: int | None) -> Circle:
    """Name those who hold the role in a unit, or (None) in the whole tenant."""
    return Circle("role", ROLE, "" if unit is None else str(UNITS[unit]))


def members(unit: int) -> Circle:
    """Name the members of a unit."""
    return Circle("unit", str(UNITS[unit]))


def relatives(thing: int) -> Circle:
    """Name the guardians of a thing."""
    return Circle("relation", RELATION, str(THINGS[thing]))


CIRCLES: Final[Mapping[Circle, frozenset[int]]] = {
    IN_GROUP: frozenset({0, 1, 2}),
    IN_CLASS: frozenset({2, 3, 5}),
    holders(None): frozenset({4}),
    holders(0): frozenset({5}),
    holders(1): frozenset(),
    members(0): frozenset({0, 4}),
    members(1): frozenset({1}),
    relatives(0): frozenset({1, 2}),
    relatives(1): frozenset(),
}
"""Who belongs to what in the beginning."""

_TEACHERS: Final = Addressee(role=ROLE)
_GUARDIANS: Final = Addressee(relation=RELATION)
_GROUP: Final = Addressee(group=GROUP)
_UNIT: Final = Addressee(unit=True)

RECIPIENTS: Final[tuple[tuple[Addressee, ...] | None, ...]] = (
    (_TEACHERS,),
    (_GUARDIANS,),
    (_TEACHERS, _GUARDIANS),
    (_GROUP,),
    (_UNIT,),
    (_UNIT, _GROUP),
    None,
)
"""Whom a setting may name."""

SETTINGS: Final[Mapping[tuple[str, int | None], TypeSetting]] = {
    ("notice", None): TypeSetting(recipients=(_TEACHERS, _GUARDIANS)),
    ("notice", 0): TypeSetting(channels=(Channel.EMAIL,)),
    ("letter", None): TypeSetting(recipients=(_GROUP,)),
    ("letter", 0): TypeSetting(recipients=(_UNIT,)),
    ("letter", 1): TypeSetting(enabled=False),
    ("code", None): TypeSetting(recipients=(_GUARDIANS,)),
    ("flash", 1): TypeSetting(recipients=(_TEACHERS, _UNIT)),
}
"""What is said in the beginning, by type and unit; None is the whole tenant. Of a flash the tenant names nobody."""

_WHO: Final = re.compile(r"u(\d+)\.(\d+)[a-z]?@example\.com|\+120255501(\d)([0-8])")


def identity(number: int) -> Identity:
    """Name a person as the platform does."""
    guid = _EMPLOYEES.get(number)
    return Identity.user(f"u{number}") if guid is None else Identity.employee(guid)


def employee(number: int) -> UUID | None:
    """Return the guid of an employee; None of a user."""
    return _EMPLOYEES.get(number)


def contacts(number: int, edition: int) -> tuple[ContactEntry, ...]:
    """Say where a person is reached in an edition of their addresses."""
    mail = [ContactEntry(channel=Channel.EMAIL, destination=f"u{number}.{edition}@example.com")]
    if number in (1, 5):
        mail.append(ContactEntry(channel=Channel.EMAIL, destination=f"u{number}.{edition}b@example.com"))
    if number == 2:
        wanted = f"u{number}.{edition}c@example.com"
        mail.append(ContactEntry(channel=Channel.EMAIL, destination=wanted, verified=False))
    phone = ContactEntry(channel=Channel.SMS, destination=f"+120255501{number}{edition % 10}")
    return tuple(mail) if number == 3 else (*mail, phone)


def person(number: int, *, edition: int = 1) -> PersonEntry:
    """Describe a person; a later edition has moved to other addresses, and is called otherwise."""
    return PersonEntry(identity=identity(number), name=name(number, edition), contacts=contacts(number, edition))


def name(number: int, edition: int) -> str:
    """Say what a person is called in an edition."""
    return f"Person {number}.{edition % 10}"


def name_at(destination: str) -> str | None:
    """Say what somebody is called who is reached there; None of a bare address."""
    found = _WHO.fullmatch(destination)
    if found is None:
        return None
    number, edition = (part for part in found.groups() if part is not None)
    return name(int(number), int(edition))

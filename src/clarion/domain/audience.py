"""Whom a notification is for without naming people: groups, holders of a role, relatives of a thing, members of a unit.

A setting lists addressees as an administrator writes them. Together with the business unit and the entity of one send
they are an audience: exactly what the store is asked for, as sorted recipient hashes. Pure.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Final, TypeVar
from uuid import UUID

import msgspec

from clarion.domain.part import END, UNSEEN
from clarion.errors import InvalidInput

NAME_CHARS_MAX: Final = 64
"""Of a role or a relation: as long as their columns take, and they are words."""

ADDRESSEES_MAX: Final = 20
"""As many as one request may name; whoever needs more makes a group of groups."""

GROUP_DEPTH_MAX: Final = 8
"""How many groups may lie inside each other, the outermost counted: a town, its schools, years, classes and courses are
five. Each level is one more look at the tables whenever a message is made for the group."""

HELD_EVERYWHERE: Final = ""
"""The unit of a role that somebody holds in the whole tenant."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_CHARS_MAX, pattern=rf"^(?=.*\S)[^:{UNSEEN}]+{END}")]
"""The name of a role or a relation."""

T = TypeVar("T")

EntityKey = tuple[str, UUID]
"""The type and guid of what a notification is about."""


class Addressee(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Exactly one of `group`, `role`, `relation` and `unit`.

    A role is held in the business unit of the send or in the whole tenant, a relation is to the entity of the send,
    `unit` means the members of the business unit of the send.
    """

    group: UUID | None = None
    role: Name | None = None
    relation: Name | None = None
    unit: bool = False

    def __str__(self) -> str:
        """Write it as the program reads it."""
        if self.group is not None:
            return f"group:{self.group}"
        if self.role is not None:
            return f"role:{self.role}"
        return "unit" if self.relation is None else f"relation:{self.relation}"


class Audience(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to ask the store for; everybody who is in any part of it, each once.

    A role goes with the unit in which it is held, as text; that of a whole tenant with `HELD_EVERYWHERE`.
    """

    groups: tuple[UUID, ...] = ()
    roles: tuple[tuple[str, str], ...] = ()
    units: tuple[UUID, ...] = ()
    relations: tuple[tuple[str, UUID, str], ...] = ()

    def __bool__(self) -> bool:
        """Tell whether anybody can be in it."""
        return bool(self.groups or self.roles or self.units or self.relations)


def require_one(addressee: Addressee, *, field: str) -> Addressee:
    """Refuse an addressee that is none or several at once."""
    given = [name for name in ("group", "role", "relation") if getattr(addressee, name) is not None]
    given += ["unit"] if addressee.unit else []
    if len(given) != 1:
        raise InvalidInput(
            f"it is exactly one of group, role, relation and unit, not {' and '.join(given) or 'none'}",
            field=field,
            hint='write, for example, {"role": "teacher"}',
        )
    return addressee


def require_addressees(addressees: Sequence[Addressee], *, field: str) -> None:
    """Refuse addressees that are too many or none, one that is none or several at once, and one that is named twice."""
    if not 1 <= len(addressees) <= ADDRESSEES_MAX:
        raise InvalidInput(
            f"it names {len(addressees)}",
            field=field,
            hint=f"name 1 to {ADDRESSEES_MAX}, and more of them in a group, which counts as one",
        )
    for place, one in enumerate(addressees):
        if require_one(one, field=f"{field}[{place}]") in addressees[:place]:
            raise InvalidInput(f"{one} is named twice", field=f"{field}[{place}]", hint="name it once")


def audience_of(
    addressees: Iterable[Addressee], *, unit: UUID | None, entity: EntityKey | None, groups: Iterable[UUID] = ()
) -> Audience:
    """Say whom addressees are in a send about this entity in this business unit, and the groups that it names itself.

    Without a unit nobody is a member of it, and a role is held only by those who hold it in the whole tenant; without
    an entity nobody is related to it.
    """
    asked = list(addressees)
    held_in = (HELD_EVERYWHERE,) if unit is None else (HELD_EVERYWHERE, str(unit))
    return Audience(
        groups=_once([*groups, *(one.group for one in asked if one.group is not None)]),
        roles=_once((one.role, held) for one in asked if one.role is not None for held in held_in),
        units=() if unit is None else _once(unit for one in asked if one.unit),
        relations=() if entity is None else _once((*entity, one.relation) for one in asked if one.relation is not None),
    )


def _once(values: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(values))

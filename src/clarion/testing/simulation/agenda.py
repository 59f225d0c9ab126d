"""The agenda: which sources and reminder settings there are in a run with automation, and what each may come to say.

Two invoices are told to the platform, two rooms are known to the application alone, and a plugin asks it about them.
Invoices have dates and amounts, rooms are full or not. Dates and send times lie around the beginning of a run, so that
most of what falls due does so within it. Pure.
"""

from collections.abc import Mapping
from datetime import date, timedelta
from random import Random
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from clarion.domain.key import FiringPolicy
from clarion.testing.simulation import society

INVOICE: Final = "invoice"
"""The type of sources that are stored by the platform."""

ROOM: Final = "room"
"""The type of sources that a plugin knows."""

SOURCE_TYPES: Final = (INVOICE, ROOM)

DATE: Final = "due_on"
METRIC: Final = "amount"

TODAY: Final = date(2026, 1, 15)
"""The day on which every run begins, at noon in UTC."""

ZONES: Final[Mapping[int | None, str]] = {None: "Etc/UTC", 0: "Asia/Tokyo", 1: "America/New_York"}
"""In which zone what is of a unit is due: that of the tenant, and those of the two units."""

GROUPS: Final = (society.GROUP, society.CLASS)
"""Whom a setting tells: one of these."""

_SETTINGS: Final = tuple(UUID(f"7a1c0b5e-3d42-4f68-9a0{number}-5e8d2c7f1b36") for number in range(4))
_ENTITIES: Final = tuple(UUID(f"b40e6d93-1f7a-4c25-8d1{number}-92a3f6c0e471") for number in range(4))

_SEND_TIMES: Final = ("12:01", "12:02", "12:03", "14:30", "17:00", "21:01", "21:03", "07:02", "23:40")
_DAYS: Final = (0, 0, 0, 1, 1, -1, 2)
"""So many days after the first one most dates are."""

_OFFSETS: Final = ((0,), (0,), (1,), (0, 1), (1, 0), (-1,), (2, 0))
_AMOUNTS: Final = (5, 10, 15, 20)
_VALUES: Final = (10, 10, 20)


class Said(NamedTuple):
    """What an application says of a source; `unit` is the place of its business unit."""

    there: bool
    day: date | None
    amount: int
    unit: int | None


class Rule(NamedTuple):
    """What a reminder setting says; offsets are those of one by date, value and policy those of a threshold."""

    active: bool
    offsets: tuple[int, ...]
    send_time: str
    value: int
    policy: FiringPolicy
    group: int


class SourcePlan(msgspec.Struct, frozen=True, kw_only=True):
    """One source, as it is first."""

    number: int
    type: str
    at: float
    first: Said

    @property
    def id(self) -> str:
        """The id that its application knows it by."""
        return f"s{self.number}"

    @property
    def entity(self) -> UUID:
        """The thing under which its history opens."""
        return _ENTITIES[self.number]


class SettingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One reminder setting, as it is first; it stays one by date or one of a threshold."""

    number: int
    type: str
    by_date: bool
    at: float
    first: Rule

    @property
    def guid(self) -> UUID:
        """Its id."""
        return _SETTINGS[self.number]

    @property
    def name(self) -> str:
        """What people call it."""
        return f"Setting {self.number}"


class Night(msgspec.Struct, frozen=True, kw_only=True):
    """A time without any worker."""

    at: float
    hours: float


class Agenda(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has to do with automation in the beginning."""

    sources: tuple[SourcePlan, ...]
    settings: tuple[SettingPlan, ...]
    nights: tuple[Night, ...]
    lease: float

    @classmethod
    def of(cls, chance: Random) -> "Agenda":
        """Deal one."""
        types = [chance.choice(SOURCE_TYPES) for _ in range(chance.choice((1, 2, 2)))]
        settings = [
            _setting(chance, number, source_type)
            for number, source_type in enumerate(chance.choices(types, k=chance.choice((1, 2, 2, 3))))
        ]
        return cls(
            sources=tuple(_source(chance, number, source_type) for number, source_type in enumerate(types)),
            settings=tuple(settings),
            nights=tuple(
                Night(at=chance.uniform(15, 120), hours=chance.choice((0.2, 1.2, 2.5, 4.0)))
                for _ in range(chance.choice((0, 1, 1, 2)))
            ),
            lease=chance.choice((3.0, 10.0, 300.0)),
        )


def other_said(chance: Random, now: Said) -> Said:
    """Change one thing that is said of a source."""
    match chance.choice(("day", "amount", "amount", "unit", "there")):
        case "day":
            return now._replace(day=_day(chance))
        case "amount":
            return now._replace(amount=chance.choice([one for one in _AMOUNTS if one != now.amount]))
        case "unit":
            return now._replace(unit=chance.choice((None, 0, 1)))
        case _:
            return now._replace(there=not now.there)


def other_rule(chance: Random, now: Rule, *, by_date: bool) -> Rule:
    """Change one thing that a setting says."""
    match chance.choice(("active", "what", "what", "send time", "group")):
        case "active":
            return now._replace(active=not now.active)
        case "what" if by_date:
            return now._replace(offsets=chance.choice(_OFFSETS))
        case "what":
            return now._replace(value=chance.choice(_VALUES))
        case "send time":
            return now._replace(send_time=chance.choice(_SEND_TIMES))
        case _:
            return now._replace(group=1 - now.group)


def _source(chance: Random, number: int, source_type: str) -> SourcePlan:
    first = Said(there=True, day=_day(chance), amount=chance.choice(_AMOUNTS), unit=chance.choice((None, None, 0, 1)))
    return SourcePlan(number=number, type=source_type, at=chance.uniform(0, 15), first=first)


def _setting(chance: Random, number: int, source_type: str) -> SettingPlan:
    first = Rule(
        active=True,
        offsets=chance.choice(_OFFSETS),
        send_time=chance.choice(_SEND_TIMES),
        value=chance.choice(_VALUES),
        policy=chance.choice(tuple(FiringPolicy)),
        group=chance.choice((0, 1)),
    )
    # Without a date a room is found by a repair only because it changed, and not because its date is near.
    by_date = source_type == INVOICE and chance.random() < 0.6
    return SettingPlan(number=number, type=source_type, by_date=by_date, at=chance.uniform(0, 15), first=first)


def _day(chance: Random) -> date:
    return TODAY + timedelta(days=chance.choice(_DAYS))

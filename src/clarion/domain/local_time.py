"""Local time: from a date and a time of day in a zone to an instant, and back.

Whoever counts days counts local dates, and turns the last of them into an instant here, never the other way round.
Where the clocks go forward, a time that does not exist is moved forward by as much as they are: 02:30 becomes 03:30.
Where they go back, the first of two equal times is meant. Either is what `fold=0` of PEP 495 comes to.

Pure but for the tables of the package `tzdata`, which are read when a zone is first used; those of the machine are not,
because two hosts would then disagree about when a row is due.
"""

from datetime import UTC, date, datetime, time, tzinfo
from functools import cache
from importlib import resources
from typing import Final
from zoneinfo import ZoneInfo

import tzdata

from clarion.domain.instant import require_storable
from clarion.errors import InvalidInput

TZDATA_VERSION: Final[str] = tzdata.IANA_VERSION
"""Which edition of the time zone database this program converts by, such as 2026a; stored beside what it converted."""

UTC_NAME: Final = "UTC"
"""The zone of whoever has said nothing about it."""


@cache
def zone_names() -> frozenset[str]:
    """Name the zones that the tables have."""
    return frozenset(resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split())


def require_zone(tz_id: str, *, field: str) -> str:
    """Refuse a zone that the tables do not have."""
    if tz_id not in zone_names():
        raise InvalidInput(
            f"{tz_id[:40]!r} is no time zone", field=field, hint="write its name, such as Europe/Vienna or UTC"
        )
    return tz_id


def zone_of(tz_id: str) -> tzinfo:
    """Return a zone of the tables, or refuse its name."""
    return _loaded(require_zone(tz_id, field="tz_id"))


def to_utc(day: date, at: time, tz_id: str) -> datetime:
    """Turn a local date and time of day into the instant that they mean in a zone."""
    local = datetime.combine(day, at.replace(fold=0), zone_of(tz_id))
    try:
        instant = local.astimezone(UTC)
    except OverflowError:
        raise InvalidInput("it is outside of the calendar", field="local_date", hint="correct it and ask again") from (
            None
        )
    return require_storable(instant, field="local_date")


def to_local(instant: datetime, tz_id: str) -> datetime:
    """Tell an instant's date and time of day in a zone; for reading, never for reckoning."""
    return instant.astimezone(zone_of(tz_id))


def local_date(instant: datetime, tz_id: str) -> date:
    """Tell which day it is in a zone."""
    return to_local(instant, tz_id).date()


def time_of_day(written: str) -> time:
    """Read a time of day as settings write it: 09:00."""
    return time.fromisoformat(written)


@cache
def _loaded(tz_id: str) -> tzinfo:
    """Read a zone's table; kept, since there are six hundred at most."""
    with resources.files("tzdata.zoneinfo").joinpath(*tz_id.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=tz_id)

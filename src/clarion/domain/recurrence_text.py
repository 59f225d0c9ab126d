"""Reading what people write for a recurrence: an RRULE of RFC 5545, or a line of cron. Pure.

Both come to the same parts, which `recurrence` walks along. What cannot be meant is refused here, with words: unknown
parts, numbers out of range, what is due more often than once an hour.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from clarion.domain.local_time import to_utc
from clarion.errors import InvalidInput

COUNT_MAX: Final = 1000
"""Runs of a rule that counts them: each look at it counts from its first one."""

INTERVAL_MAX: Final = 1000

WEEKDAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")

_FREQUENCIES: Final = ("HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY")
_RANGES: Final = {
    "BYMONTH": (1, 12),
    "BYMONTHDAY": (1, 31),
    "BYYEARDAY": (1, 366),
    "BYWEEKNO": (1, 53),
    "BYSETPOS": (1, 366),
    "BYHOUR": (0, 23),
    "BYMINUTE": (0, 59),
}
_FROM_THE_END: Final = frozenset({"BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYSETPOS"})
_BYDAY: Final = re.compile(rf"([+-]?[1-9]\d?)?({'|'.join(WEEKDAYS)})", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?\d{1,4}", re.ASCII)
_UNTIL: Final = re.compile(r"(\d{8})(?:T(\d{6})(Z?))?", re.ASCII)

_CRON_RANGES: Final = {"hour": (0, 23), "day of the month": (1, 31), "month": (1, 12), "day of the week": (0, 7)}
_CRON_NAMES: Final = {
    "month": ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"),
    "day of the week": ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"),
}
_CRON_PIECE: Final = re.compile(r"(?:(\*)|(\w{1,3})(?:-(\w{1,3}))?)(?:/(\d{1,2}))?", re.ASCII)

_EXAMPLES: Final = "write FREQ=WEEKLY;BYDAY=MO;BYHOUR=8 or a line of cron such as 0 8 * * MON"
_TOO_OFTEN: Final = "it is due more often than once an hour"
_ONE_MINUTE: Final = "name one minute, such as 0, and the hours"


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """A rule taken apart: how often, every how many of these, and what narrows or widens it, as RRULE writes it."""

    frequency: str
    interval: int = 1
    count: int | None = None
    week_start: str = "MO"
    by: Mapping[str, str] = {}


def read_rule(text: str, *, tz_id: str) -> tuple[tuple[Parts, ...], datetime | None]:
    """Take a rule apart, and say until when it runs where it says so; any of the parts makes it due."""
    written = text.strip().upper()
    if "=" in written:
        return _read_rrule(written.removeprefix("RRULE:"), tz_id=tz_id)
    return _read_cron(written), None


def _read_rrule(written: str, *, tz_id: str) -> tuple[tuple[Parts, ...], datetime | None]:
    given: dict[str, str] = {}
    for piece in written.split(";"):
        name, equals, value = piece.partition("=")
        if name.startswith("DTSTART"):
            raise _refused("a rule does not say when it begins", hint="leave DTSTART out and give starts_at")
        if not equals or not value or name in given:
            raise _refused(f"{piece[:40]!r} is no part of an RRULE, or is there twice", hint=_EXAMPLES)
        given[name] = value
    frequency = given.pop("FREQ", "")
    if frequency in ("MINUTELY", "SECONDLY"):
        raise _refused(_TOO_OFTEN, hint="write FREQ=HOURLY or less often")
    if frequency not in _FREQUENCIES:
        raise _refused("it does not say how often", hint=f"begin with FREQ= and one of {', '.join(_FREQUENCIES)}")
    until, count = given.pop("UNTIL", None), given.pop("COUNT", None)
    if until is not None and count is not None:
        raise _refused("it has both COUNT and UNTIL", hint="leave one of them out")
    week_start = given.pop("WKST", "MO")
    if week_start not in WEEKDAYS:
        raise _refused(f"WKST={week_start[:40]} is no day", hint=f"write one of {', '.join(WEEKDAYS)}")
    parts = Parts(
        frequency=frequency,
        interval=_whole("INTERVAL", given.pop("INTERVAL", "1"), INTERVAL_MAX),
        count=None if count is None else _whole("COUNT", count, COUNT_MAX),
        week_start=week_start,
        by={name: _by(name, value, frequency=frequency) for name, value in given.items()},
    )
    return (parts,), None if until is None else _until(until, tz_id)


def _by(name: str, value: str, *, frequency: str) -> str:
    """Hold one narrowing part to what it may say."""
    pieces = value.split(",")
    if name == "BYDAY":
        _check_days(pieces, frequency=frequency)
        return value
    if name == "BYSECOND" and value in ("0", "00"):
        return "0"
    if name not in _RANGES:
        known = f"use BYDAY, {', '.join(_RANGES)}"
        raise _refused(f"{name[:40]!r} is no part of an RRULE that can be used", hint=known)
    if name == "BYSETPOS" and frequency == "HOURLY":
        raise _refused("an hour has one time, of which none can be chosen", hint="leave BYSETPOS out")
    if name == "BYMINUTE" and len(pieces) > 1:
        raise _refused(_TOO_OFTEN, hint=_ONE_MINUTE)
    low, high = _RANGES[name]
    for piece in pieces:
        number = int(piece) if _NUMBER.fullmatch(piece) else high + 1
        size = abs(number) if name in _FROM_THE_END else number
        if not low <= size <= high:
            ends = f"{low} to {high}" + (f", or -{high} to -{low} from the end" if name in _FROM_THE_END else "")
            raise _refused(f"{piece[:40]!r} is none of {name}", hint=f"write numbers from {ends}")
    return value


def _check_days(pieces: list[str], *, frequency: str) -> None:
    for piece in pieces:
        found = _BYDAY.fullmatch(piece)
        if found is None:
            raise _refused(f"{piece[:40]!r} is none of BYDAY", hint="write MO, or 2MO for the second Monday")
        if found[1] and frequency not in ("MONTHLY", "YEARLY"):
            raise _refused(f"{piece!r} needs a month or a year to count in", hint="write FREQ=MONTHLY or FREQ=YEARLY")


def _whole(name: str, value: str, most: int) -> int:
    if not value.isascii() or not value.isdigit() or len(value) > 9 or not 1 <= int(value) <= most:
        raise _refused(f"{name}={value[:40]} cannot be", hint=f"write a number from 1 to {most}")
    return int(value)


def _until(value: str, tz_id: str) -> datetime:
    """Read the last instant of a rule; a bare date means all of that day."""
    refused = _refused(f"UNTIL={value[:40]} is no date", hint="write 20261231, or 20261231T080000Z")
    found = _UNTIL.fullmatch(value)
    if found is None:
        raise refused
    try:
        at = datetime.strptime(found[1] + (found[2] or "235959"), "%Y%m%d%H%M%S")  # noqa: DTZ007  local until here
    except ValueError:
        raise refused from None
    return to_utc(at.date(), at.time(), "UTC" if found[3] else tz_id)


def _read_cron(written: str) -> tuple[Parts, ...]:
    """Read a line of cron; where both days are narrowed, either makes it due, as cron has it."""
    fields = written.split()
    if len(fields) != 5:
        raise _refused("it is neither an RRULE nor five fields of cron", hint=_EXAMPLES)
    minute, *others = fields
    if not minute.isascii() or not minute.isdigit() or len(minute) > 2 or int(minute) > 59:
        raise _refused(f"{minute[:40]!r} is not one minute of the hour", hint=_ONE_MINUTE)
    hour, day, month, weekday = (_cron_field(name, value) for name, value in zip(_CRON_RANGES, others, strict=True))
    by = {"BYMINUTE": str(int(minute)), "BYHOUR": _joined(hour)}
    if len(month) < 12:
        by["BYMONTH"] = _joined(month)
    days = {"BYMONTHDAY": _joined(day)} if len(day) < 31 else {}
    weekdays = {"BYDAY": ",".join(dict.fromkeys(WEEKDAYS[(one + 6) % 7] for one in weekday))}
    if len(weekdays["BYDAY"].split(",")) == 7:
        weekdays = {}
    either = bool(days and weekdays) and not others[1].startswith("*") and not others[3].startswith("*")
    ways = ({**by, **days}, {**by, **weekdays}) if either else ({**by, **days, **weekdays},)
    # By months where days are narrowed: a day that no month has is then looked for 12 times a year instead of 365.
    frequency = "MONTHLY" if days or weekdays else "DAILY"
    return tuple(Parts(frequency=frequency, by=way) for way in ways)


def _joined(numbers: list[int]) -> str:
    return ",".join(map(str, numbers))


def _cron_field(name: str, value: str) -> list[int]:
    """List the numbers that one field of cron means."""
    low, high = _CRON_RANGES[name]
    numbers: set[int] = set()
    for piece in value.split(","):
        found = _CRON_PIECE.fullmatch(piece)
        if found is None:
            raise _cron_refused(name, piece)
        first = low if found[1] else _cron_number(name, found[2])
        step = 1 if found[4] is None else int(found[4])
        if found[1] or (found[4] is not None and found[3] is None):
            last = high
        else:
            last = _cron_number(name, found[3]) if found[3] else first
        if not low <= first <= last <= high or step < 1:
            raise _cron_refused(name, piece)
        numbers.update(range(first, last + 1, step))
    return sorted(numbers)


def _cron_number(name: str, word: str) -> int:
    names = _CRON_NAMES.get(name, ())
    if word in names:
        return names.index(word) + _CRON_RANGES[name][0]
    if not word.isdigit():
        raise _cron_refused(name, word)
    return int(word)


def _cron_refused(name: str, piece: str) -> InvalidInput:
    low, high = _CRON_RANGES[name]
    return _refused(f"{piece[:40]!r} is no {name}", hint=f"write numbers from {low} to {high}, such as {low}-{high}/2")


def _refused(message: str, *, hint: str) -> InvalidInput:
    return InvalidInput(message, field="rule", hint=hint)

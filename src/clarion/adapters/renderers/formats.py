"""Dates, times, numbers and money as they are written where the reader lives (CLDR, by Babel).

A merge has one locale and one zone. They come with the row, never from this host, and there is no "now": a message must
be the same bytes at every retry (I-15). For the same reason zones come from the package `tzdata` and not from the
host's own tables, which differ from host to host.

A form of `date` with `%` writes an instant in the zone that it was given in, with the words of the locale. The named
forms (`short`, `medium`, `long`, `full`) bring it into the merge's zone first. Either takes another zone after the
form. A date, and a time without a zone, are no instants and stay as they are.

Pure but for the tables of Babel and tzdata, which are read when a locale or a zone is first used.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from functools import lru_cache
from typing import Final

import msgspec
from babel import Locale, UnknownLocaleError
from babel.dates import format_datetime
from babel.numbers import format_currency, format_decimal, format_percent, is_currency
from liquid.exceptions import FilterArgumentError
from liquid.undefined import is_undefined

from clarion.domain.local_time import zone_names, zone_of
from clarion.domain.locale import parents, resolve

FORMS: Final = ("short", "medium", "long", "full")

DIGITS_MAX: Final = 10
"""Digits after the point: more are noise in a message."""

LOCAL: Final = "local"
"""Stands for the merge's own zone, for a form with `%`."""

_NUMBER: Final = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,20})?", re.ASCII)
_FRACTION: Final = re.compile(r"0(\.[0#]+)?(?![0#,])")
_DIRECTIVE: Final = re.compile(r"%(-?)(.)", re.DOTALL)


class FormatRefused(FilterArgumentError):
    """A value that cannot be written so, or a form that there is not; the text is ours and repeats no data."""


class Writing(msgspec.Struct, frozen=True):
    """How a merge writes: in which locale and zone."""

    locale: Locale
    zone: tzinfo


@lru_cache(maxsize=512)
def writing_of(locale: str, zone: str) -> Writing:
    """Return how to write for a locale and a zone: the nearest parent that Babel knows, and UTC for no zone."""
    return Writing(next(filter(None, map(_known, (*parents(locale), "en"))), Locale("en")), _zone(zone) or UTC)


@lru_cache(maxsize=1024)
def writing_for(locales: tuple[str, ...], locale: str, zone: str) -> Writing:
    """Return how to write in texts of one of these locales for somebody who wants another: in the same language."""
    return writing_of(resolve([locale], locales), zone)


def as_date(value: object, form: object = "%Y-%m-%d", zone: object = None, *, writing: Writing) -> str:
    """Write the day of a date or an instant: by a form such as `%-d %B %Y`, or as the locale does."""
    if isinstance(form, str) and form not in FORMS:
        at, _ = _read(value, None if zone is None else _wanted(zone, writing))
        return _by_directives(at, form, writing.locale)
    at, _ = _read(value, _wanted(zone, writing))
    return _written(at, str(writing.locale.date_formats[_form(form)].pattern), writing)


def as_time(value: object, form: object = "short", zone: object = None, *, writing: Writing) -> str:
    """Write the time of day of an instant, as the locale does."""
    at, has_zone = _read(value, _wanted(zone, writing))
    name = _form(form, has_zone=has_zone)
    return _written(at, str(writing.locale.time_formats[name].pattern), writing)


def as_datetime(value: object, form: object = "medium", zone: object = None, *, writing: Writing) -> str:
    """Write the day and the time of an instant, as the locale does."""
    at, has_zone = _read(value, _wanted(zone, writing))
    return format_datetime(at, _form(form, has_zone=has_zone), tzinfo=at.tzinfo, locale=writing.locale)


def as_number(value: object, digits: object = None, *, writing: Writing) -> str:
    """Write a number, with so many digits after the point; without them at most three, and no more than it has."""
    pattern = writing.locale.decimal_formats[None].pattern
    return format_decimal(_number(value), _with_digits(pattern, digits), locale=writing.locale)


def as_percent(value: object, digits: object = None, *, writing: Writing) -> str:
    """Write a share of one as a percentage: 0.25 is 25 %."""
    pattern = writing.locale.percent_formats[None].pattern
    return format_percent(_number(value), _with_digits(pattern, digits), locale=writing.locale)


def as_money(value: object, currency: object = None, *, writing: Writing) -> str:
    """Write an amount of a currency, which is named by its three letters."""
    if not isinstance(currency, str) or not is_currency(currency):
        raise FormatRefused('money takes the three letters of a currency, such as "EUR"', token=None)
    return format_currency(_number(value), currency, locale=writing.locale)


FORMATS: Final[Mapping[str, Callable[..., str]]] = {
    "date": as_date,
    "time": as_time,
    "datetime": as_datetime,
    "number": as_number,
    "percent": as_percent,
    "money": as_money,
}
"""Filters that write in the locale and the zone of the merge."""


def _by_directives(at: datetime, form: str, locale: Locale) -> str:
    def written(found: re.Match[str]) -> str:
        directive = _DIRECTIVES.get(found[2])
        if directive is None:
            known = ", ".join(f"%{name}" for name in _DIRECTIVES)
            raise FormatRefused(
                f"date knows {known} and the same with a hyphen, and the forms {', '.join(FORMS)}", token=None
            )
        text = directive(at, locale)
        return text.lstrip("0") or "0" if found[1] else text

    return _DIRECTIVE.sub(written, form)


_DIRECTIVES: Final[Mapping[str, Callable[[datetime, Locale], str]]] = {
    "Y": lambda at, _: f"{at.year:04}",
    "y": lambda at, _: f"{at.year % 100:02}",
    "m": lambda at, _: f"{at.month:02}",
    "B": lambda at, locale: str(locale.months["format"]["wide"][at.month]),
    "b": lambda at, locale: str(locale.months["format"]["abbreviated"][at.month]),
    "d": lambda at, _: f"{at.day:02}",
    "e": lambda at, _: f"{at.day}",
    "A": lambda at, locale: str(locale.days["format"]["wide"][at.weekday()]),
    "a": lambda at, locale: str(locale.days["format"]["abbreviated"][at.weekday()]),
    "H": lambda at, _: f"{at.hour:02}",
    "I": lambda at, _: f"{(at.hour - 1) % 12 + 1:02}",
    "M": lambda at, _: f"{at.minute:02}",
    "S": lambda at, _: f"{at.second:02}",
    "p": lambda at, locale: str(locale.day_periods["format"]["abbreviated"]["am" if at.hour < 12 else "pm"]),
    "%": lambda *_: "%",
}


def _read(value: object, zone: tzinfo | None) -> tuple[datetime, bool]:
    """Read a time, brought into a zone if it has one and one is wanted; say whether it has one."""
    if is_undefined(value):
        str(value)  # raises, and names the variable
    if isinstance(value, str | int) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError, OSError):
            at = datetime.fromisoformat(value) if isinstance(value, str) else datetime.fromtimestamp(value, UTC)
            has_zone = at.tzinfo is not None
            return (at.astimezone(zone) if has_zone and zone is not None else at), has_zone
    raise FormatRefused("date takes an ISO 8601 date or time, or seconds since 1970", token=None)


def _written(at: datetime, pattern: str, writing: Writing) -> str:
    """Write by a pattern of the locale; of a whole instant, so that the name of its zone fits its day."""
    return format_datetime(at, pattern, tzinfo=at.tzinfo, locale=writing.locale)


def _wanted(zone: object, writing: Writing) -> tzinfo:
    """Return the zone that a template asks for, or the merge's own."""
    if zone is None or zone == LOCAL:
        return writing.zone
    found = _zone(zone) if isinstance(zone, str) else None
    if found is None:
        raise FormatRefused('there is no such time zone; name one such as "Europe/Vienna"', token=None)
    return found


def _form(form: object, *, has_zone: bool = True) -> str:
    if form not in FORMS:
        raise FormatRefused(f"the forms are {', '.join(FORMS)}", token=None)
    if not has_zone and form in ("long", "full"):
        raise FormatRefused(f"the form {form} names the time zone, and this time has none", token=None)
    return str(form)


def _number(value: object) -> Decimal:
    """Read a number, also one that is text, as amounts of money often are."""
    if is_undefined(value):
        str(value)  # raises, and names the variable
    if (isinstance(value, int | float) and not isinstance(value, bool)) or (
        isinstance(value, str) and _NUMBER.fullmatch(value)
    ):
        return Decimal(str(value))
    raise FormatRefused("a number is wanted here, such as 1234.5", token=None)


def _with_digits(pattern: str, digits: object) -> str | None:
    """Give a locale's pattern so many digits after the point, or None for those that it has."""
    if digits is None:
        return None
    if isinstance(digits, bool) or not isinstance(digits, int) or not 0 <= digits <= DIGITS_MAX:
        raise FormatRefused(f"the digits after the point are 0 to {DIGITS_MAX}", token=None)
    return _FRACTION.sub(f"0.{'0' * digits}" if digits else "0", pattern, count=1)


def _known(locale: str) -> Locale | None:
    try:
        return Locale.parse(locale, sep="-")
    except (UnknownLocaleError, ValueError, TypeError):
        return None


def _zone(name: str) -> tzinfo | None:
    """Find a zone in the tables of tzdata."""
    return zone_of(name) if name in zone_names() else None

"""Sources as their application describes them, and what is checked of that before anything is stored.

Whatever the door, fields, dates and metrics come in as the values of JSON. Every mistake is told by its field, so that
whoever sends many sources is told of all of them. Reads and writes nothing.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from math import isfinite
from typing import Final, TypeVar
from uuid import UUID

import msgspec

from clarion.domain.hashing import INTEGER_MAX
from clarion.domain.part import UNSEEN
from clarion.domain.reminder import EVERY
from clarion.domain.source import (
    FIELDS_MAX,
    SCOPE_CHARS_MAX,
    SCOPES_MAX,
    FieldName,
    FieldValue,
    SourceContent,
    check_id,
    require_content,
)
from clarion.errors import InvalidInput, InvalidItems

YEARS: Final = (1900, 2199)
"""Of a date: people are born in the one, and no certificate that anybody keeps expires after the other. What lies
outside is a slip of the keyboard, and reminders years before and after a date stay within all calendars."""

MISTAKES_MAX: Final = 100
"""As many as an answer names: the pattern shows by then."""

_SCOPE: Final = re.compile(rf"(?!\s)[^{UNSEEN}]{{1,{SCOPE_CHARS_MAX}}}(?<!\s)")

V = TypeVar("V")


class SourceEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A source as a whole: what is left out, it has not. `entity` is its guid where its application has one."""

    source: str
    entity: UUID | None = None
    business_unit: UUID | None = None
    fields: Mapping[str, object] = {}
    dates: Mapping[str, object] = {}
    metrics: Mapping[str, object] = {}


class CheckedSource(msgspec.Struct, frozen=True, kw_only=True):
    """An entry in which nothing is wrong."""

    source: str
    entity: UUID | None
    business_unit: UUID | None
    content: SourceContent


class BadSource(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with the entry at a place, counted from 0; the field is relative to the entry."""

    place: int
    error: InvalidInput


def check_sources(entries: Sequence[SourceEntry]) -> tuple[dict[int, CheckedSource], list[BadSource]]:
    """Tell the entries in which nothing is wrong, by their places, from those that cannot be stored, and why."""
    places: dict[str, int] = {}
    good: dict[int, CheckedSource] = {}
    bad: list[BadSource] = []
    for place, entry in enumerate(entries):
        first = places.setdefault(entry.source, place)
        try:
            _require_first(place, first)
            good[place] = check_source(entry)
        except InvalidItems as error:
            bad += [BadSource(place=place, error=one) for one in error.mistakes]
        except InvalidInput as error:
            bad.append(BadSource(place=place, error=error))
    return good, bad


def check_source(entry: SourceEntry) -> CheckedSource:
    """Read an entry, or raise InvalidItems with every mistake in it."""
    mistakes: list[InvalidInput] = []
    source = _tried(mistakes, lambda: check_id(entry.source, field="id"))
    content = SourceContent(
        fields=_read(mistakes, "fields", entry.fields, _field),
        dates=_read(mistakes, "dates", entry.dates, _day),
        metrics=_read(mistakes, "metrics", entry.metrics, _metric),
    )
    if not mistakes:
        _tried(mistakes, lambda: require_content(content))
    if mistakes or source is None:
        raise InvalidItems(mistakes[:MISTAKES_MAX])
    return CheckedSource(source=source, entity=entry.entity, business_unit=entry.business_unit, content=content)


def refusal(bad: Sequence[BadSource], *, of: str = "sources") -> InvalidItems:
    """Make the one error for all entries that cannot be stored, each field behind the place of its entry."""
    return InvalidItems(
        [
            InvalidInput(one.error.message, field=f"{of}[{one.place}].{one.error.field}", hint=one.error.hint)
            for one in sorted(bad, key=lambda one: one.place)[:MISTAKES_MAX]
        ]
    )


def _require_first(place: int, first: int) -> None:
    if first != place:
        raise InvalidInput(f"it is the source at place {first} again", field="id", hint="name each source once")


def _read(
    mistakes: list[InvalidInput], name: str, given: Mapping[str, object], read: Callable[[object, str], V]
) -> dict[str, V]:
    """Read the values of one kind by their names; one that is None is not known, and left out."""
    if len(given) > FIELDS_MAX:
        mistakes.append(InvalidInput(f"it has {len(given)} entries", field=name, hint=f"use {FIELDS_MAX} or less"))
        return {}
    found: dict[str, V] = {}
    for key, value in given.items():
        field = f"{name}.{key[:64]}"
        named = _tried(mistakes, partial(_name, key, field))
        said = None if value is None else _tried(mistakes, partial(read, value, field))
        if named is not None and said is not None:
            found[named] = said
    return found


def _tried(mistakes: list[InvalidInput], read: Callable[[], V]) -> V | None:
    """Read, and note what is wrong instead of raising it."""
    try:
        return read()
    except InvalidInput as error:
        mistakes.append(error)
        return None


def _name(text: str, field: str) -> str:
    try:
        return msgspec.convert(text, FieldName)
    except msgspec.ValidationError:
        raise InvalidInput(
            "it is no name that templates can write",
            field=field,
            hint="use 1 to 64 of A-Z, a-z, 0-9 and '_', not starting with a digit",
        ) from None


def _field(value: object, field: str) -> FieldValue:
    match value:
        case bool() | str():
            if isinstance(value, str):
                _require_encodable(value, field)
            return value
        case int() | float():
            return _number(value, field)
        case _:
            raise InvalidInput(
                "it is no text, number or truth", field=field, hint="lists and objects do not fit into a field"
            )


def _day(value: object, field: str) -> date:
    if isinstance(value, str):
        try:
            day = date.fromisoformat(value)
        except ValueError:
            day = None
        if day is not None and day.isoformat() == value:
            first, last = YEARS
            if first <= day.year <= last:
                return day
            raise InvalidInput(f"it is outside of the years {first} to {last}", field=field, hint="correct the year")
    raise InvalidInput("it is no date that there is", field=field, hint="write a day such as 2026-03-31")


def _metric(value: object, field: str) -> float | dict[str, float]:
    """Read a number, or numbers by scope."""
    if not isinstance(value, Mapping):
        return float(_number(value, field))
    if not 1 <= len(value) <= SCOPES_MAX:
        raise InvalidInput(f"it has {len(value)} scopes", field=field, hint=f"use 1 to {SCOPES_MAX}")
    found: dict[str, float] = {}
    for scope, one in value.items():
        if scope == EVERY:
            raise InvalidInput("a scope is called *, which means each of them", field=field, hint="name it by a word")
        if not isinstance(scope, str) or not _SCOPE.fullmatch(scope):
            raise InvalidInput(
                "a scope has no name, or one that nobody can read", field=field, hint="name it by a word"
            )
        _require_encodable(scope, field)
        found[scope] = float(_number(one, f"{field}.{scope}"))
    return found


def _number(value: object, field: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput("it is no number", field=field, hint="write a number without quotes, such as 7 or 2.5")
    if isinstance(value, float) and not isfinite(value):
        raise InvalidInput("it is no finite number", field=field, hint="leave it out where there is none")
    if isinstance(value, int) and abs(value) > INTEGER_MAX:
        raise InvalidInput("it has too many digits to be exact", field=field, hint="give it as text in a field")
    return value


def _require_encodable(text: str, field: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput("it holds half of a surrogate pair", field=field, hint="pass well-formed Unicode") from None

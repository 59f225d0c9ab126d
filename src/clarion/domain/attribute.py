"""Attributes: what people can be chosen by later, each declared by its tenant with a name and a kind.

They are apart from the sealed profile, because the database has to compare them. So a value has one text for its kind,
and what is private belongs into the profile. Pure.
"""

import re
from datetime import date, datetime
from enum import StrEnum
from typing import Final, assert_never

import msgspec

from clarion.domain import part
from clarion.errors import InvalidInput, InvalidKey

NAME_CHARS_MAX: Final = 64
VALUE_BYTES_MAX: Final = 200
"""As much as its column takes; it is a word to choose people by, not a text about them."""

DECLARED_MAX: Final = 100
"""Attributes of a tenant: more than anybody chooses people by, and few enough to be read with every import."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*", re.ASCII)
_NUMBER: Final = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?", re.ASCII)
_WORDS: Final = {"true": True, "false": False}


class Kind(StrEnum):
    """What the values of an attribute are."""

    TEXT = "text"
    NUMBER = "number"
    TRUTH = "truth"
    DATE = "date"


class Attribute(msgspec.Struct, frozen=True, kw_only=True):
    """One attribute as its tenant has declared it."""

    name: str
    kind: Kind


_SHAPES: Final = {
    Kind.TEXT: "write it as text",
    Kind.NUMBER: "write a number without quotes, such as 7 or 2.5",
    Kind.TRUTH: "write true or false without quotes",
    Kind.DATE: "write it as 2026-03-31",
}


def require_name(name: str) -> str:
    """Refuse what no attribute can be called."""
    if len(name) > NAME_CHARS_MAX or not part.spelled(name, _NAME):
        raise InvalidInput(
            "it is not the name of an attribute",
            field="name",
            hint=f"use 1 to {NAME_CHARS_MAX} of a-z, 0-9, '-' and '_', starting with a letter",
        )
    return name


def canonical(kind: Kind, value: object, *, field: str = "value") -> str:
    """Write a value in the one text that its kind has for it, or refuse it."""
    match kind, value:
        case Kind.TEXT, str() if value.strip() and not re.search(f"[{part.UNSEEN}]", value):
            return _fitting(value, field=field)
        case Kind.TRUTH, bool():
            return "true" if value else "false"
        case Kind.NUMBER, int() | float() if not isinstance(value, bool):
            try:
                return part.number(value, field=field)
            except InvalidKey as error:
                raise InvalidInput(error.message, field=field, hint=_SHAPES[kind]) from None
        case Kind.DATE, date() if not isinstance(value, datetime):
            return value.isoformat()
        case Kind.DATE, str() if _is_day(value):
            return value
        case _:
            raise InvalidInput(f"it is no {kind} that can be stored", field=field, hint=_SHAPES[kind])


def read_text(kind: Kind, text: str, *, field: str = "value") -> str | int | float | bool:
    """Read a value that could only be given as text, such as a cell of a file or an argument of a command."""
    match kind:
        case Kind.TEXT | Kind.DATE:
            return text
        case Kind.TRUTH:
            word = _WORDS.get(text.lower())
            if word is not None:
                return word
        case Kind.NUMBER:
            if _NUMBER.fullmatch(text):
                return _number(text)
        case _:
            assert_never(kind)
    raise InvalidInput(f"it is no {kind}", field=field, hint=_SHAPES[kind].replace(" without quotes", ""))


def value_of(kind: Kind, text: str) -> str | int | float | bool:
    """Read a stored text as the value that it was; a date stays the text that JSON has for it."""
    match kind:
        case Kind.TEXT | Kind.DATE:
            return text
        case Kind.TRUTH:
            return text == "true"
        case Kind.NUMBER:
            return _number(text)
        case _:
            assert_never(kind)


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _fitting(text: str, *, field: str) -> str:
    try:
        return part.plain(text, field=field, size_max=VALUE_BYTES_MAX)
    except InvalidKey as error:
        raise InvalidInput(error.message, field=field, hint=error.hint) from None


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False

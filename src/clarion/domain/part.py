"""What may stand between two separators of a key: every kind of part, its one spelling, and the limits of a key.

A part never holds a separator of ours, whatever its caller named things, so a key can always be taken apart again and
two different occurrences never share one (I-01). Errors name the field and never quote the value.

Reads and writes nothing. The keys themselves live in `key`.
"""

import re
import unicodedata
from datetime import date, datetime
from enum import Enum
from typing import TypeVar
from urllib.parse import quote
from uuid import UUID

from clarion.domain.hashing import INTEGER_MAX, fraction, shortest_number, utc
from clarion.errors import InvalidKey

KEY_MAX = 512  # bytes, of any key: half of what Azure Tables takes, and well within an index row of PostgreSQL
SOURCE_KEY_MAX = 400  # bytes, of an occurrence's own key: what derives from it adds at most 43 and stays within KEY_MAX

UNSEEN = r"\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069"
"""For a character class: control characters, line breaks, and what shows letters in another order than they stand in.
Nobody can tell two names apart that differ in these, and some stores cannot keep them."""

END = r"$(?!\n)"
r"""The end of a pattern that a whole text must fit: `$` alone is also met before a line break that ends the text. JSON
Schema knows no `\Z`."""

# What text() leaves, the ':' and '_' between parts, and the '+' of 1e+21. No '/': no key derives from a blob's path.
_KEY = re.compile(r"[A-Za-z0-9._~%:+-]+")
_HASH = re.compile(r"[0-9a-f]{32}")
_GUID_IN_ANY_CASE = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

_Member = TypeVar("_Member", bound=Enum)


def text(value: str, *, field: str) -> str:
    """Write free text: NFC, then percent-encoded outside `[A-Za-z0-9._~-]`, which is all that `quote` leaves alone."""
    return quote(plain(value, field=field), safe="")


def plain(value: str, *, field: str, size_max: int | None = None) -> str:
    """Check free text that will be hashed, and bring it to NFC."""
    if not isinstance(value, str):
        raise InvalidKey(f"it is {_kind(value)}, not text", field=field, hint="pass text")
    if not value:
        raise InvalidKey("it is empty", field=field, hint="give it a value")
    normal = unicodedata.normalize("NFC", value)
    try:
        size = len(normal.encode())
    except UnicodeEncodeError:
        raise InvalidKey("it holds half of a surrogate pair", field=field, hint="pass well-formed Unicode") from None
    if size_max is not None and size > size_max:
        raise InvalidKey(f"it is {size} bytes long, {size_max} is the most", field=field, hint="shorten it")
    return normal


def guid(value: UUID, *, field: str) -> str:
    """Write a guid in lower case with dashes; only a UUID is taken, so that no second spelling can come in."""
    if not isinstance(value, UUID):
        raise InvalidKey(f"it is {_kind(value)}, not a guid", field=field, hint="pass a uuid.UUID")
    return str(value)


def is_guid(text: str) -> bool:
    """Tell whether text is a guid as we write it."""
    return _GUID_IN_ANY_CASE.fullmatch(text) is not None and text == text.lower()


def reference(value: UUID | str, *, field: str) -> str:
    """Write the id of something that has either a guid or a name of its caller's choice."""
    if isinstance(value, UUID):
        return str(value)
    written = text(value, field=field)
    if _GUID_IN_ANY_CASE.fullmatch(written) and written != written.lower():
        raise InvalidKey("it is a guid in another spelling than ours", field=field, hint="pass a uuid.UUID")
    return written


def number(value: float, *, field: str) -> str:
    """Write a number in its shortest form, so that 1, 1.0 and 1e0 are one part."""
    try:
        return shortest_number(value)
    except (TypeError, ValueError) as reason:
        raise InvalidKey(str(reason), field=field, hint="pass an int or a finite float") from None


def whole(value: int, *, field: str, least: int = -INTEGER_MAX) -> str:
    """Write a whole number that is no smaller than `least`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidKey(f"it is {_kind(value)}, not a whole number", field=field, hint="pass an int")
    if not least <= value <= INTEGER_MAX:
        raise InvalidKey("it is out of range", field=field, hint=f"pass a number from {least} to {INTEGER_MAX}")
    return str(int(value))


def day(value: date, *, field: str) -> str:
    """Write a calendar date as YYYY-MM-DD."""
    if isinstance(value, datetime) or not isinstance(value, date):
        raise InvalidKey(f"it is {_kind(value)}, not a date", field=field, hint="pass a date without a time")
    return value.isoformat()


def instant(value: datetime, *, field: str) -> str:
    """Write an instant as YYYYMMDDTHHMMSSZ, with a fraction of the second where it has one.

    Without the colons of RFC 3339, because a colon separates the parts of our keys.
    """
    at = in_utc(value, field=field)
    return f"{at.date().isoformat().replace('-', '')}T{at:%H%M%S}{fraction(at)}Z"


def in_utc(value: datetime, *, field: str) -> datetime:
    """Bring an instant to UTC, or name the field that holds none."""
    try:
        return utc(value)
    except (TypeError, ValueError) as reason:
        raise InvalidKey(str(reason), field=field, hint="pass an aware datetime") from None


def member(value: _Member, *, of: type[_Member], field: str) -> str:
    """Write a member of a closed set; its bare text is not taken, since it could be anything."""
    if not isinstance(value, of):
        raise InvalidKey(f"it is {_kind(value)}, not a {of.__name__}", field=field, hint=f"pass a {of.__name__}")
    return str(value.value)


def hash32(value: str, *, field: str) -> str:
    """Check one of our 16-byte hashes."""
    if not spelled(value, _HASH):
        raise InvalidKey("it is not 32 lower-case hex digits", field=field, hint="pass the hash of derived_id")
    return value


def made_key(value: str, *, field: str) -> str:
    """Check a key that another function of ours made and that stands inside this one."""
    if not spelled(value, _KEY):
        raise InvalidKey("it is not a key that Clarion made", field=field, hint="pass the stored key as it is")
    return fit(value, field=field)


def fit(key: str, *, field: str, size_max: int = KEY_MAX, shorten: str = "what it is made of") -> str:
    """Refuse a key that is too long, and say what would make it shorter."""
    if len(key) > size_max:  # parts are ASCII, so characters are bytes
        raise InvalidKey(
            f"the key is {len(key)} bytes long, {size_max} is the most",
            field=field,
            hint=f"shorten {shorten} (a character outside A-Z a-z 0-9 . _ ~ - takes 3 bytes or more)",
        )
    return key


def spelled(value: object, pattern: re.Pattern[str]) -> bool:
    """Tell whether a value is text and all of it follows the pattern."""
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _kind(value: object) -> str:
    return f"of type {type(value).__name__}"

"""Canonical JSON, and the tagged hashes over it.

One content has one canonical form, whatever the order of its keys, the Unicode form of its text, the zone of its
instants or the type of its numbers (I-05). A stored hash carries the tag of its algorithm, so that a later program
compares an old row under the row's own tag. The form is specified in docs/reference/keys.md.

Reads and writes nothing. Keys live in `key`, ids derived by hash in `derived_id`, encryption in `seal`.
"""

import hashlib
import hmac
import json
import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, StrEnum
from typing import TypeVar
from uuid import UUID

import msgspec

from clarion.errors import InvalidInput, UnknownVersion

DEPTH_MAX = 32  # objects and arrays inside each other: far more than any payload has, far less than Python's own limit
SIZE_MAX = 8 * 1024 * 1024  # bytes: a page of 5,000 recipients takes 1 to 2 MB, and what is hashed must fit in memory
INTEGER_MAX = 2**53  # above it two integers share one double (RFC 8785), so the number would not say which was meant
SECRET_MIN = 32  # bytes: the output of SHA-256, below which an HMAC key is weaker than its hash (RFC 2104, section 3)

PLAIN_TAG = "h1"  # what new rows are written with: SHA-256 over canonical JSON
KEYED_TAG = "k1"  # the same as an HMAC under the tenant's identity key, for content that may hold personal data

_In = TypeVar("_In")
_Out = TypeVar("_Out")

_quote = json.JSONEncoder(ensure_ascii=False).encode  # escapes what RFC 8785 escapes, and nothing else


def digest(value: object, tag: str = PLAIN_TAG) -> str:
    """Hash content that holds nothing personal: `h1:` and 64 hex digits."""
    if tag not in PLAIN:
        raise UnknownVersion(f"no plain hash is called {tag!r}", field="tag", hint=f"use one of {', '.join(PLAIN)}")
    return f"{tag}:{PLAIN[tag](value)}"


def keyed_digest(key: bytes, value: object, tag: str = KEYED_TAG) -> str:
    """Hash content that may hold an address or a one-time code, which a plain hash would give away."""
    if tag not in KEYED:
        raise UnknownVersion(f"no keyed hash is called {tag!r}", field="tag", hint=f"use one of {', '.join(KEYED)}")
    return f"{tag}:{KEYED[tag](require_secret(key, field='key'), value)}"


def plain_tags() -> tuple[str, ...]:
    """Name the plain hashes that this program knows, the one that new rows are written with first."""
    return (PLAIN_TAG, *(tag for tag in PLAIN if tag != PLAIN_TAG))


def keyed_tags() -> tuple[str, ...]:
    """Name the keyed hashes that this program knows, the one that new rows are written with first."""
    return (KEYED_TAG, *(tag for tag in KEYED if tag != KEYED_TAG))


def require_secret(key: bytes, *, field: str) -> bytes:
    """Refuse a key so short that its HMAC could be reversed like a plain hash."""
    if not isinstance(key, bytes):
        raise InvalidInput("the secret is not bytes", field=field, hint="pass the key as the vault gives it")
    if len(key) < SECRET_MIN:
        raise InvalidInput(f"the secret has {len(key)} bytes", field=field, hint=f"use {SECRET_MIN} random bytes")
    return key


def canonical_json(value: object) -> bytes:
    """Write a value in its one canonical form: members by code point, no blanks, NFC, UTC, null members left out."""
    try:
        # A short cut for nearly all that is hashed: msgspec writes ASCII text and whole numbers in this form already.
        plain = _SORTED.encode(_plain(value, 0, [SIZE_MAX]))
        if len(plain) <= SIZE_MAX:
            return plain
    except _NotPlain:
        pass
    form = _Form()
    form.write(value, path="$", depth=0)
    return b"".join(form.pieces)


def shortest_number(value: float) -> str:
    """Write a number in the shortest form that reads back as the same double (ECMAScript, RFC 8785)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("it is not a number (a Decimal is not one either: its digits are text)")
    if isinstance(value, int):
        if abs(value) > INTEGER_MAX:
            raise ValueError("it is an integer beyond 2**53, which a double cannot hold exactly")
        return str(int(value))
    if not math.isfinite(value):
        raise ValueError("it is not a finite number")
    # Both languages pick the shortest digits that round back, the nearest of them if several; only the layout differs.
    shortest = Decimal(repr(float(value)))
    digits = "".join(map(str, shortest.as_tuple().digits)).rstrip("0")
    if not digits:
        return "0"  # minus zero as well: the two are equal
    point = shortest.adjusted() + 1  # where the decimal point stands, counted from the first digit
    minus = "-" if value < 0 else ""
    if len(digits) <= point <= 21:
        return f"{minus}{digits}{'0' * (point - len(digits))}"
    if 0 < point <= 21:
        return f"{minus}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{minus}0.{'0' * -point}{digits}"
    return f"{minus}{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e{point - 1:+d}"


def utc(at: datetime) -> datetime:
    """Bring an aware instant to UTC; a naive one says no instant at all."""
    if not isinstance(at, datetime):
        raise TypeError("it is not an instant")
    if at.utcoffset() is None:
        raise ValueError("it is an instant without a time zone")
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise ValueError("it lies outside the years 1 to 9999 in UTC") from None


def fraction(at: datetime) -> str:
    """Write an instant's part of a second in its shortest form: nothing, or a point and digits."""
    return f".{at.microsecond:06d}".rstrip("0") if at.microsecond else ""


_SORTED = msgspec.json.Encoder(order="sorted")
_NAMES = {str}


class _NotPlain(Exception):
    """A value needs more than sorting to be in its canonical form."""


def _plain(value: object, depth: int, room: list[int]) -> object:
    """Give a value without its null members, or raise where its canonical form is not what msgspec would write.

    `room` holds how many characters and members it may still have: what stands in many places counts in each of them.
    """
    kind = type(value)
    if kind is str:
        room[0] -= len(value)  # type: ignore[arg-type]  # it is text
        if room[0] >= 0 and value.isascii():  # type: ignore[attr-defined]  # it is text
            return value
    elif value is None or kind is bool or (kind is int and -INTEGER_MAX <= value <= INTEGER_MAX):  # type: ignore[operator]
        return value
    elif depth < DEPTH_MAX and isinstance(value, (dict, list, tuple)):
        room[0] -= len(value)
        if room[0] < 0:
            raise _NotPlain
        if not isinstance(value, dict):
            return [_plain(item, depth + 1, room) for item in value]
        if {*map(type, value)} <= _NAMES and (names := "".join(value)).isascii():
            room[0] -= len(names)
            return {name: _plain(member, depth + 1, room) for name, member in value.items() if member is not None}
    raise _NotPlain


class _Form:
    """The canonical text under construction, bounded while it grows."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self._size = 0

    def write(self, value: object, *, path: str, depth: int) -> None:
        """Add one value; `path` names it in errors, which never quote it."""
        if isinstance(value, Enum):
            value = value.value
        match value:
            case str():
                self._put(_quote(_normal(value, path)), path)
            case None | True | False:
                self._put(json.dumps(value), path)
            case int() | float():
                self._put(_or_refuse(shortest_number, value, path), path)
            case datetime():
                at = _or_refuse(utc, value, path)
                self._put(f'"{at.replace(tzinfo=None, microsecond=0).isoformat()}{fraction(at)}Z"', path)
            case date():
                self._put(f'"{value.isoformat()}"', path)
            case UUID():
                self._put(f'"{value}"', path)
            case Mapping():
                self._object(value, path, _deeper(depth, path))
            case list() | tuple():
                self._array(value, path, _deeper(depth, path))
            case _:
                raise _refused(path, f"a {type(value).__name__} has no canonical form", hint="turn it into text first")

    def _object(self, members: Mapping[object, object], path: str, depth: int) -> None:
        named: dict[str, object] = {}
        for name, value in members.items():
            if not isinstance(name, str):
                raise _refused(path, "a member's name is not text", hint="use text as names")
            if value is None:
                continue  # absent equals null
            normal = _normal(name.value if isinstance(name, StrEnum) else name, f"{path}, a member's name")
            if normal in named:
                raise _refused(path, "two names are equal after Unicode normalisation", hint="keep one of them")
            named[normal] = value
        self._put("{", path)
        for count, name in enumerate(sorted(named)):
            self._put(f"{',' if count else ''}{_quote(name)}:", path)
            # A name that is no plain word may be an address; errors count it instead of quoting it.
            word = name if name.isascii() and name.isidentifier() else f"[member {count}]"
            self.write(named[name], path=f"{path}.{word}", depth=depth)
        self._put("}", path)

    def _array(self, items: Sequence[object], path: str, depth: int) -> None:
        self._put("[", path)
        for count, item in enumerate(items):
            if count:
                self._put(",", path)
            self.write(item, path=f"{path}[{count}]", depth=depth)
        self._put("]", path)

    def _put(self, text: str, path: str) -> None:
        piece = text.encode()
        self._size += len(piece)
        if self._size > SIZE_MAX:
            raise _refused(path, f"the content passes {SIZE_MAX} bytes here", hint="put large content into a blob")
        self.pieces.append(piece)


def _normal(text: str, path: str) -> str:
    """Bring text to NFC, and refuse what is no Unicode text."""
    if text.isascii():
        return text  # nothing to normalise, and most of what is hashed
    normal = unicodedata.normalize("NFC", text)
    try:
        normal.encode()
    except UnicodeEncodeError:
        raise _refused(path, "the text holds half of a surrogate pair", hint="send well-formed Unicode") from None
    return normal


def _deeper(depth: int, path: str) -> int:
    if depth == DEPTH_MAX:
        raise _refused(path, f"more than {DEPTH_MAX} objects and arrays inside each other", hint="flatten the content")
    return depth + 1


def _or_refuse(form: Callable[[_In], _Out], value: _In, path: str) -> _Out:
    """Give a value its form, or name it in the error."""
    try:
        return form(value)
    except (TypeError, ValueError) as reason:
        raise _refused(path, f"no canonical form: {reason}", hint="send a value that can be compared exactly") from None


def _refused(path: str, message: str, *, hint: str) -> InvalidInput:
    return InvalidInput(message, field=path, hint=hint)


def _sha256(value: object) -> str:
    return hashlib.sha256(canonical_json(value)).hexdigest()


def _hmac_sha256(key: bytes, value: object) -> str:
    return hmac.digest(key, canonical_json(value), "sha256").hex()


# The algorithms by their tags. A second one is a second line; the first release that knows it must not yet write it.
PLAIN: dict[str, Callable[[object], str]] = {"h1": _sha256}
KEYED: dict[str, Callable[[bytes, object], str]] = {"k1": _hmac_sha256}

"""Sets of rows as the JSON parameter of a statement, and rows as records.

Stored are instants as microseconds since 1970, lengths of time as so many,
fingerprints as their tagged text, guids and dates as text, enumerations by value, truth as 0 or 1, bytes as blobs. JSON
knows no bytes: they travel in base64, and the SQL unpacks them with the function `clarion_bytes`. Reads and writes
nothing.
"""

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from enum import Enum
from functools import cache, lru_cache
from typing import Any, Final, TypeVar, get_args
from uuid import UUID

import msgspec

from clarion.adapters.stores.shared.statement import Statement
from clarion.adapters.stores.shared.transaction import Argument, arguments, positional_fields, rows_of
from clarion.adapters.stores.sqlite.clock import MICROSECOND, instant, microseconds
from clarion.domain.fingerprint import Fingerprint
from clarion.errors import InvalidInput, ProgramTooOld

S = TypeVar("S", bound=msgspec.Struct)
Convert = Callable[[Any], object]  # from a value of whichever type the field has
Columns = tuple[str, ...]


def as_json(rows: Sequence[object]) -> str:
    """Write plain values as JSON: guids, dates and enumerations as text, bytes in base64."""
    try:
        text = msgspec.json.encode(rows).decode()
    except UnicodeEncodeError:
        raise unstorable("half of a surrogate pair") from None
    # SQLite ends a JSON string at its first NUL without a word. A backslash of the caller's own is written as two.
    if r"\u0000" in text.replace(r"\\", ""):
        raise unstorable("a NUL character")
    return text


@cache
def reader(kind: type[S], columns: Columns) -> Callable[[Sequence[Any]], S]:
    """Make the function that makes a record of a row; the row may have other columns than the record's fields."""
    conversions = dict(_reading(kind))
    if columns == positional_fields(kind):
        places = [(place, conversions[name]) for place, name in enumerate(columns) if name in conversions]

        def read_by_place(row: Sequence[Any]) -> S:
            values = list(row)
            for place, convert in places:
                if (value := values[place]) is not None:
                    values[place] = convert(value)
            return kind(*values)

        return read_by_place
    fields = [(name, columns.index(name), conversions.get(name)) for name in kind.__struct_fields__]

    def read(row: Sequence[Any]) -> S:
        values: dict[str, Any] = {}  # as many types as there are columns
        for name, place, convert in fields:
            value = row[place]
            values[name] = value if convert is None or value is None else convert(value)
        return kind(**values)

    return read


def converted(kind: type[S], values: dict[str, Any], **more: object) -> S:
    """Make a record of stored values by name, which are changed by it, and of what is no column."""
    for name, convert in _reading(kind):
        if (value := values.get(name)) is not None:
            values[name] = convert(value)
    return kind(**values, **more)


def named(statement: Statement, given: Mapping[str, Argument]) -> dict[str, Any]:
    """Give the arguments of a shared statement by name: a set is one JSON text, an array for each of its rows."""
    return {
        parameter.name: as_json(rows_of(parameter, argument, plain=_plain, converted=_CONVERTED))
        if parameter.columns
        else _bound(_plain(argument))
        for parameter, argument in arguments(statement, given)
    }


_CONVERTED: Final = frozenset({"instant", "duration"})
"""The types of columns that JSON would write in another way than they are stored."""


def _plain(value: object) -> object:
    """Give a value as it is stored, or as `as_json` will write it so."""
    match value:
        case datetime():
            return microseconds(value)
        case timedelta():
            return value // MICROSECOND
        case Fingerprint():
            return value.text
        case _:
            return value


def _bound(value: object) -> object:
    """Give a plain value as the driver takes it: what is text in JSON is text here too, and no more may be in it."""
    match value:
        case str() if "\0" in value:
            raise unstorable("a NUL character")
        case UUID() | date():
            return str(value)
        case Enum():
            return value.value
        case _:
            return value


def unpack_bytes(text: str | None) -> bytes | None:
    """Turn base64 back into bytes: the SQL function `clarion_bytes`."""
    return None if text is None else b64decode(text, validate=True)


def unstorable(what: str) -> InvalidInput:
    """Refuse what no column can hold: the caller's value came to us unchecked."""
    return InvalidInput(
        f"the set holds {what}", field="items", hint="send well-formed text without NUL and sane numbers"
    )


@lru_cache(maxsize=1024)  # the rows of one claim have few jobs, and reading a guid costs a microsecond
def _guid(text: str) -> UUID:
    return UUID(text)


@cache
def _reading(kind: type[msgspec.Struct]) -> tuple[tuple[str, Convert], ...]:
    """Name the fields whose type is not the stored one, and how to make it."""
    known: dict[type, Convert] = {
        datetime: instant,
        timedelta: lambda stored: stored * MICROSECOND,
        date: date.fromisoformat,
        Fingerprint: Fingerprint.stored,
        UUID: _guid,
        bool: bool,
    }
    found: list[tuple[str, Convert]] = []
    for field in msgspec.structs.fields(kind):
        for type_ in (field.type, *get_args(field.type)):  # a field has one type, or one and None
            if type_ in known:
                found.append((field.name, known[type_]))
            elif isinstance(type_, type) and issubclass(type_, Enum):
                found.append((field.name, _member(type_)))
    return tuple(found)


def _member(of: type[Enum]) -> Convert:
    """Read the stored name of a member of an enumeration, which may have one for those that it does not know."""
    members: dict[object, Enum] = {member.value: member for member in of}

    def convert(value: str) -> Enum:
        try:
            return members.get(value) or of(value)
        except ValueError:
            raise ProgramTooOld(
                f"a row holds the {of.__name__} {value!r}, which this program does not know",
                hint="a newer program wrote it: update this one",
            ) from None

    return convert

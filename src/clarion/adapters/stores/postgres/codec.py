"""Records as the parameters of a statement, and rows as records.

A set of rows travels as one JSON text, whatever its size: enumerations by value, hashes as their tagged text, bytes in
base64, instants in ISO 8601. On the hot path it travels as one array for each column, written as text. What comes back
is made into the domain's own types again. Reads and writes nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum, StrEnum
from functools import cache, partial
from operator import attrgetter
from typing import Any, TypeVar, get_args, get_type_hints
from uuid import UUID

import asyncpg
import msgspec

from clarion.adapters.stores.shared.statement import Parameter, Statement
from clarion.adapters.stores.shared.transaction import Argument, arguments, positional_fields, rows_of
from clarion.domain.fingerprint import Fingerprint
from clarion.errors import ProgramTooOld

S = TypeVar("S", bound=msgspec.Struct)
E = TypeVar("E", bound=Enum)


def positional(statement: Statement, given: Mapping[str, Argument]) -> Iterator[object]:
    """Give the arguments of a shared statement in its order: a set of rows is JSON, a set of values an array."""
    for parameter, argument in arguments(statement, given):
        if parameter.is_rows:
            yield msgspec.json.encode(_objects(parameter, argument)).decode()
        elif parameter.columns:
            yield list(map(_plain, argument))
        else:
            yield _plain(argument)


def _objects(parameter: Parameter, items: Sequence[Any]) -> list[dict[str, object]]:
    """Give each row of a set by the names of its columns."""
    names = [column.name for column in parameter.sent]
    return [dict(zip(names, row, strict=True)) for row in rows_of(parameter, items, plain=_plain)]


def _plain(value: object) -> object:
    """Give a value as the driver takes it."""
    return value.text if isinstance(value, Fingerprint) else value


# An array's text, which the statement casts. The driver would ask of every element whether it is an array itself, which
# takes longer than all the rest.


def numbers(values: list[int | None]) -> str:
    """Write whole numbers, plain ones and no members of an enumeration, as the text of one array."""
    return "{" + repr(values)[1:-1].replace("None", "NULL") + "}"


def words(values: Iterable[str | None]) -> str:
    """Write words of ours, such as statuses, guids and instants, as the text of one array: none needs quotes."""
    return "{" + ",".join("NULL" if value is None else value for value in values) + "}"


def truths(values: Iterable[bool]) -> str:
    """Write booleans as the text of one array."""
    return "{" + ",".join("t" if value else "f" for value in values) + "}"


def texts(values: Iterable[str | None]) -> str:
    """Write any text as the text of one array."""
    return "{" + ",".join(map(_quoted, values)) + "}"


@cache
def array(kind: type[S], name: str) -> Callable[[Sequence[S]], str]:
    """Make the function that writes one field of many records as the text of one array."""
    get, hint = attrgetter(name), get_type_hints(kind)[name]
    types = [one for one in (hint, *get_args(hint)) if isinstance(one, type)]
    if bool in types:
        return lambda items: truths(map(get, items))
    if int in types:
        return lambda items: numbers(list(map(get, items)))
    if datetime in types:
        return lambda items: words(at and at.isoformat() for at in map(get, items))
    if UUID in types:
        return lambda items: words(value and str(value) for value in map(get, items))
    if any(issubclass(one, StrEnum) for one in types):
        return lambda items: words(map(get, items))
    return lambda items: texts(map(get, items))


def _quoted(value: str | None) -> str:
    if value is None:
        return "NULL"
    if '"' in value or "\\" in value:
        value = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + value + '"'


def records(kind: type[S], rows: Sequence[asyncpg.Record]) -> list[S]:
    """Make records of rows; where the columns stand in the order of the fields, without a look at their names."""
    if not rows or tuple(rows[0].keys()) != positional_fields(kind):
        return list(map(reader(kind), rows))
    hints = get_type_hints(kind)
    converted = [(place, _conversion(hints[name])) for place, name in enumerate(kind.__struct_fields__)]
    places = [(place, convert) for place, convert in converted if convert is not None]
    made: list[S] = []
    for row in rows:
        values = list(row)
        for place, convert in places:
            if (value := values[place]) is not None:
                values[place] = convert(value)
        made.append(kind(*values))
    return made


@cache
def reader(kind: type[S]) -> Callable[[asyncpg.Record | Mapping[str, Any]], S]:
    """Make the function that turns a row, whose columns are named like the fields, into a record of this kind.

    A row may have other columns besides.
    """
    hints = get_type_hints(kind)
    columns = [(name, _conversion(hints[name])) for name in kind.__struct_fields__]

    def read(row: asyncpg.Record | Mapping[str, Any]) -> S:
        values: dict[str, Any] = {}  # as many types as there are columns
        for name, convert in columns:
            value = row[name]
            values[name] = value if convert is None or value is None else convert(value)
        return kind(**values)

    return read


@cache  # the look-up in the enumeration costs more than anything else that is done to a row
def member(of: type[E], value: str) -> E:
    """Read a stored name as a member of its enumeration."""
    try:
        return of(value)
    except ValueError:
        raise ProgramTooOld(
            f"a row holds the {of.__name__} {value!r}, which this program does not know",
            hint="a newer program wrote it: update this one",
        ) from None


def _conversion(hint: object) -> Callable[[Any], object] | None:  # a column's value, of whichever type
    """Tell how the stored form of a field becomes its own type; None where they are the same."""
    for kind in (hint, *get_args(hint)):
        if kind is Fingerprint:
            return Fingerprint.stored
        if isinstance(kind, type) and issubclass(kind, Enum):
            return partial(member, kind)
    return None

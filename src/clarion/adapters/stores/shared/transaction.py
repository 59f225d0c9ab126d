"""What a work may ask of the store that runs it, whichever engine that is.

A work is what a store method does inside its transaction: a coroutine function whose first argument is a `Transaction`,
and which awaits nothing but that transaction's methods. On PostgreSQL they wait for the server. On SQLite they return
at once, so that a store can run a whole work in its writer thread, see `finished`.
"""

from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from datetime import date, datetime, timedelta
from enum import Enum
from functools import cache
from inspect import signature
from typing import Any, Protocol, TypeVar
from uuid import UUID

import msgspec

from clarion.adapters.stores.shared.statement import Parameter, Statement
from clarion.domain.fingerprint import Fingerprint
from clarion.errors import BrokenInvariant

S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T")

Value = str | int | bool | bytes | UUID | datetime | date | timedelta | Enum | Fingerprint | None
Row = Sequence[Value] | msgspec.Struct
Argument = Value | Collection[Value] | Sequence[Row]
"""A value, a set of values, or a set of rows. A row is a tuple in the order of the set's columns, or a record whose
fields are named like them."""


class Overtaken(Exception):
    """Somebody else changed a row between our read and our write; the store begins the transaction again."""


class Transaction(Protocol):
    """One transaction, or a read outside of any."""

    async def fetch(self, kind: type[S], statement: Statement, /, **given: Argument) -> list[S]:
        """Send a statement and return its rows as records, whose fields are named like the columns."""
        ...

    async def copy(self, statement: Statement, /, **given: Argument) -> tuple[tuple[str, ...], Sequence[Sequence[Any]]]:
        """Send a statement and return the names of its columns and its rows as the engine gives them."""
        ...

    async def execute(self, statement: Statement, /, **given: Argument) -> int:
        """Send a statement and return how many rows it wrote."""
        ...

    async def lock(self, what: str, /) -> None:
        """Let nobody else pass here with the same words until the transaction ends; SQLite has one writer anyway.

        Outside of a transaction it is over at once: then it waits for those who have passed before, and no more.
        """
        ...

    async def share(self, what: str, /) -> None:
        """Pass together with others who share, but with nobody who locks the same words, until the transaction ends."""
        ...


def finished(work: Coroutine[Any, Any, T]) -> T:
    """Run a work to its end without an event loop, for a store whose transaction never waits."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise BrokenInvariant("a work waited for something other than its transaction")


def arguments(statement: Statement, given: Mapping[str, Argument]) -> list[tuple[Parameter, Any]]:
    """Give each parameter with its argument, in the statement's order; refuse names that are not the statement's.

    What a parameter with columns is given is a set; no type says so.
    """
    if len(given) != len(statement.parameters) or any(one.name not in given for one in statement.parameters):
        takes = [one.name for one in statement.parameters]
        raise BrokenInvariant(f"{statement.name} takes {takes} and is given {sorted(given)}")
    return [(one, given[one.name]) for one in statement.parameters]


def rows_of(
    parameter: Parameter, items: Sequence[Any], *, plain: Callable[[object], object], converted: Collection[str] = ()
) -> Sequence[Sequence[Any]]:
    """Give the rows of a set in the order of its columns; an item is a record, a tuple, or a value alone.

    `plain` makes of a value what the engine is sent. It is asked only of columns of the types in `converted` and of
    columns that hold hashes, because most columns of a long set are sent as they are.
    """
    names = [column.name for column in parameter.sent]
    rows: Sequence[Sequence[Any]] = items
    if items and isinstance(items[0], msgspec.Struct):
        rows = [[getattr(item, name) for name in names] for item in items]
    elif items and not isinstance(items[0], tuple):
        rows = [(item,) for item in items]
    places = [
        place
        for place, column in enumerate(parameter.sent)
        if column.type in converted or isinstance(_first_known(rows, place), Fingerprint)
    ]
    if not places:
        return rows
    changed = [list(row) for row in rows]
    for row in changed:
        for place in places:
            row[place] = plain(row[place])
    return changed


def _first_known(rows: Sequence[Sequence[Any]], place: int) -> object:
    return next((row[place] for row in rows if row[place] is not None), None)


@cache
def positional_fields(kind: type[msgspec.Struct]) -> tuple[str, ...] | None:
    """Name the fields of a record type that can be made without their names, which is faster; None if it cannot."""
    taken = signature(kind).parameters.values()
    has_places = all(one.kind is one.POSITIONAL_OR_KEYWORD for one in taken)
    return tuple(one.name for one in taken) if has_places else None


def first(found: Sequence[T]) -> T | None:
    """Return the first one, or None if there is none."""
    return found[0] if found else None

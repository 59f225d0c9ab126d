"""Pages of a list, and the cursors between them, which callers pass on and do not take apart.

A cursor names its list, so that one of another list is refused and not misread. It is no secret and opens nothing:
every list is read within the caller's tenant anyway. Pure.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, TypeVar
from uuid import UUID

import msgspec

from clarion.client.wire import ROW_ID_MAX
from clarion.domain.part import END
from clarion.errors import InvalidInput

R = TypeVar("R")
T = TypeVar("T", str, int)

# A cursor comes from outside and its place goes into a query: bounded, and without control characters, as all that the
# stores hand out. The longest is the name of a business unit, 512 bytes, behind its guid.
Place = (
    Annotated[int, msgspec.Meta(ge=0, le=ROW_ID_MAX)]
    | Annotated[str, msgspec.Meta(max_length=600, pattern=r"^[^\x00-\x1f\x7f]*" + END)]
)


def cut(
    name: str, found: Sequence[R], limit: int, place_of: Callable[[R], str | int]
) -> tuple[Sequence[R], str | None]:
    """Cut a page off what was found, and give the cursor of the next one, if there is one.

    Whoever reads a list asks for one more than `limit`, which tells.
    """
    page = found[:limit]
    return page, write(name, place_of(page[-1])) if len(found) > limit else None


def write(name: str, place: str | int) -> str:
    """Write the place behind which the next page of a list begins."""
    return urlsafe_b64encode(msgspec.json.encode((name, place))).decode().rstrip("=")


def read(name: str, cursor: str | None, *, start: T) -> T:
    """Read the place that a cursor of this list names, or `start` where there is none."""
    if cursor is None:
        return start
    try:
        plain = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        written, place = msgspec.json.decode(plain, type=tuple[str, Place])
    except (UnicodeEncodeError, ValueError, msgspec.DecodeError):  # no base64 is a ValueError
        raise refused() from None
    if written != name or not isinstance(place, type(start)):
        raise refused()
    return place


def read_guid(name: str, cursor: str | None) -> UUID | None:
    """Read the guid that a cursor of this list names, or None where there is none."""
    place = read(name, cursor, start="")
    try:
        return UUID(hex=place) if place else None
    except ValueError:
        raise refused() from None


def moment(at: datetime, key: object) -> str:
    """Write a place in a list by time: when, and which of those of one moment."""
    return f"{at.isoformat()} {key}"


def read_moment(name: str, cursor: str | None) -> tuple[datetime, str] | None:
    """Read the time and the key that a cursor of this list names, or None where there is none."""
    place = read(name, cursor, start="")
    if not place:
        return None
    with taken_apart():
        text, key = place.split(" ", 1)
        at = datetime.fromisoformat(text)
        if at.tzinfo is None:
            raise ValueError("it has no zone")
        try:
            return at.astimezone(UTC), key
        except OverflowError as error:
            raise ValueError("it lies outside of all calendars") from error


def read_moment_and_id(name: str, cursor: str | None) -> tuple[datetime, int] | None:
    """Read the time and the row's id that a cursor of this list names, or None where there is none."""
    if (place := read_moment(name, cursor)) is None:
        return None
    with taken_apart():
        number = int(place[1])
        if not 0 <= number <= ROW_ID_MAX:
            raise ValueError("it is no id of a row")
        return place[0], number


@contextmanager
def taken_apart() -> Iterator[None]:
    """Take a place apart that has several parts; one that cannot be is of no cursor that we wrote."""
    try:
        yield
    except ValueError:
        raise refused() from None


def refused() -> InvalidInput:
    """Make the error for what is no cursor of the list."""
    return InvalidInput(
        "it is no cursor of this list", field="cursor", hint="pass next_cursor of the page before, or leave it out"
    )

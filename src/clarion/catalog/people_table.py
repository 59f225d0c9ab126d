"""People as rows of a table: each column is a part of a person, so that a file changes what it has columns for.

An empty cell takes away what its column holds of the person; what the file has no column for stays. Several addresses
of one channel stand in one cell, each on a line of its own, because no address holds a line break. Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import UNSET

from clarion.catalog.person_entry import ContactEntry, PersonEdit
from clarion.catalog.table import Columns, Row
from clarion.domain.attribute import Attribute, Kind, read_text
from clarion.domain.identity import Channel, Identity, read_person
from clarion.errors import InvalidInput

CHANNELS: Final = (Channel.EMAIL, Channel.SMS, Channel.PUSH, Channel.CHAT)
"""On which people have addresses of their own."""

UNVERIFIED: Final = "unverified "
ATTRIBUTE: Final = "attribute."
PROFILE: Final = "profile."

NAMES: Final = (
    *("person", "name", "locale", "zone"),
    *CHANNELS,
    *(f"{UNVERIFIED}{channel}" for channel in CHANNELS),
    "profile",
)
PEOPLE: Final = Columns(known=NAMES, prefixes=(ATTRIBUTE, PROFILE), required=("person",))


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """All that a table says of a person."""

    identity: Identity
    name: str | None
    locale: str | None
    zone: str | None
    profile: Mapping[str, object]
    contacts: tuple[ContactEntry, ...]
    attributes: Mapping[str, str]


def check_columns(names: Sequence[str], declared: Mapping[str, Attribute]) -> None:
    """Refuse a table with other columns, or with one of an attribute that is not declared."""
    PEOPLE.check(names)
    for name in names:
        if name.startswith(ATTRIBUTE) and name.removeprefix(ATTRIBUTE) not in declared:
            raise InvalidInput(
                f"there is no attribute {name.removeprefix(ATTRIBUTE)[:64]!r}",
                field="row 1",
                hint="declare it first: clarion people attributes declare NAME KIND",
            )


def edit_of(row: Row, declared: Mapping[str, Attribute]) -> PersonEdit:
    """Read what a row says of its person; an error names the column."""
    cells = row.cells
    return PersonEdit(
        identity=read_person(cells["person"], field="person"),
        name=(cells["name"] or None) if "name" in cells else UNSET,
        locale=(cells["locale"].strip() or None) if "locale" in cells else UNSET,
        tz_id=(cells["zone"].strip() or None) if "zone" in cells else UNSET,
        profile=_profile(cells),
        contacts={channel: some for channel in CHANNELS if (some := _contacts(cells, channel)) is not None},
        attributes={
            name.removeprefix(ATTRIBUTE): _attribute(declared, name, cell)
            for name, cell in cells.items()
            if name.startswith(ATTRIBUTE)
        },
    )


def column_of(error: InvalidInput, row: Row) -> str:
    """Name the column that an error of a person speaks of."""
    field = error.field or ""
    first, _, rest = field.partition(".")
    if first == "contacts":
        channel = rest.partition("[")[0]
        place = int(rest.partition("[")[2].rstrip("]") or 0) if "[" in rest else 0
        verified = len(_lines(row.cells.get(channel, "")))
        return channel if channel not in CHANNELS or place < verified else f"{UNVERIFIED}{channel}"
    if first == "attributes":
        return f"{ATTRIBUTE}{rest}"
    return field if field in row.cells else first


def cells_of(person: Known, declared: Sequence[Attribute]) -> list[str]:
    """Write a person as a row of all columns."""
    reached: dict[tuple[Channel, bool], list[str]] = {}
    for one in person.contacts:
        reached.setdefault((one.channel, one.verified), []).append(one.destination)
    return [
        f"{person.identity.domain}:{person.identity.id}",
        person.name or "",
        person.locale or "",
        person.zone or "",
        *("\n".join(reached.get((channel, True), ())) for channel in CHANNELS),
        *("\n".join(reached.get((channel, False), ())) for channel in CHANNELS),
        msgspec.json.encode(person.profile).decode() if person.profile else "",
        *(person.attributes.get(one.name, "") for one in declared),
    ]


def header_of(declared: Sequence[Attribute]) -> list[str]:
    """Name the columns that `cells_of` writes."""
    return [*NAMES, *(f"{ATTRIBUTE}{one.name}" for one in declared)]


def _profile(cells: Mapping[str, str]) -> dict[str, object]:
    found: dict[str, object] = {}
    text = cells.get("profile", "").strip()
    if text:
        try:
            found = msgspec.json.decode(text, type=dict[str, object])
        except (msgspec.DecodeError, RecursionError):
            raise InvalidInput(
                "it is no JSON object", field="profile", hint='write such as {"title": "Dr."}, or use profile.title'
            ) from None
    single = {name.removeprefix(PROFILE): cell or None for name, cell in cells.items() if name.startswith(PROFILE)}
    return found | single


def _contacts(cells: Mapping[str, str], channel: Channel) -> tuple[ContactEntry, ...] | None:
    """Read the addresses of a channel; None where the table says nothing of them."""
    if channel not in cells and f"{UNVERIFIED}{channel}" not in cells:
        return None
    return tuple(
        ContactEntry(channel=channel, destination=line, verified=verified)
        for name, verified in ((str(channel), True), (f"{UNVERIFIED}{channel}", False))
        for line in _lines(cells.get(name, ""))
    )


def _lines(cell: str) -> list[str]:
    return [line.strip(" \t\r") for line in cell.split("\n") if line.strip(" \t\r")]


def _attribute(declared: Mapping[str, Attribute], name: str, cell: str) -> object:
    """Read the value of an attribute; None where there is none."""
    if not cell.strip():
        return None
    attribute = declared[name.removeprefix(ATTRIBUTE)]
    text = cell if attribute.kind is Kind.TEXT else cell.strip()
    return read_text(attribute.kind, text, field=f"attributes.{attribute.name}")

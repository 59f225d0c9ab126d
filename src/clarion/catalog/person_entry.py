"""People as their owner describes them, as a whole or in part, and what is checked of that before anything is stored.

A whole says everything of a person; what it leaves out, the person has not. A part is a merge patch: what it leaves out
stays, None takes away, and of profile and attributes only the keys that it names are touched. Of the contacts it
replaces those of the channels that it names, or adds and removes single ones, so that two devices which register at
once both stay. Mistakes are collected by place and field, so that whoever sends a thousand is told of all of them.

Reads and writes nothing.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, cast

import msgspec
from msgspec import UNSET, UnsetType

from clarion.catalog.local_form import checked_form
from clarion.domain import attribute, destination
from clarion.domain.attribute import Attribute
from clarion.domain.hashing import canonical_json
from clarion.domain.identity import Channel, Identity, IdentityDomain
from clarion.domain.part import UNSEEN
from clarion.domain.person import CONTACTS_MAX, PROFILE_BYTES_MAX, LocalForm
from clarion.errors import InvalidAddress, InvalidInput, InvalidItems


class ContactEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Where a person is reached on a channel, and whether that is known to be the person's own."""

    channel: Channel
    destination: str
    verified: bool = True


class PersonEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A person as a whole; `profile` is what templates may read besides the name."""

    identity: Identity
    name: str | None = None
    profile: Mapping[str, object] = {}
    locale: str | None = None
    tz_id: str | None = None
    contacts: tuple[ContactEntry, ...] = ()
    attributes: Mapping[str, object] = {}


class PersonEdit(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be another of a person than it is."""

    identity: Identity
    name: str | UnsetType | None = UNSET
    profile: Mapping[str, object] = {}
    locale: str | UnsetType | None = UNSET
    tz_id: str | UnsetType | None = UNSET
    contacts: Mapping[Channel, tuple[ContactEntry, ...]] = {}
    add_contacts: tuple[ContactEntry, ...] = ()
    remove_contacts: tuple[ContactEntry, ...] = ()
    attributes: Mapping[str, object] = {}


class BadEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with the entry at a place, counted from 0; the field is relative to the entry."""

    place: int
    error: InvalidInput


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """An entry in which nothing is wrong: destinations in their one spelling, attributes in the text of their kind."""

    identity: Identity
    name: str | UnsetType | None
    profile: Mapping[str, object]
    locale: str | UnsetType | None
    tz_id: str | UnsetType | None
    contacts: Mapping[Channel, tuple[ContactEntry, ...]]
    added: tuple[ContactEntry, ...]
    removed: tuple[ContactEntry, ...]
    attributes: Mapping[str, str | None]

    @property
    def reached(self) -> tuple[ContactEntry, ...]:
        """Every contact that the person is to have by it."""
        return (*(one for some in self.contacts.values() for one in some), *self.added)

    @property
    def has_profile(self) -> bool:
        """Tell whether it says anything that templates may read."""
        return self.name is not UNSET or bool(self.profile)


Entry: TypeAlias = PersonEntry | PersonEdit

_PEOPLE: Final = (IdentityDomain.USER, IdentityDomain.EMPLOYEE)
_UNSEEN: Final = re.compile(f"[{UNSEEN}]")


def check_entries(
    entries: Sequence[Entry], *, declared: Sequence[Attribute], region: str | None = None
) -> tuple[dict[int, Checked], list[BadEntry]]:
    """Tell the entries in which nothing is wrong, by their places, from those that cannot be stored, and why."""
    kinds = {one.name: one for one in declared}
    places: dict[Identity, int] = {}
    good: dict[int, Checked] = {}
    bad: list[BadEntry] = []
    for place, entry in enumerate(entries):
        try:
            _require_first(place, places.setdefault(entry.identity, place))
            good[place] = _checked(entry, kinds, region)
        except InvalidInput as error:
            bad.append(BadEntry(place=place, error=error))
    return good, bad


def refusal(bad: Sequence[BadEntry], *, of: str = "people") -> InvalidItems:
    """Make the one error for all entries that cannot be stored, each field behind the place of its entry."""
    ordered = sorted(bad, key=lambda one: one.place)
    return InvalidItems([_placed(one.error, f"{of}[{one.place}].{one.error.field}") for one in ordered])


def require_profile(content: Mapping[str, object]) -> None:
    """Refuse a profile that is too large to travel with every message, or that holds what JSON cannot."""
    try:
        size = len(msgspec.json.encode(content))
        canonical_json(content)
    except (TypeError, ValueError, OverflowError, RecursionError, InvalidInput):
        raise InvalidInput(
            "it holds what cannot be stored", field="profile", hint="use text, numbers, truths, lists and objects"
        ) from None
    if size > PROFILE_BYTES_MAX:
        raise InvalidInput(
            f"a profile takes {size} bytes", field="profile", hint=f"keep at most {PROFILE_BYTES_MAX} of it"
        )


def _require_first(place: int, first: int) -> None:
    if first != place:
        raise InvalidInput(f"it is the person at place {first} again", field="person", hint="name each person once")


def _checked(entry: Entry, kinds: Mapping[str, Attribute], region: str | None) -> Checked:
    if entry.identity.domain not in _PEOPLE:
        raise InvalidInput("it is no person", field="person", hint="write user:ID or employee:GUID")
    if isinstance(entry.name, str) and (not entry.name.strip() or _UNSEEN.search(entry.name)):
        raise InvalidInput(
            "it is blank, or holds a control character", field="name", hint="leave it out where it is not known"
        )
    if "name" in entry.profile:
        raise InvalidInput("the name has a field of its own", field="profile.name", hint="give it as `name`")
    require_profile({"name": entry.name or None, **entry.profile})
    form = checked_form(LocalForm(locale=entry.locale or None, tz_id=entry.tz_id or None))
    is_whole = isinstance(entry, PersonEntry)
    contacts = _by_channel(entry.contacts) if isinstance(entry, PersonEntry) else entry.contacts
    added = () if isinstance(entry, PersonEntry) else entry.add_contacts
    removed = () if isinstance(entry, PersonEntry) else entry.remove_contacts
    checked = Checked(
        identity=entry.identity,
        name=entry.name,
        profile=entry.profile,
        locale=UNSET if entry.locale is UNSET else form.locale,
        tz_id=UNSET if entry.tz_id is UNSET else form.tz_id,
        contacts={
            channel: tuple(
                _normal(one, f"contacts.{channel}[{number}]", region, on=channel) for number, one in enumerate(some)
            )
            for channel, some in contacts.items()
        },
        added=_all_normal(added, "add_contacts", region),
        removed=_all_normal(removed, "remove_contacts", region),
        attributes={
            name: _value(kinds, name, value)
            for name, value in entry.attributes.items()
            if value is not None or not is_whole
        },
    )
    if len(checked.reached) > CONTACTS_MAX:
        raise too_many_contacts(len(checked.reached))
    return checked


def too_many_contacts(count: int) -> InvalidInput:
    """Make the one error for a person who is reached at more places than anybody is."""
    return InvalidInput(f"they would be {count}", field="contacts", hint=f"keep {CONTACTS_MAX} at most")


def _by_channel(contacts: Sequence[ContactEntry]) -> dict[Channel, tuple[ContactEntry, ...]]:
    sorted_out: dict[Channel, tuple[ContactEntry, ...]] = {}
    for one in contacts:
        sorted_out[one.channel] = (*sorted_out.get(one.channel, ()), one)
    return sorted_out


def _all_normal(contacts: Sequence[ContactEntry], field: str, region: str | None) -> tuple[ContactEntry, ...]:
    return tuple(
        _normal(one, f"{field}.{channel}[{number}]", region, on=channel)
        for channel, some in _by_channel(contacts).items()
        for number, one in enumerate(some)
    )


def _normal(contact: ContactEntry, field: str, region: str | None, *, on: Channel) -> ContactEntry:
    """Return a contact with its destination in its one spelling."""
    try:
        text = destination.normalise(on, contact.destination, region=region)
    except InvalidInput as error:
        raise _placed(error, field) from None
    return ContactEntry(channel=on, destination=text, verified=contact.verified)


def _value(kinds: Mapping[str, Attribute], name: str, value: object) -> str | None:
    """Return the value of an attribute in the text of its kind; None takes it from the person."""
    field = f"attributes.{name[: attribute.NAME_CHARS_MAX]}"
    if name not in kinds:
        raise InvalidInput(
            "there is no attribute of this name",
            field=field,
            hint="declare it first: clarion people attributes declare NAME KIND",
        )
    return None if value is None else attribute.canonical(kinds[name].kind, value, field=field)


def _placed(error: InvalidInput, field: str) -> InvalidInput:
    """Give an error another field; what kind of error it is stays."""
    kind = InvalidAddress if isinstance(error, InvalidAddress) else InvalidInput
    return kind(error.message, field=field, hint=error.hint)


def content_of(name: str | None, profile: Mapping[str, object]) -> dict[str, object]:
    """Put together what templates may read of a person."""
    given = {key: value for key, value in profile.items() if value is not None}
    return given if name is None else {"name": name, **given}


def name_in(content: Mapping[str, object]) -> tuple[str | None, dict[str, object]]:
    """Take a profile apart again: the name, and what else templates may read."""
    others = {key: value for key, value in content.items() if key != "name"}
    return cast("str | None", content.get("name")), others

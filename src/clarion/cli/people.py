"""`clarion people`: who they are, where they are reached, and the attributes that they may have."""

from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
import typer

from clarion.cli import option
from clarion.cli.lazy import Group
from clarion.cli.output import moment, print_json, print_line, print_pairs, print_table, say_more
from clarion.cli.session import in_session
from clarion.domain.attribute import Kind
from clarion.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from msgspec import UnsetType

    from clarion.cli.session import Session
    from clarion.client.wire_people import Contact, KnownContact, Person, Value
    from clarion.domain.identity import Channel, Identity

T = TypeVar("T")

people = typer.Typer(help="People: who they are, where they are reached, and what templates read of them.")
attributes = typer.Typer(help="Attributes: what people can be chosen by. They are declared before anybody has one.")
people.add_typer(attributes, name="attributes", cls=Group)

Who = Annotated[str, typer.Argument(help="user:ID or employee:GUID.", metavar="PERSON")]
Name = Annotated[str | None, typer.Option(help="What templates read as recipient.name.", metavar="NAME")]
Field = Annotated[
    list[str] | None,
    typer.Option(
        "--profile", help="What else templates may read of the recipient; several times.", metavar="FIELD=TEXT"
    ),
]
OwnLocale = Annotated[str | None, typer.Option("--locale", help="The language, such as de-AT.", metavar="LOCALE")]
OwnZone = Annotated[str | None, typer.Option("--zone", help="The time zone, such as Europe/Vienna.", metavar="ZONE")]
At = Annotated[
    list[str] | None,
    typer.Option(
        "--contact",
        help="Where the person is reached: a mail address, a phone number, push:TOKEN or chat:ID; several times.",
        metavar="ADDRESS",
    ),
]
Valued = Annotated[
    list[str] | None, typer.Option("--attribute", help="A declared attribute; several times.", metavar="NAME=VALUE")
]
Region = Annotated[
    str | None,
    typer.Option(help="Of phone numbers without + and country code, such as AT; else refused.", metavar="REGION"),
]


@people.command("put")
def put_person(
    person: Who,
    *,
    name: Name = None,
    profile: Field = None,
    locale: OwnLocale = None,
    zone: OwnZone = None,
    contact: At = None,
    attribute: Valued = None,
    region: Region = None,
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Add a person, or replace them as a whole: what is not named, the person has not any more."""
    identity, contacts = _read_person(person), _contacts(contact, "--contact")
    fields, values = _pairs(profile, "--profile"), _pairs(attribute, "--attribute")

    async def work(session: "Session") -> "Person | None":
        from clarion.client.wire_people import PersonRequest

        request = PersonRequest(
            name=name or None,
            profile={**fields},
            locale=locale or None,
            zone=zone or None,
            contacts=contacts,
            attributes={key: value for key, value in (await _values(session, values)).items() if value is not None},
            region=region,
        )
        return await session.operations.people.put(
            session.tenant_id, identity, request, actor=session.actor, trace=session.trace, whole=True
        )

    _show(_typed(work, store=store, tenant=tenant), person, as_json=as_json)


@people.command("set")
def set_person(
    person: Who,
    *,
    name: Name = None,
    profile: Field = None,
    locale: OwnLocale = None,
    zone: OwnZone = None,
    contact: At = None,
    add: Annotated[
        list[str] | None,
        typer.Option("--add-contact", help="One more, such as push:TOKEN; several times.", metavar="ADDRESS"),
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option("--remove-contact", help="One that goes; several times.", metavar="ADDRESS")
    ] = None,
    attribute: Valued = None,
    region: Region = None,
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Change a person in part: what is not named stays, '' takes away. --contact replaces those of its channel."""
    identity, contacts = _read_person(person), _contacts(contact, "--contact")
    added, removed = _contacts(add, "--add-contact"), _contacts(remove, "--remove-contact")
    fields, values = _pairs(profile, "--profile"), _pairs(attribute, "--attribute")

    async def work(session: "Session") -> "Person | None":
        from clarion.client.wire_people import PersonChange

        request = PersonChange(
            name=_said(name),
            profile={key: text or None for key, text in fields.items()},
            locale=_said(locale),
            zone=_said(zone),
            contacts=dict(contacts),
            add_contacts=added,
            remove_contacts=removed,
            attributes=await _values(session, values),
            region=region,
        )
        return await session.operations.people.change(
            session.tenant_id, identity, request, actor=session.actor, trace=session.trace, whole=True
        )

    _show(_typed(work, store=store, tenant=tenant), person, as_json=as_json)


@people.command("show")
def show_person(
    person: Who, *, tenant: option.Tenant = None, store: option.Store = None, as_json: option.Json = False
) -> None:
    """Show a person with everything that is known of them."""
    identity = _read_person(person)
    found = in_session(
        lambda it: it.operations.people.find(it.tenant_id, identity, whole=True), store=store, tenant=tenant
    )
    _show(found, person, as_json=as_json)


@people.command("list")
def list_people(
    limit: option.Limit = 50,
    after: option.After = "",
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """List the people of the tenant, in an order of ours that stays."""
    query = option.page(limit, after)
    page = in_session(lambda it: it.operations.people.list(it.tenant_id, query, whole=True), store=store, tenant=tenant)
    if as_json:
        print_json(page)
        return
    print_table(
        ("person", "name", "locale", "reached at"),
        [
            (one.person, one.name, one.locale, [at.destination for at in one.contacts if at.retired_at is None])
            for one in page.items
        ],
        empty="there is nobody yet; `clarion people put` adds somebody",
    )
    say_more(page.next_cursor)


@people.command("remove")
def remove_person(
    person: Who, *, tenant: option.Tenant = None, store: option.Store = None, as_json: option.Json = False
) -> None:
    """Remove a person with their contacts and memberships; what was sent stays, and so does what they do not want."""
    identity = _read_person(person)

    async def work(session: "Session") -> bool:
        return await session.operations.people.remove(session.tenant_id, identity, actor=session.actor)

    if not in_session(work, store=store, tenant=tenant):
        raise _nobody(person)
    print_line(f"{person} is removed", {"person": person}, as_json=as_json)


@attributes.command("list")
def list_attributes(*, tenant: option.Tenant = None, store: option.Store = None, as_json: option.Json = False) -> None:
    """List the attributes that people may have."""
    found = in_session(lambda it: it.operations.people.list_attributes(it.tenant_id), store=store, tenant=tenant)
    if as_json:
        print_json(found)
        return
    empty = "none is declared yet; `clarion people attributes declare` adds one"
    print_table(("name", "kind"), [(one.name, one.kind) for one in found.items], empty=empty)


@attributes.command("declare")
def declare_attribute(
    name: Annotated[str, typer.Argument(help="A word of a-z, 0-9, - and _, such as grade.", metavar="NAME")],
    kind: Annotated[Kind, typer.Argument(help="What its values are: text, number, truth or date.", metavar="KIND")],
    *,
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Declare an attribute and of which kind its values are, which stays so."""
    declared = in_session(
        lambda it: it.operations.people.declare(it.tenant_id, name, kind, actor=it.actor), store=store, tenant=tenant
    )
    print_line(f"the attribute {declared.name} is a {declared.kind}", declared, as_json=as_json)


def _typed(work: "Callable[[Session], Awaitable[T]]", *, store: str | None, tenant: str | None) -> "T":
    """Run a change; a mistake is told of the option that it is about, instead of the field that it became."""
    try:
        return in_session(work, store=store, tenant=tenant)
    except InvalidInput as error:
        field = next((name for start, name in OPTIONS if error.field.startswith(start)), error.field)
        raise InvalidInput(error.message, field=field, hint=error.hint) from None


def _show(found: "Person | None", person: str, *, as_json: bool) -> None:
    if found is None:
        raise _nobody(person)
    if as_json:
        print_json(found)
        return
    print_pairs(
        [
            ("person", found.person),
            ("name", found.name),
            *((f"profile {key}", _text(value)) for key, value in (found.profile or {}).items()),
            ("locale", found.locale),
            ("zone", found.zone),
            *((at.channel, _reached(at)) for at in found.contacts),
            *((f"attribute {key}", _text(value)) for key, value in found.attributes.items()),
        ]
    )


OPTIONS = (
    ("contacts", "--contact"),
    ("add_contacts", "--add-contact"),
    ("remove_contacts", "--remove-contact"),
    ("attributes", "--attribute"),
    ("profile", "--profile"),
    ("name", "--name"),
    ("locale", "--locale"),
    ("zone", "--zone"),
    ("region", "--region"),
)
"""How the fields of a request begin, and the options that they come from."""


def _read_person(text: str) -> "Identity":
    from clarion.domain.identity import read_person

    return read_person(text, field="PERSON")


def _nobody(person: str) -> InvalidInput:
    hint = "`clarion people list` shows those there are, `clarion people put` adds somebody"
    return InvalidInput(f"nobody is known as {person}", field="PERSON", hint=hint)


def _contacts(given: "Sequence[str] | None", field: str) -> "dict[Channel, tuple[Contact, ...]]":
    """Read addresses as `clarion send` does: a channel before them, or mail and phone numbers by their form."""
    from clarion.client.wire_people import Contact
    from clarion.domain.identity import Channel

    found: dict[Channel, tuple[Contact, ...]] = {}
    for text in given or ():
        word, colon, rest = text.partition(":")
        if colon and word in set(Channel) - {Channel.INBOX}:
            channel, destination = Channel(word), rest
        else:
            channel, destination = Channel.EMAIL if "@" in text else Channel.SMS, text
        if not destination.strip():
            raise InvalidInput("it names no address", field=field, hint="write one, such as sam@example.com")
        found[channel] = (*found.get(channel, ()), Contact(destination=destination))
    return found


def _pairs(given: "Sequence[str] | None", field: str) -> dict[str, str]:
    """Read NAME=VALUE, each name once."""
    found: dict[str, str] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name or name in found:
            what = f"{name!r:.80} is named twice" if name in found else f"{text!r:.80} has no name and value"
            raise InvalidInput(what, field=field, hint="write NAME=VALUE, each name once")
        found[name] = value
    return found


async def _values(session: "Session", given: "Mapping[str, str]") -> "dict[str, Value | None]":
    """Read the values of attributes by their kinds; an empty one takes the attribute away."""
    from clarion.domain.attribute import read_text

    if not given:
        return {}
    declared = await session.operations.people.list_attributes(session.tenant_id)
    kinds = {one.name: one.kind for one in declared.items}
    return {
        name: read_text(kinds[name], text, field="--attribute") if name in kinds and text else text or None
        for name, text in given.items()
    }


def _said(text: str | None) -> "str | UnsetType | None":
    """Say nothing where an option was not given, and take away what it was given empty for."""
    from msgspec import UNSET

    return UNSET if text is None else text or None


def _reached(at: "KnownContact") -> str:
    notes = ["" if at.verified else "not verified", "" if at.retired_at is None else f"retired {moment(at.retired_at)}"]
    said = ", ".join(note for note in notes if note)
    return f"{at.destination} ({said})" if said else at.destination


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()

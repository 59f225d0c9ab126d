"""`clarion sources`: the documents, invoices, classes and employees that reminders are about."""

from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
import typer

from clarion.cli.asked import Asked, AskedPage, asks, lists
from clarion.cli.groups import GUID_HINT
from clarion.cli.output import print_json, print_pairs
from clarion.cli.session import Session
from clarion.cli.session import guid as read_guid
from clarion.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clarion.client.wire_sources import Source, SourceStored
    from clarion.domain.attribute import Kind

T = TypeVar("T")

sources = typer.Typer(help="Sources: the invoices, documents or classes that reminders are about.")

TypeName = Annotated[str, typer.Argument(help="The kind of the source, such as invoice.", metavar="TYPE")]
SourceName = Annotated[str, typer.Argument(help="Your own id of it.", metavar="ID")]
TYPED_AS = {
    "type": "TYPE",
    "id": "ID",
    "fields": "--field",
    "dates": "--date",
    "metrics": "--metric",
    "entity": "--entity",
    "business_unit": "--business-unit",
}
"""What the fields of a source are called here."""


@sources.command("put")
@asks
def put_source(
    asked: Asked,
    source_type: TypeName,
    source: SourceName,
    *,
    field: Annotated[
        list[str] | None,
        typer.Option(help="A text that templates read and filters compare; several times.", metavar="NAME=TEXT"),
    ] = None,
    number: Annotated[
        list[str] | None, typer.Option(help="The same, a number; several times.", metavar="NAME=NUMBER")
    ] = None,
    truth: Annotated[
        list[str] | None, typer.Option(help="The same, true or false; several times.", metavar="NAME=TRUTH")
    ] = None,
    date: Annotated[
        list[str] | None, typer.Option(help="A day that reminders count from; several times.", metavar="NAME=DATE")
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="A number that thresholds look at; NAME:SCOPE=NUMBER for a part of the source; several times.",
            metavar="NAME=NUMBER",
        ),
    ] = None,
    entity: Annotated[
        str | None, typer.Option(help="Its guid, under which its history opens, if you have one.", metavar="GUID")
    ] = None,
    business_unit: Annotated[
        str | None, typer.Option(help="In whose zone its reminders are due.", metavar="GUID")
    ] = None,
) -> None:
    """Add a source, or replace it as a whole: what is not named, it has not any more."""
    from clarion.client.wire_sources import SourceRequest
    from clarion.domain.attribute import Kind

    fields: dict[str, object] = {}
    typed_as = dict(TYPED_AS)
    for option, kind, given in (
        ("--field", Kind.TEXT, field),
        ("--number", Kind.NUMBER, number),
        ("--truth", Kind.TRUTH, truth),
    ):
        values = _pairs(given, option, kind)
        for name in fields.keys() & values.keys():
            raise InvalidInput(f"{name} has a value already", field=option, hint="give each field one value")
        fields |= values
        typed_as |= {f"fields.{name}": f"{option} {name}" for name in values}
    request = SourceRequest(
        fields=fields,
        dates=_pairs(date, "--date", Kind.DATE),
        metrics=_metrics(_pairs(metric, "--metric", Kind.NUMBER)),
        entity=None if entity is None else read_guid(entity, field="--entity", hint=GUID_HINT),
        business_unit=None
        if business_unit is None
        else read_guid(business_unit, field="--business-unit", hint=GUID_HINT),
    )

    async def work(session: Session) -> "SourceStored":
        return await session.operations.sources.put(
            session.tenant_id, source_type, source, request, actor=session.actor, trace=session.trace
        )

    stored = asked.run(work, typed_as=typed_as)
    word = "stored" if stored.changed else "so already"
    asked.line(f"{word}: {source_type} {stored.id}, version {stored.version}", stored)


@sources.command("show")
@asks
def show_source(asked: Asked, source_type: TypeName, source: SourceName) -> None:
    """Show a source with all that was said of it."""

    async def work(session: Session) -> "Source":
        found = await session.operations.sources.find(session.tenant_id, source_type, source, whole=True)
        return _known(found, source_type, source)

    found = asked.run(work, typed_as=TYPED_AS)
    if asked.as_json:
        print_json(found)
        return
    print_pairs(
        [
            ("source", f"{found.type} {found.id}"),
            ("entity", found.entity),
            ("business unit", found.business_unit),
            *((f"field {name}", _text(value)) for name, value in (found.fields or {}).items()),
            *((f"date {name}", day) for name, day in (found.dates or {}).items()),
            *((f"metric {name}", _text(value)) for name, value in (found.metrics or {}).items()),
            ("version", found.version),
            ("changed", found.changed_at),
        ]
    )


@sources.command("list")
@lists
def list_sources(asked: AskedPage, source_type: TypeName) -> None:
    """List the sources of a type, by id."""
    page = asked.run(
        lambda it: it.operations.sources.list(it.tenant_id, source_type, asked.query, whole=True), typed_as=TYPED_AS
    )
    asked.show(
        page,
        head=("id", "dates", "metrics", "version", "changed"),
        row=lambda one: (one.id, _named(one.dates), _named(one.metrics), one.version, one.changed_at),
        empty=f"there is none of type {source_type}; `clarion sources put` adds one, `clarion sources import` many",
    )


@sources.command("remove")
@asks
def remove_source(asked: Asked, source_type: TypeName, source: SourceName) -> None:
    """Remove a source with what was said of it, and take back what was planned for it."""

    async def work(session: Session) -> "SourceStored":
        removed = await session.operations.sources.remove(
            session.tenant_id, source_type, source, actor=session.actor, trace=session.trace
        )
        return _known(removed, source_type, source)

    removed = asked.run(work, typed_as=TYPED_AS)
    asked.line(f"removed: {source_type} {removed.id}", removed)


def _known(found: T | None, source_type: str, source: str) -> T:
    if found is None:
        raise InvalidInput(
            f"the tenant has no {source_type} {source!r:.80}",
            field="ID",
            hint=f"`clarion sources list {source_type}` shows those there are",
        )
    return found


def _pairs(given: "Sequence[str] | None", option: str, kind: "Kind") -> dict[str, object]:
    """Read NAME=VALUE, each name once, as values of a kind."""
    from clarion.domain.attribute import read_text

    found: dict[str, object] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name or name in found:
            what = f"{name!r:.80} is named twice" if name in found else f"{text!r:.80} has no name and value"
            raise InvalidInput(what, field=option, hint="write NAME=VALUE, each name once")
        found[name] = read_text(kind, value.strip() if option != "--field" else value, field=f"{option} {name}")
    return found


def _metrics(given: "Mapping[str, object]") -> dict[str, object]:
    """Put metrics of parts of the source together by their names."""
    found: dict[str, object] = {}
    for text, value in given.items():
        name, colon, scope = text.partition(":")
        before = found.get(name)
        if before is not None and not (colon and isinstance(before, dict)):
            raise InvalidInput(
                f"{name} is named as a whole and in parts", field="--metric", hint="name the one or the others"
            )
        found[name] = {**(before if isinstance(before, dict) else {}), scope: value} if colon else value
    return found


def _named(values: "Mapping[str, object] | None") -> list[str]:
    return [f"{name}={_text(value)}" for name, value in (values or {}).items()]


def _text(value: object) -> str:
    return str(value) if not isinstance(value, bool | dict | float | None) else msgspec.json.encode(value).decode()

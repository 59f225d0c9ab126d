"""Sending and canceling from the shell, straight on the store: no server is needed for a notification to be accepted.

What is accepted here is sent by whichever `clarion serve` or `clarion work` runs on the same store.
"""

import re
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import msgspec
import typer

from clarion.cli import option
from clarion.cli.output import called_as, harmless, print_json, print_line, print_pairs, print_table, say
from clarion.cli.session import Session, guid, hint_on_conflict, in_session, job_or_message, known, unknown_type
from clarion.client import wire
from clarion.domain.definition import TTL_SECONDS_MAX
from clarion.domain.depth import check_depth, too_deep
from clarion.domain.guard import IDEMPOTENCY_KEY_MAX
from clarion.domain.hint import Hints
from clarion.domain.identity import Channel, IdentityDomain, Lane
from clarion.domain.misfit import read_json_fault, read_misfit
from clarion.domain.notification import PAYLOAD_BYTES_MAX
from clarion.domain.recipient import NAMED_MAX
from clarion.domain.setting import PLACE_IN_WORDS
from clarion.domain.strict_json import check_keys
from clarion.errors import InvalidInput

if TYPE_CHECKING:
    from clarion.operations.preview import Preview

TO_HELP = (
    f"Who gets it: an address, user:ID, employee:GUID, group:GUID, or CHANNEL:ADDRESS; up to {NAMED_MAX}. Without it, "
    "whom the type's settings name."
)
GUID_HINT = "write a guid, such as 6f1c2c7e-0000-4000-8000-000000000001"
HINTS = Hints.__struct_encode_fields__
_NUMBER = re.compile(r"\s*[+(0-9][^a-zA-Z]*$")
"""What may be meant as a phone number."""

OPTIONS = {
    "data": "--data",
    "entity[0]": "--entity",
    "entity_data": "--entity-data",
    "id": "--to",
    "not_before_at": "--not-before",
    "ttl_seconds": "--ttl",
    "locale": "--locale",
    "channels": "--channel",
    "business_unit": "--business-unit",
}
"""What the fields of a send are called here; those of a recipient are named by its place."""


def send(
    notification: Annotated[
        str, typer.Argument(help="The notification type, as `clarion types` lists it.", metavar="TYPE")
    ],
    *,
    to: Annotated[list[str] | None, typer.Option(help=TO_HELP, metavar="RECIPIENT")] = None,
    data: Annotated[
        str, typer.Option(help="What the templates need, as a JSON object; @FILE reads a file, - standard input.")
    ] = "{}",
    key: Annotated[
        str | None, typer.Option(help="Your name for this send: the same key never sends twice.", metavar="KEY")
    ] = None,
    entity: Annotated[
        str | None, typer.Option(help="What it is about; its history has it then.", metavar="TYPE:GUID")
    ] = None,
    entity_data: Annotated[
        str, typer.Option(help="What templates read of it, as a JSON object; @FILE reads a file.")
    ] = "{}",
    lane: Annotated[
        Lane | None, typer.Option(help="How urgent it is, instead of the type's own lane; it may be more urgent.")
    ] = None,
    not_before: Annotated[
        str | None,
        typer.Option(
            help="Send no earlier than this, a year ahead at most, such as 2027-01-31T08:00:00+01:00.", metavar="TIME"
        ),
    ] = None,
    ttl: Annotated[
        int | None,
        typer.Option(
            help="After so long it is not sent any more, instead of the type's own time.",
            metavar="SECONDS",
            min=1,
            max=TTL_SECONDS_MAX,
        ),
    ] = None,
    locale: Annotated[
        str | None,
        typer.Option(help="The language that it is written in, such as de-AT, instead of the recipient's own."),
    ] = None,
    channel: Annotated[
        list[Channel] | None,
        typer.Option(help="Only this of the type's channels; several are tried in the order given."),
    ] = None,
    business_unit: Annotated[str | None, typer.Option(help="On whose behalf it is sent.", metavar="GUID")] = None,
    hint: Annotated[
        list[str] | None,
        typer.Option(
            help=f"For the provider: {', '.join(HINTS)}. Several tags are several hints.", metavar="NAME=VALUE"
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show who would get what, and store and send nothing.")
    ] = False,
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Send a notification: accepted once it is stored, sent by the workers."""
    named = to or []
    if len(named) > NAMED_MAX:
        raise InvalidInput(
            f"{len(named)} recipients are too many", field="--to", hint=f"name at most {NAMED_MAX}, or a group"
        )
    if key is not None and not 1 <= len(key) <= IDEMPOTENCY_KEY_MAX:
        raise InvalidInput("it is empty or too long", field="--key", hint=f"use 1 to {IDEMPOTENCY_KEY_MAX} characters")
    asked = wire.SendRequest(
        type=notification,
        to=tuple(read_recipient(one, place=place) for place, one in enumerate(named)),
        data=read_data(data),
        entity=read_entity(entity, read_data(entity_data, field="--entity-data")),
        lane=lane,
        not_before_at=None if not_before is None else read_time(not_before, field="--not-before"),
        ttl_seconds=ttl,
        locale=locale,
        channels=tuple(channel or ()),
        business_unit=None if business_unit is None else guid(business_unit, field="--business-unit", hint=GUID_HINT),
        hints=read_hints(hint or []),
    )
    if dry_run:
        _show_preview(
            in_session(lambda session: look_ahead(session, asked, key=key), store=store, tenant=tenant),
            as_json=as_json,
        )
        return
    answer = in_session(lambda session: accept(session, asked, key=key), store=store, tenant=tenant)
    if as_json:
        print_json(answer)
        return
    typer.echo(f"{'known already' if answer.repeated else 'accepted'}: job {answer.job_id}")
    if answer.message_id is not None:
        typer.echo(f"message {answer.message_id}")
    if answer.repeated:
        say("nothing new is sent: the key was used for the same notification before")
    for warning in answer.warnings:
        say(f"warning: {warning}")
    say(f"what happens to it: {called_as()} explain {answer.job_id}")


def cancel(
    job: Annotated[str, typer.Argument(help="The id of a job, or of one of its messages.", metavar="ID")],
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Cancel a notification: what was not sent yet never is."""
    named = job_or_message(job)

    async def work(session: Session) -> wire.Canceled:
        with hint_on_conflict(f"`clarion explain {named}` tells its end"):
            canceled = await session.operations.notifications.cancel(session.tenant_id, named, actor=session.actor)
            return known(canceled, job)

    canceled = in_session(work, store=store, tenant=tenant)
    print_line(f"canceled{' before' if canceled.repeated else ''}: job {canceled.job_id}", canceled, as_json=as_json)


async def accept(session: Session, asked: wire.SendRequest, *, key: str | None) -> wire.SendAnswer:
    """Send. Whoever can write to the store is asked for no role: they could make themselves any key."""
    async with _named_as_typed(session, asked):
        return await session.operations.notifications.send(
            session.tenant_id, asked, key=key, actor=session.actor, trace=session.trace, may_raise=True
        )


async def look_ahead(session: Session, asked: wire.SendRequest, *, key: str | None) -> "Preview":
    """Find out what a send would come to."""
    from clarion.operations.preview import preview

    async with _named_as_typed(session, asked):
        return await preview(
            session.platform, session.tenant_id, asked, key=key, actor=session.actor, trace=session.trace
        )


@asynccontextmanager
async def _named_as_typed(session: Session, asked: wire.SendRequest) -> AsyncIterator[None]:
    """Name what is refused as it was typed, and where the type is unknown, those that come near."""
    try:
        yield
    except InvalidInput as error:
        if error.field != "type":
            raise as_typed(error) from None
        types = await session.operations.types.list(session.tenant_id)
        raise unknown_type(asked.type, [one.type for one in types.items]) from None


def _show_preview(found: "Preview", *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return

    from clarion.cli.outbox import text_of

    if found.repeated:
        say("nothing is stored or sent, nor would it be: the key was used for the same notification before")
        return
    say("nothing is stored or sent; this is what would be")
    for warning in found.warnings:
        say(f"warning: {warning}")
    if found.off is not None:
        say(f"but it would be skipped: {found.off} (`clarion settings show {found.type}`)")
    pairs = [("type", f"{found.type}, version {found.version}"), ("lane", found.lane)]
    if found.addressed_by is not None:
        pairs.append(("to", f"{', '.join(found.addressed_to)}, by the {PLACE_IN_WORDS[found.addressed_by]}'s setting"))
    print_pairs([*pairs, ("lives", f"{found.ttl_seconds} s")] if found.ttl_seconds else pairs)
    typer.echo("")
    print_table(
        ("recipient", "channel", "to", ""),
        [
            (one.recipient, one.channel, one.destination, one.skipped and f"not sent: {one.skipped}")
            for one in found.messages
        ],
        empty="nobody would get it",
    )
    if found.addressed_to and len({one.recipient for one in found.messages}) == NAMED_MAX:
        say(f"these are the first {NAMED_MAX}; there may be more")
    for channel, content in found.contents.items():
        typer.echo(f"\n--- {channel}")
        for paragraph in text_of(content):
            typer.echo(harmless(paragraph.rstrip("\n")))


def as_typed(error: InvalidInput) -> InvalidInput:
    """Name the option that an error is about, instead of the field that it became."""
    place = re.match(r"(to|channels)\[(\d+)\]", error.field)
    field = OPTIONS.get(error.field, error.field)
    if place:
        field = f"{OPTIONS.get(place[1], '--to')} ({int(place[2]) + 1})"
    return type(error)(error.message, field=field, hint=error.hint)


def read_recipient(text: str, *, place: int = 0) -> wire.Recipient:
    """Read a recipient: `user:ID`, `employee:GUID`, `group:GUID`, `CHANNEL:ADDRESS` or a bare address."""
    field = f"--to ({place + 1})"
    domain, colon, rest = text.partition(":")
    if not colon:
        _require_address(text, field=field)
        return wire.Recipient(address=text)
    match domain:
        case IdentityDomain.USER:
            return wire.Recipient(user=rest)
        case IdentityDomain.EMPLOYEE:
            return wire.Recipient(employee=guid(rest, field=field, hint=GUID_HINT))
        case IdentityDomain.GROUP:
            return wire.Recipient(group=guid(rest, field=field, hint=GUID_HINT))
        case Channel.EMAIL | Channel.SMS | Channel.PUSH | Channel.CHAT:
            return wire.Recipient(address=rest, channel=Channel(domain))
        case _:
            raise InvalidInput(
                f"{domain!r} is no kind of recipient",
                field=field,
                hint="write an address, user:ID, employee:GUID, group:GUID, or email:, sms:, push: or chat: before an "
                "address",
            )


def _require_address(text: str, *, field: str) -> None:
    """Refuse a name where an address is meant, and say how a name is written."""
    if "@" in text or not text.strip() or _NUMBER.match(text):
        return  # what else is wrong with it, the check of addresses says
    try:
        UUID(text)
    except ValueError:
        meant = f"user:{text}"
    else:
        meant = f"employee:{text} or group:{text}"
    raise InvalidInput("it is neither a mail address nor a phone number", field=field, hint=f"did you mean {meant}?")


def read_data(text: str, *, field: str = "--data") -> dict[str, object]:
    """Read merge data as it was typed, from a file or from standard input."""
    source = _read_text(text)
    if len(source) > PAYLOAD_BYTES_MAX:
        raise InvalidInput(f"it has over {PAYLOAD_BYTES_MAX} bytes", field=field, hint="send less")
    try:
        data = msgspec.json.decode(source)
        check_keys(source)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"this is no JSON, {read_json_fault(str(error))}",
            field=field,
            hint=f'quote it for the shell: {field} \'{{"name": "Sam"}}\'',
        ) from None
    except RecursionError:
        raise too_deep(field) from None
    except InvalidInput as error:
        raise type(error)(f"{error.field!r} is given twice", field=field, hint=error.hint) from None
    if not isinstance(data, dict):
        raise InvalidInput("this is no JSON object", field=field, hint='write {"name": "value", ...}')
    check_depth(data, field=field)
    return data


def read_entity(text: str | None, data: dict[str, object]) -> wire.Entity | None:
    """Read an entity's type and guid, and take its data along."""
    if text is None:
        if data:
            raise InvalidInput("it is about nothing", field="--entity-data", hint="say what it is about with --entity")
        return None
    kind, colon, rest = text.rpartition(":")
    if not colon or not kind:
        raise InvalidInput(f"{text!r} is no entity", field="--entity", hint="write its type, a colon and its guid")
    return wire.Entity(type=kind, guid=guid(rest, field="--entity", hint=GUID_HINT), data=data)


def read_time(text: str, *, field: str) -> datetime:
    """Read a point in time that says its zone."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise InvalidInput(
            f"{text!r} is no time with a zone", field=field, hint="write it as 2027-01-31T08:00:00+01:00"
        )
    return at


def read_hints(given: Sequence[str]) -> Hints | None:
    """Read hints for the provider; `tags` may be given several times, any other once."""
    values: dict[str, object] = {}
    tags: list[str] = []
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or name not in HINTS:
            raise InvalidInput(
                f"{text[:60]!r} is no hint", field="--hint", hint=f"write NAME=VALUE; the names are {', '.join(HINTS)}"
            )
        if name in values:
            raise InvalidInput("it is given twice", field=f"--hint {name}", hint="give it once")
        if name == "tags":
            tags.append(value)
        else:
            values[name] = {"true": True, "false": False}.get(value, value) if name == "unicode" else value
    try:
        return msgspec.convert(values | ({"tags": tags} if tags else {}), Hints) if given else None
    except msgspec.ValidationError as error:
        misfit = read_misfit(str(error))
        name = misfit.field.partition("[")[0]
        remedy = misfit.hint or "correct it and send again"
        raise InvalidInput(misfit.what, field=f"--hint {name}", hint=remedy) from None


def _read_text(text: str) -> bytes:
    if text == "-":
        return sys.stdin.buffer.read(PAYLOAD_BYTES_MAX + 1)
    if not text.startswith("@"):
        return text.encode()
    try:
        with Path(text[1:]).open("rb") as file:
            return file.read(PAYLOAD_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidInput(
            f"{text[1:]} cannot be read ({error.strerror})", field="--data", hint="name a file that this user may read"
        ) from None

"""`clarion suppress`: who gets nothing of what, and what people want."""

from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from clarion.cli import option
from clarion.cli.output import moment, print_json, print_line, print_table, say, say_more
from clarion.cli.session import in_session, require_reason
from clarion.domain.identity import Channel
from clarion.domain.suppression import Cause
from clarion.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from clarion.cli.session import Session
    from clarion.client.wire_suppression import PreferenceChange, Preferences, SuppressionPage, SuppressionsAdded

T = TypeVar("T")

suppress = typer.Typer(help="Suppressions and preferences: who gets nothing of what.")

RECIPIENT = "user:ID, employee:GUID or an address, with email:, sms:, push: or chat: before it if need be."

RecipientName = Annotated[str, typer.Argument(help=RECIPIENT, metavar="RECIPIENT")]
CategoryName = Annotated[str | None, typer.Option(help="Of this category only; without it, everything.")]
OnChannel = Annotated[Channel | None, typer.Option(help="Of the category, on this channel only.")]
Reason = Annotated[str, typer.Option(help="Why; the audit log keeps it.")]


@suppress.command("list")
def list_suppressions(
    recipient: Annotated[str | None, typer.Argument(help=f"Of this one only: {RECIPIENT}", metavar="RECIPIENT")] = None,
    *,
    cause: Annotated[Cause | None, typer.Option(help="Of this cause only.")] = None,
    limit: option.Limit = 50,
    after: option.After = "",
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """List who gets nothing of what, newest first."""

    async def work(session: "Session") -> "SuppressionPage":
        from clarion.client.wire_suppression import SuppressionQuery

        query = SuppressionQuery(limit=limit, cursor=after or None, recipient=recipient, cause=cause)
        return await session.operations.suppressions.list(session.tenant_id, query, whole=True)

    page = _typed_in_session(work, store=store, tenant=tenant)
    if as_json:
        print_json(page)
        return
    print_table(
        ("recipient", "gets nothing of", "on", "cause", "since", "by", "note"),
        [
            (
                one.recipient,
                one.category or "everything",
                one.channel or "every channel",
                one.cause,
                one.created_at and moment(one.created_at),
                one.created_by,
                one.note,
            )
            for one in page.items
        ],
        empty="nobody is suppressed; `clarion suppress add RECIPIENT --reason WHY` suppresses somebody",
    )
    say_more(page.next_cursor)


@suppress.command("add")
def add(
    recipient: Annotated[list[str], typer.Argument(help=f"One or more: {RECIPIENT}", metavar="RECIPIENT...")],
    *,
    reason: Reason,
    category: CategoryName = None,
    channel: OnChannel = None,
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Send nothing to these any more, also of what is queued; all of them or none."""
    require_reason(reason)

    async def work(session: "Session") -> "SuppressionsAdded":
        from clarion.client.wire_suppression import ITEMS_MAX, SuppressionItem, SuppressionRequest

        if len(recipient) > ITEMS_MAX:
            raise InvalidInput(f"{len(recipient)} are too many", field="RECIPIENT", hint=f"name at most {ITEMS_MAX}")
        items = tuple(SuppressionItem(recipient=one, category=category, channel=channel) for one in recipient)
        request = SuppressionRequest(items=items, reason=reason)
        return await session.operations.suppressions.add(
            session.tenant_id, request, actor=session.actor, trace=session.trace
        )

    done = _typed_in_session(work, typed=[("RECIPIENT", one) for one in recipient], store=store, tenant=tenant)
    print_line(f"{done.added} suppressed, {len(recipient) - done.added} were so before", done, as_json=as_json)
    if not as_json:
        for warning in done.warnings:
            say(f"warning: {warning}")


@suppress.command("lift")
def lift(
    recipient: RecipientName,
    *,
    reason: Reason,
    category: CategoryName = None,
    channel: OnChannel = None,
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Lift a suppression, whatever it came from. What it has stopped stays stopped."""
    require_reason(reason)

    async def work(session: "Session") -> bool:
        operations = session.operations.suppressions
        key = await operations.key_of(session.tenant_id, recipient, category, channel)
        return await operations.lift(session.tenant_id, key, reason=reason, actor=session.actor)

    if not _typed_in_session(work, store=store, tenant=tenant):
        raise InvalidInput(
            "it is not suppressed like that",
            field="RECIPIENT",
            hint="`clarion suppress list RECIPIENT` shows how it is",
        )
    print_line(f"{recipient} is suppressed no more", {"lifted": True}, as_json=as_json)


@suppress.command("preferences")
def preferences(
    person: Annotated[str, typer.Argument(help="user:ID or employee:GUID.", metavar="PERSON")],
    *,
    on: Annotated[
        list[str] | None, typer.Option(help="Switch on: a category, or CATEGORY:CHANNEL.", metavar="CATEGORY")
    ] = None,
    off: Annotated[list[str] | None, typer.Option(help="Switch off.", metavar="CATEGORY")] = None,
    reason: Annotated[str | None, typer.Option(help="Why; the audit log keeps it.")] = None,
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Show what a person can choose and how it stands; with --on and --off, change it first."""
    typed = [*(("--on", one) for one in on or ()), *(("--off", one) for one in off or ())]
    if both := set(on or ()) & set(off or ()):
        raise InvalidInput(f"{min(both)!r} is named by --on too", field="--off", hint="say it once")
    changes = [_change(text, to=option_name == "--on") for option_name, text in typed]

    async def work(session: "Session") -> "Preferences | None":
        from clarion.client.wire_suppression import PreferencesRequest
        from clarion.domain.identity import read_person

        operations, identity = session.operations.suppressions, read_person(person, field="PERSON")
        if not changes:
            return await operations.preferences(session.tenant_id, identity)
        request = PreferencesRequest(changes=tuple(changes), reason=reason)
        return await operations.set_preferences(session.tenant_id, identity, request, actor=session.actor)

    found = _typed_in_session(work, typed=typed, store=store, tenant=tenant)
    if found is None:
        raise InvalidInput(
            f"the tenant has nobody called {person}", field="PERSON", hint="`clarion people list` shows who there is"
        )
    if as_json:
        print_json(found)
        return
    print_table(
        ("category", "channel", "is", "for"),
        [
            (one.category, channel, _is(is_on, required=one.required), ", ".join(one.titles))
            for one in found.items
            for channel, is_on in one.channels.items()
        ],
        empty="nothing is published yet, so there is nothing to choose; `clarion publish FOLDER` adds a type",
    )
    if found.stopped is not None:
        say(f"whatever is chosen, {person} gets nothing at all: {found.stopped}")


def _is(is_on: bool, *, required: bool) -> str:
    return "required" if required else "on" if is_on else "off"


def _change(text: str, *, to: bool) -> "PreferenceChange":
    """Read a category as it is typed; behind the last colon may stand a channel."""
    from clarion.client.wire_suppression import PreferenceChange

    category, colon, channel = text.rpartition(":")
    if colon and channel in set(Channel):
        return PreferenceChange(category=category, channel=Channel(channel), on=to)
    return PreferenceChange(category=text, on=to)


def _typed_in_session(
    work: "Callable[[Session], Awaitable[T]]",
    *,
    typed: "Sequence[tuple[str, str]]" = (),
    store: str | None,
    tenant: str | None,
) -> "T":
    """Run it; what is wrong is said of the option or argument that it was typed as, not of a request's field.

    `typed` is what the items or changes of the request were typed as, in their order.
    """
    try:
        return in_session(work, store=store, tenant=tenant)
    except InvalidInput as error:
        field = _typed_as(error.field or "", typed)
        raise type(error)(error.message, field=field, hint=error.hint) from None


def _typed_as(field: str, typed: "Sequence[tuple[str, str]]") -> str:
    """Say what the field of a request was typed as: `items[1].channel` is --channel, `changes[0].category` --off."""
    place, _, name = field.rpartition(".")
    number = int(place.partition("[")[2].rstrip("]") or 0)
    if place.startswith("changes["):
        return typed[number][0]
    if name == "recipient" and len(typed) > 1:
        return f"RECIPIENT {number + 1}"
    return {"recipient": "RECIPIENT", "category": "--category", "channel": "--channel"}.get(name, field)

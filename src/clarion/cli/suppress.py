"""`clarion suppress`: who gets nothing of what, and what people want."""

from typing import TYPE_CHECKING, Annotated

import typer

from clarion.cli import option
from clarion.cli.output import moment, print_json, print_line, print_table, say, say_more
from clarion.cli.session import in_session, require_reason
from clarion.domain.identity import Channel
from clarion.domain.suppression import Cause
from clarion.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clarion.cli.session import Session
    from clarion.client.wire_suppression import PreferenceChange, Preferences, SuppressionPage

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

    page = in_session(work, store=store, tenant=tenant)
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

    async def work(session: "Session") -> int:
        from clarion.client.wire_suppression import ITEMS_MAX, SuppressionItem, SuppressionRequest

        if len(recipient) > ITEMS_MAX:
            raise InvalidInput(f"{len(recipient)} are too many", field="RECIPIENT", hint=f"name at most {ITEMS_MAX}")
        items = tuple(SuppressionItem(recipient=one, category=category, channel=channel) for one in recipient)
        request = SuppressionRequest(items=items, reason=reason)
        added = await session.operations.suppressions.add(
            session.tenant_id, request, actor=session.actor, trace=session.trace
        )
        return added.added

    added = in_session(work, store=store, tenant=tenant)
    print_line(f"{added} suppressed, {len(recipient) - added} were so before", {"added": added}, as_json=as_json)


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

    if not in_session(work, store=store, tenant=tenant):
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
    changes = [*_changes(on or [], to=True), *_changes(off or [], to=False)]

    async def work(session: "Session") -> "Preferences | None":
        from clarion.client.wire_suppression import PreferencesRequest
        from clarion.domain.identity import read_person

        operations, identity = session.operations.suppressions, read_person(person, field="PERSON")
        if not changes:
            return await operations.preferences(session.tenant_id, identity)
        request = PreferencesRequest(changes=tuple(changes), reason=reason)
        return await operations.set_preferences(session.tenant_id, identity, request, actor=session.actor)

    found = in_session(work, store=store, tenant=tenant)
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


def _changes(texts: list[str], *, to: bool) -> "Iterator[PreferenceChange]":
    """Read categories as they are typed; behind the last colon may stand a channel."""
    from clarion.client.wire_suppression import PreferenceChange

    for text in texts:
        category, colon, channel = text.rpartition(":")
        if colon and channel in set(Channel):
            yield PreferenceChange(category=category, channel=Channel(channel), on=to)
        else:
            yield PreferenceChange(category=text, on=to)

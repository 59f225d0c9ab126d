"""`clarion event`, `events` and `event-mappings`: telling what happened, what became of it, and what it leads to."""

from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from clarion.cli.asked import Asked, AskedPage, Reason, asks, lists
from clarion.cli.groups import GUID_HINT
from clarion.cli.output import print_json, print_pairs
from clarion.cli.send import read_data, read_entity, read_time
from clarion.cli.session import Session, hint_on_conflict, require_reason
from clarion.cli.session import guid as read_guid
from clarion.domain.entity_event import EventStatus
from clarion.errors import InvalidInput

if TYPE_CHECKING:
    from uuid import UUID

    from clarion.client.wire_events import Event, EventAnswer, EventMapping, EventPage, EventRetried

T = TypeVar("T")

events = typer.Typer(help="Events that were told: list them, look at one, have one handled again.")
mappings = typer.Typer(help="What event types lead to at once: a notification type, or explicitly none.")

EventId = Annotated[str, typer.Argument(help="The event's id.", metavar="EVENT")]
TypeName = Annotated[str, typer.Argument(help="The kind of event, such as invoice.paid.", metavar="TYPE")]
TYPED_AS = {
    "type": "TYPE",
    "event_type": "TYPE",
    "id": "--id",
    "entity": "--entity",
    "source": "--source",
    "data": "--data",
    "occurred_at": "--at",
    "business_unit": "--business-unit",
    "notification_type": "NOTIFICATION",
}
"""What the fields of requests are called here."""


@asks
def event(
    asked: Asked,
    event_type: TypeName,
    *,
    event_id: Annotated[
        str | None,
        typer.Option("--id", help="Your own id of the event: told again, it is the same event.", metavar="GUID"),
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="Your own name for the event, where it has no id.", metavar="KEY")
    ] = None,
    entity: Annotated[
        str | None, typer.Option(help="What it happened to; without it, its source.", metavar="TYPE:GUID")
    ] = None,
    entity_data: Annotated[
        str, typer.Option(help="What templates read of it, as a JSON object; @FILE reads a file.")
    ] = "{}",
    source: Annotated[
        str | None, typer.Option(help="The source that it tells of; its reminders are planned anew.", metavar="TYPE:ID")
    ] = None,
    data: Annotated[
        str, typer.Option(help="What the templates need, as a JSON object; @FILE reads a file, - standard input.")
    ] = "{}",
    at: Annotated[
        str | None,
        typer.Option(help="When it happened, such as 2027-01-31T08:00:00+01:00; without it, now.", metavar="TIME"),
    ] = None,
    business_unit: Annotated[
        str | None, typer.Option(help="On whose behalf its notification is sent.", metavar="GUID")
    ] = None,
) -> None:
    """Tell that something happened, under an id or a key: accepted once it is stored, then handled."""
    from clarion.client.wire_events import EventRequest, EventSource

    request = EventRequest(
        type=event_type,
        id=None if event_id is None else read_guid(event_id, field="--id", hint=GUID_HINT),
        entity=read_entity(entity, read_data(entity_data, field="--entity-data")),
        source=None if source is None else EventSource(**_source(source)),
        data=read_data(data),
        occurred_at=None if at is None else read_time(at, field="--at"),
        business_unit=None
        if business_unit is None
        else read_guid(business_unit, field="--business-unit", hint=GUID_HINT),
    )

    async def work(session: Session) -> "EventAnswer":
        return await session.operations.events.tell(
            session.tenant_id, request, key=key, actor=session.actor, trace=session.trace
        )

    answer = asked.run(work, typed_as=TYPED_AS)
    asked.line(f"{'told before' if answer.repeated else 'accepted'}: event {answer.event_id}", answer)


@events.command("list")
@lists
def list_events(
    asked: AskedPage,
    *,
    entity: Annotated[str | None, typer.Option(help="Only of this thing.", metavar="TYPE:GUID")] = None,
    status: Annotated[EventStatus | None, typer.Option(help="Only those whose handling has come so far.")] = None,
) -> None:
    """List events, newest first."""

    async def work(session: Session) -> "EventPage":
        from clarion.client.wire_events import EventQuery

        query = asked.of(EventQuery, entity=entity, status=status)
        return await session.operations.events.list(session.tenant_id, query, whole=True)

    asked.show(
        asked.run(work, typed_as=TYPED_AS),
        head=("time", "type", "about", "status", "reason", "event"),
        row=lambda one: (
            one.occurred_at,
            one.type,
            f"{one.source.type} {one.source.id}" if one.source else f"{one.entity.type}:{one.entity.guid}",
            one.status,
            one.reason,
            one.event_id,
        ),
        empty="there is no such event" if entity or status else "no event was ever told",
    )


@events.command("show")
@asks
def show_event(asked: Asked, event_id: EventId) -> None:
    """Show an event, what it tells, and how far its handling has come."""
    named = _event_id(event_id)

    async def work(session: Session) -> "Event":
        return _known(await session.operations.events.find(session.tenant_id, named, whole=True), event_id)

    found = asked.run(work)
    if asked.as_json:
        print_json(found)
        return
    print_pairs(
        [
            ("event", found.event_id),
            ("type", found.type),
            ("about", f"{found.entity.type}:{found.entity.guid}"),
            ("source", f"{found.source.type} {found.source.id}" if found.source else None),
            ("business unit", found.business_unit),
            ("happened", found.occurred_at),
            ("status", found.status),
            ("reason", found.reason),
            ("retries", found.retries or None),
            ("again at", found.due_at),
            *((name.replace("_", " "), value) for name, value in (found.result or {}).items()),
            *((f"data {name}", value) for name, value in (found.data or {}).items()),
            ("told by", found.actor),
            ("request", found.correlation_id),
        ]
    )


@events.command("retry")
@asks
def retry_event(asked: Asked, event_id: EventId, *, reason: Reason) -> None:
    """Have an event that failed handled again."""
    require_reason(reason)
    named = _event_id(event_id)

    async def work(session: Session) -> "EventRetried":
        with hint_on_conflict(f"`clarion events show {named}` tells how it stands"):
            retried = await session.operations.events.retry(
                session.tenant_id, named, actor=session.actor, reason=reason
            )
            return _known(retried, event_id)

    retried = asked.run(work)
    asked.line(f"it will be handled again: event {retried.event_id}", retried)


@mappings.command("list")
@lists
def list_mappings(asked: AskedPage) -> None:
    """List what event types lead to."""
    asked.show(
        asked.run(lambda it: it.operations.event_mappings.list(it.tenant_id, asked.query)),
        head=("event type", "leads to", "changed by", "changed at"),
        row=lambda one: (one.event_type, one.notification_type or "nothing at once", one.changed_by, one.changed_at),
        empty="nothing is mapped yet; `clarion event-mappings set` maps an event type",
    )


@mappings.command("set")
@asks
def set_mapping(
    asked: Asked,
    event_type: TypeName,
    notification: Annotated[
        str | None,
        typer.Argument(help="The notification type that is sent at once.", metavar="NOTIFICATION", show_default=False),
    ] = None,
    *,
    nothing: Annotated[bool, typer.Option("--nothing", help="It explicitly leads to no notification.")] = False,
) -> None:
    """Say what an event type leads to: a notification type or, with --nothing, none."""
    if (notification is None) != nothing:
        what = "a notification type and --nothing" if nothing else "neither a notification type nor --nothing"
        raise InvalidInput(f"it names {what}", field="NOTIFICATION", hint="name one of the two")

    async def work(session: Session) -> "EventMapping":
        return await session.operations.event_mappings.put(
            session.tenant_id, event_type, notification, actor=session.actor
        )

    mapped = asked.run(work, typed_as=TYPED_AS)
    asked.line(f"{mapped.event_type} leads to {mapped.notification_type or 'nothing at once'}", mapped)


@mappings.command("remove")
@asks
def remove_mapping(asked: Asked, event_type: TypeName) -> None:
    """Take an event type out of the table: such events are refused from now on."""

    async def work(session: Session) -> bool:
        return await session.operations.event_mappings.remove(session.tenant_id, event_type, actor=session.actor)

    if not asked.run(work, typed_as=TYPED_AS):
        raise InvalidInput(
            f"{event_type!r:.80} is not in the table", field="TYPE", hint="`clarion event-mappings list` shows it"
        )
    asked.line(f"{event_type} leads nowhere any more", {"event_type": event_type})


def _event_id(text: str) -> "UUID":
    return read_guid(text, field="EVENT", hint="use the id as `clarion event` or `clarion events list` printed it")


def _known(found: T | None, event_id: str) -> T:
    if found is None:
        raise InvalidInput(
            f"the tenant has no event {event_id}", field="EVENT", hint="`clarion events list` shows those there are"
        )
    return found


def _source(text: str) -> dict[str, str]:
    """Read TYPE:ID; the id may hold colons."""
    kind, colon, name = text.partition(":")
    if not colon or not kind or not name:
        raise InvalidInput(f"{text!r:.80} is no source", field="--source", hint="write its type, a colon and its id")
    return {"type": kind, "id": name}

"""Asking what happened: the latest notifications, one's whole timeline, an entity's history. Changes nothing."""

from datetime import UTC
from typing import Annotated
from uuid import UUID

import typer

from clarion.cli import option
from clarion.cli.output import called_as, clock_time, moment, print_json, print_pairs, print_table, say, say_more
from clarion.cli.recipients import not_sent, show_recipients
from clarion.cli.send import read_recipient, read_time
from clarion.cli.session import Session, in_session, job_or_message, known
from clarion.cli.story import KEYS, explain_occurrence, story
from clarion.client import wire
from clarion.domain.identity import Channel, IdentityDomain
from clarion.domain.outgoing import STATUS_IN_WORDS, OutgoingStatus
from clarion.domain.result import Result
from clarion.errors import InvalidInput

STATES_MAX = 6
"""Recipients that are named before the timeline, and messages whose state is told; --json has all."""


def explain(
    message_or_job: Annotated[
        str | None,
        typer.Argument(
            help="The id of a message or of a job, or the key of an occurrence.", metavar="ID", show_default=False
        ),
    ] = None,
    *,
    would: Annotated[
        str | None,
        typer.Option(help="Instead of an ID: what a notification of this type would do now.", metavar="TYPE"),
    ] = None,
    user: Annotated[str | None, typer.Option(help="For whom it would be, with --would.", metavar="USER")] = None,
    employee: Annotated[str | None, typer.Option(help="For whom it would be, with --would.", metavar="GUID")] = None,
    entity: Annotated[
        str | None, typer.Option(help="What it would be about, with --would.", metavar="TYPE:GUID")
    ] = None,
    business_unit: Annotated[
        str | None, typer.Option(help="On whose behalf it would be sent, with --would.", metavar="GUID")
    ] = None,
    channel: Annotated[
        list[Channel] | None,
        typer.Option(help="Which channel the send would ask for, with --would; several are tried in the order given."),
    ] = None,
    recipients: Annotated[
        bool, typer.Option("--recipients", help="List whom a job is for instead, and what each of them got or why not.")
    ] = False,
    limit: option.Limit = 50,
    after: option.After = "",
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Tell the whole timeline of a notification in order, with times and reasons.

    Of an occurrence of a reminder or a report it tells why it is there, how it stands and what became of it.

    Of more than a thousand recipients only some are told of; --recipients lists all of them, page by page.

    With --would: say what a notification would do for one person as things stand, channel by channel and with the rule
    that decides. Nothing is sent then.

    Addresses are shown whole: who runs this program can read the store and the master key.
    """
    if would is not None:
        from clarion.cli.would import would as show_would

        if message_or_job is not None or recipients:
            raise InvalidInput("it goes with no ID and no --recipients", field="--would", hint="leave the others out")
        show_would(
            would,
            user=user,
            employee=employee,
            entity=entity,
            business_unit=business_unit,
            channels=channel or (),
            tenant=tenant,
            store=store,
            as_json=as_json,
        )
        return
    given = {"--user": user, "--employee": employee, "--entity": entity, "--business-unit": business_unit}
    for name in [*(name for name, value in given.items() if value is not None), *(["--channel"] if channel else [])]:
        raise InvalidInput("it goes with --would", field=name, hint="name a type with --would TYPE, or leave it out")
    if message_or_job is None:
        raise InvalidInput(
            "nothing is named",
            field="ID",
            hint="give the id of a job or message, the key of an occurrence, or ask with --would TYPE --user ID",
        )
    if message_or_job.startswith(KEYS):
        explain_occurrence(message_or_job, tenant=tenant, store=store, as_json=as_json)
        return
    if recipients:
        show_recipients(
            job_or_message(message_or_job), limit=limit, after=after, tenant=tenant, store=store, as_json=as_json
        )
        return
    _explain_notification(message_or_job, tenant=tenant, store=store, as_json=as_json)


def list_notifications(
    *,
    result: Annotated[Result | None, typer.Option(help="Only with this result.")] = None,
    notification: Annotated[str | None, typer.Option("--type", help="Only of this type.", metavar="TYPE")] = None,
    since: Annotated[str | None, typer.Option(help="Accepted at this time or later.", metavar="TIME")] = None,
    until: Annotated[str | None, typer.Option(help="Accepted before this time.", metavar="TIME")] = None,
    limit: option.Limit = 50,
    after: option.After = "",
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """List the latest notifications, newest first, each with its result."""
    query = wire.NotificationQuery(
        type=notification,
        result=result,
        since_at=None if since is None else read_time(since, field="--since"),
        until_at=None if until is None else read_time(until, field="--until"),
        limit=limit,
        cursor=after or None,
    )
    page = in_session(
        lambda session: session.operations.notifications.list(session.tenant_id, query, whole=True),
        store=store,
        tenant=tenant,
    )
    if as_json:
        print_json(page)
        return
    is_whole = page.next_cursor is None and not after
    asked = any(one is not None for one in (notification, result, since, until))
    empty = "there is no such notification" if asked or not is_whole else "nothing was ever sent"
    if page.searched_to_at is not None:
        empty = f"none of those since {moment(page.searched_to_at)}"
    _print_notifications(page, empty=empty)
    if page.searched_to_at is not None and page.items:
        say(f"looked at all since {moment(page.searched_to_at)}")


def history(
    entity: Annotated[
        str,
        typer.Argument(
            help="The guid of what it is about, or a recipient as in `clarion send --to`.", metavar="ENTITY"
        ),
    ],
    *,
    told: Annotated[
        bool,
        typer.Option(
            "--story",
            help="Tell instead what became of an entity: events, and its occurrences from their plan to their end.",
        ),
    ] = False,
    limit: option.Limit = 50,
    after: option.After = "",
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """List every notification about an entity, or all that one person got, newest first."""
    query = option.page(limit, after)
    if told:
        guid = _entity_guid(entity)
        if guid is None:
            raise InvalidInput(
                f"{entity!r:.80} is no guid of an entity",
                field="ENTITY",
                hint="a source's is shown by `clarion sources show TYPE ID`",
            )
        story(guid, query, tenant=tenant, store=store, as_json=as_json)
        return

    async def work(session: Session) -> wire.NotificationPage:
        try:
            about = _entity_guid(entity) or read_recipient(entity)
            return await session.operations.notifications.history(session.tenant_id, about, query, whole=True)
        except InvalidInput as error:
            if error.field == "cursor":
                raise
            raise InvalidInput(
                "it names neither an entity nor a recipient",
                field="ENTITY",
                hint="give the entity's guid, user:ID, employee:GUID, group:GUID, or an address in full",
            ) from None

    page = in_session(work, store=store, tenant=tenant)
    if as_json:
        print_json(page)
        return
    if entity.partition(":")[0] in (IdentityDomain.USER, IdentityDomain.EMPLOYEE):
        _print_what_a_person_got(page)
    else:
        _print_notifications(page, empty="nothing was ever sent about it")


def _explain_notification(message_or_job: str, *, tenant: str | None, store: str | None, as_json: bool) -> None:
    """Show how a job or message stands, and its timeline."""
    named = job_or_message(message_or_job)

    async def work(session: Session) -> tuple[wire.Timeline, wire.Notification]:
        notifications = session.operations.notifications
        return (
            known(await notifications.find_timeline(session.tenant_id, named, whole=True), message_or_job),
            known(await notifications.find(session.tenant_id, named, whole=True), message_or_job),
        )

    timeline, notification = in_session(work, store=store, tenant=tenant)
    if as_json:
        print_json(timeline)
        return
    _print_head(timeline, notification)
    typer.echo("")
    _print_timeline(timeline)


def _print_timeline(timeline: wire.Timeline) -> None:
    """Print a timeline in order; the day of a line where it is another than that of the first."""
    lines = timeline.lines
    several = len({line.message_id for line in lines if line.message_id is not None}) > 1
    days = [f"{line.at.astimezone(UTC):%Y-%m-%d}" for line in lines]
    print_table(
        (days[0], "", *(("to",) if several else ()), "", "times in UTC"),
        [
            (
                clock_time(line.at) if day == days[0] else f"{day} {clock_time(line.at)}",
                line.channel or "",
                *((line.recipient or _short(line.message_id),) if several else ()),
                line.what,
                line.detail,
            )
            for day, line in zip(days, lines, strict=True)
        ],
        empty="nothing is stored about it",
    )
    if timeline.totals is not None and timeline.totals.shown < timeline.totals.recipients:
        left = timeline.totals.recipients - timeline.totals.shown
        say(f"{left} more recipients are left out: {called_as()} explain {timeline.job_id} --recipients lists them all")


def _print_notifications(page: wire.NotificationPage, *, empty: str) -> None:
    """Print a page of notifications, and how to get the next one."""
    print_table(
        ("time", "type", "to", "result", "job"),
        [(moment(job.accepted_at), job.type, _to(job), job.result, job.job_id) for job in page.items],
        empty=empty,
    )
    say_more(page.next_cursor)


def _print_what_a_person_got(page: wire.NotificationPage) -> None:
    """Print a page of one person's notifications, with what came of each for them, and how to get the next one."""
    print_table(
        ("time", "type", "to", "result", "why not", "message"),
        [
            (moment(job.accepted_at), job.type, _to(job), job.result, _why_not(job), job.message_id)
            for job in page.items
        ],
        empty="nothing was ever sent to them",
    )
    say_more(page.next_cursor)


def _why_not(job: wire.NotificationLine) -> str:
    """Say why somebody got nothing, once for all channels that have the same reason."""
    reasons: dict[str, list[str]] = {}
    for one in job.skipped or ():
        reasons.setdefault(one.reason, []).append(one.channel)
    return "; ".join(f"{', '.join(channels)}: {reason}" for reason, channels in reasons.items())


def _to(job: wire.NotificationLine) -> str:
    """Name a single recipient, or count several."""
    return job.recipient or (f"{job.recipients} recipient{'s' * (job.recipients > 1)}" if job.recipients else "")


def _entity_guid(text: str) -> UUID | None:
    """Read `GUID` or `TYPE:GUID`; None for what names a recipient."""
    kind, _, rest = text.rpartition(":")
    if kind in {*IdentityDomain, *Channel}:
        return None
    try:
        return UUID(rest)
    except ValueError:
        return None


def _short(message_id: UUID | None) -> str:
    """Give the first digits of an id, enough to tell the messages of one job apart."""
    return "" if message_id is None else f"{message_id!s:.8}"


def _stands(where: str, reason: str | None) -> str:
    return f"{where} ({reason})" if reason else where


def _where(row: wire.Message) -> str:
    """Say where a message stands, and where it goes where its recipient does not say so."""
    to = "" if row.destination in (None, row.recipient) else f" to {row.destination}"
    return f"{row.channel}{to}: {STATUS_IN_WORDS[OutgoingStatus(row.status)]}"


def _print_head(timeline: wire.Timeline, notification: wire.Notification) -> None:
    """Say what it is about and how it stands, before the details."""
    version, entity = notification.template_version, notification.entity
    states = [_stands(_where(row), row.reason) for row in timeline.messages]
    people = [one.recipient for one in timeline.recipients]
    totals = timeline.totals
    others = (totals.recipients if totals else len(people)) - STATES_MAX
    waiting = (totals.messages if totals else len(states)) - STATES_MAX
    print_pairs(
        [
            ("type", f"{notification.type}, version {version}" if version else notification.type),
            ("job", timeline.job_id),
            ("message", timeline.message_id),
            ("about", f"{entity.type} {entity.guid}" if entity else None),
            *[("to", one) for one in people[:STATES_MAX]],
            ("", f"and {others} more" if others > 0 else None),
            ("result", _stands(notification.result or "", None if states else notification.reason)),
            *[("state", state) for state in states[:STATES_MAX]],
            ("", f"and {waiting} more" if waiting > 0 else None),
            ("not sent", not_sent(totals) if totals and totals.recipients > 1 else None),
            ("request", notification.correlation_id),
        ]
    )

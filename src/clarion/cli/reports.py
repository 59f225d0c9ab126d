"""`clarion reports`: which reports there are, and the subscriptions by which people get them."""

from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
import typer

from clarion.cli.asked import Asked, AskedPage, asks, lists, typed_name
from clarion.cli.output import print_json, print_pairs, print_table, say
from clarion.cli.session import guid as read_guid
from clarion.cli.settings import FORMS, addressees
from clarion.domain.misfit import misfits_in
from clarion.domain.report_choice import MissedRuns, ReportDelivery, ReportForm
from clarion.errors import InvalidInput

if TYPE_CHECKING:
    from uuid import UUID

    from clarion.cli.session import Session
    from clarion.client.wire_reports import Subscription, SubscriptionRun

reports = typer.Typer(help="Reports: which there are, and who gets which how often.")

SubscriptionGuid = Annotated[
    str, typer.Argument(help="The report subscription, by a guid of your choice.", metavar="GUID")
]
"""Whoever makes one chooses its guid, so that making it again is making the same one."""

T = TypeVar("T")

TYPED_AS = {
    "name": "--name",
    "report": "--report",
    "parameters": "--with",
    "rule": "--rule",
    "time_zone": "--zone",
    "starts_at": "--starts-at",
    "ends_at": "--ends-at",
    "form": "--form",
    "delivery": "--delivery",
    "missed": "--missed",
    "notification_type": "--type",
    "to": "--user",
    "recipients": "--to",
    "business_unit": "--business-unit",
}
"""What the fields of a subscription are called here."""


@reports.command("kinds")
@asks
def kinds(asked: Asked) -> None:
    """List the reports that can be subscribed to, ours and those of plugins."""
    found = asked.run(lambda session: session.operations.reports.kinds())
    if asked.as_json:
        print_json(found)
        return
    print_table(
        ("report", "forms", "parameters"),
        [(one.report, one.forms, one.parameters) for one in found.items],
        empty="there is no report here",
    )


@reports.command("list")
@lists
def list_subscriptions(asked: AskedPage) -> None:
    """List the report subscriptions."""
    asked.show(
        asked.run(lambda it: it.operations.reports.list(it.tenant_id, asked.query)),
        head=("guid", "name", "report", "rule", "next", "tells of", "state"),
        row=lambda one: (
            one.guid,
            one.name,
            one.report,
            f"{one.rule} in {one.time_zone}",
            one.next_at,
            one.notification_type,
            _state(active=one.active),
        ),
        empty="nobody gets a report yet; `clarion reports put` sees to that",
    )


@reports.command()
@asks
def show(asked: Asked, guid: SubscriptionGuid) -> None:
    """Show a report subscription, when it is due next, and what keeps it from reaching anybody."""
    number = _guid(guid)

    async def work(session: "Session") -> "Subscription":
        return _known(await session.operations.reports.find(session.tenant_id, number), number)

    _print(asked, asked.run(work))


@reports.command()
@asks
def put(
    asked: Asked,
    guid: SubscriptionGuid,
    *,
    name: Annotated[str, typer.Option(help="What it is called.")],
    report: Annotated[str, typer.Option(help="Which report; `clarion reports kinds` lists them.")],
    rule: Annotated[
        str, typer.Option(help="When: an RRULE such as 'FREQ=WEEKLY;BYDAY=MO;BYHOUR=8', or cron such as '0 8 * * MON'.")
    ],
    zone: Annotated[str, typer.Option(help="In which the rule speaks, such as Europe/Vienna.")],
    notification: Annotated[str, typer.Option("--type", help="The notification type that it sends.", metavar="TYPE")],
    parameters: Annotated[
        list[str] | None, typer.Option("--with", help="What narrows the report.", metavar="NAME=VALUE")
    ] = None,
    user: Annotated[
        list[str] | None, typer.Option(help="Who gets it: user:ID, employee:GUID or group:GUID.", metavar="PERSON")
    ] = None,
    to: Annotated[list[str] | None, typer.Option(help=f"Who gets it besides: {FORMS}.", metavar="ADDRESSEE")] = None,
    form: Annotated[ReportForm, typer.Option(help="What it is written as.")] = ReportForm.HTML,
    delivery: Annotated[
        ReportDelivery, typer.Option(help="In the message, or by a link that ends.")
    ] = ReportDelivery.INLINE,
    missed: Annotated[
        MissedRuns, typer.Option(help="What becomes of runs that fell due while nothing worked.")
    ] = MissedRuns.CATCH_UP_ONCE,
    starts_at: Annotated[str | None, typer.Option(help="Its first time, such as 2026-03-02T08:00:00+01:00.")] = None,
    ends_at: Annotated[str | None, typer.Option(help="Nothing is due after this.")] = None,
    unit: Annotated[str | None, typer.Option("--business-unit", help="Of this unit.", metavar="GUID")] = None,
    off: Annotated[bool, typer.Option("--off", help="Plan nothing yet; `on` switches it on.")] = False,
) -> None:
    """Say who gets which report how often, or say it anew; its next run is planned."""
    from clarion.client.wire_reports import SubscriptionRequest

    number = _guid(guid)
    given = {
        "name": name,
        "report": report,
        "parameters": _parameters(parameters or []),
        "rule": rule,
        "time_zone": zone,
        "starts_at": starts_at,
        "ends_at": ends_at,
        "missed": missed.value,
        "form": form.value,
        "delivery": delivery.value,
        "notification_type": notification,
        "to": user or [],
        "recipients": None if to is None else msgspec.to_builtins(addressees(to)),
        "business_unit": unit,
        "active": not off,
    }
    for misfit in misfits_in(given, SubscriptionRequest):
        field = typed_name(misfit.field, TYPED_AS)
        raise InvalidInput(misfit.what, field=field, hint=misfit.hint or "`clarion reports put --help` explains it")
    request = msgspec.convert(given, SubscriptionRequest)

    async def work(session: "Session") -> "Subscription":
        done = await session.operations.reports.put(session.tenant_id, number, request, actor=session.actor)
        return _known(done, number)

    _print(asked, asked.run(work, typed_as=TYPED_AS))


@reports.command()
@asks
def run(
    asked: Asked,
    guid: SubscriptionGuid,
    run_guid: Annotated[
        str | None,
        typer.Option("--run", help="A guid of your choice: asked for again, the same run is found.", metavar="GUID"),
    ] = None,
) -> None:
    """Have a report written and sent now; it tells of as long a time as a planned one, up to now."""
    number = _guid(guid)
    chosen = None if run_guid is None else read_guid(run_guid, field="--run", hint="write a guid")

    async def work(session: "Session") -> "SubscriptionRun":
        mine = chosen or session.platform.ids.new_guid()
        operations = session.operations.reports
        done = await operations.run(session.tenant_id, number, mine, actor=session.actor)
        return _known(done, number)

    done = asked.run(work)
    asked.line(f"run {done.run} {'waits to be written' if done.created else 'was asked for before'}", done)


@reports.command("off")
@asks
def switch_off(asked: Asked, guid: SubscriptionGuid) -> None:
    """Plan no more of it, and deactivate its next run; what was handed over stays."""
    _switch(asked, guid, active=False)


@reports.command("on")
@asks
def switch_on(asked: Asked, guid: SubscriptionGuid) -> None:
    """Plan its next run."""
    _switch(asked, guid, active=True)


def _switch(asked: Asked, guid: str, *, active: bool) -> None:
    number = _guid(guid)

    async def work(session: "Session") -> "Subscription":
        operations = session.operations.reports
        switched = await operations.switch(session.tenant_id, number, active=active, actor=session.actor)
        return _known(switched, number)

    _print(asked, asked.run(work))


def _parameters(given: list[str]) -> dict[str, str]:
    parameters: dict[str, str] = {}
    for place, text in enumerate(given, start=1):
        name, equals, value = text.partition("=")
        if not equals or not name or name in parameters:
            raise InvalidInput(
                f"{text!r:.80} is no parameter, or is there twice",
                field=f"--with ({place})",
                hint="write NAME=VALUE, as type=invoice-due",
            )
        parameters[name] = value
    return parameters


def _guid(text: str) -> "UUID":
    return read_guid(text, field="GUID", hint="write a guid, such as 6f1c2c7e-0000-4000-8000-000000000001")


def _known(found: "T | None", guid: "UUID") -> "T":
    if found is None:
        hint = "`clarion reports list` shows those there are"
        raise InvalidInput(f"the tenant has no report subscription {guid}", field="GUID", hint=hint)
    return found


def _print(asked: Asked, one: "Subscription") -> None:
    """Print a subscription as a person reads it, and what keeps it from reaching anybody."""
    if asked.as_json:
        print_json(one)
        return
    print_pairs(
        [
            ("guid", one.guid),
            ("name", one.name),
            ("report", one.report),
            ("with", tuple(f"{name}={value}" for name, value in one.parameters.items())),
            ("rule", f"{one.rule} in {one.time_zone}"),
            ("next at", one.next_at),
            ("missed runs", one.missed),
            ("written as", one.form),
            ("delivered", one.delivery),
            ("tells of", one.notification_type),
            ("tells", (*one.to, *map(str, one.recipients or ())) or "whom the settings of the type name"),
            ("of unit", one.business_unit),
            ("state", _state(active=one.active)),
            ("changed by", one.changed_by),
            ("changed at", one.changed_at),
        ]
    )
    for warning in one.warnings:
        say(f"warning: {warning}")


def _state(*, active: bool) -> str:
    return "on" if active else "off"

"""`clarion reminders`: for which sources, when, and whom a reminder tells."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from clarion.cli import reminder_form as form
from clarion.cli.asked import Asked, AskedPage, asks, lists
from clarion.cli.output import print_json, print_pairs, say
from clarion.cli.session import guid as read_guid
from clarion.cli.settings import addressees
from clarion.domain.reminder import Comparison, DateRule
from clarion.errors import InvalidInput

if TYPE_CHECKING:
    from uuid import UUID

    from clarion.cli.session import Session
    from clarion.client.wire_reminders import Reminder, ReminderLine
    from clarion.domain.reminder import Condition

reminders = typer.Typer(help="Reminder settings: of which sources, when, and whom a reminder tells.")

ReminderGuid = Annotated[str, typer.Argument(help="The reminder setting, by a guid of your choice.", metavar="GUID")]
HINT = "`clarion reminders list` shows those there are"
UNIT_HINT = "`clarion units list` shows them"


@reminders.command("list")
@lists
def list_reminders(asked: AskedPage) -> None:
    """List the reminder settings."""
    asked.show(
        asked.run(lambda it: it.operations.reminders.list(it.tenant_id, asked.query)),
        head=("guid", "name", "about", "when", "tells of", "state"),
        row=lambda one: (one.guid, one.name, _about(one), _when(one), one.notification_type, _state(one)),
        empty="there is no reminder setting yet; `clarion reminders put` adds one",
    )


@reminders.command()
@asks
def show(asked: Asked, guid: ReminderGuid) -> None:
    """Show a reminder setting, and what keeps it from telling anybody."""
    number = _guid(guid)

    async def work(session: "Session") -> "Reminder":
        return _known(await session.operations.reminders.find(session.tenant_id, number), number)

    _print(asked, asked.run(work))


@reminders.command()
@asks
def put(
    asked: Asked,
    guid: ReminderGuid,
    *,
    file: form.File = None,
    name: form.Name = None,
    source_type: form.SourceTypeName = None,
    where: form.Where = None,
    where_not: form.WhereNot = None,
    date: form.DateField = None,
    offset: form.Offsets = None,
    yearly: form.Yearly = False,
    metric: form.Metric = None,
    at_least: form.AtLeast = None,
    at_most: form.AtMost = None,
    scope: form.ScopeName = None,
    policy: form.Policy = None,
    send_time: form.At = None,
    notification: form.TypeKey = None,
    to: form.To = None,
    unit: form.Unit = None,
    inbox_only: form.InboxOnly = False,
    long_runner: form.LongRunner = False,
    off: form.Off = False,
) -> None:
    """Add a reminder setting, or replace it; what waits because of it is planned anew."""
    number = _guid(guid)
    rule = form.rule(date, offset, metric, at_least, at_most, yearly=yearly, scope=scope, policy=policy)
    request, names = form.request(
        {
            "name": name,
            "source_type": source_type,
            "conditions": form.conditions(where or (), where_not or ()) or None,
            "rule": rule,
            "send_time": send_time,
            "notification_type": notification,
            "recipients": None if to is None else addressees(to),
            "business_unit": None if unit is None else read_guid(unit, field="--business-unit", hint=UNIT_HINT),
            "inbox_only": inbox_only or None,
            "long_runner": long_runner or None,
            "active": False if off else None,
        },
        file,
    )

    async def work(session: "Session") -> "Reminder":
        done = await session.operations.reminders.put(session.tenant_id, number, request, actor=session.actor)
        return _known(done, number)

    _print(asked, asked.run(work, typed_as=names))


@reminders.command()
@asks
def off(asked: Asked, guid: ReminderGuid) -> None:
    """Switch a reminder setting off, and deactivate what waits because of it; what was handed over stays."""
    _switch(asked, guid, active=False)


@reminders.command()
@asks
def on(asked: Asked, guid: ReminderGuid) -> None:
    """Switch a reminder setting on, and plan what it asks for."""
    _switch(asked, guid, active=True)


def _switch(asked: Asked, guid: str, *, active: bool) -> None:
    number = _guid(guid)

    async def work(session: "Session") -> "Reminder":
        operations = session.operations.reminders
        switched = await operations.switch(session.tenant_id, number, active=active, actor=session.actor)
        return _known(switched, number)

    _print(asked, asked.run(work))


def _guid(text: str) -> "UUID":
    return read_guid(text, field="GUID", hint="write a guid, such as 6f1c2c7e-0000-4000-8000-000000000001")


def _known(found: "Reminder | None", guid: "UUID") -> "Reminder":
    if found is None:
        raise InvalidInput(f"the tenant has no reminder setting {guid}", field="GUID", hint=HINT)
    return found


def _print(asked: Asked, one: "Reminder") -> None:
    """Print a setting as a person reads it, and what keeps it from telling anybody."""
    if asked.as_json:
        print_json(one)
        return
    print_pairs(
        [
            ("guid", one.guid),
            ("name", one.name),
            ("about", _about(one)),
            ("when", _when(one)),
            ("tells of", one.notification_type),
            ("tells", one.recipients or "whom the settings of the type name"),
            ("only of unit", one.business_unit),
            ("only in", "the inbox" if one.inbox_only else None),
            ("tries", "daily while its provider is away" if one.long_runner else None),
            ("state", _state(one)),
            ("changed by", one.changed_by),
            ("changed at", one.changed_at),
        ]
    )
    for warning in one.warnings:
        say(f"warning: {warning}")


def _about(one: "ReminderLine") -> str:
    """Say which sources it is about."""
    where = " and ".join(map(_condition, one.conditions))
    return f"{one.source_type} where {where}" if where else one.source_type


def _condition(one: "Condition") -> str:
    return f"{one.field} {one.op.replace('_', ' ')} {' or '.join(map(str, one.values))}"


def _when(one: "ReminderLine") -> str:
    """Say when it is due."""
    rule = one.rule
    if not isinstance(rule, DateRule):
        side = "at least" if rule.compare is Comparison.AT_LEAST else "at most"
        return f"{rule.metric} of {rule.scope} is {side} {rule.value:g} ({rule.policy}), at {one.send_time}"
    before, after = _days(rule.offsets), _days([-days for days in rule.offsets])
    said = [f"{before} before"] if before else []
    said += ["on"] if 0 in rule.offsets else []
    said += [f"{after} after"] if after else []
    return f"{' and '.join(said)} {rule.field}{' of every year' if rule.yearly else ''}, at {one.send_time}"


def _days(offsets: Iterable[int]) -> str:
    """Write the days that lie on one side; empty where none does."""
    numbers = [days for days in offsets if days > 0]
    return f"{', '.join(map(str, numbers))} day{'' if numbers == [1] else 's'}" if numbers else ""


def _state(one: "ReminderLine") -> str:
    return "off" if not one.active else "on" if one.planned else "on, being planned"

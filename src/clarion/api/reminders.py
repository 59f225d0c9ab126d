"""Reminder settings: for which sources, when, and whom a reminder tells. Changes are audited."""

from http import HTTPStatus
from uuid import UUID

from litestar import get, put
from litestar.params import FromPath

from clarion.api import example_reminders as example
from clarion.api.authentication import caller_of
from clarion.api.context import InjectedContext
from clarion.api.contract import Contract
from clarion.api.problem import found
from clarion.api.reading import AnyRequest, read_body, read_page
from clarion.catalog.access import Grant
from clarion.client import wire, wire_reminders

WHAT = "reminder setting"


@get(
    "/v1/reminders",
    opt=Contract(tag="reminders", grant=Grant.VIEW, query=wire.PageQuery, answer=example.REMINDER_PAGE).opt,
)
async def list_reminders(request: AnyRequest, context: InjectedContext) -> wire_reminders.ReminderPage:
    """List the reminder settings, in the order of their guids."""
    return await context.operations.reminders.list(*read_page(request, wire.PageQuery))


@get(
    "/v1/reminders/{guid:uuid}",
    opt=Contract(tag="reminders", grant=Grant.VIEW, problems=(HTTPStatus.NOT_FOUND,), answer=example.REMINDER).opt,
)
async def get_reminder(guid: FromPath[UUID], request: AnyRequest, context: InjectedContext) -> wire_reminders.Reminder:
    """Show a reminder setting, and what keeps it from telling anybody as things stand."""
    return found(await context.operations.reminders.find(caller_of(request).tenant_id, guid), WHAT)


@put(
    "/v1/reminders/{guid:uuid}",
    opt=Contract(tag="reminders", grant=Grant.CONFIGURE, body=example.REMINDER_REQUEST, answer=example.REMINDER).opt,
)
async def put_reminder(guid: FromPath[UUID], request: AnyRequest, context: InjectedContext) -> wire_reminders.Reminder:
    """Make a reminder setting, or replace it; audited. What waits because of it is planned anew within seconds.

    Other days, another date or another threshold are other occurrences: those that wait are deactivated and the new
    ones made. Another send time moves them. Notification type, recipients and channels are read when one is due.
    """
    caller, body = caller_of(request), await read_body(request, wire_reminders.ReminderRequest)
    return found(await context.operations.reminders.put(caller.tenant_id, guid, body, actor=caller.actor), WHAT)


@put(
    "/v1/reminders/{guid:uuid}/active",
    opt=Contract(
        tag="reminders",
        grant=Grant.CONFIGURE,
        problems=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
        body=example.REMINDER_SWITCH,
        answer=example.REMINDER,
    ).opt,
)
async def switch_reminder(
    guid: FromPath[UUID], request: AnyRequest, context: InjectedContext
) -> wire_reminders.Reminder:
    """Switch a reminder setting off or on; audited. Off deactivates what waits; what was handed over stays."""
    caller, body = caller_of(request), await read_body(request, wire_reminders.ReminderSwitch)
    switched = await context.operations.reminders.switch(caller.tenant_id, guid, active=body.active, actor=caller.actor)
    return found(switched, WHAT)

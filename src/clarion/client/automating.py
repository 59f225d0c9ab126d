"""What the client does about reminder settings: methods of `connection.Client`."""

from uuid import UUID

from clarion.client import wire_reminders
from clarion.client.belonging import Connected


async def reminders(client: Connected, *, cursor: str | None = None) -> wire_reminders.ReminderPage:
    """List reminder settings, page by page."""
    return await client.transport.ask("GET", "/v1/reminders", wire_reminders.ReminderPage, query={"cursor": cursor})


async def reminder(client: Connected, guid: UUID) -> wire_reminders.Reminder:
    """Show a reminder setting."""
    return await client.transport.ask("GET", f"/v1/reminders/{guid}", wire_reminders.Reminder)


async def put_reminder(
    client: Connected, guid: UUID, setting: wire_reminders.ReminderRequest
) -> wire_reminders.Reminder:
    """Make a reminder setting, or replace it."""
    return await client.transport.ask("PUT", f"/v1/reminders/{guid}", wire_reminders.Reminder, body=setting, again=True)


async def switch_reminder(client: Connected, guid: UUID, *, active: bool) -> wire_reminders.Reminder:
    """Switch a reminder setting on, or off, which deactivates what waits because of it."""
    body = wire_reminders.ReminderSwitch(active=active)
    return await client.transport.ask(
        "PUT", f"/v1/reminders/{guid}/active", wire_reminders.Reminder, body=body, again=True
    )

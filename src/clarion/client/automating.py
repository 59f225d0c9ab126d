"""What the client does about reminder settings, reports and occurrences: methods of `connection.Client`."""

from datetime import datetime
from urllib.parse import quote
from uuid import UUID

from clarion.client import wire_automation, wire_reminders, wire_reports
from clarion.client.belonging import Connected
from clarion.client.wire_automation import Act
from clarion.domain.automation import AutomationType
from clarion.ports.automation import Standing


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


async def occurrences(
    client: Connected,
    *,
    standing: Standing = Standing.WAITING,
    type: AutomationType | None = None,  # noqa: A002  (as the query calls it)
    until_at: datetime | None = None,
    cursor: str | None = None,
) -> wire_automation.OccurrencePage:
    """List occurrences of reminders and reports that stand in one way, by when they are due, page by page."""
    until = None if until_at is None else until_at.isoformat()
    query = {"standing": standing, "type": type, "until_at": until, "cursor": cursor}
    return await client.transport.ask("GET", "/v1/automation", wire_automation.OccurrencePage, query=query)


async def occurrence(client: Connected, key: str) -> wire_automation.Occurrence:
    """Show an occurrence by its key."""
    return await client.transport.ask("GET", _path(key), wire_automation.Occurrence)


async def act(client: Connected, key: str, act: Act, *, reason: str) -> wire_automation.Occurrence:
    """Hold, release, run or deactivate an occurrence; asked for once, because it may not be possible a second time."""
    body = wire_automation.ActRequest(reason=reason)
    return await client.transport.ask("POST", f"{_path(key)}/{act}", wire_automation.Occurrence, body=body)


async def rerun(client: Connected, key: str, *, number: int, reason: str) -> wire_automation.Occurrence:
    """Have a completed occurrence run again, as the re-run that its `next_rerun` names; once, however often asked."""
    body = wire_automation.RerunRequest(number=number, reason=reason)
    path = f"{_path(key)}/rerun"
    return await client.transport.ask("POST", path, wire_automation.Occurrence, body=body, again=True)


def _path(key: str) -> str:
    """Write a key's path: its percent signs are written out, so that the server reads the key as it is."""
    return f"/v1/automation/{quote(key, safe=':')}"


async def reports(client: Connected) -> wire_reports.ReportKinds:
    """List the reports that can be subscribed to."""
    return await client.transport.ask("GET", "/v1/reports", wire_reports.ReportKinds)


async def report_subscriptions(client: Connected, *, cursor: str | None = None) -> wire_reports.SubscriptionPage:
    """List report subscriptions, page by page."""
    return await client.transport.ask(
        "GET", "/v1/report-subscriptions", wire_reports.SubscriptionPage, query={"cursor": cursor}
    )


async def report_subscription(client: Connected, guid: UUID) -> wire_reports.Subscription:
    """Show a report subscription."""
    return await client.transport.ask("GET", f"/v1/report-subscriptions/{guid}", wire_reports.Subscription)


async def put_report_subscription(
    client: Connected, guid: UUID, subscription: wire_reports.SubscriptionRequest
) -> wire_reports.Subscription:
    """Make a report subscription, or replace it."""
    return await client.transport.ask(
        "PUT", f"/v1/report-subscriptions/{guid}", wire_reports.Subscription, body=subscription, again=True
    )


async def switch_report_subscription(client: Connected, guid: UUID, *, active: bool) -> wire_reports.Subscription:
    """Switch a report subscription on, or off, which deactivates its next run."""
    body = wire_reports.SubscriptionSwitch(active=active)
    return await client.transport.ask(
        "PUT", f"/v1/report-subscriptions/{guid}/active", wire_reports.Subscription, body=body, again=True
    )


async def run_report(client: Connected, guid: UUID, run: UUID) -> wire_reports.SubscriptionRun:
    """Have a report written and sent now, once for the guid of the run."""
    return await client.transport.ask(
        "PUT", f"/v1/report-subscriptions/{guid}/runs/{run}", wire_reports.SubscriptionRun, again=True
    )

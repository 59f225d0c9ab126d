"""The client: one method for each thing that the API does. Requests are made and repeated in `transport`.

A new method has its line in `sync` too; a test fails until it has. Those of one subject may be in a module of their
own, as those of groups are in `belonging`, and have their line here.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Literal, Self
from urllib.parse import quote
from uuid import UUID

from clarion.client import (
    automating,
    belonging,
    foreseeing,
    suppressing,
    telling,
    wire,
    wire_explain,
    wire_inbox,
    wire_people,
    wire_settings,
    wire_status,
    wire_support,
    wire_types,
)
from clarion.client.finite import require_finite
from clarion.client.transport import TIMEOUT, ApiError, Transport, Unreachable
from clarion.domain.attribute import Kind
from clarion.domain.hint import Hints
from clarion.domain.identity import Channel, Lane
from clarion.domain.result import Result

__all__ = ["ApiError", "Client", "Unreachable"]


class Client:
    """A connection to one installation, for one API key."""

    def __init__(
        self,
        url: str,
        *,
        key: str,
        timeout: timedelta = TIMEOUT,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Speak to the API at a URL with a key; nothing is sent before the first request."""
        self.transport = Transport(url, key=key, timeout=timeout, pause=pause)
        self._ask = self.transport.ask
        self._request = self.transport.request

    async def __aenter__(self) -> Self:
        """Use it for the length of a block."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of connections."""
        await self.close()

    async def close(self) -> None:
        """Let go of connections."""
        await self.transport.close()

    async def send(
        self,
        notification: str,
        *,
        to: wire.Recipient | Sequence[wire.Recipient] = (),
        data: Mapping[str, object] | None = None,
        key: str | None = None,
        entity: wire.Entity | None = None,
        lane: Lane | None = None,
        not_before_at: datetime | None = None,
        ttl_seconds: int | None = None,
        locale: str | None = None,
        channels: Sequence[Channel] = (),
        business_unit: UUID | None = None,
        hints: Hints | None = None,
    ) -> wire.SendAnswer:
        """Send a notification, to whom its type's settings name where `to` names nobody.

        With a key it is sent once, however often it is asked for.
        """
        require_finite(data=data)
        body = wire.SendRequest(
            type=notification,
            to=(to,) if isinstance(to, wire.Recipient) else tuple(to),
            data=dict(data or {}),
            entity=entity,
            lane=lane,
            not_before_at=not_before_at,
            ttl_seconds=ttl_seconds,
            locale=locale,
            channels=tuple(channels),
            business_unit=business_unit,
            hints=hints,
        )
        headers = {} if key is None else {"idempotency-key": key}
        return await self._ask(
            "POST", "/v1/notifications", wire.SendAnswer, body=body, headers=headers, again=key is not None
        )

    async def notification(self, job_id: UUID) -> wire.Notification:
        """Ask how a notification stands."""
        return await self._ask("GET", f"/v1/notifications/{job_id}", wire.Notification)

    async def recipients(self, job_id: UUID, *, cursor: str | None = None) -> wire_explain.RecipientPage:
        """List whom a notification is for, and what each of them got or why not, page by page."""
        path = f"/v1/notifications/{job_id}/recipients"
        return await self._ask("GET", path, wire_explain.RecipientPage, query={"cursor": cursor})

    async def cancel(self, job_id: UUID) -> wire.Canceled:
        """Cancel a notification; doing it again does no harm."""
        return await self._ask("POST", f"/v1/notifications/{job_id}/cancel", wire.Canceled, again=True)

    async def timeline(self, job_or_message_id: UUID) -> wire.Timeline:
        """Ask what happened, by the id of a job or of a message."""
        return await self._ask("GET", f"/v1/messages/{job_or_message_id}/timeline", wire.Timeline)

    async def would(self, request: wire_explain.WouldRequest) -> wire_explain.Would:
        """Ask what a notification would do for one person; nothing is sent."""
        return await self._ask("POST", "/v1/explain", wire_explain.Would, body=request, again=True)

    async def history(self, entity: UUID | str) -> AsyncIterator[wire.NotificationLine]:
        """Go through every notification about an entity (its guid, or `user:ID`), newest first."""
        path = f"/v1/entities/{quote(str(entity), safe=':')}/notifications"
        cursor: str | None = None
        while True:
            page = await self._ask("GET", path, wire.NotificationPage, query={"cursor": cursor})
            for item in page.items:
                yield item
            cursor = page.next_cursor
            if cursor is None:
                return

    async def inbox(
        self,
        reader: str,
        *,
        category: str | None = None,
        unread: bool = False,
        archived: bool = False,
        cursor: str | None = None,
    ) -> wire_inbox.InboxPage:
        """List the lines of an inbox (`user:ID` or `employee:GUID`), newest first and page by page."""
        query = {"category": category, "unread": _flag(unread), "archived": _flag(archived), "cursor": cursor}
        return await self._ask("GET", _inbox(reader), wire_inbox.InboxPage, query=query)

    async def inbox_counts(self, reader: str) -> wire_inbox.InboxCounts:
        """Ask how many lines an inbox has, and how many of them are unseen and unread."""
        return await self._ask("GET", f"{_inbox(reader)}/counts", wire_inbox.InboxCounts)

    async def mark(
        self, reader: str, message_id: UUID | None, mark: Literal["seen", "read", "unread", "archive", "unarchive"]
    ) -> wire_inbox.InboxCounts:
        """Mark a line of an inbox, or with None all of them; doing it again changes nothing."""
        path = f"{_inbox(reader)}/{'all' if message_id is None else message_id}/{mark}"
        return await self._ask("POST", path, wire_inbox.InboxCounts, again=True)

    async def notifications(
        self,
        *,
        notification: str | None = None,
        result: Result | None = None,
        since_at: datetime | None = None,
        until_at: datetime | None = None,
        cursor: str | None = None,
    ) -> wire.NotificationPage:
        """List the latest notifications, page by page; a page may be short or empty and have a `next_cursor`."""
        times = {"since_at": since_at, "until_at": until_at}
        query = {name: None if at is None else at.isoformat() for name, at in times.items()}
        query |= {"type": notification, "result": result, "cursor": cursor}
        return await self._ask("GET", "/v1/notifications", wire.NotificationPage, query=query)

    async def types(self) -> tuple[wire_types.NotificationType, ...]:
        """List the notification types."""
        return (await self._ask("GET", "/v1/types", wire_types.TypeList)).items

    async def notification_type(self, notification: str) -> wire_types.TypeDetails:
        """Show a notification type as it is published now, with its versions."""
        return await self._ask("GET", f"/v1/types/{quote(notification, safe='')}", wire_types.TypeDetails)

    async def publish(self, request: wire_types.TypeRequest) -> wire_types.TypeChange:
        """Publish a notification type, or with `dry_run` ask what would change."""
        path = f"/v1/types/{quote(request.definition.key, safe='')}"
        return await self._ask("PUT", path, wire_types.TypeChange, body=request, again=True)

    async def preview(self, notification: str, request: wire_types.PreviewRequest) -> wire_types.TypePreview:
        """Ask how a notification reads; nothing is sent."""
        path = f"/v1/types/{quote(notification, safe='')}/preview"
        return await self._ask("POST", path, wire_types.TypePreview, body=request, again=True)

    async def switch_type(self, notification: str, *, enabled: bool) -> None:
        """Switch a notification type on or off."""
        path = f"/v1/types/{quote(notification, safe='')}/enabled"
        await self._request("PUT", path, body=wire_types.EnabledRequest(enabled=enabled), again=True)

    async def settings(self, *, cursor: str | None = None) -> wire_settings.SettingPage:
        """List what is set of notification types, page by page."""
        return await self._ask("GET", "/v1/settings", wire_settings.SettingPage, query={"cursor": cursor})

    async def setting(self, notification: str, *, business_unit: UUID | None = None) -> wire_settings.Setting:
        """Show what is set of a notification type in one place, and what holds there."""
        return await self._ask("GET", _setting(notification, business_unit), wire_settings.Setting)

    async def put_setting(
        self, notification: str, setting: wire_settings.SettingRequest, *, business_unit: UUID | None = None
    ) -> wire_settings.Setting:
        """Say whether a notification type is on, who gets it and by which channels; it replaces what was set."""
        path = _setting(notification, business_unit)
        return await self._ask("PUT", path, wire_settings.Setting, body=setting, again=True)

    async def clear_setting(self, notification: str, *, business_unit: UUID | None = None) -> wire_settings.Setting:
        """Take back what was set of a notification type in one place."""
        return await self._ask("DELETE", _setting(notification, business_unit), wire_settings.Setting, again=True)

    async def people(self, *, cursor: str | None = None) -> wire_people.PersonPage:
        """List people, page by page."""
        return await self._ask("GET", "/v1/people", wire_people.PersonPage, query={"cursor": cursor})

    async def put_people(
        self, people: Sequence[wire_people.PersonItem], *, region: str | None = None
    ) -> wire_people.PeopleStored:
        """Insert or replace up to 500 people as a whole, all of them or none."""
        body = wire_people.PeopleRequest(people=tuple(people), region=region)
        return await self._ask("PUT", "/v1/people", wire_people.PeopleStored, body=body, again=True)

    async def person(self, person: str) -> wire_people.Person:
        """Show a person (`user:ID` or `employee:GUID`)."""
        return await self._ask("GET", _person(person), wire_people.Person)

    async def put_person(self, person: str, whole: wire_people.PersonRequest) -> wire_people.Person:
        """Insert or replace a person as a whole: what is left out, the person has not any more."""
        return await self._ask("PUT", _person(person), wire_people.Person, body=whole, again=True)

    async def change_person(self, person: str, change: wire_people.PersonChange) -> wire_people.Person:
        """Change a person in part: what is left out stays, None takes away."""
        return await self._ask("PATCH", _person(person), wire_people.Person, body=change, again=True)

    async def remove_person(self, person: str) -> None:
        """Remove a person; asked for once, because a second time there is nobody."""
        await self._request("DELETE", _person(person), again=False)

    async def attributes(self) -> wire_people.AttributeList:
        """List the attributes that people may have."""
        return await self._ask("GET", "/v1/attributes", wire_people.AttributeList)

    async def declare_attribute(self, name: str, kind: Kind) -> wire_people.Attribute:
        """Declare an attribute and of which kind its values are."""
        body, path = wire_people.AttributeRequest(kind=kind), f"/v1/attributes/{quote(name, safe='')}"
        return await self._ask("PUT", path, wire_people.Attribute, body=body, again=True)

    groups = belonging.groups
    group = belonging.group
    put_group = belonging.put_group
    change_group = belonging.change_group
    remove_group = belonging.remove_group
    members = belonging.members
    change_members = belonging.change_members
    units = belonging.units
    unit = belonging.unit
    put_unit = belonging.put_unit
    change_unit = belonging.change_unit
    unit_members = belonging.unit_members
    change_unit_members = belonging.change_unit_members
    tenant = belonging.tenant
    put_tenant = belonging.put_tenant
    roles = belonging.roles
    holders = belonging.holders
    change_holders = belonging.change_holders
    upcoming = foreseeing.upcoming
    story = foreseeing.story
    explain_occurrence = foreseeing.explain_occurrence

    relations = belonging.relations
    change_relations = belonging.change_relations
    sources = telling.sources
    source = telling.source
    put_source = telling.put_source
    put_sources = telling.put_sources
    remove_source = telling.remove_source
    tell = telling.tell
    events = telling.events
    event = telling.event
    retry_event = telling.retry_event
    event_mappings = telling.event_mappings
    put_event_mapping = telling.put_event_mapping
    remove_event_mapping = telling.remove_event_mapping

    reminders = automating.reminders
    reminder = automating.reminder
    put_reminder = automating.put_reminder
    switch_reminder = automating.switch_reminder
    occurrences = automating.occurrences
    occurrence = automating.occurrence
    act = automating.act
    rerun = automating.rerun

    reports = automating.reports
    report_subscriptions = automating.report_subscriptions
    report_subscription = automating.report_subscription
    put_report_subscription = automating.put_report_subscription
    switch_report_subscription = automating.switch_report_subscription
    run_report = automating.run_report

    suppressions = suppressing.suppressions
    suppress = suppressing.suppress
    lift_suppression = suppressing.lift_suppression
    preferences = suppressing.preferences
    set_preferences = suppressing.set_preferences

    async def uncertain(self, *, cursor: str | None = None) -> wire_support.UncertainPage:
        """List messages of which nobody knows whether they arrived, page by page."""
        return await self._ask("GET", "/v1/uncertain", wire_support.UncertainPage, query={"cursor": cursor})

    async def retry(self, outgoing_id: int, *, version: int, reason: str) -> wire_support.Retried:
        """Send a message again on a person's word; the version keeps it from being done twice."""
        body = wire_support.RetryRequest(version=version, reason=reason)
        return await self._ask("POST", f"/v1/outgoing/{outgoing_id}/retry", wire_support.Retried, body=body)

    async def retry_notification(self, job_id: UUID, *, reason: str) -> wire_support.RetriedNotification:
        """Try a notification that failed again, on a person's word."""
        body = wire_support.RetryNotificationRequest(reason=reason)
        return await self._ask("POST", f"/v1/notifications/{job_id}/retry", wire_support.RetriedNotification, body=body)

    async def support_cases(
        self, *, status: Literal["Open", "Resolved", "All"] = "Open", cursor: str | None = None
    ) -> wire_support.SupportCasePage:
        """List support cases, page by page; those that are open, unless told otherwise."""
        query = {"status": status, "cursor": cursor}
        return await self._ask("GET", "/v1/support-cases", wire_support.SupportCasePage, query=query)

    async def support_case(self, case_id: UUID) -> wire_support.SupportCase:
        """Show one support case."""
        return await self._ask("GET", f"/v1/support-cases/{case_id}", wire_support.SupportCase)

    async def resolve(self, case_id: UUID, *, resolution: str) -> wire_support.SupportCase:
        """Close a support case."""
        body = wire_support.ResolveRequest(resolution=resolution)
        return await self._ask("POST", f"/v1/support-cases/{case_id}/resolve", wire_support.SupportCase, body=body)

    async def audit(self, *, cursor: str | None = None) -> wire_support.AuditPage:
        """Read the audit log, newest first and page by page."""
        return await self._ask("GET", "/v1/audit", wire_support.AuditPage, query={"cursor": cursor})

    async def status(self) -> wire_status.Status:
        """Ask what runs, what is in trouble and what waits."""
        return await self._ask("GET", "/v1/status", wire_status.Status)


def _setting(notification: str, business_unit: UUID | None) -> str:
    """Name the setting of a type, of the whole tenant or of a business unit."""
    path = f"/v1/settings/{quote(notification, safe='')}"
    return path if business_unit is None else f"{path}?business_unit={business_unit}"


def _person(person: str) -> str:
    return f"/v1/people/{quote(person, safe=':')}"


def _inbox(reader: str) -> str:
    return f"/v1/inbox/{quote(reader, safe=':')}"


def _flag(value: bool) -> str | None:
    """Write what is asked for; what is not is left out."""
    return "true" if value else None

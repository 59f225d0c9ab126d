"""The client: one method for each thing that the API does, and one place where requests are made and repeated.

A new method has its line in `sync` too; a test fails until it has.

What can do no harm is repeated by itself: reading, and a send that has a key. A send without one is asked for once: if
its answer is lost, nobody can tell whether the notification was accepted.
"""

import asyncio
import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Final, Literal, Self, TypeVar
from urllib.parse import quote, urlencode, urlsplit
from uuid import UUID

import msgspec
from pyreqwest.client import Client as HttpClient
from pyreqwest.client import ClientBuilder
from pyreqwest.exceptions import ConnectError, PyreqwestError

from clarion.client import (
    wire,
    wire_explain,
    wire_groups,
    wire_inbox,
    wire_people,
    wire_settings,
    wire_status,
    wire_support,
    wire_types,
)
from clarion.domain.attribute import Kind
from clarion.domain.call_times import LAST_PAUSE
from clarion.domain.hint import Hints
from clarion.domain.identity import Channel, Lane
from clarion.domain.result import Result

TIMEOUT: Final = timedelta(seconds=10)
"""An accept is one transaction; what takes longer is a store in trouble."""

TRIES: Final = 4

FIRST_PAUSE: Final = 0.25
"""Seconds before the second try; each later one waits twice as long, or as long as the server asks for."""

PAUSE_MAX: Final = 10.0
"""Seconds, even if the server asks for a longer pause: whether to wait longer is for the caller to decide."""

_KEY: Final = re.compile(r"[!-~]+", re.ASCII)

S = TypeVar("S", bound=msgspec.Struct)


class ApiError(Exception):
    """The API refused a request; `problem` says why and what to do."""

    def __init__(self, problem: wire.Problem) -> None:
        """Keep the problem as it was answered."""
        super().__init__(f"{problem.code}: {problem.detail}")
        self.problem = problem

    @property
    def code(self) -> str:
        """The stable code of the problem."""
        return self.problem.code

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.problem.status


class Unreachable(Exception):
    """No answer came: the server is down, or something between. What was asked may have been done."""


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
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
            raise ValueError("the API's address is a URL such as https://clarion.example.com")
        if not _KEY.fullmatch(key):  # what it holds is never said: errors end up in logs
            raise ValueError("the API key is empty or holds a space or a line break: strip what was read from a file")
        self._url = url.rstrip("/")
        self._pause = pause
        self._http: HttpClient = (
            ClientBuilder()
            .timeout(timeout)
            .follow_redirects(enable=False)
            .default_headers({"authorization": f"Bearer {key}", "content-type": "application/json"})
            .build()
        )

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
        await self._http.close()
        await asyncio.sleep(LAST_PAUSE.total_seconds())

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
        if not _is_finite(data):
            raise ValueError("data holds a number that JSON does not have (infinity or NaN): leave it out")
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

    async def groups(self, *, cursor: str | None = None) -> wire_groups.GroupPage:
        """List groups, page by page."""
        return await self._ask("GET", "/v1/groups", wire_groups.GroupPage, query={"cursor": cursor})

    async def group(self, guid: UUID) -> wire_groups.Group:
        """Show a group."""
        return await self._ask("GET", f"/v1/groups/{guid}", wire_groups.Group)

    async def put_group(self, guid: UUID, *, name: str, groups: Sequence[UUID] = ()) -> wire_groups.Group:
        """Make a group, or replace its name and the groups inside it; its members stay."""
        body = wire_groups.GroupRequest(name=name, groups=tuple(groups))
        return await self._ask("PUT", f"/v1/groups/{guid}", wire_groups.Group, body=body, again=True)

    async def change_group(
        self, guid: UUID, *, name: str | None = None, groups: Sequence[UUID] | None = None
    ) -> wire_groups.Group:
        """Change what a group is called, or which groups lie inside it; what is None stays."""
        body = wire_groups.GroupChange(name=name, groups=None if groups is None else tuple(groups))
        return await self._ask("PATCH", f"/v1/groups/{guid}", wire_groups.Group, body=body, again=True)

    async def remove_group(self, guid: UUID) -> None:
        """Remove a group; asked for once, because a second time there is none."""
        await self._request("DELETE", f"/v1/groups/{guid}", again=False)

    async def members(self, guid: UUID, *, cursor: str | None = None) -> wire_groups.MemberPage:
        """List a group's own members, page by page."""
        return await self._ask("GET", f"/v1/groups/{guid}/members", wire_groups.MemberPage, query={"cursor": cursor})

    async def change_members(
        self, guid: UUID, *, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> wire_groups.MembersChange:
        """Add people (`user:ID`, `employee:GUID`) to a group and take others out, up to a thousand each."""
        return await self._change(f"/v1/groups/{guid}/members", add=add, remove=remove)

    async def units(self, *, cursor: str | None = None) -> wire_groups.UnitPage:
        """List business units, page by page."""
        return await self._ask("GET", "/v1/units", wire_groups.UnitPage, query={"cursor": cursor})

    async def unit(self, guid: UUID) -> wire_groups.Unit:
        """Show a business unit."""
        return await self._ask("GET", f"/v1/units/{guid}", wire_groups.Unit)

    async def put_unit(
        self, guid: UUID, *, name: str, locale: str | None = None, zone: str | None = None
    ) -> wire_groups.Unit:
        """Make a business unit, or replace its name, language and zone; its members stay."""
        body = wire_groups.UnitRequest(name=name, locale=locale, zone=zone)
        return await self._ask("PUT", f"/v1/units/{guid}", wire_groups.Unit, body=body, again=True)

    async def unit_members(self, guid: UUID, *, cursor: str | None = None) -> wire_groups.MemberPage:
        """List the members of a business unit, page by page."""
        return await self._ask("GET", f"/v1/units/{guid}/members", wire_groups.MemberPage, query={"cursor": cursor})

    async def change_unit_members(
        self, guid: UUID, *, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> wire_groups.MembersChange:
        """Add people to a business unit and take others out, up to a thousand each."""
        return await self._change(f"/v1/units/{guid}/members", add=add, remove=remove)

    async def tenant(self) -> wire_groups.Tenant:
        """Show the tenant whose key it is."""
        return await self._ask("GET", "/v1/tenant", wire_groups.Tenant)

    async def put_tenant(self, *, locale: str | None, zone: str | None) -> wire_groups.Tenant:
        """Set the language and the zone of a tenant's people; None takes one away."""
        body = wire_groups.TenantRequest(locale=locale, zone=zone)
        return await self._ask("PUT", "/v1/tenant", wire_groups.Tenant, body=body, again=True)

    async def roles(self, *, cursor: str | None = None) -> wire_groups.RolePage:
        """List the roles that anybody holds, page by page."""
        return await self._ask("GET", "/v1/roles", wire_groups.RolePage, query={"cursor": cursor})

    async def holders(
        self, role: str, *, business_unit: UUID | None = None, cursor: str | None = None
    ) -> wire_groups.MemberPage:
        """List who holds a role in the whole tenant, or in a business unit, page by page."""
        query = {"business_unit": None if business_unit is None else str(business_unit), "cursor": cursor}
        return await self._ask("GET", f"/v1/roles/{quote(role, safe='')}/holders", wire_groups.MemberPage, query=query)

    async def change_holders(
        self, role: str, *, business_unit: UUID | None = None, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> wire_groups.MembersChange:
        """Give people a role and take it from others, up to a thousand each."""
        where = "" if business_unit is None else f"?business_unit={business_unit}"
        return await self._change(f"/v1/roles/{quote(role, safe='')}/holders{where}", add=add, remove=remove)

    async def relations(
        self, *, entity: str | None = None, person: str | None = None, cursor: str | None = None
    ) -> wire_groups.RelationPage:
        """List who is related to a thing (`TYPE:GUID`), or to what a person is related, page by page."""
        query = {"entity": entity, "person": person, "cursor": cursor}
        return await self._ask("GET", "/v1/relations", wire_groups.RelationPage, query=query)

    async def change_relations(
        self, *, add: Sequence[wire_groups.Relation] = (), remove: Sequence[wire_groups.Relation] = ()
    ) -> wire_groups.MembersChange:
        """Add relations of people to things and remove others, up to a thousand each."""
        body = wire_groups.RelationsRequest(add=tuple(add), remove=tuple(remove))
        return await self._ask("PATCH", "/v1/relations", wire_groups.MembersChange, body=body, again=True)

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

    async def _change(self, path: str, *, add: Sequence[str], remove: Sequence[str]) -> wire_groups.MembersChange:
        """Add people somewhere and take others out."""
        body = wire_groups.MembersRequest(add=tuple(add), remove=tuple(remove))
        return await self._ask("PATCH", path, wire_groups.MembersChange, body=body, again=True)

    async def _ask(
        self,
        method: str,
        path: str,
        shape: type[S],
        *,
        body: msgspec.Struct | None = None,
        query: Mapping[str, str | None] | None = None,
        headers: Mapping[str, str] | None = None,
        again: bool | None = None,
    ) -> S:
        """Make a request and read its answer; what only reads may be asked again."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        answer = await self._request(
            method,
            f"{path}?{urlencode(given)}" if given else path,
            body=body,
            headers=headers,
            again=method == "GET" if again is None else again,
        )
        return msgspec.json.decode(answer, type=shape)

    async def _request(
        self,
        method: str,
        path: str,
        *,
        body: msgspec.Struct | None = None,
        headers: Mapping[str, str] | None = None,
        again: bool,
    ) -> bytes:
        """Make a request, again where that does no harm and may help."""
        content = b"" if body is None else msgspec.json.encode(body)
        for tried in range(1, TRIES + 1):
            last = not again or tried == TRIES
            pause = FIRST_PAUSE * 2 ** (tried - 1)
            try:
                status, answer, asked = await self._once(method, path, content, headers or {})
            except PyreqwestError as error:
                if last:
                    raise Unreachable(f"no answer from {self._url}: {_fault(error)}") from error
            else:
                if status < 400:
                    return answer
                if last or status != 503:
                    raise _error(status, answer)
                pause = max(pause, asked)
            await self._pause(min(pause, PAUSE_MAX))
        raise AssertionError("the last try returns or raises")

    async def _once(
        self, method: str, path: str, content: bytes, headers: Mapping[str, str]
    ) -> tuple[int, bytes, float]:
        """Make one request; return status, body, and how long the server asks to wait."""
        task = asyncio.current_task()
        canceled = task.cancelling() if task else 0
        request = self._http.request(method, f"{self._url}{path}").headers(headers).body_bytes(content).build()
        try:
            response = await request.send()
            answer = bytes(await response.bytes())
        finally:
            if task and task.cancelling() > canceled:
                # pyreqwest can lose a cancellation that meets an answer; its caller's loop would then never end.
                raise asyncio.CancelledError
        asked = response.headers.get("retry-after", "")
        return response.status, answer, float(asked) if asked.isdecimal() else 0.0


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


def _fault(error: PyreqwestError) -> str:
    """Say why no answer came, in our words."""
    if isinstance(error, TimeoutError):
        return "it took too long"
    if isinstance(error, ConnectError):
        return "no connection could be made; see that the server runs and that the address is right"
    return "the connection was lost"


def _is_finite(value: object) -> bool:
    """Tell whether every number in it can be written: the encoder would make null of the others."""
    if isinstance(value, Mapping):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _error(status: int, answer: bytes) -> ApiError:
    """Read a problem; an answer that is none came from something in between."""
    try:
        return ApiError(msgspec.json.decode(answer, type=wire.Problem))
    except msgspec.DecodeError:
        return ApiError(
            wire.Problem(
                type="about:blank",
                title="Not an answer of Clarion",
                status=status,
                detail=f"something between this program and Clarion answered with {status}",
                code="not-clarion",
                correlation_id="",
            )
        )

"""Inboxes over HTTP, for the application that shows people theirs: what stands in one, how many lines, and marks."""

from http import HTTPStatus
from typing import Final
from uuid import UUID

from litestar import get, post
from litestar.params import FromPath

from clarion.api import example
from clarion.api.authentication import caller_of
from clarion.api.context import InjectedContext
from clarion.api.contract import Contract
from clarion.api.problem import found
from clarion.api.reading import AnyRequest, read_query
from clarion.catalog.access import Grant
from clarion.client import wire_inbox
from clarion.operations.inbox import read_marking, read_reader

PATH: Final = "/v1/inbox/{reader:str}"


@get(
    PATH,
    opt=Contract(
        tag="inboxes",
        grant=Grant.VIEW,
        query=wire_inbox.InboxQuery,
        answer=example.INBOX,
    ).opt,
)
async def list_inbox(reader: FromPath[str], request: AnyRequest, context: InjectedContext) -> wire_inbox.InboxPage:
    """List the lines of an inbox, newest first: that of `user:ID` or `employee:GUID`.

    What the lines say is told only to a key whose role may show inboxes or reveal messages. One request looks at the
    2,000 newest lines at most. Where a filter lets few of them through, a page may have fewer items than asked for, or
    none, and go on all the same: until `next_cursor` is null.
    """
    query, caller = read_query(request, wire_inbox.InboxQuery), caller_of(request)
    whole = caller.may(Grant.INBOX) or caller.may(Grant.REVEAL)
    return await context.operations.inboxes.list(caller.tenant_id, read_reader(reader), query, whole=whole)


@get(f"{PATH}/counts", opt=Contract(tag="inboxes", grant=Grant.VIEW, answer=example.INBOX_COUNTS).opt)
async def count_inbox(reader: FromPath[str], request: AnyRequest, context: InjectedContext) -> wire_inbox.InboxCounts:
    """Say how many lines an inbox has, and how many of them are unseen and unread; it takes the same for any number."""
    return await context.operations.inboxes.count(caller_of(request).tenant_id, read_reader(reader))


@post(
    f"{PATH}/all/{{mark:str}}",
    status_code=HTTPStatus.OK,
    opt=Contract(tag="inboxes", grant=Grant.INBOX, answer=example.INBOX_COUNTS).opt,
)
async def mark_inbox(
    reader: FromPath[str], mark: FromPath[str], request: AnyRequest, context: InjectedContext
) -> wire_inbox.InboxCounts:
    """Mark all lines of an inbox, archived ones too, and say how many it has; it takes the same for any number.

    The marks are `seen`, `read` (seen as well), `unread`, `archive` and `unarchive`. To do it again changes nothing.
    """
    tenant_id, whose = caller_of(request).tenant_id, read_reader(reader)
    return await context.operations.inboxes.mark_all(tenant_id, whose, read_marking(mark))


@post(
    f"{PATH}/{{message_id:uuid}}/{{mark:str}}",
    status_code=HTTPStatus.OK,
    opt=Contract(tag="inboxes", grant=Grant.INBOX, problems=(HTTPStatus.NOT_FOUND,), answer=example.INBOX_COUNTS).opt,
)
async def mark_line(
    reader: FromPath[str],
    message_id: FromPath[UUID],
    mark: FromPath[str],
    request: AnyRequest,
    context: InjectedContext,
) -> wire_inbox.InboxCounts:
    """Mark one line of an inbox, by the id of its message, and say how many lines the inbox has.

    The marks are those for all lines. To do it again changes nothing, not even a time.
    """
    tenant_id, whose = caller_of(request).tenant_id, read_reader(reader)
    counts = await context.operations.inboxes.mark(tenant_id, whose, message_id, read_marking(mark))
    return found(counts, "message in this inbox")

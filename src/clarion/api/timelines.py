"""What happened: the timeline of one notification, and the history of what notifications are about."""

from http import HTTPStatus
from uuid import UUID

from litestar import get
from litestar.params import FromPath

from clarion.api import example
from clarion.api.authentication import caller_of
from clarion.api.context import InjectedContext
from clarion.api.contract import Contract
from clarion.api.problem import found
from clarion.api.reading import AnyRequest, read_query
from clarion.catalog.access import Grant
from clarion.client import wire
from clarion.domain.identity import Channel, IdentityDomain
from clarion.errors import InvalidInput


@get(
    "/v1/messages/{id:uuid}/timeline",
    opt=Contract(
        tag="timelines",
        grant=Grant.VIEW,
        problems=(HTTPStatus.NOT_FOUND,),
        answer=example.TIMELINE,
    ).opt,
)
async def get_timeline(request: AnyRequest, context: InjectedContext) -> wire.Timeline:
    """Tell the whole timeline of a notification in order, by its job's id or by that of one of its messages."""
    named: UUID = request.path_params["id"]
    caller = caller_of(request)
    timeline = await context.operations.notifications.find_timeline(
        caller.tenant_id, named, whole=caller.may(Grant.REVEAL)
    )
    return found(timeline, "notification or message")


@get(
    "/v1/notifications",
    opt=Contract(
        tag="timelines",
        grant=Grant.VIEW,
        query=wire.NotificationQuery,
        answer=example.NOTIFICATIONS,
    ).opt,
)
async def list_notifications(request: AnyRequest, context: InjectedContext) -> wire.NotificationPage:
    """List the notifications of the tenant, newest first, each with its result; or those that a filter lets through.

    One request looks at the 2,000 newest at most. Where `type` or `result` lets few of them through, a page may have
    fewer items than asked for, or none, and go on all the same: until `next_cursor` is null.
    """
    query, caller = read_query(request, wire.NotificationQuery), caller_of(request)
    return await context.operations.notifications.list(caller.tenant_id, query, whole=caller.may(Grant.REVEAL))


@get(
    "/v1/entities/{entity:str}/notifications",
    opt=Contract(
        tag="timelines",
        grant=Grant.VIEW,
        query=wire.PageQuery,
        answer=example.NOTIFICATIONS,
    ).opt,
)
async def list_history(entity: FromPath[str], request: AnyRequest, context: InjectedContext) -> wire.NotificationPage:
    """List every notification about an entity, newest first; or everything that one person got or was left out of.

    The entity is the guid that notifications name as theirs. At `user:ID` and `employee:GUID` is every notification
    that the person was a recipient of, whatever it is about: `result` is what came of it for them, `message_id` names
    their part of it, and `skipped` says why they got nothing. One that names no entity is filed under its single
    recipient, so `group:GUID` and `address:ADDRESS` have a history too; `push:` and `chat:` go before an address whose
    form does not tell its channel. What nothing was ever sent about or to has an empty history. The history of an
    address needs a role that may reveal: others could find out by asking which addresses there are.
    """
    query, about, caller = read_query(request, wire.PageQuery), read_about(entity), caller_of(request)
    if isinstance(about, wire.Recipient) and about.address is not None:
        caller.require(Grant.REVEAL, what=" what was sent to an address")
    return await context.operations.notifications.history(
        caller.tenant_id, about, query, whole=caller.may(Grant.REVEAL)
    )


def read_about(entity: str) -> UUID | wire.Recipient:
    """Read what a history is about: an entity's guid, or a recipient."""
    domain, colon, rest = entity.partition(":")
    if not colon:
        return _guid(entity)
    match domain:
        case IdentityDomain.USER:
            return wire.Recipient(user=rest)
        case IdentityDomain.EMPLOYEE:
            return wire.Recipient(employee=_guid(rest))
        case IdentityDomain.GROUP:
            return wire.Recipient(group=_guid(rest))
        case IdentityDomain.ADDRESS:
            return wire.Recipient(address=rest)
        case Channel.EMAIL | Channel.SMS | Channel.PUSH | Channel.CHAT:
            return wire.Recipient(address=rest, channel=Channel(domain))
        case _:
            raise _no_entity()


def _guid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise _no_entity() from None


def _no_entity() -> InvalidInput:
    return InvalidInput(
        "it names no entity",
        field="entity",
        hint="use a guid, user:ID, employee:GUID, group:GUID or address:ADDRESS",
    )

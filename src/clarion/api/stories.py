"""What happened: the timeline of one notification, and the history of what notifications are about."""

from http import HTTPStatus
from typing import Final
from uuid import UUID

from litestar import get
from litestar.params import FromPath

from clarion.api import cursor, example
from clarion.api.contract import CONTRACT, Contract
from clarion.api.desk import AtDesk, Desk
from clarion.api.guard import caller_of
from clarion.api.notifications import shown
from clarion.api.problem import not_found
from clarion.api.reading import AnyRequest, read_query
from clarion.catalog.access import Grant
from clarion.client import wire
from clarion.domain import derived_id, key
from clarion.domain.identity import Channel, Identity, IdentityDomain
from clarion.domain.story import TimelineLine, timeline
from clarion.errors import InvalidInput
from clarion.producers.direct import Recipient, target_of

HISTORY: Final = "history"


@get(
    "/v1/messages/{id:uuid}/timeline",
    opt={
        CONTRACT: Contract(
            tag="stories",
            grant=Grant.VIEW,
            answer=wire.Timeline,
            problems=(HTTPStatus.NOT_FOUND,),
            answer_example=example.TIMELINE,
        )
    },
)
async def get_timeline(request: AnyRequest, desk: AtDesk) -> wire.Timeline:
    """Tell the whole story of a notification in order, by its job's id or by that of one of its messages."""
    caller = caller_of(request)
    named: UUID = request.path_params["id"]
    job_id = await desk.store.find_job_of_message(caller.tenant_id, named)
    story = await desk.store.find_job_story(caller.tenant_id, job_id or named)
    if story is None:
        raise not_found("notification or message")
    message_id = None if job_id is None else named
    return wire.Timeline(
        job_id=story.job.guid,
        message_id=message_id,
        type=story.job.event_type,
        lines=tuple(map(_line, timeline(story, message_id=message_id))),
        messages=tuple(one for one in shown(story).messages if message_id in (None, one.message_id)),
    )


@get(
    "/v1/entities/{entity:str}/notifications",
    opt={
        CONTRACT: Contract(
            tag="stories",
            grant=Grant.VIEW,
            query=wire.PageQuery,
            answer=wire.HistoryPage,
            answer_example=example.HISTORY,
        )
    },
)
async def list_history(entity: FromPath[str], request: AnyRequest, desk: AtDesk) -> wire.HistoryPage:
    """List every notification about an entity, newest first.

    The entity is the guid that notifications name as theirs. One that names none is about its recipient, whose history
    is at `user:ID`, `employee:GUID`, `group:GUID` or `address:ADDRESS`; `push:` and `chat:` go before an address whose
    form does not tell its channel. An entity that nothing was ever sent about has an empty history.
    """
    caller = caller_of(request)
    query = read_query(request, wire.PageQuery)
    place = await read_place(desk, caller.tenant_id, entity)
    found = await desk.store.list_jobs(
        caller.tenant_id,
        place,
        after=cursor.read(f"{HISTORY} {place}", query.cursor, start=""),
        limit=query.limit + 1,
    )
    page = found[: query.limit]
    more = len(found) > query.limit
    return wire.HistoryPage(
        items=tuple(
            wire.HistoryLine(
                job_id=job.guid, type=job.event_type, status=job.scheduler_status, accepted_at=job.source_at
            )
            for job in page
        ),
        next_cursor=cursor.write(f"{HISTORY} {place}", page[-1].row_key) if more else None,
    )


async def read_place(desk: Desk, tenant_id: str, entity: str) -> str:
    """Find where a history opens: at an entity's guid, or at a recipient; an address is found by its hash."""
    domain, colon, rest = entity.partition(":")
    if not colon:
        return key.event_job_pk(entity_guid=_guid(entity))
    hashed = None
    match domain:
        case IdentityDomain.USER:
            identity = Identity.user(rest)
        case IdentityDomain.EMPLOYEE:
            identity = Identity.employee(_guid(rest))
        case IdentityDomain.GROUP:
            identity = Identity.group(_guid(rest))
        case IdentityDomain.ADDRESS | Channel.EMAIL | Channel.SMS | Channel.PUSH | Channel.CHAT:
            identity = _address(domain, rest)
            keys = await desk.platform.keyring.get(tenant_id)
            hashed = derived_id.recipient_id_hash(
                identity_key=keys.identity_key, tenant_id=keys.tenant_id, identity=identity
            )
        case _:
            raise _no_entity()
    return key.manual_job_pk(entity_guid=None, recipients=[identity], recipient_id_hash=hashed, job_guid=UUID(int=0))


def _address(domain: str, address: str) -> Identity:
    """Read an address as a send does; what is wrong with it is said without it."""
    channel = None if domain == IdentityDomain.ADDRESS else Channel(domain)
    try:
        return target_of(Recipient(address=address, channel=channel)).identity
    except InvalidInput as error:
        raise type(error)(error.message, field="entity", hint=error.hint) from None


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


def _line(line: TimelineLine) -> wire.TimelineLine:
    return wire.TimelineLine(
        at=line.at, what=line.what, detail=line.detail, channel=line.channel, message_id=line.message_id
    )

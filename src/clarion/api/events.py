"""Events, and what their types lead to.

What an event tells is shown to keys that may `tell` or `reveal`.
"""

from http import HTTPStatus
from typing import Final
from uuid import UUID

from litestar import Response, delete, get, post, put
from litestar.params import FromPath

from clarion.api import example_sources as example
from clarion.api.authentication import caller_of, trace_of
from clarion.api.context import InjectedContext
from clarion.api.contract import Contract, Header
from clarion.api.problem import found
from clarion.api.reading import AnyRequest, read_body, read_idempotency_key, read_page
from clarion.api.sources import may_read
from clarion.catalog.access import Grant
from clarion.client import wire, wire_events
from clarion.domain.guard import IDEMPOTENCY_KEY_MAX

PATH: Final = "/v1/events"

_EVENT: Final = "event"


@post(
    PATH,
    status_code=HTTPStatus.ACCEPTED,
    opt=Contract(
        tag="events",
        grant=Grant.TELL,
        status=HTTPStatus.ACCEPTED,
        headers=(
            Header(
                name="Idempotency-Key",
                description="Your own name for this event, where it has no id. Told again under the same one it is the "
                "same event; another event under it is refused.",
                length_max=IDEMPOTENCY_KEY_MAX,
            ),
        ),
        problems=(HTTPStatus.CONFLICT,),
        body=example.EVENT_REQUEST,
        answer=example.EVENT_ANSWER,
    ).opt,
)
async def tell_event(request: AnyRequest, context: InjectedContext) -> Response[wire_events.EventAnswer]:
    """Tell that something happened: accepted once it is stored, handled by the workers.

    It needs an `id` or an Idempotency-Key. Its type must be in the table of mappings, and what its notification needs
    must be in `data` or known of its source.
    """
    caller, key = caller_of(request), read_idempotency_key(request)
    body = await read_body(request, wire_events.EventRequest)
    events, used = context.operations.events, (caller.tenant_id, caller.key_id)
    await context.meter.meet(*used)  # the body took its time
    shortage = context.meter.find_shortage(*used, recipients=0)  # whom it reaches, the settings say later
    if shortage is not None and not await events.is_known(caller.tenant_id, body, key=key):
        raise shortage
    with context.meter.accepting(*used, recipients=0) as counted:
        answer = await events.tell(caller.tenant_id, body, key=key, actor=caller.actor, trace=trace_of(request))
        counted.append(not answer.repeated)
    return Response(answer, headers={"location": f"{PATH}/{answer.event_id}"})


@get(PATH, opt=Contract(tag="events", grant=Grant.VIEW, query=wire_events.EventQuery, answer=example.EVENT_PAGE).opt)
async def list_events(request: AnyRequest, context: InjectedContext) -> wire_events.EventPage:
    """List events, the newest first, of one `entity` or with one `status` where that is asked for."""
    tenant_id, query = read_page(request, wire_events.EventQuery)
    return await context.operations.events.list(tenant_id, query, whole=may_read(caller_of(request)))


@get(
    f"{PATH}/{{event_id:uuid}}",
    opt=Contract(tag="events", grant=Grant.VIEW, problems=(HTTPStatus.NOT_FOUND,), answer=example.EVENT).opt,
)
async def get_event(event_id: FromPath[UUID], request: AnyRequest, context: InjectedContext) -> wire_events.Event:
    """Show an event, and how far its handling has come."""
    caller = caller_of(request)
    shown = await context.operations.events.find(caller.tenant_id, event_id, whole=may_read(caller))
    return found(shown, _EVENT)


@post(
    f"{PATH}/{{event_id:uuid}}/retry",
    status_code=HTTPStatus.ACCEPTED,
    opt=Contract(
        tag="events",
        grant=Grant.MEND,
        status=HTTPStatus.ACCEPTED,
        problems=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
        body=example.EVENT_RETRY,
        answer=example.EVENT_RETRIED,
    ).opt,
)
async def retry_event(
    event_id: FromPath[UUID], request: AnyRequest, context: InjectedContext
) -> wire_events.EventRetried:
    """Have an event that failed handled again, on a person's word; audited with the reason."""
    caller = caller_of(request)
    body = await read_body(request, wire_events.EventRetryRequest)
    retried = await context.operations.events.retry(caller.tenant_id, event_id, actor=caller.actor, reason=body.reason)
    return found(retried, _EVENT)


@get(
    "/v1/event-mappings",
    opt=Contract(tag="events", grant=Grant.VIEW, query=wire.PageQuery, answer=example.MAPPING_PAGE).opt,
)
async def list_mappings(request: AnyRequest, context: InjectedContext) -> wire_events.MappingPage:
    """List what event types lead to, by event type."""
    return await context.operations.event_mappings.list(*read_page(request, wire.PageQuery))


@put(
    "/v1/event-mappings/{event_type:str}",
    opt=Contract(tag="events", grant=Grant.CONFIGURE, body=example.MAPPING_REQUEST, answer=example.MAPPING).opt,
)
async def put_mapping(
    event_type: FromPath[str], request: AnyRequest, context: InjectedContext
) -> wire_events.EventMapping:
    """Say what an event type leads to at once: a notification type or, with null, explicitly none; audited."""
    caller = caller_of(request)
    body = await read_body(request, wire_events.MappingRequest)
    return await context.operations.event_mappings.put(
        caller.tenant_id, event_type, body.notification_type, actor=caller.actor
    )


@delete(
    "/v1/event-mappings/{event_type:str}",
    status_code=HTTPStatus.NO_CONTENT,
    opt=Contract(
        tag="events",
        grant=Grant.CONFIGURE,
        answer=None,
        status=HTTPStatus.NO_CONTENT,
        problems=(HTTPStatus.NOT_FOUND,),
    ).opt,
)
async def remove_mapping(event_type: FromPath[str], request: AnyRequest, context: InjectedContext) -> None:
    """Take an event type out of the table: such events are refused from now on; audited."""
    caller = caller_of(request)
    removed = await context.operations.event_mappings.remove(caller.tenant_id, event_type, actor=caller.actor)
    found(removed or None, "event mapping")

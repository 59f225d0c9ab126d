"""What a notification would do for one person, and what it did for each of many. Nothing is sent or stored."""

from http import HTTPStatus
from uuid import UUID

from litestar import get, post
from litestar.params import FromPath

from clarion.api import example
from clarion.api.authentication import caller_of
from clarion.api.context import InjectedContext
from clarion.api.contract import Contract
from clarion.api.problem import found
from clarion.api.reading import AnyRequest, read_body, read_query
from clarion.catalog.access import Grant
from clarion.client import wire, wire_explain


@post(
    "/v1/explain",
    status_code=HTTPStatus.OK,
    opt=Contract(tag="timelines", grant=Grant.VIEW, body=example.WOULD_REQUEST, answer=example.WOULD).opt,
)
async def explain_would(request: AnyRequest, context: InjectedContext) -> wire_explain.Would:
    """Say what a notification would do for one person as things stand, channel by channel, with the rule that decides.

    It is the decision that is made for a notification that is sent, and nothing is sent or stored. It also says whether
    the person is one of those whom the settings name, for an entity in a business unit.
    """
    caller = caller_of(request)
    body = await read_body(request, wire_explain.WouldRequest)
    return await context.operations.explain.would(caller.tenant_id, body, whole=caller.may(Grant.REVEAL))


@get(
    "/v1/notifications/{job_id:uuid}/recipients",
    opt=Contract(
        tag="timelines",
        grant=Grant.VIEW,
        query=wire.PageQuery,
        problems=(HTTPStatus.NOT_FOUND,),
        answer=example.RECIPIENTS,
    ).opt,
)
async def list_recipients(
    job_id: FromPath[UUID], request: AnyRequest, context: InjectedContext
) -> wire_explain.RecipientPage:
    """List whom a notification is for, however many they are: their messages, and where they got none by which rule.

    The notification itself and its timeline show only some of more than a thousand.
    """
    query, caller = read_query(request, wire.PageQuery), caller_of(request)
    answer = await context.operations.notifications.recipients(
        caller.tenant_id, job_id, query, whole=caller.may(Grant.REVEAL)
    )
    return found(answer, "notification")

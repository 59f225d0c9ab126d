"""What a notification would do for one person. Nothing is sent or stored."""

from http import HTTPStatus

from litestar import post

from clarion.api import example
from clarion.api.authentication import caller_of
from clarion.api.context import InjectedContext
from clarion.api.contract import Contract
from clarion.api.reading import AnyRequest, read_body
from clarion.catalog.access import Grant
from clarion.client import wire_explain


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

"""Notification types: which there are, what they need, and switching them on and off."""

from http import HTTPStatus

from litestar import get, put
from litestar.params import FromPath

from clarion.api import example
from clarion.api.authentication import caller_of
from clarion.api.context import InjectedContext
from clarion.api.contract import Contract
from clarion.api.problem import found
from clarion.api.reading import AnyRequest, read_body
from clarion.catalog.access import Grant
from clarion.client import wire


@get(
    "/v1/types",
    opt=Contract(tag="types", grant=Grant.VIEW, answer=example.TYPES).opt,
)
async def list_types(request: AnyRequest, context: InjectedContext) -> wire.TypeList:
    """List every published notification type, with what its `data` must have."""
    return await context.operations.types.list(caller_of(request).tenant_id)


@put(
    "/v1/types/{type_name:str}/enabled",
    status_code=HTTPStatus.NO_CONTENT,
    opt=Contract(
        tag="types",
        grant=Grant.SWITCH,
        answer=None,
        status=HTTPStatus.NO_CONTENT,
        problems=(HTTPStatus.NOT_FOUND,),
        body=example.DISABLE,
    ).opt,
)
async def switch_type(type_name: FromPath[str], request: AnyRequest, context: InjectedContext) -> None:
    """Switch a notification type on or off: while it is off, its notifications are skipped, and say so."""
    caller = caller_of(request)
    body = await read_body(request, wire.EnabledRequest)
    switched = await context.operations.types.switch(
        caller.tenant_id, type_name, enabled=body.enabled, actor=caller.actor
    )
    found(switched, "notification type")

"""Notification types: which there are, publishing one and trying it, and switching them on and off."""

from http import HTTPStatus
from typing import Final

from litestar import get, post, put
from litestar.params import FromPath

from clarion.api import example
from clarion.api.authentication import caller_of
from clarion.api.context import InjectedContext
from clarion.api.contract import Contract
from clarion.api.problem import found
from clarion.api.reading import AnyRequest, read_body
from clarion.catalog.access import Grant
from clarion.client import wire_types
from clarion.operations.publishing import mistakes_of_body

TYPE_BYTES_MAX: Final = 1024 * 1024
"""A notification in ten languages has some 300 kB."""


@get(
    "/v1/types",
    opt=Contract(tag="types", grant=Grant.VIEW, answer=example.TYPES).opt,
)
async def list_types(request: AnyRequest, context: InjectedContext) -> wire_types.TypeList:
    """List every published notification type, with what its `data` must have."""
    return await context.operations.types.list(caller_of(request).tenant_id)


@get(
    "/v1/types/{type_name:str}",
    opt=Contract(tag="types", grant=Grant.VIEW, answer=example.TYPE_DETAILS, problems=(HTTPStatus.NOT_FOUND,)).opt,
)
async def get_type(type_name: FromPath[str], request: AnyRequest, context: InjectedContext) -> wire_types.TypeDetails:
    """Show a notification type as it is published now: its definition, what its `data` must have, its versions."""
    details = await context.operations.publishing.find(caller_of(request).tenant_id, type_name)
    return found(details, "notification type")


@put(
    "/v1/types/{type_name:str}",
    request_max_body_size=TYPE_BYTES_MAX,
    opt=Contract(tag="types", grant=Grant.PUBLISH, answer=example.TYPE_CHANGE, body=example.TYPE_REQUEST).opt,
)
async def put_type(type_name: FromPath[str], request: AnyRequest, context: InjectedContext) -> wire_types.TypeChange:
    """Publish a notification type: a new version, unless the latest one has this content. With `dry_run` only compare.

    Every mistake is named in `mistakes`, and then nothing is stored.
    """
    caller = caller_of(request)
    body = await read_body(request, wire_types.TypeRequest, every=mistakes_of_body)
    return await context.operations.publishing.put(caller.tenant_id, type_name, body, actor=caller.actor)


@post(
    "/v1/types/{type_name:str}/preview",
    status_code=HTTPStatus.OK,
    opt=Contract(
        tag="types",
        grant=Grant.VIEW,
        answer=example.TYPE_PREVIEW,
        problems=(HTTPStatus.NOT_FOUND,),
        body=example.PREVIEW_REQUEST,
    ).opt,
)
async def preview_type(
    type_name: FromPath[str], request: AnyRequest, context: InjectedContext
) -> wire_types.TypePreview:
    """Merge a type's templates with data, or with its sample, and show how it reads. Nothing is sent."""
    body = await read_body(request, wire_types.PreviewRequest)
    preview = await context.operations.publishing.preview(caller_of(request).tenant_id, type_name, body)
    return found(preview, "notification type")


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
    body = await read_body(request, wire_types.EnabledRequest)
    switched = await context.operations.types.switch(
        caller.tenant_id, type_name, enabled=body.enabled, actor=caller.actor
    )
    found(switched, "notification type")

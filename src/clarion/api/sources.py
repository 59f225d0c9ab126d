"""Sources that applications put in. What was said of one is shown to keys that may `tell` or `reveal`.

The id of a source is its application's own and may hold nearly anything, a `/` too, so it is read from the path as it
was sent: the framework would take two slashes for one, and leave out one at the end.
"""

from http import HTTPStatus
from typing import Final
from urllib.parse import unquote_to_bytes

from litestar import delete, get, post, put
from litestar.params import FromPath

from clarion.api import example_sources as example
from clarion.api.authentication import caller_of, trace_of
from clarion.api.context import InjectedContext
from clarion.api.contract import Contract
from clarion.api.problem import found
from clarion.api.reading import AnyRequest, read_body, read_page
from clarion.catalog.access import Caller, Grant
from clarion.client import wire, wire_sources
from clarion.errors import InvalidInput

SOURCES_BYTES_MAX: Final = 2 * 1024 * 1024
"""500 sources of 4 kB each; one alone may say 16 kB."""

_PREFIX: Final = 4
"""Slashes before the id in a path: `/v1/sources/TYPE/`."""

_SOURCE: Final = "source"


@get(
    "/v1/sources/{source_type:str}",
    opt=Contract(tag="sources", grant=Grant.VIEW, query=wire.PageQuery, answer=example.SOURCE_PAGE).opt,
)
async def list_sources(
    source_type: FromPath[str], request: AnyRequest, context: InjectedContext
) -> wire_sources.SourcePage:
    """List the sources of a type, by id."""
    tenant_id, query = read_page(request, wire.PageQuery)
    return await context.operations.sources.list(tenant_id, source_type, query, whole=may_read(caller_of(request)))


@post(
    "/v1/sources/{source_type:str}",
    status_code=HTTPStatus.OK,
    request_max_body_size=SOURCES_BYTES_MAX,
    opt=Contract(tag="sources", grant=Grant.TELL, body=example.SOURCES_REQUEST, answer=example.SOURCES_STORED).opt,
)
async def put_sources(
    source_type: FromPath[str], request: AnyRequest, context: InjectedContext
) -> wire_sources.SourcesStored:
    """Insert or replace up to 500 sources of a type, each as a whole. It can be repeated.

    All of them are stored, or none: every mistake is named in `mistakes`, by the place of its source and its field.
    """
    caller = caller_of(request)
    body = await read_body(request, wire_sources.SourcesRequest)
    return await context.operations.sources.put_all(
        caller.tenant_id, source_type, body, actor=caller.actor, trace=trace_of(request)
    )


@get(
    "/v1/sources/{source_type:str}/{source:path}",
    opt=Contract(tag="sources", grant=Grant.VIEW, problems=(HTTPStatus.NOT_FOUND,), answer=example.SOURCE).opt,
)
async def get_source(source_type: FromPath[str], request: AnyRequest, context: InjectedContext) -> wire_sources.Source:
    """Show a source."""
    caller = caller_of(request)
    shown = await context.operations.sources.find(
        caller.tenant_id, source_type, read_id(request), whole=may_read(caller)
    )
    return found(shown, _SOURCE)


@put(
    "/v1/sources/{source_type:str}/{source:path}",
    opt=Contract(tag="sources", grant=Grant.TELL, body=example.SOURCE_REQUEST, answer=example.SOURCE_STORED).opt,
)
async def put_source(
    source_type: FromPath[str], request: AnyRequest, context: InjectedContext
) -> wire_sources.SourceStored:
    """Insert or replace one source as a whole: what the body leaves out, the source has not any more.

    A change is an event, by which its reminders are planned anew; what is so already makes none.
    """
    caller, source = caller_of(request), read_id(request)
    body = await read_body(request, wire_sources.SourceRequest)
    return await context.operations.sources.put(
        caller.tenant_id, source_type, source, body, actor=caller.actor, trace=trace_of(request)
    )


@delete(
    "/v1/sources/{source_type:str}/{source:path}",
    status_code=HTTPStatus.OK,
    opt=Contract(tag="sources", grant=Grant.TELL, problems=(HTTPStatus.NOT_FOUND,), answer=example.SOURCE_STORED).opt,
)
async def remove_source(
    source_type: FromPath[str], request: AnyRequest, context: InjectedContext
) -> wire_sources.SourceStored:
    """Remove a source with what was said of it. That is an event too, by which its reminders are taken back."""
    caller = caller_of(request)
    removed = await context.operations.sources.remove(
        caller.tenant_id, source_type, read_id(request), actor=caller.actor, trace=trace_of(request)
    )
    return found(removed, _SOURCE)


def may_read(caller: Caller) -> bool:
    """Tell whether somebody sees what applications said of sources and events."""
    return caller.may(Grant.TELL) or caller.may(Grant.REVEAL)


def read_id(request: AnyRequest) -> str:
    """Read the id of a source from the path as it was sent."""
    sent: bytes = request.scope["raw_path"]
    try:
        return unquote_to_bytes(sent.split(b"/", _PREFIX)[_PREFIX]).decode()
    except UnicodeDecodeError:
        raise InvalidInput("it is not UTF-8", field="source", hint="percent-encode the id as UTF-8") from None

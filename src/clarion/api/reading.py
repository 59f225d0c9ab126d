"""Reading requests strictly: bodies, queries, headers. Nothing is coerced, and what is unknown is refused.

A request that cannot be read is 400, one that can be read and cannot be accepted is 422 and names the field.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, Final, TypeVar

import msgspec
from litestar import Request
from litestar.exceptions import InternalServerException, NotFoundException
from litestar.exceptions.http_exceptions import RequestEntityTooLarge
from litestar.handlers import BaseRouteHandler

from clarion.api.authentication import CALLER, Connection, caller_of
from clarion.api.contract import CONTRACT, Contract
from clarion.api.crowd import Crowd, source_of
from clarion.api.problem import Refusal
from clarion.domain.depth import check_depth, too_deep
from clarion.domain.guard import IDEMPOTENCY_KEY_MAX
from clarion.domain.misfit import read_json_fault, read_misfit
from clarion.domain.strict_json import check_keys
from clarion.errors import InvalidDefinition, InvalidInput

DESCRIBED: Final = "described"
"""The name under which the options of an application say whether it serves its description."""

BODY_BYTES_MAX: Final = 256 * 1024
"""Merge data of a notification is a few kilobytes; what is larger belongs behind a link."""

BODY_TIME_MAX: Final = timedelta(seconds=20)
"""For the whole of a body: 256 kB come in that time over the slowest line that anybody sends from."""

_KEY: Final = re.compile(rf"[\x20-\x7e]{{1,{IDEMPOTENCY_KEY_MAX}}}", re.ASCII)

BODIES: Final = "bodies"
"""The name under which a request's state has the bodies that are still to come."""

BODIES_MAX: Final = 500
"""Of callers at once, half of them of one tenant: half of all requests that are served, so that others find room."""

STRANGE_BODIES_MAX: Final = 20
"""Of senders without an API key, half of them of one source. They are read to their end before they can be refused."""

AnyRequest = Request[Any, Any, Any]  # the framework's user, auth and state, which are not used here
S = TypeVar("S", bound=msgspec.Struct)

Every = Callable[[object], Iterable[InvalidInput]]
"""Names every mistake in a body that was read as JSON."""


class Bodies:
    """The bodies of all requests that have not come to their end, by who sends them."""

    def __init__(self) -> None:
        """Wait for none."""
        self._of_callers: Crowd[asyncio.Timeout] = Crowd(places=BODIES_MAX)
        self._of_strangers: Crowd[asyncio.Timeout] = Crowd(places=STRANGE_BODIES_MAX)

    @contextmanager
    def waiting(self, request: AnyRequest, timer: asyncio.Timeout) -> Iterator[None]:
        """Wait for one more; where there is no room for it, the one that has to leave is out of time now."""
        caller = request.scope["state"].get(CALLER)
        crowd = self._of_strangers if caller is None else self._of_callers
        source = source_of(request.scope["client"]) if caller is None else caller.tenant_id
        late = crowd.enter(source, timer)
        if late is not None:
            late.reschedule(0)  # of the loop's clock, which is past
        try:
            yield
        finally:
            crowd.leave(source, timer)


async def read_body(request: AnyRequest, shape: type[S], *, every: Every | None = None) -> S:
    """Read a JSON body of this shape; where it does not fit, `every` names all that is wrong instead of the first."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise Refusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", "send JSON, as content-type: application/json"
        )
    read = decode(await read_bytes(request), shape, hint=_hint(request), every=every)
    for name in shape.__struct_fields__:
        check_depth(getattr(read, name), field=name)
    return read


async def read_bytes(request: AnyRequest) -> bytes:
    """Read a body as it came, within the time and the size that its route allows."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", "send the body without a content-encoding"
        )
    try:
        async with asyncio.timeout(BODY_TIME_MAX.total_seconds()) as timer:
            with request.scope["state"][BODIES].waiting(request, timer):
                return await request.body()
    except TimeoutError:
        raise Refusal(HTTPStatus.REQUEST_TIMEOUT, "too-slow", "the body came too slowly: send it again") from None
    except InternalServerException:  # what the framework raises where the caller hung up
        raise Refusal(HTTPStatus.BAD_REQUEST, "malformed", "the body ended before its end: send it again") from None
    except RequestEntityTooLarge:
        most = request.route_handler.resolve_request_max_body_size() or BODY_BYTES_MAX
        raise Refusal(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", f"send a smaller body: at most {most // 1024} kB"
        ) from None


def decode(body: bytes, shape: type[S], *, hint: str, every: Every | None = None) -> S:
    """Read JSON of this shape, or say what is wrong with it: its form before its values."""
    try:
        read = msgspec.json.decode(body, type=shape)
        check_keys(body)
    except msgspec.ValidationError as error:
        _check_form(body)  # a wrong value may stand before the place where it stops being JSON
        if every is not None:
            with suppress(msgspec.ValidationError):  # a number that is out of range
                raise InvalidDefinition([*every(msgspec.json.decode(body))]) from None
        raise _refused(error, shape, hint=hint) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _malformed(error) from None
    except RecursionError:
        raise too_deep("body") from None
    return read


def _check_form(body: bytes) -> None:
    try:
        msgspec.json.decode(body)
    except msgspec.ValidationError:
        return  # JSON, with a number that is out of range
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _malformed(error) from None
    except RecursionError:
        raise too_deep("body") from None


def read_query(request: AnyRequest, shape: type[S]) -> S:
    """Read the query of a request; a parameter that is unknown or comes twice is refused."""
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in given:
            raise InvalidInput("it is given twice", field=name, hint="give it once")
        given[name] = value
    try:
        read = msgspec.convert(given, shape, strict=False)  # a query has only text
    except msgspec.ValidationError as error:
        raise _refused(error, shape, hint=_hint(request)) from None
    for name, text in given.items():
        value = getattr(read, name)
        if type(value) is int and str(value) != text:  # as in 1.0, which msgspec takes for 1
            raise InvalidInput("it is no whole number", field=name, hint="write it in plain digits")
        if value is None:  # as in null
            raise InvalidInput("it has no value", field=name, hint="give it one, or leave it out")
        if isinstance(value, datetime) and "T" not in text.upper():  # as in 5, which msgspec counts from 1970
            raise InvalidInput("it is no time", field=name, hint="write it such as 2026-11-16T08:30:00Z")
    return read


def read_page(request: AnyRequest, shape: type[S]) -> tuple[str, S]:
    """Say whose list is asked for, and read which page of it."""
    return caller_of(request).tenant_id, read_query(request, shape)


def check_target(connection: Connection, handler: BaseRouteHandler) -> None:
    """Refuse what a route's path and query cannot mean, though the framework reads it: `1_0` is no number.

    A query is refused where the route reads none: whoever sent it believes that it does something.
    """
    written = connection.scope["path"].lower().split("/")
    if any(str(value) not in written for value in connection.path_params.values() if not isinstance(value, str)):
        raise NotFoundException
    contract = handler.opt.get(CONTRACT)
    if isinstance(contract, Contract) and contract.query is None and connection.scope["query_string"]:
        name = next(iter(connection.query_params), "query")
        raise InvalidInput("there is no such parameter", field=name, hint="leave it out: this route takes none")


def read_idempotency_key(request: AnyRequest) -> str | None:
    """Read the caller's own name for a request, if it has one."""
    given = request.headers.getall("idempotency-key", [])
    if not given:
        return None
    if len(given) > 1 or not _KEY.fullmatch(given[0]) or not given[0].strip():
        raise InvalidInput(
            "it is empty, too long, not plain ASCII or given twice",
            field="Idempotency-Key",
            hint=f"use 1 to {IDEMPOTENCY_KEY_MAX} visible characters",
        )
    return given[0]


def _refused(error: msgspec.ValidationError, shape: type[msgspec.Struct], *, hint: str) -> InvalidInput:
    """Say what does not fit, with the field as the caller wrote it; `hint` is for what the shape gives no advice on."""
    misfit = read_misfit(str(error), shape)
    return InvalidInput(misfit.what, field=misfit.field or "body", hint=misfit.hint or hint)


def _hint(request: AnyRequest) -> str:
    """Say what to do about a value that does not fit; the description is named only where it is served."""
    described = request.route_handler.opt.get(DESCRIBED, False)
    return "correct it; /openapi.json describes every field" if described else "correct it and ask again"


def _malformed(error: Exception) -> Refusal:
    return Refusal(
        HTTPStatus.BAD_REQUEST, "malformed", f"the body is no JSON, {read_json_fault(str(error))}: correct it"
    )

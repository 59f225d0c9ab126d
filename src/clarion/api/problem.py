"""Every error as an HTTP answer, in one place (RFC 9457).

A caller is told what to do. What the installation or the program is at fault for is told in general words, with the
correlation id under which the logs have the rest: internal texts are not sent to callers.
"""

import math
import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Final, TypeVar

import msgspec
from litestar.exceptions import HTTPException

from clarion import errors
from clarion.client.wire import Mistake, Problem
from clarion.errors import ClarionError

MEDIA_TYPE: Final = "application/problem+json"

T = TypeVar("T")

Answer = tuple[Problem, dict[str, str]]
"""What is answered, and the headers that go with it."""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """How an error is answered; `retry_after` is in seconds, `detail` replaces a text that is not the caller's."""

    status: HTTPStatus
    title: str
    detail: str | None = None
    retry_after: int | None = None


MISTAKES_MAX: Final = 100
"""Mistakes that an answer names: more than anybody mends at once."""

_ASK_OPERATOR: Final = "whoever runs this installation has to repair it; the logs have the details"

KINDS: Final[dict[type[ClarionError], Kind]] = {
    errors.InvalidInput: Kind(status=HTTPStatus.UNPROCESSABLE_ENTITY, title="A value cannot be accepted"),
    errors.RenderFailed: Kind(status=HTTPStatus.UNPROCESSABLE_ENTITY, title="The message cannot be rendered"),
    errors.Forbidden: Kind(status=HTTPStatus.FORBIDDEN, title=HTTPStatus.FORBIDDEN.phrase),
    errors.QuotaExceeded: Kind(status=HTTPStatus.TOO_MANY_REQUESTS, title="A quota is used up"),
    errors.TooManyAtOnce: Kind(status=HTTPStatus.TOO_MANY_REQUESTS, title="Too many at once", retry_after=1),
    errors.Conflict: Kind(status=HTTPStatus.CONFLICT, title="It contradicts what is stored"),
    errors.Gone: Kind(status=HTTPStatus.GONE, title="It was removed"),
    errors.SignatureRefused: Kind(status=HTTPStatus.UNAUTHORIZED, title="The signature does not hold"),
    errors.CallerError: Kind(status=HTTPStatus.BAD_REQUEST, title="The request cannot be served"),
    errors.StoreBusy: Kind(
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        title="The store is busy",
        detail="nothing was stored; try again in a moment",
        retry_after=1,  # it was busy for seconds already, so it is free again soon
    ),
    errors.StoreUnreachable: Kind(
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        title="The store does not answer",
        detail="try again with the same Idempotency-Key: it is sent once, whatever happened to this request",
        retry_after=5,  # as long as a database takes to come back
    ),
    errors.StoreDamaged: Kind(
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        title="The store is damaged",
        detail=f"nothing was stored; {_ASK_OPERATOR}",
        retry_after=30,  # a person has to restore it
    ),
    errors.StoreFull: Kind(
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        title="The store is full",
        detail=f"nothing was stored; {_ASK_OPERATOR}",
        retry_after=30,  # a person has to make room
    ),
    errors.StoreReadOnly: Kind(
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        title="The store cannot be written",
        detail=f"nothing was stored; {_ASK_OPERATOR}",
        retry_after=30,  # a person, or a failover, has to end it
    ),
    errors.Ending: Kind(
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        title="The program is ending",
        detail="nothing was stored; try again in a moment",
        retry_after=5,  # the next request may reach another node, or this one when it has started again
    ),
    errors.SchemaMissing: Kind(
        status=HTTPStatus.SERVICE_UNAVAILABLE, title="The store is not ready", detail=_ASK_OPERATOR, retry_after=30
    ),
    errors.Superseded: Kind(
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        title="This node is too old for the record",
        detail="ask again; a node that was upgraded will answer",
        retry_after=5,  # the next request may reach another node
    ),
    errors.OperatorError: Kind(
        status=HTTPStatus.INTERNAL_SERVER_ERROR, title="The installation is at fault", detail=_ASK_OPERATOR
    ),
    errors.ClarionError: Kind(
        status=HTTPStatus.INTERNAL_SERVER_ERROR,
        title="Clarion is at fault",
        detail="this is a defect; please report it with the correlation_id",
    ),
}
"""The answer to each error; a class that is not named is answered as the nearest one above it in the tree."""


class Refusal(Exception):
    """What only HTTP knows: who is asking, what is not there, and requests that cannot be read."""

    def __init__(
        self,
        status: HTTPStatus,
        code: str,
        detail: str,
        *,
        headers: dict[str, str] | None = None,
        field: str | None = None,
    ) -> None:
        """Refuse a request with a status, a stable code and what to do; `field` is what is wrong, if it has a name."""
        super().__init__(code)
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = headers or {}
        self.field = field


def found(answer: T | None, what: str) -> T:
    """Give an answer, or say that there is no such thing, in the same words if it is another tenant's (X-01)."""
    if answer is None:
        detail = f"there is no such {what}: check the id and the key's tenant"
        raise Refusal(HTTPStatus.NOT_FOUND, "not-found", detail)
    return answer


Patterns = list[tuple[re.Pattern[str], dict[str, str]]]
"""Of each route with a value of a certain form in its path: what its paths look like, and the form of each value."""

_VALUE: Final = re.compile(r"\{(\w+):(\w+)\}")
_FORMS: Final = {
    "uuid": "no id: use one as the answer to a send or a list has it, such as 5e6d0d3c-6f5c-5d1e-9c1a-0d6a3b1f2a10",
    "int": "no number that anything has: write it in plain digits, as a list shows it",
}


def patterns_of(paths: Iterable[str]) -> Patterns:
    """Read the templates of paths."""
    return [
        (re.compile(_VALUE.sub(r"(?P<\1>[^/]+)", path)), dict(_VALUE.findall(path)))
        for path in paths
        if any(kind in _FORMS for _, kind in _VALUE.findall(path))
    ]


def not_found(path: str, patterns: Patterns, *, described: bool) -> Refusal:
    """Say that there is nothing at a path: which value in it is at fault, where the rest of it is a route's.

    The description is named only where it is served.
    """
    where = "/openapi.json lists what there is" if described else "check its spelling"
    detail, field = f"there is nothing at this path: {where}", None
    for pattern, kinds in patterns:
        if pattern.fullmatch(path):
            field, form = next((name, _FORMS[kind]) for name, kind in kinds.items() if kind in _FORMS)
            detail = f"{field} is {form}"
    return Refusal(HTTPStatus.NOT_FOUND, "not-found", detail, field=field)


_CODES: Final = {
    HTTPStatus.BAD_REQUEST: ("malformed", "the request cannot be read: check its form"),
    HTTPStatus.METHOD_NOT_ALLOWED: ("method-not-allowed", "use a method that the Allow header names"),
}
"""What the framework refuses by itself, in our words."""


def answer(error: Exception, *, correlation_id: str) -> Answer:
    """Turn an error into its answer."""
    if isinstance(error, ClarionError):
        return _of_ours(error, correlation_id)
    if isinstance(error, Refusal):
        return _written(error, correlation_id)
    if isinstance(error, HTTPException) and error.status_code in _CODES:
        status = HTTPStatus(error.status_code)
        code, detail = _CODES[status]
        return _written(Refusal(status, code, detail, headers=dict(error.headers or {})), correlation_id)
    return _of_ours(errors.Bug("an error that nobody expected"), correlation_id)


def kind_of(error: type[ClarionError]) -> Kind:
    """Find how an error is answered: by its own entry, or by the nearest above it."""
    return next(KINDS[one] for one in error.__mro__ if one in KINDS)


def _of_ours(error: ClarionError, correlation_id: str) -> Answer:
    kind = kind_of(type(error))
    problem = Problem(
        type=f"urn:clarion:error:{error.code}",
        title=kind.title,
        status=kind.status,
        detail=kind.detail or " ".join(f"{error.message}: {error.hint}".split()),
        code=error.code,
        correlation_id=correlation_id,
        field=error.field if isinstance(error, errors.InvalidInput) else None,
        mistakes=_mistakes(error),
    )
    seconds = kind.retry_after
    if isinstance(error, errors.QuotaExceeded):
        seconds = math.ceil(error.retry_after.total_seconds())
    return problem, {} if seconds is None else {"retry-after": str(seconds)}


def _mistakes(error: ClarionError) -> tuple[Mistake, ...]:
    if not isinstance(error, errors.InvalidItems):
        return ()
    return tuple(
        Mistake(field=one.field, detail=" ".join(f"{one.message}: {one.hint}".split()))
        for one in error.mistakes[:MISTAKES_MAX]
    )


def _written(refusal: Refusal, correlation_id: str) -> Answer:
    problem = Problem(
        type=f"urn:clarion:error:{refusal.code}",
        title=refusal.status.phrase,
        status=refusal.status,
        detail=refusal.detail,
        code=refusal.code,
        correlation_id=correlation_id,
        field=refusal.field,
    )
    return problem, refusal.headers

"""What stands around every request, outside of the framework: its id, its limits, its headers, its line in the log.

The correlation id is the caller's (`X-Correlation-Id`) if it has one that can be trusted to be an id, else a new one;
it is in the answer, in every log line and in every record that the request makes.
"""

import re
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from http import HTTPMethod, HTTPStatus
from typing import Final

import msgspec
import structlog
from litestar import Litestar
from litestar.enums import ScopeType
from litestar.types import HTTPScope, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from clarion.api import problem
from clarion.api.guard import CALLER, TRACE
from clarion.api.metrics import Metrics
from clarion.dispatch.request import Trace
from clarion.ports.clock import Clock, Ids

REQUESTS_MAX: Final = 1000
"""At once: each takes a few milliseconds, so whoever is further behind is answered sooner by being sent away."""

HEADERS_BYTES_MAX: Final = 16 * 1024
"""All headers together; a key, a trace and an idempotency key take a few hundred bytes."""

CORRELATION: Final = "x-correlation-id"

QUIET: Final = frozenset({"/health", "/ready", "/metrics"})
"""Asked every few seconds by machines: only what goes wrong is worth a line."""

_CORRELATION_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,128}")
_TRACEPARENT: Final = re.compile(rb"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")

_ALWAYS: Final = {
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
}
"""Unless an answer says otherwise."""

log = structlog.get_logger("clarion.api")


class Door:
    """The whole application, as a server runs it."""

    def __init__(self, app: Litestar, *, metrics: Metrics, clock: Clock, ids: Ids) -> None:
        """Stand before an application."""
        self.app = app
        self._metrics = metrics
        self._clock = clock
        self._ids = ids
        self._open = 0

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Open what the application needs, and close it; a server does this by itself."""
        return self.app.lifespan()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or a server's start and stop."""
        if scope["type"] != ScopeType.HTTP:
            await self.app(scope, receive, send)
            return
        trace = self._trace(scope)
        scope.setdefault("state", {})[TRACE] = trace
        started, answered = self._clock.monotonic(), HTTPStatus.INTERNAL_SERVER_ERROR.value

        async def send_on(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                answered = int(message["status"])
                message["headers"] = _completed(message["headers"], scope, trace)
            await send(message)

        with bound_contextvars(correlation_id=trace.correlation_id):
            try:
                refusal = self._refusal(scope)
                self._open += 1
                if refusal is None:
                    await self.app(scope, receive, send_on)
                else:
                    await _refuse(refusal, send_on, trace)
            finally:
                self._open -= 1
                self._tell(scope, answered, self._clock.monotonic() - started)

    def _refusal(self, scope: HTTPScope) -> problem.Refusal | None:
        """Tell why a request is not even looked at, if it is not."""
        if sum(len(name) + len(value) for name, value in scope["headers"]) > HEADERS_BYTES_MAX:
            return problem.Refusal(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                "headers-too-large",
                f"send at most {HEADERS_BYTES_MAX // 1024} kB of headers",
            )
        if self._open >= REQUESTS_MAX:
            return problem.Refusal(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "overloaded",
                "too many requests are being served: try again in a moment",
                headers={"retry-after": "1"},
            )
        return None

    def _trace(self, scope: HTTPScope) -> Trace:
        """Take over what ties the request to others, as far as it has the right form."""
        given = dict(scope["headers"])
        own, parent = given.get(CORRELATION.encode(), b""), given.get(b"traceparent", b"")
        return Trace(
            correlation_id=own.decode() if _CORRELATION_ID.fullmatch(own) else str(self._ids.new_guid()),
            traceparent=parent.decode() if _TRACEPARENT.fullmatch(parent) else None,
        )

    def _tell(self, scope: HTTPScope, status: int, seconds: float) -> None:
        """Count the request and write its line; a path is named by its template, since it may hold anything."""
        method = scope["method"] if scope["method"] in set(HTTPMethod) else "OTHER"
        route = scope.get("path_template") or "unknown"
        self._metrics.observe_request(method=method, route=route, status=status, seconds=seconds)
        if route in QUIET and status < HTTPStatus.BAD_REQUEST:
            return
        caller = scope["state"].get(CALLER)
        log.info(
            "request",
            method=method,
            route=route,
            status=status,
            milliseconds=round(seconds * 1000, 1),
            tenant_id=caller and caller.tenant_id,
            key_id=caller and caller.key_id,
        )


def _completed(given: Iterable[tuple[bytes, bytes]], scope: HTTPScope, trace: Trace) -> list[tuple[bytes, bytes]]:
    """Add the headers that every answer has."""
    headers = [(bytes(name).lower(), bytes(value)) for name, value in given]
    has = {name for name, _ in headers}
    headers += [(name, value) for name, value in _ALWAYS.items() if name not in has]
    headers.append((CORRELATION.encode(), trace.correlation_id.encode()))
    if scope.get("scheme") == "https":
        headers.append((b"strict-transport-security", b"max-age=31536000"))
    return headers


async def _refuse(refusal: problem.Refusal, send: Send, trace: Trace) -> None:
    """Answer without the framework."""
    said, given = problem.answer(refusal, correlation_id=trace.correlation_id)
    body = msgspec.json.encode(said)
    headers = [(name.encode(), value.encode()) for name, value in given.items()]
    headers += [(b"content-type", problem.MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": said.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})

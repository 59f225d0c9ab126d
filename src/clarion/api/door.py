"""Around every request, outside of the framework: its id, its limits, its headers, its line in the log.

The correlation id is the caller's (`X-Correlation-Id`) if that has the form of an id, else a new one. It is in the
answer, in every log line and in every record that the request makes.
"""

import asyncio
import re
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from http import HTTPMethod, HTTPStatus
from typing import Final

import msgspec
import structlog
from litestar import Litestar
from litestar.enums import ScopeType
from litestar.types import HTTPScope, Message, Receive, ReceiveMessage, Scope, Send
from structlog.contextvars import bound_contextvars

from clarion.api import problem
from clarion.api.authentication import CALLER, SERVE, TRACE
from clarion.api.crowd import Places, source_of
from clarion.api.logs import LINES
from clarion.api.metrics import Metrics
from clarion.api.path import hide_slashes
from clarion.api.reading import BODIES, Bodies
from clarion.dispatch.request import Trace
from clarion.errors import StoreUnreachable
from clarion.ports.clock import Clock, Ids

REQUESTS_MAX: Final = 1000
"""At once, half of them of one tenant, or of one address whose key is not known yet. Reject early when the queue is
long: a fast 503 is better than a slow time-out."""

ANSWER_MAX: Final = timedelta(seconds=8)
"""From the end of a request to its answer. Callers, our own client among them, give up at 10 s; the limits of a store
that hangs are longer than that, so without this one they would get no answer at all."""

HEADERS_BYTES_MAX: Final = 16 * 1024
"""All headers together; a key, a trace and an idempotency key take a few hundred bytes."""

CROWDED: Final = "crowded"
"""The key in a request's state that says that its server has too many connections."""

NEVER_CROWDED: Final = "/health"
"""Answered however many others are being served: a process that does not answer it is restarted."""

CLOSING: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE})
"""After these the connection is closed: whoever gets them holds it without having shown who they are, or sends a body
that nobody reads."""

CORRELATION: Final = "x-correlation-id"

QUIET: Final = frozenset({"/health", "/ready", "/metrics"})
"""Probes ask for these every few seconds, so only their errors are logged."""

PORT_MAX: Final = 65_535

_HOST: Final = re.compile(rb"(?:[A-Za-z0-9._~!$&'()*+,;=%-]*|\[[0-9A-Fa-f:.]+\])(?::([0-9]{0,5}))?")
_CORRELATION_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,128}")
_TRACEPARENT: Final = re.compile(rb"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")

_ALWAYS: Final = {
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
}
"""Unless an answer says otherwise."""

_LATE: Final = StoreUnreachable("the store did not answer in time", hint="see why it hangs")

METHODS: Final = frozenset(HTTPMethod)
"""What a request's line and count may name; anybody can write any other word there."""

LOGGER: Final = "clarion.api"

log = structlog.get_logger(LOGGER)


class Door:
    """The whole application, as a server runs it."""

    def __init__(self, app: Litestar, *, metrics: Metrics, clock: Clock, ids: Ids) -> None:
        """Stand before an application."""
        self.app = app
        self._metrics = metrics
        self._clock = clock
        self._ids = ids
        self._places: Places[object] = Places(places=REQUESTS_MAX)
        self._bodies = Bodies()

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Open what the application needs, and close it; a server does this by itself."""
        return self.app.lifespan()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or a server's start and stop."""
        if scope["type"] != ScopeType.HTTP:
            await self.app(scope, receive, send)
            return
        trace = self._trace(scope)
        state = scope.setdefault("state", {})
        state[TRACE], state[BODIES] = trace, self._bodies
        started = self._clock.monotonic()
        answer, guest = Answer(scope, receive, send, trace), object()
        state[SERVE] = lambda tenant_id: self._serve(guest, tenant_id)
        with bound_contextvars(correlation_id=trace.correlation_id):
            try:
                refusal = self._refusal(scope, guest)
                if refusal is None:
                    hide_slashes(scope)
                    await answer.within(ANSWER_MAX, self.app)
                else:
                    await answer.refuse(refusal)
            finally:
                self._places.leave(guest)
                self._tell(scope, answer.status, self._clock.monotonic() - started)

    def _serve(self, guest: object, tenant_id: str) -> None:
        """Put a request to its tenant's account, or refuse it: others find places, however slow one tenant's are."""
        if not self._places.take(guest, f"tenant {tenant_id}"):
            raise _overloaded("too many requests of this tenant are being served")

    def _refusal(self, scope: HTTPScope, guest: object) -> problem.Refusal | None:
        """Say why a request is refused before it reaches the application, or None."""
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if not _is_host(hosts, http_version=scope["http_version"]):
            return problem.Refusal(
                HTTPStatus.BAD_REQUEST,
                "malformed",
                "the Host header names no host: send it once, as the name that you connect to and, if need be, a port",
            )
        if sum(len(name) + len(value) for name, value in scope["headers"]) > HEADERS_BYTES_MAX:
            return problem.Refusal(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                "headers-too-large",
                f"send at most {HEADERS_BYTES_MAX // 1024} kB of headers",
            )
        if scope["path"] == NEVER_CROWDED:
            return None
        if scope["state"].get(CROWDED) or not self._places.take(guest, source_of(scope["client"])):
            return _overloaded("too many requests are being served")
        return None

    def _trace(self, scope: HTTPScope) -> Trace:
        """Take over the caller's correlation id and trace, if they have the right form."""
        given = dict(scope["headers"])
        own, parent = given.get(CORRELATION.encode(), b""), given.get(b"traceparent", b"")
        return Trace(
            correlation_id=own.decode() if _CORRELATION_ID.fullmatch(own) else str(self._ids.new_guid()),
            traceparent=parent.decode() if _TRACEPARENT.fullmatch(parent) else None,
        )

    def _tell(self, scope: HTTPScope, status: int, seconds: float) -> None:
        """Count and log the request by the template of its path: the path itself may hold an address."""
        method = scope["method"] if scope["method"] in METHODS else "OTHER"
        route = scope.get("path_template") or "unknown"
        self._metrics.observe_request(method=method, route=route, status=status, seconds=seconds)
        if route in QUIET and status < HTTPStatus.BAD_REQUEST:
            return
        caller = scope["state"].get(CALLER)
        LINES.tell(
            log,
            "request",
            name=LOGGER,
            at=self._clock.now(),
            correlation_id=scope["state"][TRACE].correlation_id,
            method=method,
            route=route,
            status=status,
            milliseconds=round(seconds * 1000, 1),
            tenant_id=caller and caller.tenant_id,
            key_id=caller and caller.key_id,
        )


class Answer:
    """The answer to one request: the application's, or ours where that comes too late."""

    def __init__(self, scope: HTTPScope, receive: Receive, send: Send, trace: Trace) -> None:
        """Answer by `send` what comes by `receive`."""
        self.status = HTTPStatus.INTERNAL_SERVER_ERROR.value
        self._scope, self._receive, self._send, self._trace = scope, receive, send, trace
        self._begun = False
        self._giving_up: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._most = ANSWER_MAX

    async def within(self, most: timedelta, app: Litestar) -> None:
        """Have the application answer; if it takes longer than this, answer that the store does not.

        The application still finishes what it began, so that no transaction is cut off; its late answer is dropped.
        """
        self._most = most
        self._start_clock()
        try:
            await app(self._scope, self._received, self._sent)
        finally:
            self._stop_clock()
            if self._giving_up is not None:
                await self._giving_up

    async def refuse(self, error: Exception) -> None:
        """Answer without the framework."""
        said, given = problem.answer(error, correlation_id=self._trace.correlation_id)
        body = msgspec.json.encode(said)
        headers = [(name.encode(), value.encode()) for name, value in given.items()]
        headers += [(b"content-type", problem.MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
        await self._send_on({"type": "http.response.start", "status": said.status, "headers": headers})
        await self._send_on({"type": "http.response.body", "body": body, "more_body": False})

    async def _received(self) -> ReceiveMessage:
        """Receive from the caller while the clock is stopped: `reading` bounds how long a body may take."""
        self._stop_clock()
        try:
            return await self._receive()
        finally:
            self._start_clock()

    async def _sent(self, message: Message) -> None:
        if self._giving_up is None:
            await self._send_on(message)

    async def _send_on(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
            self.status = int(message["status"])
            headers = _completed(message["headers"], self._scope, self._trace)
            message["headers"] = [*headers, (b"connection", b"close")] if self.status in CLOSING else headers
        await self._send(message)

    def _start_clock(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._most.total_seconds(), self._give_up)

    def _stop_clock(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _give_up(self) -> None:
        if not self._begun and self._giving_up is None:
            log.warning("a request failed", code=_LATE.code, error=str(_LATE))
            self._giving_up = asyncio.get_running_loop().create_task(self.refuse(_LATE))  # awaited by `within`


def _overloaded(why: str) -> problem.Refusal:
    return problem.Refusal(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "overloaded",
        f"{why}: try again in a moment",
        headers={"retry-after": "1", "connection": "close"},
    )


def _is_host(hosts: list[bytes], *, http_version: str) -> bool:
    """Tell whether the Host headers of a request are as RFC 9112 wants them: one, which may be empty, and a port."""
    if len(hosts) != 1:
        return not hosts and http_version == "1.0"
    read = _HOST.fullmatch(hosts[0])
    return read is not None and int(read[1] or 0) <= PORT_MAX


def _completed(given: Iterable[tuple[bytes, bytes]], scope: HTTPScope, trace: Trace) -> list[tuple[bytes, bytes]]:
    """Add the headers that every answer has."""
    headers = [(bytes(name).lower(), bytes(value)) for name, value in given]
    has = {name for name, _ in headers}
    headers += [(name, value) for name, value in _ALWAYS.items() if name not in has]
    headers.append((CORRELATION.encode(), trace.correlation_id.encode()))
    if scope.get("scheme") == "https":
        headers.append((b"strict-transport-security", b"max-age=31536000"))
    return headers

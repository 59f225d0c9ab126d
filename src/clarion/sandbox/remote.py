"""The sandbox in another process: `sandbox+http://host:port`, one POST for every call.

The options are `dedupe`, which must say what the server was started with, and `timeout` in the form of the sandbox's
lengths of time. The client follows no redirects, uses no proxy and repeats nothing by itself.

| what happens | outcome |
|---|---|
| no connection: refused, no such name, TLS fails, timeout while connecting | deferred |
| 2xx | accepted, with the id of the body if it has one |
| 429 | deferred, throttled, not before Retry-After |
| 503 | deferred, not before Retry-After |
| 401, 403, 3xx: the account or its address is wrong | misconfigured |
| 410 | refused, recipient not found |
| any other 4xx | refused |
| 500, 502, 504, any other status | unknown |
| no complete reply: closed, reset, timeout, not HTTP | unknown |

The client's errors are told apart by their causes, not by their classes: it raises ConnectError also for a connection
that broke after the request had left.
"""

from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec
from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import DetailedPyreqwestError, PyreqwestError
from pyreqwest.http import Url

from clarion import errors
from clarion.domain.call import (
    REASON_CHARS_MAX,
    Accepted,
    Call,
    CallOutcome,
    Deferred,
    Misconfigured,
    Refused,
    Replay,
    Unknown,
)
from clarion.ports.clock import Clock
from clarion.ports.provider import EVERY_CHANNEL
from clarion.sandbox.fault import Options, span_option

TIMEOUT: Final = timedelta(seconds=15)
"""Less than the pipeline gives a call (20 s), so that the reason comes from here."""

CONNECT_TIMEOUT: Final = timedelta(seconds=5)
"""Less than the other, so that a connection that never stood is told from a reply that never came."""

RETRY_AFTER_MAX: Final = timedelta(days=1)
"""A server that asks for more is taken to mean this."""

ID_CHARS_MAX: Final = 200
"""Of a provider's id, which is stored."""

_NEVER_CONNECTED: Final = "client error (Connect)"
"""The cause that the client names when there was no connection to send anything over."""


class _Reply(msgspec.Struct, frozen=True):
    """What is read of a body."""

    id: str | None = None


_REPLY: Final = msgspec.json.Decoder(_Reply)
_CALL: Final = msgspec.json.Encoder()


class RemoteSandbox:
    """An account with a sandbox that speaks HTTP."""

    channels = EVERY_CHANNEL

    def __init__(self, url: str, *, options: Options, timeout: timedelta) -> None:
        """Connect to nothing yet: that is for the first call."""
        self._url = Url(url)
        self._options = options
        self._client: Client = (
            ClientBuilder()
            .timeout(timeout)
            .connect_timeout(min(CONNECT_TIMEOUT, timeout / 2))
            .follow_redirects(enable=False)
            .no_proxy()
            .default_headers({"content-type": "application/json"})
            .build()
        )

    @property
    def replay(self) -> Replay:
        """What the options promise."""
        return Replay(dedupe_window=self._options.dedupe)

    async def send(self, call: Call) -> CallOutcome:
        """Post the call."""
        try:
            response = await self._client.post(self._url).body_bytes(_CALL.encode(call)).build().send()
            if 200 <= response.status <= 299:
                return Accepted(provider_message_id=_id(bytes(await response.bytes())))
            headers = response.headers
            return _judge(response.status, read_retry_after(headers.get("retry-after"), date=headers.get("date")))
        except PyreqwestError as error:
            return _explain(error)

    async def close(self) -> None:
        """Let go of connections."""
        await self._client.close()


async def open_provider(url: str, *, clock: Clock) -> RemoteSandbox:  # noqa: ARG001  (every provider is opened so)
    """Open the account that a URL names."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if not parts.hostname or port is None or parts.path not in ("", "/") or parts.username or parts.fragment:
        raise errors.Misconfigured(
            "the sandbox account's URL does not name a host and a port",
            hint="write sandbox+http://127.0.0.1:8026, with the port that the server printed when it started",
        )
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    timeout = span_option(given.pop("timeout")) if "timeout" in given else TIMEOUT
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    options = Options.parse(urlencode(given))
    return RemoteSandbox(f"http://{host}:{port}/calls", options=options, timeout=timeout)


def read_retry_after(text: str | None, *, date: str | None) -> timedelta | None:
    """Read a number of seconds, or an HTTP date against the reply's own; what cannot be read or has passed is none."""
    if text is None:
        return None
    try:
        if text.strip().isdecimal():
            pause = timedelta(seconds=int(text))
        else:
            pause = parsedate_to_datetime(text) - parsedate_to_datetime(date or "")
    except (ValueError, TypeError, OverflowError):
        return None
    return min(pause, RETRY_AFTER_MAX) if pause > timedelta() else None


def _judge(status: int, pause: timedelta | None) -> CallOutcome:
    """Say what a reply other than an acceptance means; the table stands at the top of the file."""
    reason = f"the provider replied {status}"
    match status:
        case 429 | 503:
            return Deferred(reason=reason, retry_after=pause, throttled=status == 429)
        case 401 | 403:
            return Misconfigured(reason=reason)
        case 410:
            return Refused(reason=reason, recipient_not_found=True)
        case _ if 300 <= status <= 399:
            return Misconfigured(reason=reason)
        case _ if 400 <= status <= 499:
            return Refused(reason=reason)
        case _:
            return Unknown(reason=reason)


def _id(body: bytes) -> str | None:
    """Read the provider's id; a body without one does not undo an acceptance (F-32)."""
    try:
        ident = _REPLY.decode(body).id
    except msgspec.DecodeError:
        return None
    return ident[:ID_CHARS_MAX] if ident else None


def _explain(error: PyreqwestError) -> CallOutcome:
    """Say what a call without a reply means: only what never had a connection is proven not to have been sent."""
    causes = (error.details["causes"] or []) if isinstance(error, DetailedPyreqwestError) else []
    last = causes[-1]["message"] if causes else error.message
    reason = f"no reply: {last}"[:REASON_CHARS_MAX]
    if any(cause["message"] == _NEVER_CONNECTED for cause in causes):
        return Deferred(reason=reason)
    return Unknown(reason=reason)

"""What every provider over HTTP needs: one POST, and what came of it.

| what happens | outcome |
|---|---|
| no connection: refused, no such name, TLS fails, timeout while connecting | deferred |
| 2xx | accepted |
| 429 | deferred, throttled, not before Retry-After |
| 503 | deferred, not before Retry-After |
| 401, 403, 3xx: the account or its address is wrong | misconfigured |
| 410 | refused, recipient not found |
| any other 4xx | refused |
| 500, 502, 504, any other status | unknown |
| no complete reply: closed, reset, timeout, not HTTP | unknown |

The judging functions are pure. An adapter whose vendor means something else by a status, or says more in the body,
looks at the `Reply` first and leaves the rest to `judge`. `HttpCaller` makes the call: it follows no redirects, uses no
proxy and repeats nothing.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import Final

import msgspec
from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import DetailedPyreqwestError, PyreqwestError
from pyreqwest.http import Url
from pyreqwest.request import RequestBuilder
from pyreqwest.response import Response

from clarion.domain.call import REASON_CHARS_MAX, Accepted, CallOutcome, Deferred, Misconfigured, Refused, Unknown
from clarion.domain.call_times import LAST_PAUSE

TIMEOUT: Final = timedelta(seconds=15)
"""For a whole call. The pipeline gives up after 20 s; with less than that the reason comes from here and is exact."""

CONNECT_TIMEOUT: Final = timedelta(seconds=5)
"""Shorter than the whole, so that a connection that never stood is told from a reply that never came."""

RETRY_AFTER_MAX: Final = timedelta(days=1)
"""A server that asks for a longer pause is asked again after this one."""

REPLY_BYTES_MAX: Final = 64 * 1024
"""Providers answer with an id or an error, a few hundred bytes. The rest of a longer body is not read."""

_NEVER_CONNECTED: Final = "client error (Connect)"
"""What the client names as a cause when there was no connection to send anything over. Its classes do not tell: it
raises ConnectError also for a connection that broke after the request had left."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A reply that came whole, or up to `REPLY_BYTES_MAX` of it."""

    status: int
    body: bytes
    retry_after: timedelta | None


def judge(status: int, *, retry_after: timedelta | None) -> CallOutcome:
    """Say what a reply means."""
    reason = f"the provider replied {status}"
    match status:
        case 429 | 503:
            return Deferred(reason=reason, retry_after=retry_after, throttled=status == 429)
        case 401 | 403:
            return Misconfigured(reason=reason)
        case 410:
            return Refused(reason=reason, recipient_not_found=True)
        case _ if 200 <= status <= 299:
            return Accepted()
        case _ if 300 <= status <= 399:
            return Misconfigured(reason=reason)
        case _ if 400 <= status <= 499:
            return Refused(reason=reason)
        case _:
            return Unknown(reason=reason)


def judge_failure(causes: Sequence[str]) -> CallOutcome:
    """Say what a call without a reply means, by what the client names as causes, the innermost last.

    Only a call that never had a connection is proven not to have arrived.
    """
    reason = f"no reply: {causes[-1]}"[:REASON_CHARS_MAX]
    return Deferred(reason=reason) if _NEVER_CONNECTED in causes else Unknown(reason=reason)


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


def open_client(*, timeout: timedelta, headers: Mapping[str, str]) -> Client:
    """Make the HTTP client of a provider."""
    return (
        ClientBuilder()
        .timeout(timeout)
        .connect_timeout(min(CONNECT_TIMEOUT, timeout / 2))
        .follow_redirects(enable=False)
        .no_proxy()
        .default_headers(headers)
        .build()
    )


class HttpCaller:
    """The connections of one account."""

    def __init__(self, *, timeout: timedelta, headers: Mapping[str, str]) -> None:
        """Connect to nothing yet: that is for the first call. Every call has these headers."""
        self._client = open_client(timeout=timeout, headers=headers)

    async def post(self, url: Url, body: bytes) -> Reply | CallOutcome:
        """Make one call; return its reply, or what the lack of one means."""
        return await self._ask(self._client.post(url).body_bytes(body))

    async def probe(self, url: Url) -> str | None:
        """Ask for an address that no message goes to; any complete reply shows that the provider can be reached."""
        reply = await self._ask(self._client.get(url))
        return None if isinstance(reply, Reply | Accepted) else reply.reason

    async def _ask(self, asked: RequestBuilder) -> Reply | CallOutcome:
        """Make a request; return its reply, or what the lack of one means."""
        try:
            async with asked.build_streamed() as response:
                content = await response.body_reader.read(REPLY_BYTES_MAX)  # returns when it has that much, or all
                retry_after = read_retry_after(_header(response, "retry-after"), date=_header(response, "date"))
                return Reply(status=response.status, body=bytes(content or b""), retry_after=retry_after)
        except PyreqwestError as error:
            detailed = error.details["causes"] if isinstance(error, DetailedPyreqwestError) else None
            return judge_failure([cause["message"] for cause in detailed or []] or [error.message])

    async def close(self) -> None:
        """Let go of connections."""
        await self._client.close()
        await asyncio.sleep(LAST_PAUSE.total_seconds())


def _header(response: Response, name: str) -> str | None:
    """Read a header; one that is no text says nothing, and does not undo the reply that it came with."""
    try:
        return response.headers.get(name)
    except ValueError:
        return None

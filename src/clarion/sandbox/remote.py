"""The sandbox in another process: `sandbox+http://host:port`, one POST for every call.

The options are `dedupe`, which must say what the server was started with, and `timeout` in the form of the sandbox's
lengths of time. What a reply means is that of every provider over HTTP (`adapters/providers/http.py`).
"""

from datetime import timedelta
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec
from pyreqwest.http import Url

from clarion import errors
from clarion.adapters.providers.http import TIMEOUT, HttpCaller, Reply, judge
from clarion.domain.call import Accepted, Call, CallOutcome, Replay
from clarion.ports.clock import Clock
from clarion.ports.provider import EVERY_CHANNEL
from clarion.sandbox.fault import Options, span_option

ID_CHARS_MAX: Final = 200
"""Of a provider's id, which is stored."""


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
        self._http = HttpCaller(timeout=timeout, headers={"content-type": "application/json"})

    @property
    def replay(self) -> Replay:
        """What the options promise."""
        return Replay(dedupe_window=self._options.dedupe)

    async def send(self, call: Call) -> CallOutcome:
        """Post the call."""
        reply = await self._http.post(self._url, _CALL.encode(call))
        if not isinstance(reply, Reply):
            return reply
        outcome = judge(reply.status, retry_after=reply.retry_after)
        return Accepted(provider_message_id=_id(reply.body)) if isinstance(outcome, Accepted) else outcome

    async def probe(self) -> str | None:
        """Reach the server without a call."""
        return await self._http.probe(self._url)

    async def close(self) -> None:
        """Let go of connections."""
        await self._http.close()


async def open_provider(url: str, *, clock: Clock) -> RemoteSandbox:  # noqa: ARG001  (every provider is opened so)
    """Open the account that a URL names."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if not parts.hostname or port is None or parts.path not in ("", "/") or parts.username or parts.fragment:
        raise errors.BadConfiguration(
            "the sandbox account's URL does not name a host and a port",
            hint="write sandbox+http://127.0.0.1:8026, with the port that the server printed when it started",
        )
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    timeout = span_option(given.pop("timeout")) if "timeout" in given else TIMEOUT
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    options = Options.parse(urlencode(given))
    return RemoteSandbox(f"http://{host}:{port}/calls", options=options, timeout=timeout)


def _id(body: bytes) -> str | None:
    """Read the provider's id; a body without one does not undo an acceptance (F-32)."""
    try:
        ident = _REPLY.decode(body).id
    except msgspec.DecodeError:
        return None
    return ident[:ID_CHARS_MAX] if ident else None

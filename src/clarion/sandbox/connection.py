"""One connection of the sandbox's server: as much of HTTP/1.1 as our own clients speak, and little more.

Requests are taken whole, one after the other, and answered now or later. Knows nothing of calls and ledgers.
"""

import asyncio
from collections.abc import Mapping
from typing import Final, Protocol, cast

import msgspec

REQUEST_BYTES_MAX: Final = 2 * 1024 * 1024
"""Head and body: a mail of the largest size that is rendered, twice over."""

_REASONS: Final[Mapping[int, str]] = {
    200: "OK",
    202: "Accepted",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    410: "Gone",
    413: "Content Too Large",
    422: "Unprocessable Content",
    429: "Too Many Requests",
    503: "Service Unavailable",
}


class Handler(Protocol):
    """Answers requests."""

    def answer(self, method: str, path: str, body: bytes, connection: "Connection") -> None:
        """Answer one request over its connection, now or later."""
        ...

    def connected(self, connection: "Connection") -> None:
        """Hear of a new connection."""
        ...

    def lost(self, connection: "Connection") -> None:
        """Hear that a connection is gone."""
        ...


class Connection(asyncio.Protocol):
    """One connection."""

    def __init__(self, handler: Handler) -> None:
        """Wait for a connection."""
        self._handler = handler
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)  # as TCP gives it, of whichever event loop
        self._handler.connected(self)

    def connection_lost(self, _exc: Exception | None) -> None:
        """Forget the transport: a reply that is ready now can no longer be sent."""
        self._transport = None
        self._handler.lost(self)

    def data_received(self, data: bytes) -> None:
        """Take requests off what has been received, whole ones only."""
        self._received += data
        while self._transport is not None:
            end = self._received.find(b"\r\n\r\n")
            if end < 0 and len(self._received) <= REQUEST_BYTES_MAX:
                return
            first, *headers = bytes(self._received[: max(end, 0)]).split(b"\r\n")
            length = _content_length(headers)
            whole = end + 4 + length
            if end < 0 or length < 0 or whole > REQUEST_BYTES_MAX:
                self.reply(413, {"error": "the request is too large, or no request"})
                self._transport.close()
                return
            if len(self._received) < whole:
                return
            body = bytes(self._received[end + 4 : whole])
            del self._received[:whole]
            method, _, rest = first.decode("latin-1").partition(" ")
            self._handler.answer(method, rest.partition(" ")[0], body, self)

    def reply(self, status: int, body: Mapping[str, object], *, retry_after: str | None = None) -> None:
        """Send a reply with a JSON body."""
        content = msgspec.json.encode(body)
        pause = f"retry-after: {retry_after}\r\n" if retry_after else ""
        head = f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}\r\ncontent-type: application/json\r\n{pause}"
        self.write(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)

    def write(self, data: bytes) -> None:
        """Send bytes, unless the other side has left."""
        if self._transport is not None:
            self._transport.write(data)

    def drop(self) -> None:
        """Close the connection without a reply."""
        if self._transport is not None:
            self._transport.abort()


def _content_length(headers: list[bytes]) -> int:
    """Read the length of a body; -1 where it cannot be read."""
    for header in headers:
        name, _, value = header.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value) if value.strip().isdigit() else -1
    return 0

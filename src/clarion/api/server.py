"""uvicorn with explicit limits: how large a request's head may be, how long it may take, how many are served at once.

The parser itself has no limit on headers, and uvicorn none on how long they take to come; both are set here. Bodies are
bounded where they are read (`reading`). What faces the internet still stands behind a proxy, for TLS if nothing else.
"""

import asyncio
import socket
from datetime import timedelta
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from clarion.api.door import CROWDED, HEADERS_BYTES_MAX, Door

HEAD_BYTES_MAX: Final = 4 * HEADERS_BYTES_MAX
"""Bytes that may come before a head is complete. More than the limit of `door`, so that heads which are only a little
too large get its answer, which says why."""

HEAD_MAX: Final = timedelta(seconds=10)
"""From the first byte of a head to its last. A slower one is no caller but somebody who holds connections open."""

KEEP_ALIVE: Final = timedelta(seconds=75)
"""For an idle connection: longer than proxies keep theirs, so that a proxy does not send a request to a closed one."""

CONNECTIONS_MAX: Final = 2000
"""At once; a request on one more connection is answered 503 immediately instead of waiting with all others."""

STOP_MAX: Final = timedelta(seconds=10)
"""For open requests when the server stops: each is a transaction or a page."""

_REFUSED: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class BoundedProtocol(HttpToolsProtocol):
    """One connection, whose request heads are bounded in size and time."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  (uvicorn's own arguments, passed on)
        """Wait for the first head."""
        super().__init__(*args, **kwargs)
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn narrows it so
        """Start the clock of the first head, and send every answer at once.

        asyncio does the latter by itself, but not for a listening socket that was made without naming its protocol;
        then the second part of an answer would wait 40 ms for the first to be acknowledged.
        """
        super().connection_made(transport)
        opened = transport.get_extra_info("socket")
        if opened is not None and opened.family in (socket.AF_INET, socket.AF_INET6):
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the head."""
        self._stop_clock()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Start the clock of a later head at its first byte."""
        super().on_message_begin()
        if self._head_timer is None:
            self._await_head()

    def on_headers_complete(self) -> None:
        """Stop the clock: the head is there. Where there are too many connections, have the door say so."""
        self._stop_clock()
        if len(self.connections) > CONNECTIONS_MAX:
            self.scope["state"][CROWDED] = True
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Take bytes in, and refuse a head that does not end."""
        super().data_received(data)
        if self._head_timer is None:
            return
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES_MAX:
            self._stop_clock()
            self.transport.write(_REFUSED)
            self.transport.close()

    def _await_head(self) -> None:
        self._head_bytes = 0
        self._head_timer = self.loop.call_later(HEAD_MAX.total_seconds(), self._head_is_late)

    def _head_is_late(self) -> None:
        self._head_timer = None
        self.transport.close()

    def _stop_clock(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def server_config(app: Door) -> uvicorn.Config:
    """Make the configuration of a server for this application; whoever runs it gives it its sockets."""
    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        log_config=None,  # ours is in `logs`
        access_log=False,  # `door` writes a line for each request
        server_header=False,
        proxy_headers=False,  # a header could claim any peer
        timeout_keep_alive=int(KEEP_ALIVE.total_seconds()),
        timeout_graceful_shutdown=int(STOP_MAX.total_seconds()),
    )

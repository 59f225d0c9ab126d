"""uvicorn with explicit limits: how large a request's head may be, how long it may take, how many are served at once.

The parser itself has no limit on headers, and uvicorn none on how long they take to come, on bodies that nobody reads
and on answers that nobody takes; all are set here. Bodies are bounded where they are read (`reading`). What faces the
internet still stands behind a proxy, for TLS if nothing else.
"""

import asyncio
import socket
from datetime import timedelta
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from clarion.api.authentication import RECOGNISE
from clarion.api.crowd import Crowd, source_of
from clarion.api.door import CROWDED, HEADERS_BYTES_MAX, Door

HEAD_BYTES_MAX: Final = 4 * HEADERS_BYTES_MAX
"""Bytes that may come before a head is complete. More than the limit of `door`, so that heads which are only a little
too large get its answer, which says why."""

HEAD_MAX: Final = timedelta(seconds=10)
"""From the first byte of a head to its last. A slower one is no caller but somebody who holds connections open."""

KEEP_ALIVE: Final = timedelta(seconds=75)
"""For an idle connection: longer than proxies keep theirs, so that a proxy does not send a request to a closed one."""

CONNECTIONS_MAX: Final = 2000
"""At once, half of them from one source. For one more, a connection that never had a valid key is closed; where there
is none, the one that was used least lately of the tenant with the most (`crowd`)."""

REST_MAX: Final = timedelta(seconds=2)
"""For the rest of a body after its answer. Whoever was still sending finds the answer, which closing at once would
destroy on its way; whoever sends on for longer holds a connection for nothing."""

TAKING_MAX: Final = timedelta(seconds=20)
"""For a peer that takes nothing of an answer that is waiting for it."""

STOP_MAX: Final = timedelta(seconds=10)
"""For open requests when the server stops: each is a transaction or a page."""

_REFUSED: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class BoundedProtocol(HttpToolsProtocol):
    """One connection, whose requests are bounded in size and time; while it is a stranger's it may have to leave."""

    crowd: Crowd["BoundedProtocol"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  (uvicorn's own arguments, passed on)
        """Wait for the first head."""
        super().__init__(*args, **kwargs)
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._rest_timer: asyncio.TimerHandle | None = None
        self._taking_timer: asyncio.TimerHandle | None = None
        self._source = ""
        self._is_too_many = False
        self._is_known = False
        self._ends = False
        self._answering: RequestResponseCycle | None = None
        self._head = b""

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
        self._source = source_of(self.client)
        leaving = self.crowd.enter(self._source, self)
        if leaving is not None:
            leaving.give_way()
        self._is_too_many = self.crowd.is_full()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the head, and free the place."""
        for timer in (self._head_timer, self._rest_timer, self._taking_timer):
            if timer is not None:
                timer.cancel()
        self.crowd.leave(self._source, self)
        super().connection_lost(exc)

    def give_way(self) -> None:
        """Close the connection: its place is somebody else's already. A caller gets the answer that is under way."""
        if self._is_known and not self.cycle.response_complete:
            self.cycle.keep_alive = False
        elif self.transport.get_write_buffer_size():
            self.transport.abort()  # closing would wait until the peer takes what is there for it
        else:
            self.transport.close()

    def on_message_begin(self) -> None:
        """Start the clock of a later head at its first byte."""
        super().on_message_begin()
        if self._head_timer is None:
            self._await_head()

    def on_headers_complete(self) -> None:
        """Stop the clock: the head is there. If there was no place for this connection, have the door say so."""
        self._stop_clock()
        self.scope["state"][RECOGNISE] = self._recognise
        if self._is_too_many and self.crowd.is_full():
            self.scope["state"][CROWDED] = True
        super().on_headers_complete()
        self.cycle.transport = self  # type: ignore[assignment]  # it writes and closes, and asks whether it is closing

    def data_received(self, data: bytes) -> None:
        """Take bytes in, and refuse a head that does not end; after the last answer nothing is read any more."""
        if self._ends:
            return
        super().data_received(data)
        if self._head_timer is None:
            return
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES_MAX:
            self._stop_clock()
            self.transport.write(_REFUSED)
            self.transport.close()

    def on_message_complete(self) -> None:
        """Take note that a body has come to its end, whether or not anybody wanted it."""
        super().on_message_complete()
        if self._rest_timer is not None:
            self._rest_timer.cancel()
            self._rest_timer = None

    def on_response_complete(self) -> None:
        """Give the rest of a body that nobody read a little time."""
        self._send_head()
        super().on_response_complete()
        cycle = self.cycle
        if cycle.response_complete and cycle.more_body and self._rest_timer is None:
            self._rest_timer = self.loop.call_later(REST_MAX.total_seconds(), self._abort)

    def write(self, data: bytes) -> None:
        """Send a part of an answer; its head waits for the body, which follows at once, so that both are one packet."""
        if self.cycle.response_started and self._answering is not self.cycle:
            self._answering, self._head = self.cycle, data
            return
        head, self._head = self._head, b""
        self.transport.write(head + data)

    def is_closing(self) -> bool:
        """Tell whether nothing more can be sent."""
        return self._ends or self.transport.is_closing()

    def close(self) -> None:
        """End the connection after an answer: at once, or, where a body is still coming, after a while.

        A connection that is closed before all that came was read is reset, and the peer may lose the answer with it.
        """
        self._send_head()
        if self._ends or not self.cycle.more_body or self.transport.is_closing():
            self.transport.close()
            return
        self._ends = True
        self.flow.resume_reading()
        self.transport.write_eof()
        if self._rest_timer is None:
            self._rest_timer = self.loop.call_later(REST_MAX.total_seconds(), self._abort)

    def pause_writing(self) -> None:
        """Wait for the peer to take what is there for it, for a while."""
        super().pause_writing()
        self._taking_timer = self.loop.call_later(TAKING_MAX.total_seconds(), self._abort)

    def resume_writing(self) -> None:
        """Stop waiting: the peer has taken it."""
        super().resume_writing()
        if self._taking_timer is not None:
            self._taking_timer.cancel()

    def _send_head(self) -> None:
        """Send the head of an answer that has no body."""
        if self._head:
            self.write(b"")

    def _recognise(self, name: str) -> None:
        self._is_known = True
        self.crowd.recognise(self._source, self, name)

    def _abort(self) -> None:
        self.transport.abort()

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

    class Protocol(BoundedProtocol):
        """A connection of this server: all of them share its places."""

        crowd = Crowd(places=CONNECTIONS_MAX)

    return uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        log_config=None,  # ours is in `logs`
        access_log=False,  # `door` writes a line for each request
        server_header=False,
        proxy_headers=False,  # a header could claim any peer
        timeout_keep_alive=int(KEEP_ALIVE.total_seconds()),
        timeout_graceful_shutdown=int(STOP_MAX.total_seconds()),
    )

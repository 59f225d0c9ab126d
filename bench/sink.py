"""The sink: an HTTP server that accepts every POST and does nothing else, in a process of its own.

`python -m bench.sink` prints its port and serves until its input closes. It reads only as much HTTP as keep-alive
clients on loopback need: a content length and a body.
"""

import asyncio
import sys
from collections.abc import Callable
from typing import cast

import uvloop

_REPLY = b"HTTP/1.1 202 Accepted\r\ncontent-type: application/json\r\ncontent-length: 11\r\n\r\n" + b'{"id": "1"}'


class Connection(asyncio.Protocol):
    """One keep-alive connection."""

    def __init__(self, called: Callable[[], None] = lambda: None) -> None:
        """Accept whatever is posted; `called` hears of every request that was read whole."""
        self._buffer = b""
        self._called = called

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's own, which is no subclass

    def data_received(self, data: bytes) -> None:
        """Answer every request that is complete."""
        buffer, replies = self._buffer + data, 0
        while True:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                break
            head = buffer[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(buffer) < end + 4 + length:
                break
            buffer, replies = buffer[end + 4 + length :], replies + 1
        self._buffer = buffer
        if replies:
            self._called()
            self._transport.write(_REPLY * replies)


async def serve() -> None:
    """Serve until standard input closes."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", 0, backlog=4096)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    closed = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), closed.set)
    await closed.wait()


if __name__ == "__main__":
    uvloop.run(serve())

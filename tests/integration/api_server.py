"""The API on a real port, for tests of what only a socket shows."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn

from clarion.api.server import server_config
from tests.integration.api_harness import ApiHarness


class QuietServer(uvicorn.Server):
    """uvicorn without signal handlers, since the test's process has its own, and saying when it has started."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.up.set()


@asynccontextmanager
async def serving(api: ApiHarness) -> AsyncIterator[int]:
    """Serve the API under test on a free port of this machine, and tell which."""
    with socket.create_server(("127.0.0.1", 0)) as opened:
        server = QuietServer(server_config(api.door))
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(server.serve(sockets=[opened]))
            await server.up.wait()
            try:
                yield opened.getsockname()[1]
            finally:
                server.should_exit = True
                await running

"""Raw limits of this machine: its disk, and bare HTTP loops. Our figures are compared with them.

The loops post the very bytes that a drain posts, with as many calls open as the drain had, through clients that are set
up as our providers' client is (no proxy, no redirects, the same time-outs and headers, a URL that is parsed once) and
whose connections stay open from one round to the next, as ours do.
"""

import asyncio
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import yarl
from pyreqwest.client import Client
from pyreqwest.http import Url

from clarion.adapters.providers.http import CONNECT_TIMEOUT, REPLY_BYTES_MAX, TIMEOUT, open_client

HEADERS = {"content-type": "application/json"}

OURS_BESIDES = {"user-agent": "python-pyreqwest/1.0.0", "accept-encoding": "zstd,gzip,deflate,br"}
"""What the client of our providers sends by itself; aiohttp is given the same, to write as many bytes."""

KEEP_SECONDS = 600
"""How long aiohttp keeps an idle connection: longer than a run, since the client of our providers keeps its own for 90
seconds and is idle for less."""


def fsync_latency(folder: Path, *, times: int = 50) -> float:
    """Return the median milliseconds that a small write takes to reach the disk."""
    taken = []
    path = folder / "fsync"
    with path.open("wb") as file:
        for _ in range(times):
            started = time.perf_counter()
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - started)
    path.unlink()
    return statistics.median(taken) * 1000


@asynccontextmanager
async def sink() -> AsyncIterator[str]:
    """Start the sink in a process of its own; yield its address."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.sink", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield f"127.0.0.1:{int(await process.stdout.readline())}"
    finally:
        process.stdin.close()
        await process.wait()


async def rate_of(call: Callable[[], Awaitable[None]], *, calls: int, open_calls: int) -> float:
    """Make so many calls, so many at once, and return how many a second."""
    left = iter(range(calls))

    async def worker() -> None:
        for _ in left:
            await call()

    started = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(open_calls):
            tasks.create_task(worker())
    return calls / (time.perf_counter() - started)


class BareLoops:
    """Both bare loops over connections that stay open."""

    def __init__(self, address: str, *, ours: Client, theirs: aiohttp.ClientSession) -> None:
        """Post to an address through these clients."""
        self._url = f"http://{address}/calls"
        self._ours = ours
        self._theirs = theirs

    async def same_client(self, body: bytes, *, calls: int, open_calls: int) -> float:
        """Post with the client that our providers use, without records."""
        url = Url(self._url)

        async def post() -> None:
            async with self._ours.post(url).body_bytes(body).build_streamed() as response:
                await response.body_reader.read(REPLY_BYTES_MAX)
                assert response.status == 202

        return await rate_of(post, calls=calls, open_calls=open_calls)

    async def aiohttp(self, body: bytes, *, calls: int, open_calls: int) -> float:
        """Post with aiohttp, without records."""
        url = yarl.URL(self._url)

        async def post() -> None:
            async with self._theirs.post(url, data=body, allow_redirects=False) as response:
                await response.read()
                assert response.status == 202

        return await rate_of(post, calls=calls, open_calls=open_calls)


@asynccontextmanager
async def bare_loops(address: str) -> AsyncIterator[BareLoops]:
    """Open both clients for as long as the block runs."""
    async with (
        open_client(timeout=TIMEOUT, headers=HEADERS) as ours,
        aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=TIMEOUT.total_seconds(), sock_connect=CONNECT_TIMEOUT.total_seconds()),
            headers=HEADERS | OURS_BESIDES,
            auto_decompress=False,
        ) as theirs,
    ):
        yield BareLoops(address, ours=ours, theirs=theirs)

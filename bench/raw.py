"""Raw limits of this machine: its disk, and bare HTTP loops. Our figures are compared with them."""

import asyncio
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

CONCURRENCY = 200
"""Open calls at once, the same for every bare loop."""

BODY = b'{"text": "' + b"x" * 288 + b'"}'
"""300 bytes, as the issue asks."""


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


async def rate_of(call: Callable[[], Awaitable[None]], *, calls: int) -> float:
    """Make so many calls, `CONCURRENCY` at once, and return how many a second."""
    left = iter(range(calls))

    async def worker() -> None:
        for _ in left:
            await call()

    started = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(CONCURRENCY):
            tasks.create_task(worker())
    return calls / (time.perf_counter() - started)


async def bare_pyreqwest(address: str, *, calls: int) -> float:
    """Post the body with the client that our providers use, without records."""
    from pyreqwest.client import ClientBuilder

    async with ClientBuilder().default_headers({"content-type": "application/json"}).build() as client:

        async def post() -> None:
            response = await client.post(f"http://{address}/calls").body_bytes(BODY).build().send()
            assert response.status == 202
            await response.bytes()

        return await rate_of(post, calls=calls)


async def bare_aiohttp(address: str, *, calls: int) -> float:
    """Post the body with aiohttp, without records."""
    import aiohttp

    connector = aiohttp.TCPConnector(limit=CONCURRENCY)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def post() -> None:
            async with session.post(
                f"http://{address}/calls", data=BODY, headers={"content-type": "application/json"}
            ) as response:
                assert response.status == 202
                await response.read()

        return await rate_of(post, calls=calls)

"""Processes to measure: `clarion serve` and `clarion work` as users start them, and what is asked of them over HTTP."""

import asyncio
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

from pyreqwest.client import Client

from bench.raw import HEADERS
from bench.sink import Connection
from bench.stage import TENANT, publish
from clarion.adapters.providers.http import TIMEOUT, open_client
from clarion.bootstrap import Platform
from clarion.catalog.access import SECRET_BYTES, Access, mint
from clarion.domain.identity import Channel
from clarion.ports.catalog import Role

PROGRAM = str(Path(sys.executable).with_name("clarion"))

WARM_UP = 3
"""Notifications before the first that counts: the first ones load templates and open connections."""

CALLED_WITHIN = 60.0
"""Seconds until a call must have come; without it a run that went wrong would never end."""

IDLE = 0.05
"""Seconds between a call and the next notification: its outcome is recorded by then, and nothing is going on."""


@asynccontextmanager
async def started(*arguments: str, **environment: str) -> AsyncIterator[str]:
    """Run a process that prints a line when it is ready; yield the line."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *arguments),
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,  # a line for each request
    )
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.terminate()
        await process.wait()


def settings_of(platform: Platform, *, provider: str) -> dict[str, str]:
    """Give a process the installation of a stage, with a provider of its own."""
    settings = platform.settings
    return {
        "CLARION_STORE": settings.store,
        "CLARION_BLOBS": settings.blobs,
        "CLARION_VAULT": settings.vault,
        "CLARION_PROVIDERS": f"*={provider}",
    }


def url_of(line: str) -> str:
    """Read where `clarion serve` says that it serves."""
    return line.removeprefix("serving ").partition(",")[0]


async def grant(platform: Platform) -> str:
    """Publish the notification that is posted, and return an API key that may send it."""
    await publish(platform, "bench-sms", Channel.SMS, {"sms.liquid": "x" * 120})
    minted = mint(
        tenant_id=TENANT,
        actor="bench",
        role=Role.SENDER,
        key_guid=platform.ids.new_guid(),
        secret=platform.randomness(SECRET_BYTES),
    )
    await Access(platform.store, clock=platform.clock).grant(minted, actor="bench")
    return minted.token


def open_poster(key: str) -> Client:
    """Make the client of whoever posts notifications; the same for our server and for the bare one."""
    return open_client(timeout=TIMEOUT, headers={**HEADERS, "authorization": f"Bearer {key}"})


async def post(client: Client, url: str, body: bytes) -> None:
    """Post one notification, and read its answer."""
    response = await client.post(url).body_bytes(body).build().send()
    assert response.status in (200, 201, 202), await response.text()
    await response.bytes()


async def latency(platform: Platform, *, apart: bool, times: int) -> list[float]:
    """Return the milliseconds from a POST on an idle system to its provider call, through one process or two."""
    calls: asyncio.Queue[float] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    called = await loop.create_server(lambda: Connection(lambda: calls.put_nowait(time.perf_counter())), "127.0.0.1", 0)
    provider = f"sandbox+http://127.0.0.1:{called.sockets[0].getsockname()[1]}"
    environment = settings_of(platform, provider=provider)
    key = await grant(platform)
    serve = [PROGRAM, "serve", "--port", "0", *(["--no-workers"] if apart else [])]
    taken = []
    work = started(PROGRAM, "work", **environment) if apart else nullcontext()
    async with started(*serve, **environment) as line, work, open_poster(key) as client:
        for place in range(times + WARM_UP):
            body = f'{{"type": "bench-sms", "to": [{{"address": "+4477009{place:05d}"}}]}}'.encode()
            begun = time.perf_counter()
            await post(client, f"{url_of(line)}/v1/notifications", body)
            async with asyncio.timeout(CALLED_WITHIN):
                taken.append((await calls.get() - begun) * 1000)
            await asyncio.sleep(IDLE)
    called.close()
    return taken[WARM_UP:]


async def bare_latency(address: str, *, times: int) -> float:
    """Return the median milliseconds of a POST to the bare framework and a call to the sink, one after the other."""
    taken = []
    async with started("-m", "bench.bare_app") as url, open_poster("none") as client:
        for place in range(times + WARM_UP):
            begun = time.perf_counter()
            body = f'{{"type": "bench-sms", "to": [{{"address": "+4477009{place:05d}"}}], "data": {{}}}}'.encode()
            await post(client, f"{url}/v1/notifications", body)
            await post(client, f"http://{address}/calls", b"{}")
            taken.append((time.perf_counter() - begun) * 1000)
            await asyncio.sleep(IDLE)
    return statistics.median(taken[WARM_UP:])

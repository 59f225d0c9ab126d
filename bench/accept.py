"""Accepting over HTTP: our server on a store beside a bare framework that only reads the same request."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

from pyreqwest.client import ClientBuilder

from bench.raw import rate_of
from bench.stage import TENANT, publish
from clarion.bootstrap import Platform
from clarion.catalog.access import SECRET_BYTES, Access, mint
from clarion.domain.identity import Channel
from clarion.ports.catalog import Role

PROGRAM = Path(sys.executable).with_name("clarion")

BODY = {"type": "bench-sms", "to": [{"address": "+447700900000"}], "data": {"name": "Sam"}}


@asynccontextmanager
async def server(*arguments: str, **environment: str) -> AsyncIterator[str]:
    """Start a server process that prints its address on its first line; yield the address."""
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


async def posts(url: str, *, key: str, requests: int) -> float:
    """Post so many different notifications and return how many a second were accepted."""
    numbers = count()
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    async with ClientBuilder().default_headers(headers).build() as client:

        async def post() -> None:
            body = {**BODY, "data": {"name": f"Sam {next(numbers)}"}}
            response = await client.post(url).body_bytes(json.dumps(body).encode()).build().send()
            assert response.status in (200, 201, 202), await response.text()
            await response.bytes()

        return await rate_of(post, calls=requests)


async def bare_framework(*, requests: int) -> float:
    """Post to the bare framework."""
    async with server("-m", "bench.bare_app") as url:
        return await posts(f"{url}/v1/notifications", key="none", requests=requests)


async def through_http(platform: Platform, *, requests: int) -> float:
    """Post to our own server on the same store, workers off: each answer follows the commit of its job."""
    await publish(platform, "bench-sms", Channel.SMS, {"sms.liquid": "x" * 120})
    minted = mint(
        tenant_id=TENANT,
        actor="bench",
        role=Role.SENDER,
        key_guid=platform.ids.new_guid(),
        secret=platform.randomness(SECRET_BYTES),
    )
    await Access(platform.store, clock=platform.clock).grant(minted, actor="bench")
    settings = platform.settings
    environment = {
        "CLARION_STORE": settings.store,
        "CLARION_BLOBS": settings.blobs,
        "CLARION_VAULT": settings.vault,
        "CLARION_PROVIDERS": "*=null://",
    }
    async with server(str(PROGRAM), "serve", "--port", "0", "--no-workers", **environment) as line:
        url = line.removeprefix("serving ").partition(",")[0]
        return await posts(f"{url}/v1/notifications", key=minted.token, requests=requests)

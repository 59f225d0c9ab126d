"""Accepting over HTTP: our server on a store beside a bare framework that only reads the same request."""

import json
from itertools import count

from pyreqwest.client import Client

from bench.figure import Round
from bench.process import PROGRAM, grant, open_poster, post, settings_of, started, url_of
from bench.raw import rate_of
from clarion.bootstrap import Platform

BODY = {"type": "bench-sms", "to": [{"address": "+447700900000"}], "data": {"name": "Sam"}}

CLIENTS = 200
"""Requests open at once, to either server."""

ROUNDS = 3


async def posts(client: Client, url: str, *, requests: int) -> float:
    """Post so many different notifications and return how many a second were accepted."""
    numbers = count()

    async def one() -> None:
        body = {**BODY, "data": {"name": f"Sam {next(numbers)}"}}
        await post(client, f"{url}/v1/notifications", json.dumps(body).encode())

    return await rate_of(one, calls=requests, open_calls=CLIENTS)


async def take_turns(platform: Platform, *, requests: int) -> list[Round]:
    """Post to our own server, workers off, each answer after the commit of its job; and to the bare framework."""
    key = await grant(platform)
    ours = started(PROGRAM, "serve", "--port", "0", "--no-workers", **settings_of(platform, provider="null://"))
    async with ours as line, started("-m", "bench.bare_app") as bare_url, open_poster(key) as client:
        urls = {"ours": url_of(line), "limit": bare_url}
        for url in urls.values():
            await posts(client, url, requests=CLIENTS)  # opens the connections
        return [
            {name: await posts(client, url, requests=requests) for name, url in urls.items()} for _ in range(ROUNDS)
        ]

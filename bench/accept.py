"""Accepting over HTTP: our server on a store beside a bare framework that only reads the same request."""

import json
from itertools import count

from bench.figure import Round
from bench.process import PROGRAM, grant, open_poster, post, settings_of, started, url_of
from bench.raw import rate_of
from clarion.bootstrap import Platform

BODY = {"type": "bench-sms", "to": [{"address": "+447700900000"}], "data": {"name": "Sam"}}

CLIENTS = 200
"""Requests open at once, to either server."""

ROUNDS = 3


async def posts(key: str, url: str, *, requests: int) -> float:
    """Post so many different notifications and return how many a second were accepted.

    The connections are opened just before: a server closes those that are idle while the other one is measured.
    """
    numbers = count()
    async with open_poster(key) as client:

        async def one() -> None:
            body = {**BODY, "data": {"name": f"Sam {next(numbers)}"}}
            await post(client, f"{url}/v1/notifications", json.dumps(body).encode())

        await rate_of(one, calls=CLIENTS, open_calls=CLIENTS)
        return await rate_of(one, calls=requests, open_calls=CLIENTS)


async def take_turns(platform: Platform, *, requests: int) -> list[Round]:
    """Post to our own server, workers off, each answer after the commit of its job; and to the bare framework."""
    key = await grant(platform)
    ours = started(PROGRAM, "serve", "--port", "0", "--no-workers", **settings_of(platform, provider="null://"))
    async with ours as line, started("-m", "bench.bare_app") as bare_url:
        urls = {"ours": url_of(line), "limit": bare_url}
        return [{name: await posts(key, url, requests=requests) for name, url in urls.items()} for _ in range(ROUNDS)]

"""Accepting over HTTP: our server on a store beside a bare framework that only reads the same request."""

import json
import statistics
import time
from itertools import count

from bench.figure import Figure, Round, figure
from bench.process import PROGRAM, grant, open_poster, post, settings_of, started, url_of
from bench.raw import rate_of
from clarion.bootstrap import Platform

BODY = {"type": "bench-sms", "to": [{"address": "+447700900000"}], "data": {"name": "Sam"}}

CLIENTS = 200
"""Requests open at once, to either server."""

ALONE = 50
"""Requests one after the other, for the time that one takes by itself."""

ROUNDS = 3


async def posts(key: str, url: str, *, requests: int) -> Round:
    """Post so many different notifications; return how many a second were accepted, and how long they took.

    The connections are opened just before: a server closes those that are idle while the other one is measured.
    """
    numbers = count()
    taken: list[float] = []
    async with open_poster(key) as client:

        async def one() -> None:
            body = json.dumps({**BODY, "data": {"name": f"Sam {next(numbers)}"}}).encode()
            begun = time.perf_counter()
            await post(client, f"{url}/v1/notifications", body)
            taken.append((time.perf_counter() - begun) * 1000)

        await rate_of(one, calls=CLIENTS, open_calls=CLIENTS)
        taken.clear()
        rate = await rate_of(one, calls=requests, open_calls=CLIENTS)
        many = statistics.quantiles(taken, n=100)
        taken.clear()
        await rate_of(one, calls=ALONE, open_calls=1)
        return {"rate": rate, "p50": many[49], "p99": many[98], "alone": statistics.median(taken)}


async def take_turns(platform: Platform, *, requests: int) -> list[Round]:
    """Post to our own server, each answer after the commit of its job, and to the bare framework, in turns.

    A process of workers runs beside both: it sends what was accepted, to a provider that does nothing.
    """
    key, environment = await grant(platform), settings_of(platform, provider="null://")
    ours = started(PROGRAM, "serve", "--port", "0", "--no-workers", **environment)
    work = started(PROGRAM, "work", **environment)
    rounds: list[Round] = []
    async with ours as line, work, started("-m", "bench.bare_app") as bare_url:
        for _ in range(ROUNDS):
            mine = await posts(key, url_of(line), requests=requests)
            bare = await posts(key, bare_url, requests=requests)
            rounds.append(mine | {f"bare {name}": value for name, value in bare.items()})
    return rounds


async def figures(platform: Platform, *, store: str, requests: int, fsync_ms: float) -> list[Figure]:
    """Measure how many notifications are accepted, how much longer the slowest take, and how long one takes alone."""
    rounds = await take_turns(platform, requests=requests)
    return [
        figure(
            "accept",
            rounds,
            ours="rate",
            means=f"notifications accepted over HTTP from {CLIENTS} clients, each committed before its answer, while "
            "workers send them",
            store=store,
            unit="messages/s",
            limit="the framework alone, which reads the request",
            by="bare rate",
            fsync_ms=fsync_ms,
        ),
        figure(
            "accept, 99th percentile",
            rounds,
            ours="p99",
            means="how long the slowest of a hundred of these took",
            store=store,
            unit="ms",
            limit="the median of the same",
            by="p50",
            fsync_ms=fsync_ms,
        ),
        figure(
            "accept, alone",
            rounds,
            ours="alone",
            means="how long one takes when no other is on its way, while workers send what came before",
            store=store,
            unit="ms",
            limit="the framework alone, which reads the request",
            by="bare alone",
            fsync_ms=fsync_ms,
        ),
    ]

"""`python -m bench`: run every measurement, print the table, write `bench/results/latest.json`."""

import argparse
import platform as machine
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from bench import accept, claiming, due, measure, merging, pooled, process, raw
from bench.figure import Figure, Round, Run, figure, table, write
from bench.raw import BareLoops
from bench.stage import open_stage, store_urls
from clarion.bootstrap import Platform
from clarion.cli.long_running import run_service

ROUNDS = 4
"""How often a drain and its limits are measured in turn. One round scatters by a tenth around the median."""

WRITE_ROUNDS = 3
"""The same for enqueue and COPY. Drains are measured apart, because the server still writes for a while after COPY."""

NULL_ROUNDS = 3
"""The same for drains through a provider that does nothing."""

MESSAGES_MIN = 100
"""Some measurements take a tenth of the messages."""

POSTS = 20
"""Notifications for a latency. On SQLite each waits for the other process to look, which it does every second."""

DRAINS = {"bulk": measure.bulk, "direct": measure.direct}
"""Rows of one campaign, merged once and in no order; and rows with a job each, in order."""

SLOTS = {"as shipped": None, f"{measure.MANY_SLOTS} slots": measure.MANY_SLOTS}

RATE = "messages/s"


async def drains(stage: Platform, loops: BareLoops, *, store: str, messages: int, fsync_ms: float) -> list[Figure]:
    """Measure each kind of row with each number of slots, beside bare loops of the same body and as many open calls."""
    figures = []
    for kind, make in DRAINS.items():
        count = messages if kind == "bulk" else messages // 4  # each of these has a job, which takes longer to make
        for slots_name, slots in SLOTS.items():
            key = f"{kind}-{slots}"
            await measure.enqueue(stage, await make(stage, key=f"{key}-warm", count=count))
            open_calls, body = await measure.drain_watched(stage, count=count, slots=slots)
            for loop in (loops.same_client, loops.aiohttp):  # opens as many connections as the drain has
                await loop(body, calls=count, open_calls=open_calls)
            rounds: list[Round] = []
            for number in range(ROUNDS):
                await measure.enqueue(stage, await make(stage, key=f"{key}-{number}", count=count))
                rounds.append(
                    {
                        "ours": await measure.drain(stage, count=count, slots=slots),
                        "same": await loops.same_client(body, calls=count, open_calls=open_calls),
                        "aiohttp": await loops.aiohttp(body, calls=count, open_calls=open_calls),
                    }
                )
            figures += [
                figure(
                    f"drain {kind}, {slots_name}",
                    rounds,
                    means="messages that wait in the store, through claim, merge, HTTP call and record",
                    store=store,
                    unit=RATE,
                    limit=f"{limit}, {open_calls} open, {len(body)} bytes",
                    by=by,
                    fsync_ms=fsync_ms,
                )
                for limit, by in (("bare loop, same client", "same"), ("bare loop, aiohttp", "aiohttp"))
            ]
    return figures


async def writes(stage: Platform, url: str, *, store: str, messages: int, fsync_ms: float) -> list[Figure]:
    """Measure enqueue, on PostgreSQL beside COPY; then send what was written, so that nothing waits."""
    rounds: list[Round] = []
    for number in range(WRITE_ROUNDS):
        wanted = await measure.bulk(stage, key=f"write-{number}", count=messages)
        one = {"ours": await measure.enqueue(stage, wanted)}
        rounds.append(one | ({"limit": await measure.copy(url, count=messages)} if _copies(url) else {}))
    await measure.drain(stage, count=WRITE_ROUNDS * messages, slots=measure.MANY_SLOTS)
    return [
        figure(
            "enqueue",
            rounds,
            means=f"outgoing messages ensured in sets of 1,000, {measure.ENQUEUERS} sets under way",
            store=store,
            unit=RATE,
            limit=f"COPY over {measure.ENQUEUERS} connections" if _copies(url) else None,
            fsync_ms=fsync_ms,
        )
    ]


def _copies(url: str) -> bool:
    return url.startswith("postgresql:")


async def nulls(stage: Platform, *, store: str, messages: int, fsync_ms: float) -> list[Figure]:
    """Measure what the rest costs: drains through a provider that does nothing."""
    rounds: list[Round] = []
    for number in range(NULL_ROUNDS):
        one = {"null": await measure.drain_null(stage, key=f"null-{number}", count=messages)}
        one["deferred"] = await measure.drain_deferred(stage, key=f"deferred-{number}", count=messages)
        one["mail"] = await measure.drain_mail(stage, key=f"mail-{number}", count=messages // 10)
        rounds.append(one)
    return [
        figure(
            "drain bulk, no provider",
            rounds,
            ours="null",
            means="claim, merge and record by themselves: the provider does nothing",
            store=store,
            unit=RATE,
            fsync_ms=fsync_ms,
        ),
        figure(
            "drain bulk, a fifth deferred",
            rounds,
            ours="deferred",
            means="the provider does nothing but defer every fifth call",
            store=store,
            unit=RATE,
            limit="the same, none deferred",
            by="null",
            fsync_ms=fsync_ms,
        ),
        figure(
            "drain mail, no provider",
            rounds,
            ours="mail",
            means="the demo's welcome mail, merged for each recipient",
            store=store,
            unit=RATE,
            limit="bulk, merged once",
            by="null",
            fsync_ms=fsync_ms,
        ),
    ]


async def latencies(stage: Platform, *, store: str, bare_ms: float, fsync_ms: float) -> list[Figure]:
    """Measure the way from a POST on an idle system to the provider call, through the programs as users start them."""
    return [
        figure(
            f"POST to call, {name}",
            [{"ours": taken, "limit": bare_ms} for taken in await process.latency(stage, apart=apart, times=POSTS)],
            means="the median time from a POST to the provider call that comes of it, when nothing else is going on",
            store=store,
            unit="ms",
            limit="POST to the bare framework, then a call",
            fsync_ms=fsync_ms,
        )
        for name, apart in (("serve alone", False), ("serve and work", True))
    ]


async def run(messages: int) -> Run:
    """Measure everything."""
    with tempfile.TemporaryDirectory(prefix="clarion-bench-") as name:
        folder = Path(name)
        figures: list[Figure] = []
        async for part in _parts(folder, messages):
            figures += part
            print(f"measured {', '.join(dict.fromkeys(f'{one.name} ({one.store})' for one in part))}", file=sys.stderr)
    return Run(machine=machine.platform(), messages=messages, figures=figures)


async def _parts(folder: Path, messages: int) -> AsyncIterator[list[Figure]]:
    """Measure one part after the other."""
    async with raw.sink() as address, raw.bare_loops(address) as loops:
        bare_ms = await process.bare_latency(address, times=POSTS)
        with store_urls(folder) as urls:
            for store, url in urls.items():
                vault, fsync_ms = folder / store, raw.fsync_latency(folder)
                async with open_stage(url, vault=vault, provider=f"sandbox+http://{address}") as stage:
                    yield await drains(stage, loops, store=store, messages=messages, fsync_ms=fsync_ms)
                    yield await writes(stage, url, store=store, messages=messages, fsync_ms=raw.fsync_latency(folder))
                fsync_ms = raw.fsync_latency(folder)
                async with open_stage(url, vault=vault, provider="null://") as stage:
                    yield await nulls(stage, store=store, messages=messages, fsync_ms=fsync_ms)
                    fsync_ms = raw.fsync_latency(folder)
                    yield await latencies(stage, store=store, bare_ms=bare_ms, fsync_ms=fsync_ms)
                    requests = messages // 5
                    yield await accept.figures(stage, store=store, requests=requests, fsync_ms=fsync_ms)
    yield await claiming.figures(folder, fsync_ms=raw.fsync_latency(folder))
    yield await due.figures(folder, fsync_ms=raw.fsync_latency(folder))
    yield merging.figures(fsync_ms=raw.fsync_latency(folder))
    yield await pooled.figures(fsync_ms=raw.fsync_latency(folder))


def main(arguments: list[str] | None = None) -> None:
    """Read the arguments, run, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure Clarion beside the raw limits of this machine."
    )
    parser.add_argument("--messages", type=int, default=20_000, help="messages a measurement (default: 20000)")
    parser.add_argument("--keep", action=argparse.BooleanOptionalAction, default=True, help="write results/latest.json")
    given = parser.parse_args(arguments)
    if given.messages < MESSAGES_MIN:
        parser.exit(2, f"{parser.prog}: --messages {given.messages} measures nothing: take at least {MESSAGES_MIN}\n")
    result = run_service(run(given.messages))
    if given.keep:
        write(result)
    print(table(result))


if __name__ == "__main__":
    main()

"""`python -m bench`: run every measurement, print the table, write `bench/results/latest.json`."""

import argparse
import json
import platform as machine
import statistics
import tempfile
from pathlib import Path

from bench import accept, claiming, measure, raw
from bench.stage import open_stage, store_urls
from clarion.bootstrap import Platform, run_service
from clarion.domain.identity import Channel

ROUNDS = 15
"""How often a figure of ours and its raw limit are measured in turn; a slow phase of the machine then hits both."""

WRITE_ROUNDS = 3
"""The same for enqueue and COPY. Drains are measured apart, because the server still writes for a while after COPY."""

DEFERRED_ROUNDS = 5
"""The same for a drain with deferred calls and one without, through a provider that does nothing."""

RESULTS = Path(__file__).with_name("results") / "latest.json"


async def write(stage: Platform, url: str, *, messages: int) -> list[dict[str, float]]:
    """Measure enqueue beside COPY, round by round; then send what was written, so that nothing waits."""
    rounds = []
    for number in range(WRITE_ROUNDS):
        one = {"enqueue": await measure.enqueue(stage, key=f"write-{number}", count=messages)}
        rounds.append(one | {"copy": await measure.copy(url)})
    await measure.drain(stage, channel=Channel.SMS, count=WRITE_ROUNDS * messages)
    return rounds


async def take_turns(stage: Platform, address: str, *, messages: int) -> list[dict[str, float]]:
    """Measure drain beside its raw limits, round by round."""
    rounds = []
    for number in range(ROUNDS):
        one = {"enqueue": await measure.enqueue(stage, key=f"http-{number}", count=messages)}
        one["drain_http"] = await measure.drain(stage, channel=Channel.SMS, count=messages)
        one["bare_pyreqwest"] = await raw.bare_pyreqwest(address, calls=messages)
        one["bare_aiohttp"] = await raw.bare_aiohttp(address, calls=messages)
        rounds.append(one)
    return rounds


async def defer(stage: Platform, *, messages: int) -> list[dict[str, float]]:
    """Measure a drain in which every fifth call is deferred beside one in which none is, round by round."""
    rounds = []
    for number in range(DEFERRED_ROUNDS):
        one = {"null": await measure.drain_null(stage, key=f"null-{number}", count=messages)}
        one["deferred"] = await measure.drain_deferred(stage, key=f"deferred-{number}", count=messages)
        rounds.append(one)
    return rounds


def ratio(rounds: list[dict[str, float]], ours: str, limit: str) -> float:
    """Return the median of what each round's figure is to its limit in the same round."""
    return statistics.median(one[ours] / one[limit] for one in rounds)


async def run(messages: int) -> dict[str, object]:
    """Measure everything; the figures that take turns with their limits are medians."""
    figures: dict[str, float] = {}
    rounds: dict[str, list[dict[str, float]]] = {}
    deferred: dict[str, list[dict[str, float]]] = {}
    writes: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="clarion-bench-") as name:
        folder = Path(name)
        figures["fsync_ms"] = raw.fsync_latency(folder)
        async with raw.sink() as address:
            with store_urls(folder) as urls:
                for engine, url in urls.items():
                    async with open_stage(url, vault=folder / engine, provider=f"sandbox+http://{address}") as stage:
                        rounds[engine] = await take_turns(stage, address, messages=messages)
                        if engine == "pg":
                            writes = await write(stage, url, messages=messages)
                            figures["copy_pg"] = statistics.median(one["copy"] for one in writes)
                    for figure in rounds[engine][0]:
                        figures[f"{figure}_{engine}"] = statistics.median(one[figure] for one in rounds[engine])
                    async with open_stage(url, vault=folder / engine, provider="null://") as stage:
                        deferred[engine] = await defer(stage, messages=messages)
                        for figure in ("null", "deferred"):
                            values = [one[figure] for one in deferred[engine]]
                            figures[f"drain_{figure}_{engine}"] = statistics.median(values)
                        figures[f"drain_mail_{engine}"] = await measure.drain_mail(stage, count=messages // 10)
                        figures[f"idle_latency_ms_{engine}"] = await measure.idle_latency(stage)
                        figures[f"accept_{engine}"] = await accept.through_http(stage, requests=messages // 10)
                figures["bare_framework"] = await accept.bare_framework(requests=messages // 2)
        alone, watched = await claiming.take_turns(folder)
        figures[f"claim_us_{claiming.SMALL}"] = statistics.median(one["small"] for one in alone)
        figures[f"claim_us_{claiming.LARGE}"] = statistics.median(one["large"] for one in alone)
        figures[f"claim_us_{claiming.LARGE}_snapshot"] = statistics.median(one["large"] for one in watched)
    ratios = {
        "drain_http_pg_vs_same_client": ratio(rounds["pg"], "drain_http", "bare_pyreqwest"),
        "drain_http_pg_vs_aiohttp": ratio(rounds["pg"], "drain_http", "bare_aiohttp"),
        "drain_http_sqlite_vs_aiohttp": ratio(rounds["sqlite"], "drain_http", "bare_aiohttp"),
        "drain_deferred_pg_vs_null": ratio(deferred["pg"], "deferred", "null"),
        "drain_deferred_sqlite_vs_null": ratio(deferred["sqlite"], "deferred", "null"),
        "enqueue_pg_vs_copy": ratio(writes, "enqueue", "copy"),
        "claim_1m_vs_10k": ratio(alone, "large", "small"),
        "claim_1m_snapshot_vs_10k": ratio(watched, "large", "small"),
        "accept_vs_bare_framework": figures["accept_pg"] / figures["bare_framework"],
    }
    return {"machine": machine.platform(), "messages": messages, "figures": figures, "ratios": ratios}


def main() -> None:
    """Read the arguments, run, print, write."""
    parser = argparse.ArgumentParser(prog="bench", description="Measure Clarion beside the raw limits of this machine.")
    parser.add_argument("--messages", type=int, default=20_000, help="messages a measurement (default: 20000)")
    result = run_service(run(parser.parse_args().messages))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    for part in ("figures", "ratios"):
        print(part)
        for name, value in result[part].items():  # type: ignore[attr-defined]  # both are dicts, as `run` made them
            print(f"  {name:32} {value:12,.2f}")


if __name__ == "__main__":
    main()

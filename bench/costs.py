"""What claiming and making messages costs in one tree, measured on request: the other half of `before_and_now`.

    python bench/costs.py postgres 100000

The number is how many suppressions there are of people who get nothing here; every claim looks among them.
It is run in the tree of whichever commit is measured, so it asks that commit's `bench.stage` and store, and nothing
that is younger than them. Each line on its input is one round; the answer is what a message took of the processor, the
server's share included, and by the clock.
"""

import asyncio
import gc
import inspect
import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from hashlib import md5
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg

from bench.measure import bulk
from bench.stage import SET, TENANT, TRACE, addresses, open_stage, publish, store_urls
from clarion.bootstrap import Platform
from clarion.dispatch.request import Direct, JobRequest
from clarion.domain.claim import FlowQuota, LowMark
from clarion.domain.identity import Channel, Identity, Lane
from clarion.domain.inbox import UserMessage
from clarion.domain.recipient import Target
from clarion.pipeline.generate import Generate
from clarion.pipeline.schedule import Schedule
from clarion.testing import factories

MESSAGES = 10_000
"""In one round: about a second, so that the hundredths in which Linux counts a process's time do not matter."""

READERS = 5000
"""Inboxes, so that each gets lines round after round, as those of people do."""

GROUP = UUID("6f1c2c7e-0000-4000-8000-0000000000ee")
MEMBERS = 1000
"""The largest set that stands in a job's row, before and now."""

GROUP_JOBS = 10
DIRECT_JOBS = 2000
"""Of which rows are made in one round, from their claim to their end."""

BATCH = 200
LEASE = timedelta(minutes=5)


def _descendants(pid: int) -> Iterator[int]:
    """Name a process and all that come from it."""
    yield pid
    children = Path(f"/proc/{pid}/task/{pid}/children")
    for child in children.read_text().split() if children.exists() else []:
        yield from _descendants(int(child))


def _processor() -> float:
    """Add up the seconds of the processor that this process and its server have used."""
    used = 0.0
    for pid in _descendants(os.getpid()):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        except FileNotFoundError:
            continue  # it has ended since it was named
        used += sum(int(fields[place]) for place in (11, 12)) / os.sysconf("SC_CLK_TCK")
    return used


def _forget() -> None:
    """Collect, and set aside, what is there before an act: going through it falls on one act or another by chance."""
    gc.collect()
    gc.freeze()


async def _claim_all(platform: Platform) -> int:
    """Claim every message that is due, as a worker does that has the slots."""
    found = await platform.store.discover_flows(routes=["sms"], lows={})
    (head,) = [one for one in found.heads if one.lane is Lane.BULK]  # of the others only the making is measured
    claimed, low = 0, None
    while True:
        quota = FlowQuota(flow_id=head.flow_id, quota=BATCH, account="null", low=low)
        rows = await platform.store.claim_outgoing([quota], token=uuid4(), lease=LEASE, actor="bench")
        if not rows:
            return claimed
        claimed += len(rows)
        last = max(rows, key=lambda one: (one.was_due_at, one.id))
        low = LowMark(due_at=last.was_due_at, id=last.id)


async def _round(platform: Platform, number: int) -> dict[str, float]:
    """Make so many messages and claim them all; return the microseconds of each act for a message."""
    wanted = await bulk(platform, key=f"round-{number}", count=MESSAGES)
    answer: dict[str, float] = {}
    _forget()
    processor, clock = _processor(), time.perf_counter()
    for start in range(0, len(wanted), SET):
        await platform.dispatcher.ensure_outgoing_messages(TENANT, wanted[start : start + SET])
    answer |= {"expand, processor": _processor() - processor, "expand, clock": time.perf_counter() - clock}
    _forget()
    processor, clock = _processor(), time.perf_counter()
    claimed = await _claim_all(platform)
    assert claimed == MESSAGES, claimed
    answer |= {"claim, processor": _processor() - processor, "claim, clock": time.perf_counter() - clock}
    for name, make, messages in (
        ("group", _to_groups, GROUP_JOBS * MEMBERS),
        ("direct", _to_addresses, DIRECT_JOBS),
    ):
        began: list[tuple[float, float]] = []

        def begin(began: list[tuple[float, float]] = began) -> None:
            _forget()
            began.append((_processor(), time.perf_counter()))

        await make(platform, f"{name}-{number}", begin)
        ((processor, clock),) = began
        share = MESSAGES / messages
        answer[f"generate {name}, processor"] = (_processor() - processor) * share
        answer[f"generate {name}, clock"] = (time.perf_counter() - clock) * share
    lines = [_line(number, n) for n in range(MESSAGES)]
    _forget()
    processor, clock = _processor(), time.perf_counter()
    for start in range(0, len(lines), SET):
        await platform.store.ensure_user_messages(TENANT, lines[start : start + SET])
    answer |= {"inbox, processor": _processor() - processor, "inbox, clock": time.perf_counter() - clock}
    return {name: seconds / MESSAGES * 1e6 for name, seconds in answer.items()}


async def _gather(platform: Platform) -> None:
    """Make people with an address each, all in one group."""
    await publish(platform, "bench-sms", Channel.SMS, {"sms.liquid": "x" * 120})
    known = await addresses(platform, Channel.SMS, count=MEMBERS)
    people = [factories.person(n, one, recipient_id_hash=one.recipient_id_hash) for n, one in enumerate(known)]
    await platform.store.put_people(TENANT, people)
    members = [one.recipient_id_hash for one in known]
    await platform.store.put_group(TENANT, guid=GROUP, name="all", members=members)


async def _to_groups(platform: Platform, key: str, timed: Callable[[], None]) -> None:
    """Make the rows of jobs for a group."""
    target = Target(identity=Identity.group(GROUP))
    await _make(platform, key, [target] * GROUP_JOBS, timed)


async def _to_addresses(platform: Platform, key: str, timed: Callable[[], None]) -> None:
    """Make the rows of jobs for an address each."""
    targets = [
        Target(identity=Identity.address(f"+4477009{n % MEMBERS:05d}"), channel=Channel.SMS) for n in range(DIRECT_JOBS)
    ]
    await _make(platform, key, targets, timed)


async def _make(platform: Platform, key: str, targets: Sequence[Target], timed: Callable[[], None]) -> None:
    """Accept and schedule jobs, and then have their rows made; `timed` is called when that begins."""
    requests = [
        JobRequest(
            origin=Direct(operation="bench", idempotency_key=f"{key}-{place}"),
            event_type="bench-sms",
            source_at=datetime.now(UTC),
            to=(target,),
            data={},
            trace=TRACE,
        )
        for place, target in enumerate(targets)
    ]
    for start in range(0, len(requests), SET):
        await platform.dispatcher.ensure_notification_job(TENANT, requests[start : start + SET])
    schedule = Schedule(queue=platform.store, facts=platform.store)
    while await schedule.step():
        pass
    given: dict[str, Any] = {  # which has the type of each argument
        "queue": platform.store,
        "facts": platform.store,
        "templates": platform.templates,
        "renderer": platform.renderer,
        "dispatcher": platform.dispatcher,
        "keyring": platform.keyring,
        "sets": getattr(platform, "recipient_sets", None),
        "contents": getattr(platform, "contents", None),
        "clock": platform.clock,
    }
    taken = inspect.signature(Generate.__init__).parameters
    generate = Generate(**{name: value for name, value in given.items() if name in taken})
    timed()
    while await generate.step():
        pass


def _line(number: int, n: int) -> UserMessage:
    """Make the line of one round in the n-th of some thousand inboxes."""
    return factories.user_message(
        n % READERS,
        row_key=f"{number:09}{n:010}",
        job_row_key=f"job-{number}-{n // READERS}",
        message_id=factories.guid(number * MESSAGES + n, "line"),
        content=factories.BYTES * 16,
    )


async def _suppress(url: str, count: int) -> None:
    """Suppress so many others, past the store: a commit that is measured may have the table and no method for it."""
    rows = [(TENANT, md5(f"other {n}".encode(), usedforsecurity=False).hexdigest()) for n in range(count)]
    if url.startswith("sqlite:"):
        with closing(sqlite3.connect(url.removeprefix("sqlite://"))) as file, file:
            file.executemany(_SUPPRESS.format("?", "?", 0), rows)
        return
    connection = await asyncpg.connect(url)
    await connection.executemany(_SUPPRESS.format("$1", "$2", "now()"), rows)
    await connection.execute("ANALYZE suppression")
    await connection.close()


_SUPPRESS = """
INSERT INTO suppression (tenant_id, subject, scope, cause, created_by, created_at)
VALUES ({}, {}, '*', 'bounce', 'bench', {})
"""


async def _serve(url: str, folder: Path, suppressed: int) -> None:
    """Answer each line of the input with one round."""
    async with open_stage(url, vault=folder / "vault", provider="null://") as platform:
        await _suppress(url, suppressed)
        await _gather(platform)
        await _round(platform, 0)
        print("ready", flush=True)
        number = 0
        while await asyncio.to_thread(sys.stdin.readline):
            number += 1
            print(json.dumps(await _round(platform, number)), flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made, store_urls(Path(made)) as urls:
        asyncio.run(_serve(urls[sys.argv[1]], Path(made), int(sys.argv[2])))

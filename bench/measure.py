"""What is measured inside this process: enqueue, and drains of several kinds."""

import asyncio
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path

import asyncpg
import msgspec

from bench.stage import SET, TENANT, addresses, job, jobs, publish, sends
from clarion.bootstrap import Platform
from clarion.catalog.folder import read_folder
from clarion.catalog.source import translate
from clarion.domain.call import Accepted, Call, CallOutcome, Deferred, NotCalled, Replay
from clarion.domain.claim import ClaimedMessage
from clarion.domain.identity import Channel, Lane
from clarion.domain.outgoing import OutgoingItem
from clarion.pipeline.distribute import Accounts, OpenCalls, Slots
from clarion.ports.provider import EVERY_CHANNEL, Provider
from clarion.workers import loop
from clarion.workers.supervisor import open_pump

DEFINITIONS = Path(__file__).parent.parent / "src/clarion/cli/definitions"

MANY_SLOTS = 1000
"""The most that `clarion work` takes by itself, given from the start instead of grown."""

DRAINED_WITHIN = 300.0
"""Seconds until a drain must be over, which takes two; without it a run that went wrong would never end."""

ENQUEUERS = 2
"""Sets under way at once: one is written by the store while the next is prepared, as with two workers."""


async def bulk(platform: Platform, *, key: str, count: int) -> list[OutgoingItem]:
    """Make so many messages of one new job: a campaign's rows, in the bulk lane and in no order."""
    version = await publish(platform, "bench-sms", Channel.SMS, {"sms.liquid": "x" * 120})
    people = await addresses(platform, Channel.SMS, count=count)
    parent = await job(platform, "bench-sms", version, key=key)
    return sends([parent] * count, people, lane=Lane.BULK)


async def direct(platform: Platform, *, key: str, count: int) -> list[OutgoingItem]:
    """Make so many messages with a new job each: what `POST /v1/notifications` makes, in the normal lane, in order."""
    version = await publish(platform, "bench-sms", Channel.SMS, {"sms.liquid": "x" * 120})
    people = await addresses(platform, Channel.SMS, count=count)
    parents = await jobs(platform, "bench-sms", version, keys=[f"{key}-{place}" for place in range(count)])
    return sends(parents, people, lane=Lane.NORMAL)


async def enqueue(platform: Platform, wanted: list[OutgoingItem]) -> float:
    """Ensure messages in sets, and return how many a second."""
    sets = iter([wanted[start : start + SET] for start in range(0, len(wanted), SET)])

    async def work() -> None:
        for one in sets:
            await platform.dispatcher.ensure_outgoing_messages(TENANT, one)

    started = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(ENQUEUERS):
            tasks.create_task(work())
    return len(wanted) / (time.perf_counter() - started)


async def copy(url: str, *, count: int) -> float:
    """COPY rows that wait into one table with all its indexes, and return how many a second: the limit of enqueue.

    Over as many connections and in sets as large. Enqueue writes more than this one table: the keys of messages are in
    a table of their own.
    """
    connections = [await asyncpg.connect(url) for _ in range(ENQUEUERS)]
    first = connections[0]
    await first.execute("CREATE TABLE copied (LIKE outgoing_message INCLUDING ALL, UNIQUE (tenant_id, bucket, pk, rk))")
    await first.execute("CREATE INDEX ON copied (tenant_id, message_id)")
    rows = await first.fetch("SELECT * FROM outgoing_message WHERE due_at IS NOT NULL LIMIT $1", count)
    columns = [name for name in rows[0].keys() if name != "id"]  # noqa: SIM118  (a Record iterates over its values)
    records = [tuple(row[name] for name in columns) for row in rows]
    sets = iter([records[start : start + SET] for start in range(0, len(records), SET)])

    async def work(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        for one in sets:
            await connection.copy_records_to_table("copied", records=one, columns=columns)

    started = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for connection in connections:
            tasks.create_task(work(connection))
    rate = len(records) / (time.perf_counter() - started)
    await first.execute("DROP TABLE copied")
    for connection in connections:
        await connection.close()
    return rate


async def drain(
    platform: Platform,
    *,
    count: int,
    slots: int | None,
    channel: Channel = Channel.SMS,
    answers: tuple[type, ...] = (Accepted,),
) -> float:
    """Call the channel's provider for so many waiting messages, in the workers' loop; return how many a second.

    `slots` is what `--slots` gives, None for what the program does without it; `answers` is what the provider may
    answer: a message counts when it has been answered so.
    """
    wake, stop = asyncio.Event(), asyncio.Event()
    outcomes: Counter[type] = Counter()

    def count_outcome(_message: ClaimedMessage, outcome: CallOutcome, _took: float) -> None:
        outcomes[type(outcome)] += 1

    def stop_when_done() -> None:
        answered = sum(n for kind, n in outcomes.items() if issubclass(kind, answers))
        assert answered + outcomes[NotCalled] == outcomes.total(), outcomes
        if answered >= count and pump.idle:
            stop.set()

    async with asyncio.TaskGroup() as tasks:
        calls = OpenCalls(
            accounts=Accounts(platform.providers, clock=platform.clock),
            slots=Slots(slots),
            spawn=tasks.create_task,
            clock=platform.clock,
            wake=wake,
            observe=count_outcome,
        )
        pump = open_pump(platform, channel, calls=calls)
        started = time.perf_counter()
        async with asyncio.timeout(DRAINED_WITHIN):
            await loop.run("distribute", pump.step, wake=wake, stop=stop, rest=lambda: pump.rest, worked=stop_when_done)
        return count / (time.perf_counter() - started)


async def drain_watched(platform: Platform, *, count: int, slots: int | None) -> tuple[int, bytes]:
    """Drain so many waiting messages and look at the calls: return the most that were open, and the body of one."""
    account = platform.accounts[Channel.SMS]
    watched = Watched(platform.providers[account])
    await drain(with_provider(platform, watched), count=count, slots=slots)
    return watched.most, watched.body


async def drain_null(platform: Platform, *, key: str, count: int) -> float:
    """Drain new messages through a provider that does nothing: what claim, merge and record cost by themselves."""
    await enqueue(platform, await bulk(platform, key=key, count=count))
    return await drain(platform, count=count, slots=None)


async def drain_deferred(platform: Platform, *, key: str, count: int) -> float:
    """Drain new messages of which every fifth call is deferred; the deferred rows come back an hour later."""
    await enqueue(platform, await bulk(platform, key=key, count=count))
    busy = with_provider(platform, Deferring())
    return await drain(busy, count=count, slots=None, answers=(Accepted, Deferred))


async def drain_mail(platform: Platform, *, key: str, count: int) -> float:
    """Drain the demo's welcome mail, each of a job of its own, so that every one of them is merged."""
    source = read_folder(DEFINITIONS / "welcome")[0][0].source
    required, usual = source.definition.required, source.definition.locales[0]
    files = {name: one.text for name, one in translate(source, [])[usual].items()}
    version = await publish(platform, "bench-mail", Channel.EMAIL, files, required=required)
    people = await addresses(platform, Channel.EMAIL, count=count)
    parents = await jobs(platform, "bench-mail", version, keys=[f"{key}-{place}" for place in range(count)])
    await enqueue(platform, sends(parents, people, lane=Lane.BULK))
    return await drain(platform, channel=Channel.EMAIL, count=count, slots=None)


def with_provider(platform: Platform, provider: Provider) -> Platform:
    """Put a provider in the place of the one for text messages."""
    account = platform.accounts[Channel.SMS]
    return msgspec.structs.replace(platform, providers={**platform.providers, account: provider})


class Deferring:
    """A provider that does nothing but put every fifth call off."""

    channels = EVERY_CHANNEL
    replay = Replay()

    def __init__(self) -> None:
        self._calls = 0

    async def send(self, call: Call) -> CallOutcome:
        """Accept four calls, defer the fifth."""
        self._calls += 1
        return Accepted() if self._calls % 5 else Deferred(reason="busy", retry_after=timedelta(hours=1))

    async def close(self) -> None:
        """Nothing to let go of."""


class Watched:
    """A provider that passes calls on, counts those that are open, and keeps the body of the last."""

    channels = EVERY_CHANNEL
    replay = Replay()

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._open = 0
        self.most = 0
        self.body = b""

    async def send(self, call: Call) -> CallOutcome:
        """Pass a call on."""
        self._open += 1
        self.most = max(self.most, self._open)
        self.body = msgspec.json.encode(call)
        try:
            return await self._provider.send(call)
        finally:
            self._open -= 1

    async def close(self) -> None:
        """Leave it to whoever opened the provider."""

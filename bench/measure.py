"""What is measured: enqueue, drain, accept, and the time from an idle accept to the provider."""

import asyncio
import statistics
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path

import asyncpg
import msgspec

from bench.stage import SET, TENANT, TRACE, addresses, job, publish, sends
from clarion.bootstrap import Platform
from clarion.catalog.definition import load_definition
from clarion.client import wire
from clarion.domain.call import Accepted, Call, CallOutcome, Deferred, NotCalled, Replay
from clarion.domain.claim import ClaimedMessage
from clarion.domain.identity import Channel
from clarion.operations import Operations
from clarion.pipeline.distribute import Accounts, OpenCalls, Slots
from clarion.ports.provider import EVERY_CHANNEL
from clarion.workers import loop
from clarion.workers.supervisor import Supervisor, open_pump
from clarion.workers.wake_up import Topic, WakeUp

DEFINITIONS = Path(__file__).parent.parent / "definitions"

SLOTS = 1000
"""Call slots of the pump. A slot is taken until its outcome is recorded, and bulk may use three quarters of them."""


ENQUEUERS = 2
"""Sets under way at once: one is written by the store while the next is prepared, as with two workers."""


async def enqueue(platform: Platform, *, key: str, count: int) -> float:
    """Ensure so many messages of one new job in sets, and return how many a second."""
    version = await publish(platform, "bench-sms", Channel.SMS, {"sms.liquid": "x" * 120})
    people = await addresses(platform, Channel.SMS, count=count)
    parent = await job(platform, "bench-sms", version, key=key)
    wanted = sends(parent, people)
    sets = iter([wanted[start : start + SET] for start in range(0, count, SET)])

    async def work() -> None:
        for one in sets:
            await platform.dispatcher.ensure_outgoing_messages(TENANT, one)

    started = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(ENQUEUERS):
            tasks.create_task(work())
    return count / (time.perf_counter() - started)


async def copy(url: str) -> float:
    """COPY the rows that wait into one table with all its indexes, and return how many a second: the limit of enqueue.

    Enqueue writes more than this one table: the keys of messages are in a table of their own.
    """
    connection = await asyncpg.connect(url)
    await connection.execute(
        "CREATE TABLE copied (LIKE outgoing_message INCLUDING ALL, UNIQUE (tenant_id, bucket, pk, rk))"
    )
    await connection.execute("CREATE INDEX ON copied (tenant_id, message_id)")
    rows = await connection.fetch("SELECT * FROM outgoing_message WHERE due_at IS NOT NULL")
    columns = [name for name in rows[0].keys() if name != "id"]  # noqa: SIM118  (a Record iterates over its values)
    records = [tuple(row[name] for name in columns) for row in rows]
    started = time.perf_counter()
    for start in range(0, len(records), SET):
        await connection.copy_records_to_table("copied", records=records[start : start + SET], columns=columns)
    rate = len(records) / (time.perf_counter() - started)
    await connection.execute("DROP TABLE copied")
    await connection.close()
    return rate


async def drain(platform: Platform, *, channel: Channel, count: int, answers: tuple[type, ...] = (Accepted,)) -> float:
    """Call the channel's provider for so many waiting messages, in the workers' loop; return how many a second.

    `answers` is what the provider may answer; a message counts when it has been answered so.
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
        accounts = Accounts(platform.providers, clock=platform.clock)
        calls = OpenCalls(
            accounts=accounts,
            slots=Slots(SLOTS),
            spawn=tasks.create_task,
            clock=platform.clock,
            wake=wake,
            observe=count_outcome,
        )
        pump = open_pump(platform, channel, calls=calls)
        started = time.perf_counter()
        await loop.run("distribute", pump.step, wake=wake, stop=stop, rest=lambda: pump.rest, worked=stop_when_done)
        return count / (time.perf_counter() - started)


async def drain_null(platform: Platform, *, key: str, count: int) -> float:
    """Drain new messages through a provider that does nothing: what claim, merge and record cost by themselves."""
    await enqueue(platform, key=key, count=count)
    return await drain(platform, channel=Channel.SMS, count=count)


async def drain_deferred(platform: Platform, *, key: str, count: int) -> float:
    """Drain new messages of which every fifth call is deferred; the deferred rows come back an hour later."""
    await enqueue(platform, key=key, count=count)
    account = platform.accounts[Channel.SMS]
    busy = msgspec.structs.replace(platform, providers={**platform.providers, account: Deferring()})
    return await drain(busy, channel=Channel.SMS, count=count, answers=(Accepted, Deferred))


async def drain_mail(platform: Platform, *, count: int) -> float:
    """Drain the demo's welcome mail, each to a job of its own, so that every one of them is merged."""
    definition, files = load_definition(DEFINITIONS / "welcome")
    version = await publish(platform, "bench-mail", Channel.EMAIL, files, required=definition.required)
    people = await addresses(platform, Channel.EMAIL, count=count)
    wanted = []
    for place, one in enumerate(people):
        wanted += sends(await job(platform, "bench-mail", version, key=f"mail-{place}"), [one])
    for start in range(0, count, SET):
        await platform.dispatcher.ensure_outgoing_messages(TENANT, wanted[start : start + SET])
    return await drain(platform, channel=Channel.EMAIL, count=count)


async def idle_latency(platform: Platform, *, times: int = 40) -> float:
    """Return the median milliseconds from an accept on an idle system to the provider's call."""
    called: asyncio.Queue[float] = asyncio.Queue()
    account = platform.accounts[Channel.SMS]
    watched = msgspec.structs.replace(platform, providers={**platform.providers, account: Watched(called)})
    wake_up = WakeUp()
    supervisor = Supervisor(watched, wake_up=wake_up, channels=(Channel.SMS,), slots=10)
    notifications = Operations(platform, wake=lambda topic: wake_up.wake(Topic(topic))).notifications
    taken = []
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(supervisor.run())
        for place in range(times):
            asked = wire.SendRequest(type="bench-sms", to=(wire.Recipient(address=f"+4477009{place:05d}"),))
            started = time.perf_counter()
            await notifications.send(TENANT, asked, key=None, actor="bench", trace=TRACE)
            taken.append(await called.get() - started)
        supervisor.stop()
    return statistics.median(taken) * 1000


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
    """A provider that notes when it is called."""

    channels = EVERY_CHANNEL
    replay = Replay()

    def __init__(self, called: "asyncio.Queue[float]") -> None:
        self._called = called

    async def send(self, call: Call) -> CallOutcome:
        """Note the time and accept."""
        self._called.put_nowait(time.perf_counter())
        return Accepted()

    async def close(self) -> None:
        """Nothing to let go of."""

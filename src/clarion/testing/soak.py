"""The soak: real worker processes, killed with SIGKILL in the middle of their calls, on a real store.

    python -m clarion.testing.soak --store sqlite|postgres --messages 2000 --kills 100 [--json]

Messages are accepted here, in a process that lives; workers do the rest, are killed whenever the ledger has one of
their calls open, and are started again. The ledger is `clarion.sandbox.server`, one for each worker so that it is known
whose call is open, all over one file; it is never killed. Half of the messages and kills are without de-duplication and
with 2 call slots a worker, half with it and 50. The end is judged by `soak_verdict`; exit code 1 where anything was
lost, delivered twice, invented or otherwise wrong.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Final
from uuid import UUID

import msgspec

from clarion.bootstrap import Platform, Settings, open_platform, prepare
from clarion.client import wire
from clarion.dispatch.request import Trace
from clarion.domain.identity import Channel
from clarion.domain.timeline import JobTimeline
from clarion.errors import ClarionError
from clarion.operations import Operations
from clarion.ports.renderer import Definition
from clarion.testing.postgres import postgres_server
from clarion.testing.soak_verdict import Kill, Verdict, counted_by_message, is_settled, judge

TENANT: Final = "school"
TYPE: Final = "notice"

WORKERS: Final = 2
SLOTS: Final = 2
SLOTS_WITH_DEDUPE: Final = 50
"""Few where what a kill leaves stays uncertain, for nine in ten messages must be delivered; many where nothing does."""

LEASE: Final = timedelta(seconds=4)
"""Short enough that rescues happen during the soak, long enough for a call on a machine that is busy."""

HOLD: Final = timedelta(milliseconds=40)
"""How long the ledger keeps a reply back, so that calls are open long enough to be met."""

OPEN_WITHIN: Final = 60.0
"""Seconds until a call must be open; restarting a worker takes one or two."""

SETTLED_WITHIN: Final = 180.0
"""Seconds until all is done after the last kill: a few leases, and time for a slow machine."""

LOOK: Final = 0.2
"""Seconds between two looks whether all is done."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a soak lives."""

    folder: Path
    store: str


class Leg(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a soak."""

    messages: int
    kills: int
    dedupe: timedelta | None
    slots: int


class Ledger:
    """The sandbox server of one worker."""

    def __init__(self, process: Process, port: int) -> None:
        """Speak to a server that was started."""
        self.process = process
        self.port = port

    async def get(self, path: str) -> dict[str, int]:
        """Ask the server something."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(f"GET {path} HTTP/1.1\r\nhost: ledger\r\ncontent-length: 0\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            body = await reader.readexactly(int(length.partition(b":")[2]))
        finally:
            writer.close()
        return msgspec.json.decode(body, type=dict[str, int])


class Soak:
    """One leg while it runs."""

    def __init__(self, leg: Leg, place: Place, *, chance: Random) -> None:
        """Plan a leg in a place of its own."""
        self._leg = leg
        self._place = place
        self._chance = chance
        self._ledgers: list[Ledger] = []
        self._workers: list[Process] = []
        self._jobs: list[UUID] = []
        self._kills: list[Kill] = []

    async def run(self) -> Verdict:
        """Send, kill, wait, judge."""
        async with contextlib.AsyncExitStack() as closing:
            for _ in range(WORKERS):
                self._ledgers.append(await closing.enter_async_context(self._ledger()))
            settings = self._settings(self._ledgers[0])
            await prepare(settings)
            platform = await closing.enter_async_context(open_platform(settings))
            await _set_up(platform)
            closing.push_async_callback(self._stop_workers)
            for number in range(WORKERS):
                self._workers.append(await self._start_worker(number))
            for kill in range(self._leg.kills):
                await self._send_until(platform, self._leg.messages * (kill + 1) // (self._leg.kills + 1))
                await self._kill_one(platform)
            await self._send_until(platform, self._leg.messages)
            await self._wait_until_settled(platform)
            return await self._judge(platform)

    @contextlib.asynccontextmanager
    async def _ledger(self) -> AsyncIterator[Ledger]:
        """Start a sandbox server over the one file, and stop it in the end."""
        arguments = ["--port", "0", "--file", str(self._place.folder / "ledger.db"), "--hold", _span(HOLD)]
        if self._leg.dedupe is not None:
            arguments += ["--dedupe", _span(self._leg.dedupe)]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "clarion.sandbox.server", *arguments, stdin=DEVNULL, stdout=PIPE
        )
        try:
            if process.stdout is None:
                raise RuntimeError("the ledger has no output")
            yield Ledger(process, msgspec.json.decode(await process.stdout.readline())["port"])
        finally:
            process.terminate()
            await process.wait()

    def _settings(self, ledger: Ledger) -> Settings:
        """Say where an installation lives that sends through a ledger."""
        options = "" if self._leg.dedupe is None else f"?dedupe={_span(self._leg.dedupe)}"
        return Settings(
            store=self._place.store,
            blobs=f"file://{self._place.folder}/blobs",
            vault=f"file://{self._place.folder}/master.key",
            providers={"*": f"sandbox+http://127.0.0.1:{ledger.port}{options}"},
            home=self._place.folder,
        )

    async def _start_worker(self, number: int) -> Process:
        """Start a worker that sends through its own ledger."""
        settings = self._settings(self._ledgers[number])
        environment = {
            **os.environ,
            "CLARION_STORE": settings.store,
            "CLARION_BLOBS": settings.blobs,
            "CLARION_VAULT": settings.vault,
            "CLARION_PROVIDERS": f"*={settings.providers['*']}",
        }
        arguments = ["--slots", str(self._leg.slots), "--lease", str(LEASE.total_seconds())]
        with (self._place.folder / f"worker-{number}.log").open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "clarion.testing.soak_worker", *arguments),
                stdin=DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )

    async def _send_until(self, platform: Platform, count: int) -> None:
        """Have messages accepted until there are so many."""
        notifications = Operations(platform, wake=lambda _: None).notifications
        while len(self._jobs) < count:
            name = f"message-{len(self._jobs)}"
            asked, trace = _asked(len(self._jobs)), Trace(correlation_id=name)
            answer = await notifications.send(TENANT, asked, key=name, actor="soak", trace=trace)
            self._jobs.append(answer.job_id)

    async def _kill_one(self, platform: Platform) -> None:
        """Kill the first worker that has a call open, a moment after it was seen, and start the next in its place."""
        number, open_calls = await self._find_open()
        await asyncio.sleep(self._chance.random() * HOLD.total_seconds() / 2)
        worker = self._workers[number]
        worker.send_signal(signal.SIGKILL)
        self._kills.append(Kill(at=platform.clock.now(), open_calls=open_calls))
        await worker.wait()
        self._workers[number] = await self._start_worker(number)

    async def _find_open(self) -> tuple[int, int]:
        """Wait until a ledger has a call open; say whose, and how many."""
        try:
            async with asyncio.timeout(OPEN_WITHIN):
                while True:
                    for number, ledger in enumerate(self._ledgers):
                        if (open_calls := (await ledger.get("/totals"))["open"]) > 0:
                            return number, open_calls
                    await asyncio.sleep(0.002)
        except TimeoutError:
            raise TimeoutError(
                f"after {len(self._kills)} kills no worker had a call open for {OPEN_WITHIN:g} s: none to kill"
            ) from None

    async def _wait_until_settled(self, platform: Platform) -> None:
        """Wait until nothing is left to do; what is then still open is judged as what it is."""
        left = self._jobs
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SETTLED_WITHIN):
                while True:
                    left = [job for job in left if not await self._is_settled(platform, job)]
                    if not left:
                        return
                    await asyncio.sleep(LOOK)

    async def _is_settled(self, platform: Platform, job: UUID) -> bool:
        """Tell whether a message has come to rest."""
        timeline = await platform.store.find_job_timeline(TENANT, job)
        return is_settled(timeline, dedupes=self._leg.dedupe is not None)

    async def _stop_workers(self) -> None:
        """Stop the workers as an operator would."""
        for worker in self._workers:
            if worker.returncode is None:
                worker.terminate()
        for worker in self._workers:
            await worker.wait()

    async def _judge(self, platform: Platform) -> Verdict:
        """Read every timeline and hold it against the ledger."""
        timelines: list[JobTimeline | None] = [
            await platform.store.find_job_timeline(TENANT, job) for job in self._jobs
        ]
        return judge(
            timelines,
            deliveries=counted_by_message(await self._ledgers[0].get("/deliveries")),
            kills=self._kills,
            slots=self._leg.slots,
            dedupes=self._leg.dedupe is not None,
        )


def legs(*, messages: int, kills: int) -> tuple[Leg, Leg]:
    """Halve a soak: without de-duplication and with it."""
    plain, deduping = messages - messages // 2, messages // 2
    return (
        Leg(messages=plain, kills=kills - kills // 2, dedupe=None, slots=SLOTS),
        Leg(messages=deduping, kills=kills // 2, dedupe=timedelta(hours=24), slots=SLOTS_WITH_DEDUPE),
    )


def soak(store: str, *, messages: int, kills: int, seed: int = 0) -> list[Verdict]:
    """Run both legs, each on a new store."""
    verdicts = []
    for number, leg in enumerate(legs(messages=messages, kills=kills)):
        with _place(store) as place:
            verdicts.append(asyncio.run(Soak(leg, place, chance=Random(f"{seed}:{number}")).run()))
    return verdicts


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m clarion.testing.soak", description="Kill workers and count.")
    parser.add_argument("--store", choices=("sqlite", "postgres"), required=True)
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="of the instants of the kills")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)
    try:
        verdicts = soak(given.store, messages=given.messages, kills=given.kills, seed=given.seed)
    except (ClarionError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    total = summed(verdicts)
    if given.json:
        shown = msgspec.to_builtins(total) | {"store": given.store, "violations": len(total.violations)}
        legs_shown = [msgspec.to_builtins(verdict) for verdict in verdicts]
        sys.stdout.write(f"{msgspec.json.encode({**shown, 'legs': legs_shown}).decode()}\n")
    else:
        sys.stdout.write(
            f"{given.store}: {total.messages} messages, {total.kills} kills: {total.lost} lost, {total.duplicate} "
            f"duplicate, {total.phantom} phantom, {total.uncertain} uncertain, {total.delivered} delivered\n"
        )
    for violation in total.violations:
        sys.stderr.write(f"{violation}\n")
    return int(bool(total.lost or total.duplicate or total.phantom or total.violations))


def summed(verdicts: Sequence[Verdict]) -> Verdict:
    """Add up what the legs came to."""
    numbers = [name for name in Verdict.__struct_fields__ if name != "violations"]
    return Verdict(
        **{name: sum(getattr(verdict, name) for verdict in verdicts) for name in numbers},
        violations=tuple(violation for verdict in verdicts for violation in verdict.violations),
    )


@contextlib.contextmanager
def _place(store: str) -> Iterator[Place]:
    """Make a new store of a kind, and remove it in the end."""
    with tempfile.TemporaryDirectory(prefix="clarion-soak-") as name, contextlib.ExitStack() as closing:
        folder = Path(name)
        if store == "sqlite":
            yield Place(folder=folder, store=f"sqlite:///{folder}/clarion.db")
        else:
            server = closing.enter_context(postgres_server(durable=True))
            yield Place(folder=folder, store=closing.enter_context(server.database()))


async def _set_up(platform: Platform) -> None:
    """Make the tenant and publish the one type that is sent."""
    await platform.dispatcher.ensure_tenant(TENANT)
    definition = Definition(key=TYPE, title="Notice", channels=(Channel.EMAIL,))
    mail = (
        "<mjml><mj-body><mj-section><mj-column><mj-text>{{ text }}</mj-text></mj-column></mj-section></mj-body></mjml>"
    )
    files = {"email.subject.liquid": "{{ text }}", "email.mjml.liquid": mail, "email.text.liquid": "{{ text }}"}
    bundle = platform.renderer.compile(definition, files)
    await platform.store.publish_template(
        TENANT,
        template_key=TYPE,
        content_hash=bundle.content_hash,
        bundle=msgspec.json.encode(bundle).decode(),
        actor="soak",
    )


def _asked(number: int) -> wire.SendRequest:
    """Write one message."""
    recipient = wire.Recipient(address=f"reader-{number}@example.com")
    return wire.SendRequest(type=TYPE, to=(recipient,), data={"text": f"Message {number}"})


def _span(length: timedelta) -> str:
    """Write a length of time as the sandbox reads it."""
    return f"{length // timedelta(milliseconds=1)}ms"


if __name__ == "__main__":
    sys.exit(main())

"""One leg of a soak: an installation of its own, its two programs, its clients, and what is done to them.

What strikes, and how often, is planned; chance, from a seed, decides only how long after its moment it strikes.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from clarion.adapters.host import HostClock
from clarion.bootstrap import Platform, Settings, open_platform, prepare
from clarion.catalog.access import SECRET_BYTES, Access, mint
from clarion.domain.definition import Definition
from clarion.domain.identity import Channel
from clarion.domain.timeline import JobTimeline
from clarion.ports.catalog import NewTemplate, Role
from clarion.sandbox.ledger import Ledger
from clarion.testing.postgres import PostgresServer
from clarion.testing.soak.client import TYPE, Clients, Moment, Promise
from clarion.testing.soak.program import Program
from clarion.testing.soak.provider import HOLD, Door
from clarion.testing.soak.verdict import Evidence, Outage, Verdict, counted_by_message, is_settled, judge

TENANT: Final = "school"

OUTAGE_EVERY: Final = 10
"""Kills between two crashes of PostgreSQL; the first comes before the first kill."""

OUTAGE_MAX: Final = 1.0
"""Seconds for which PostgreSQL stays away, beside what its recovery takes."""

MOMENT_WITHIN: Final = 60.0
"""Seconds until a moment must have come; starting a program takes one or two."""

LEASE: Final = timedelta(seconds=60)
"""As users have it."""

LOOK: Final = 0.2
"""Seconds between two looks whether all is done."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a leg does; `lease` is None for the program exactly as users start it."""

    messages: int
    strikes: tuple[Moment, ...]
    dedupe: timedelta | None
    slots: int
    lease: timedelta | None


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a leg lives; on PostgreSQL it has a server of its own, to be crashed."""

    folder: Path
    store: str
    server: PostgresServer | None


class Leg:
    """A leg while it runs."""

    def __init__(self, plan: Plan, place: Place, *, chance: Random) -> None:
        """Plan a leg in a place of its own."""
        self._plan = plan
        self._place = place
        self._chance = chance
        self._clock = HostClock()
        self._outages: list[Outage] = []
        self._starting: list[asyncio.Task[None]] = []

    async def run(self) -> Verdict:
        """Send, kill, wait, judge."""
        async with contextlib.AsyncExitStack() as closing:
            ledger = closing.enter_context(contextlib.closing(Ledger(self._place.folder / "ledger.db")))
            self._doors = {
                name: Door(name, ledger, dedupe=self._plan.dedupe, clock=self._clock) for name in ("serve", "work")
            }
            ports = {name: await closing.enter_async_context(door.listening()) for name, door in self._doors.items()}
            settings = self._settings(ports["serve"])
            key = await _set_up(settings)
            self._programs = {name: self._program(name, port) for name, port in ports.items()}
            for program in self._programs.values():
                closing.push_async_callback(program.stop)
            tasks = await closing.enter_async_context(asyncio.TaskGroup())
            self._spawn = tasks.create_task
            await asyncio.gather(*(program.start() for program in self._programs.values()))
            url = str(self._programs["serve"].said["url"])
            self._programs["serve"].serve_on(int(url.rpartition(":")[2]))
            self._clients = Clients(url, key=key)
            sending = tasks.create_task(self._clients.run())
            await self._strike_and_send()
            with contextlib.suppress(TimeoutError):  # who was never answered is found by the verdict
                async with asyncio.timeout(MOMENT_WITHIN):
                    await self._clients.all_told()
            sending.cancel()
            async with open_platform(settings) as platform:
                timelines = await self._settled_timelines(platform)
            self._note_ends()
            return judge(
                Evidence(
                    promises=self._clients.promises,
                    timelines=timelines,
                    calls=[call for door in self._doors.values() for call in door.calls],
                    deliveries=counted_by_message(ledger.deliveries()),
                    lives=[life for program in self._programs.values() for life in program.lives],
                    outages=self._outages,
                    slots=self._plan.slots,
                    dedupes=self._plan.dedupe is not None,
                )
            )

    def _settings(self, port: int) -> Settings:
        """Say where an installation lives that sends through a door."""
        options = "" if self._plan.dedupe is None else f"?dedupe={self._plan.dedupe // timedelta(seconds=1)}s"
        return Settings(
            store=self._place.store,
            blobs=f"file://{self._place.folder}/blobs",
            vault=f"file://{self._place.folder}/master.key",
            providers={"*": f"sandbox+http://127.0.0.1:{port}{options}"},
            home=self._place.folder,
        )

    def _program(self, name: str, port: int) -> Program:
        """Describe a program that sends through its own door."""
        settings = self._settings(port)
        return Program(
            name,
            ["--slots", str(self._plan.slots), *(["--port", "0"] if name == "serve" else [])],
            environment={
                "CLARION_HOME": str(settings.home),
                "CLARION_STORE": settings.store,
                "CLARION_BLOBS": settings.blobs,
                "CLARION_VAULT": settings.vault,
                "CLARION_PROVIDERS": f"*={settings.providers['*']}",
            },
            folder=self._place.folder,
            lease=self._plan.lease,
            clock=self._clock,
        )

    async def _strike_and_send(self) -> None:
        """Have messages sent, a part before each strike and the last part after all of them."""
        strikes = list(self._strikes())
        for number, strike in enumerate(strikes, start=1):
            async with asyncio.timeout(MOMENT_WITHIN):
                share = self._plan.messages * number // (len(strikes) + 1)
                if strike is None:
                    await self._crash_store(share)
                else:
                    await self._kill_one(strike, share)
            self._note_ends()
        self._clients.send_until(self._plan.messages)

    def _strikes(self) -> Iterator[Moment | None]:
        """Yield what strikes, in order; None is a crash of PostgreSQL."""
        for number, strike in enumerate(self._plan.strikes):
            if self._place.server is not None and number % OUTAGE_EVERY == 0:
                yield None
            yield strike

    async def _kill_one(self, moment: Moment, share: int) -> None:
        """Kill a program at such a moment, or a little later, and have it started again meanwhile."""
        killed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        wait = self._chance.random() * HOLD.total_seconds() / 2

        def kill(name: str) -> None:
            if killed.done():
                return
            program = self._programs[name]
            open_calls, open_requests = self._doors[name].open_calls, self._clients.open_requests
            if program.kill(moment=moment, open_calls=open_calls, open_requests=open_requests):
                killed.set_result(None)
                self._starting.append(self._spawn(program.start_again()))
            else:
                lie_in_wait()  # a last word of a process that was killed before

        def kill_later(name: str) -> None:
            asyncio.get_running_loop().call_later(wait, kill, name)

        def lie_in_wait() -> None:
            if moment is Moment.CALLED:
                for name, door in self._doors.items():
                    door.at_next_call(partial(kill_later, name))
            else:
                self._clients.at_next(moment, partial(kill if moment is Moment.TOLD else kill_later, "serve"))

        if moment is not Moment.CALLED:
            await self._programs["serve"].ready()
        lie_in_wait()
        self._clients.send_until(share)
        await killed

    async def _crash_store(self, share: int) -> None:
        """Crash PostgreSQL just after an answer, and start it again; nobody is being started meanwhile."""
        server = self._place.server
        if server is None:
            return
        for program in self._programs.values():
            await program.ready()
        crashed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def crash() -> None:
            self._crashed_at = self._clock.now()
            server.stop(immediately=True)
            crashed.set_result(None)

        self._clients.at_next(Moment.TOLD, crash)
        self._clients.send_until(share)
        await crashed
        await asyncio.sleep(self._chance.random() * OUTAGE_MAX)
        process = server.launch()
        await asyncio.to_thread(server.wait_until_ready, process)  # programs, clients and the sandbox go on meanwhile
        self._outages.append(Outage(at=self._crashed_at, until=self._clock.now()))

    def _note_ends(self) -> None:
        """Note a program that ended though nobody had killed it."""
        for program in self._programs.values():
            if (how := program.ended_by_itself()) is not None:
                raise RuntimeError(how)

    async def _settled_timelines(self, platform: Platform) -> list[JobTimeline | None]:
        """Wait until nothing is left to do, and read what the store shows; what is still open is judged as it is."""
        found: dict[int, JobTimeline | None] = {}
        left = list(self._clients.promises)
        lease = self._plan.lease or LEASE
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(3 * lease.total_seconds() + MOMENT_WITHIN):
                while left:
                    found |= {promise.number: await self._timeline(platform, promise) for promise in left}
                    left = [promise for promise in left if not self._is_settled(found[promise.number])]
                    await asyncio.sleep(LOOK)
        return [found.get(promise.number) for promise in self._clients.promises]

    async def _timeline(self, platform: Platform, promise: Promise) -> JobTimeline | None:
        told = promise.told
        return None if told is None else await platform.store.find_job_timeline(TENANT, told.job_id)

    def _is_settled(self, timeline: JobTimeline | None) -> bool:
        """Tell whether a message has come to rest; a job that is not there will never come."""
        return timeline is None or is_settled(timeline, dedupes=self._plan.dedupe is not None)


async def _set_up(settings: Settings) -> str:
    """Make the tenant, publish the one type that is sent, and return an API key for the clients."""
    await prepare(settings)
    async with open_platform(settings) as platform:
        await platform.dispatcher.ensure_tenant(TENANT)
        definition = Definition(key=TYPE, title="Notice", channels=(Channel.EMAIL,))
        mail = "<mjml><mj-body><mj-section><mj-column><mj-text>{{ text }}</mj-text></mj-column></mj-section></mj-body>"
        files = {
            "email.subject.liquid": "{{ text }}",
            "email.mjml.liquid": f"{mail}</mjml>",
            "email.text.liquid": "{{ text }}",
        }
        bundle = platform.renderer.compile(definition, files)
        template = NewTemplate(
            template_key=TYPE, content_hash=bundle.content_hash, bundle=msgspec.json.encode(bundle).decode()
        )
        await platform.store.publish_templates(TENANT, [template], actor="soak")
        minted = mint(
            tenant_id=TENANT,
            actor="soak",
            role=Role.SENDER,
            key_guid=platform.ids.new_guid(),
            secret=platform.randomness(SECRET_BYTES),
        )
        await Access(platform.store, clock=platform.clock).grant(minted, actor="soak")
        return minted.token

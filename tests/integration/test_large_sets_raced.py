"""Two workers over one job with a large set, each with a connection of its own, on both engines."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import asyncpg
import pytest

from clarion.adapters.stores import postgres, sqlite
from clarion.catalog.people import ContactEntry, GroupEntry, People, PersonEntry
from clarion.client.wire import Recipient, SendAnswer
from clarion.domain.identity import Channel, Identity
from clarion.domain.inbox import UserMessage
from clarion.domain.notification import STAGE_LEASE, NotificationJob, NotificationScheduler, NotificationStatus
from clarion.domain.outgoing import OutgoingMessage
from clarion.domain.recipient import RecipientJob
from clarion.pipeline.generate import pages, underway, whom
from clarion.pipeline.schedule import Schedule
from clarion.ports.store import Store
from clarion.sealing.recipients import RecipientSets
from clarion.testing.blobs import MemoryBlobs
from clarion.testing.clock import ManualClock
from clarion.testing.contracts.set_clock import PostgresDatabase
from clarion.testing.contracts.sql_rows import SqlRows
from clarion.testing.store import SqliteDatabase, SqliteInMemory
from tests.unit.pipeline_line import TENANT, TRACE, Line, Scripted

ALL = UUID("6f1c2c7e-0000-4000-8000-0000000000ee")
PEOPLE = 23
PAGE, STEP, INLINE = 5, 3, 4


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a set of a few people large; and let a step wait for its work."""
    monkeypatch.setattr(pages, "PAGE_SIZE", PAGE)
    monkeypatch.setattr(pages, "STEP_SIZE", STEP)
    monkeypatch.setattr(whom, "INLINE_MAX", INLINE)
    monkeypatch.setattr(underway, "PATIENCE", 60)


class Gated(MemoryBlobs):
    """Blobs that hold a writer back at the n-th blob, until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.stop_at = ""
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()

    async def put_if_absent(self, path: str, content: bytes) -> bool:
        if self.stop_at and path.endswith(self.stop_at):
            self.stop_at = ""
            self.reached.set()
            await self.go_on.wait()
        return await super().put_if_absent(path, content)


class Two:
    """Two workers' lines over one database, and a look at it."""

    def __init__(
        self, stores: tuple[Store, Store], clock: ManualClock, rows: SqlRows, expire: Callable[[], Awaitable[None]]
    ) -> None:
        self.blobs, self.rows, self.expire = Gated(), rows, expire
        self.one, self.other = (self._line(store, clock) for store in stores)

    def _line(self, store: Store, clock: ManualClock) -> Line:
        line = Line(cast("SqliteInMemory", store), clock, Scripted())
        line.recipient_sets = RecipientSets(blobs=self.blobs, keyring=line.keyring)
        return line

    async def gather(self, numbers: range) -> None:
        """Make these people the only ones of the group."""
        line = self.one
        people = People(catalog=line.store, dispatcher=line.dispatcher, keyring=line.keyring)
        entries = [
            PersonEntry(
                identity=Identity.user(f"p{n}"),
                name=f"P {n}",
                contacts=(ContactEntry(channel=Channel.EMAIL, destination=f"p{n}@example.com"),),
            )
            for n in numbers
        ]
        await people.put(TENANT, entries, trace=TRACE)
        members = tuple(entry.identity for entry in entries)
        await people.put_group(TENANT, GroupEntry(guid=ALL, name="All", members=members))

    async def accepted(self) -> SendAnswer:
        sent = await self.one.send(to=Recipient(group=ALL))
        await Schedule(queue=self.one.store, facts=self.one.store).step()
        return sent

    async def check(self, people: set[str]) -> None:
        """Everybody of the frozen set has everything once, and nobody else has anything."""
        (job,) = await self.rows.rows(TENANT, NotificationJob)
        frozen = await self.one.recipient_sets.part(TENANT, job, limit=1000)
        assert {one.person_id for one in frozen} == people
        assert len(frozen) == len(people)
        lines = await self.rows.rows(TENANT, UserMessage)
        assert sorted(line.partition_key for line in lines) == sorted(f"user:{one}" for one in people)
        noted = await self.rows.rows(TENANT, RecipientJob)
        assert [one.recipient_id_hash for one in noted] == [one.recipient_id_hash for one in frozen]
        sent = await self.rows.rows(TENANT, OutgoingMessage)
        wanted = {decision.address_id for one in frozen for decision in one.decisions if decision.goes_out}
        assert {row.address_id for row in sent} == wanted
        assert len(sent) == len(wanted) == len(people)
        (row,) = await self.rows.rows(TENANT, NotificationScheduler)
        assert (row.status, row.retry_count) == (NotificationStatus.DONE, 0)


@asynccontextmanager
async def two_of_sqlite(path: Path) -> AsyncIterator[Two]:
    clock = ManualClock()
    one, other = [await sqlite.open_store(f"sqlite:///{path}", clock=clock) for _ in range(2)]

    async def expire() -> None:
        clock.advance(STAGE_LEASE * 1.1)

    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield Two((one, other), clock, SqlRows(SqliteDatabase(connection)), expire)
    await one.close()
    await other.close()


@asynccontextmanager
async def two_of_postgres(url: str) -> AsyncIterator[Two]:
    clock = ManualClock()
    one, other = [await postgres.open_store(url, clock=clock) for _ in range(2)]
    connection = await asyncpg.connect(url)

    async def expire() -> None:
        await connection.execute("UPDATE notification_scheduler SET lease_until = now() WHERE status = 'Processing'")

    yield Two((one, other), clock, SqlRows(PostgresDatabase(connection)), expire)
    await connection.close()
    await one.close()
    await other.close()


@pytest.fixture(params=["sqlite", "postgres"])
async def two(request: pytest.FixtureRequest) -> AsyncIterator[Two]:
    opened = (
        two_of_sqlite(request.getfixturevalue("migrated_sqlite_path"))
        if request.param == "sqlite"
        else two_of_postgres(request.getfixturevalue("migrated_postgres_url"))
    )
    async with opened as made:
        await made.one.seed()
        yield made


async def status_of(line: Line, sent: SendAnswer) -> NotificationStatus | None:
    scheduler = (await line.timeline(sent)).scheduler
    return None if scheduler is None else scheduler.status


async def work(line: Line, times: int = 1000) -> None:
    generate = line.generate()
    for _ in range(times):
        if not await generate.step():
            return


async def test_two_workers_at_once_make_everything_once(two: Two) -> None:
    await two.gather(range(PEOPLE))
    sent = await two.accepted()

    async def both(line: Line) -> None:
        generate = line.generate()
        while await status_of(line, sent) is not NotificationStatus.DONE:
            await generate.step()

    await asyncio.gather(both(two.one), both(two.other))
    await two.check({f"p{n}" for n in range(PEOPLE)})


@pytest.mark.parametrize("blob", ["/0", "/2", "/manifest"])
async def test_a_worker_that_was_overtaken_goes_by_what_the_other_has_stored(two: Two, blob: str) -> None:
    """It has decided about a page of a group that is another one now; its lease ran out before it stored the page."""
    await two.gather(range(PEOPLE))
    await two.accepted()
    two.blobs.stop_at = blob
    async with asyncio.TaskGroup() as tasks:
        late = tasks.create_task(work(two.one))
        await two.blobs.reached.wait()
        before = dict(two.blobs._contents)
        await two.gather(range(3, PEOPLE + 4))
        await two.expire()
        await two.other.store.rescue_stages(limit=10, rescues_max=5)
        await work(two.other)
        two.blobs.go_on.set()
    assert late.done()
    assert before.items() <= two.blobs._contents.items(), "pages that were there are as they were"
    (job,) = await two.rows.rows(TENANT, NotificationJob)
    frozen = await two.one.recipient_sets.part(TENANT, job, limit=1000)
    people = {one.person_id or "" for one in frozen}
    if blob == "/0":
        assert people == {f"p{n}" for n in range(3, PEOPLE + 4)}
    if blob == "/manifest":
        assert people == {f"p{n}" for n in range(PEOPLE)}
    await two.check(people)


async def test_a_cancel_by_another_process_ends_it_at_the_next_transaction(two: Two) -> None:
    await two.gather(range(PEOPLE))
    sent = await two.accepted()
    two.blobs.stop_at = "/2"
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(work(two.one))
        await two.blobs.reached.wait()
        assert await two.other.store.cancel_job(TENANT, sent.job_id, actor="sam")
        two.blobs.go_on.set()
    await work(two.other)
    kinds: tuple[type[Any], ...] = (OutgoingMessage, UserMessage, RecipientJob)
    assert [await two.rows.rows(TENANT, kind) for kind in kinds] == [[], [], []]
    (row,) = await two.rows.rows(TENANT, NotificationScheduler)
    assert row.status is NotificationStatus.CANCELED

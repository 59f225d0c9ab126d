"""The bell across processes: heard by others, never by oneself, together where many ring, and again after a loss."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import asyncpg
import pytest

from clarion.adapters.stores.postgres import bell
from clarion.adapters.stores.postgres.bell import PostgresBell, open_bell
from clarion.errors import Misconfigured, StoreUnreachable
from tests.integration.watched_connection import Connection

PATIENCE = 20  # seconds: for a ring that takes milliseconds, on a machine that has other things to do

# Those whose last statement is done and was to listen.
LISTENERS = """
SELECT pid FROM pg_stat_activity
WHERE
  application_name = 'clarion bell' AND datname = current_database() AND state = 'idle' AND query LIKE 'LISTEN%'
"""


class Ear:
    """Hears the rings of one bell."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self._rung = asyncio.Event()

    def hear(self, topic: str) -> None:
        self.heard.append(topic)
        self._rung.set()

    async def waits_for(self, topic: str) -> None:
        """Wait until a topic was heard."""
        async with asyncio.timeout(PATIENCE):
            while topic not in self.heard:
                self._rung.clear()
                await self._rung.wait()


Opener = Callable[[Ear], Awaitable[PostgresBell]]


@pytest.fixture
async def opened(migrated_postgres_url: str) -> AsyncIterator[Opener]:
    bells: list[PostgresBell] = []

    async def opener(ear: Ear) -> PostgresBell:
        bells.append(await open_bell(migrated_postgres_url, hear=ear.hear))
        return bells[-1]

    yield opener
    for one in bells:
        await one.close()


@pytest.fixture
async def connection(migrated_postgres_url: str) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(migrated_postgres_url)
    yield connection
    await connection.close()


async def test_a_ring_is_heard_by_every_other_process_and_not_by_its_own(opened: Opener) -> None:
    ears = [Ear(), Ear(), Ear()]
    one, other, _ = [await opened(ear) for ear in ears]
    one.ring("stages")
    await ears[1].waits_for("stages")
    await ears[2].waits_for("stages")
    other.ring("outgoing")
    await ears[0].waits_for("outgoing")  # after it would have heard its own
    assert ears[0].heard == ["outgoing"]


async def test_many_rings_at_once_are_one(opened: Opener) -> None:
    ear = Ear()
    one, _ = await opened(Ear()), await opened(ear)
    for _ in range(1000):
        one.ring("stages")
        one.ring("outgoing")
    await ear.waits_for("outgoing")
    one.ring("last")
    await ear.waits_for("last")
    assert sorted(ear.heard) == ["last", "outgoing", "stages"]


async def test_a_ring_waits_for_nobody_and_is_sent_when_the_bell_is_closed(
    migrated_postgres_url: str, opened: Opener
) -> None:
    ear = Ear()
    await opened(ear)
    one = await open_bell(migrated_postgres_url, hear=Ear().hear)
    one.ring("stages")
    assert ear.heard == []
    await one.close()
    await ear.waits_for("stages")


async def test_a_lost_connection_is_made_again_and_what_was_rung_meanwhile_is_heard(
    opened: Opener, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bell, "RECONNECT_AFTER", 0.01)
    ears = [Ear(), Ear()]
    one, other = [await opened(ear) for ear in ears]
    before = {row["pid"] for row in await connection.fetch(LISTENERS)}
    for pid in before:
        await connection.execute("SELECT pg_terminate_backend($1)", pid)
    async with asyncio.timeout(PATIENCE):
        while len({row["pid"] for row in await connection.fetch(LISTENERS)} - before) < 2:
            continue
    one.ring("stages")
    await ears[1].waits_for("stages")
    other.ring("outgoing")
    await ears[0].waits_for("outgoing")


async def test_a_server_that_cannot_be_reached_is_told_when_the_bell_is_opened() -> None:
    with pytest.raises(StoreUnreachable):
        await open_bell("postgresql://nobody@/nothing?host=/nowhere", hear=Ear().hear)
    with pytest.raises(Misconfigured):
        await open_bell("postgresql://[nobody", hear=Ear().hear)

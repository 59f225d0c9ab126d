"""Wake-ups across processes: others hear them, the sender does not, many are sent as one, and again after a loss."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import asyncpg
import pytest

from clarion.adapters.stores.postgres import wake_up
from clarion.adapters.stores.postgres.wake_up import PostgresWakeUp, open_wake_up
from clarion.errors import BadConfiguration, StoreUnreachable
from tests.integration.watched_connection import Connection

PATIENCE = 20  # seconds: for a wake-up that takes milliseconds, on a machine that has other things to do

# Those whose last statement is done and was to listen.
LISTENERS = """
SELECT pid FROM pg_stat_activity
WHERE
  application_name = 'clarion wake-up' AND datname = current_database() AND state = 'idle' AND query LIKE 'LISTEN%'
"""


class Ear:
    """Hears the wake-ups that come to one process."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self._waiting = asyncio.Event()

    def hear(self, topic: str) -> None:
        self.heard.append(topic)
        self._waiting.set()

    async def waits_for(self, topic: str) -> None:
        """Wait until a topic was heard."""
        async with asyncio.timeout(PATIENCE):
            while topic not in self.heard:
                self._waiting.clear()
                await self._waiting.wait()


Opener = Callable[[Ear], Awaitable[PostgresWakeUp]]


@pytest.fixture
async def opened(migrated_postgres_url: str) -> AsyncIterator[Opener]:
    wake_ups: list[PostgresWakeUp] = []

    async def opener(ear: Ear) -> PostgresWakeUp:
        wake_ups.append(await open_wake_up(migrated_postgres_url, hear=ear.hear))
        return wake_ups[-1]

    yield opener
    for one in wake_ups:
        await one.close()


@pytest.fixture
async def connection(migrated_postgres_url: str) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(migrated_postgres_url)
    yield connection
    await connection.close()


async def test_a_wake_up_is_heard_by_every_other_process_and_not_by_its_own(opened: Opener) -> None:
    ears = [Ear(), Ear(), Ear()]
    one, other, _ = [await opened(ear) for ear in ears]
    one.wake("stages")
    await ears[1].waits_for("stages")
    await ears[2].waits_for("stages")
    other.wake("outgoing")
    await ears[0].waits_for("outgoing")  # after it would have heard its own
    assert ears[0].heard == ["outgoing"]


async def test_many_wake_ups_at_once_are_one(opened: Opener) -> None:
    ear = Ear()
    one, _ = await opened(Ear()), await opened(ear)
    for _ in range(1000):
        one.wake("stages")
        one.wake("outgoing")
    await ear.waits_for("outgoing")
    one.wake("last")
    await ear.waits_for("last")
    assert sorted(ear.heard) == ["last", "outgoing", "stages"]


async def test_a_wake_up_waits_for_nobody_and_is_sent_on_closing(migrated_postgres_url: str, opened: Opener) -> None:
    ear = Ear()
    await opened(ear)
    one = await open_wake_up(migrated_postgres_url, hear=Ear().hear)
    one.wake("stages")
    assert ear.heard == []
    await one.close()
    await ear.waits_for("stages")


async def test_a_lost_connection_is_made_again_and_what_was_rung_meanwhile_is_heard(
    opened: Opener, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wake_up, "RECONNECT_AFTER", 0.01)
    ears = [Ear(), Ear()]
    one, other = [await opened(ear) for ear in ears]
    before = {row["pid"] for row in await connection.fetch(LISTENERS)}
    for pid in before:
        await connection.execute("SELECT pg_terminate_backend($1)", pid)
    async with asyncio.timeout(PATIENCE):
        while len({row["pid"] for row in await connection.fetch(LISTENERS)} - before) < 2:
            continue
    one.wake("stages")
    await ears[1].waits_for("stages")
    other.wake("outgoing")
    await ears[0].waits_for("outgoing")


async def test_a_server_that_cannot_be_reached_is_told_on_opening() -> None:
    with pytest.raises(StoreUnreachable):
        await open_wake_up("postgresql://nobody@/nothing?host=/nowhere", hear=Ear().hear)
    with pytest.raises(BadConfiguration):
        await open_wake_up("postgresql://[nobody", hear=Ear().hear)

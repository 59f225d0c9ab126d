"""Wake-ups between the processes on one database, carried by LISTEN and NOTIFY on a connection of its own.

A wake-up says only that there is work. Whoever hears it looks for the work in the tables; whoever misses it finds the
work at its next poll. So nobody waits for a wake-up, it is never part of a transaction that writes, and a lost
connection is no error: it is made again, and what waited meanwhile is sent then. Reads and writes no table.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

import asyncpg

from clarion.adapters.stores.migration.failure import without_password
from clarion.adapters.stores.postgres.failure import address_failures, failures
from clarion.adapters.stores.query import load

if TYPE_CHECKING:
    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record]

_SQL: Final = load(__package__, "wake_up.sql")

CHANNEL: Final = "clarion"
"""The server's channel; every database has channels of its own, so one name serves every installation."""

EVERY: Final = 0.02
"""Seconds between two sends: wake-ups within that time are one, so a burst of commits costs at most fifty a second."""

RECONNECT_AFTER: Final = 1.0
"""Seconds before a connection is tried again: as long as the poll that stands in for it."""

PATIENCE: Final = 10.0
"""Seconds for a connection, and for a send: by then the server is as good as down."""

Hear: TypeAlias = Callable[[str], None]
_FAILED: Final = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError)


async def open_wake_up(url: str, *, hear: Hear) -> "PostgresWakeUp":
    """Connect and listen; `hear` is called with the topic of every wake-up of another process."""
    wake_up = PostgresWakeUp(url, hear=hear)
    store = without_password(url)
    with failures(store), address_failures(store):
        await wake_up.start()
    return wake_up


class PostgresWakeUp:
    """Sends and hears the wake-ups of one process."""

    def __init__(self, url: str, *, hear: Hear) -> None:
        """Keep the address; nothing is connected yet."""
        self._url = url
        self._hear = hear
        self._waiting: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._closing = False
        self._connection: Connection | None = None
        self._carrying: asyncio.Task[None] | None = None

    def wake(self, topic: str) -> None:
        """Wake the other processes for a topic, soon and without waiting."""
        self._waiting[topic] = None
        self._wake.set()

    async def start(self) -> None:
        """Connect, listen, and begin to carry wake-ups."""
        self._connection = await self._connect()
        self._carrying = asyncio.create_task(self._carry())  # noqa: TID251  close() awaits it

    async def close(self) -> None:
        """Send what is waiting, and hear nothing more."""
        self._closing = True
        self._wake.set()
        if self._carrying is not None:
            await self._carrying
        if self._connection is not None:
            self._connection.remove_termination_listener(self._lost)
            await self._connection.close(timeout=PATIENCE)

    async def _connect(self) -> "Connection":
        """Open a connection that listens."""
        connection = await asyncpg.connect(
            self._url,
            timeout=PATIENCE,
            command_timeout=PATIENCE,
            server_settings={"application_name": "clarion wake-up"},
        )
        await connection.add_listener(CHANNEL, self._heard)
        connection.add_termination_listener(self._lost)
        return connection

    async def _carry(self) -> None:
        """Send wake-ups, together and not too often, and keep the connection up, until it is closed."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._send()
            except _FAILED:
                self._wake.set()  # what waits is still to be sent
                if not self._closing:
                    await asyncio.sleep(RECONNECT_AFTER)
            if self._closing:
                return
            await asyncio.sleep(EVERY)

    async def _send(self) -> None:
        """Send all that waits; wake-ups that come meanwhile are for the next time."""
        if self._connection is None:
            self._connection = await self._connect()
        if not self._waiting:
            return
        topics, self._waiting = self._waiting, {}
        try:
            await self._connection.execute(_SQL["wake"].sql, CHANNEL, list(topics))
        except _FAILED:
            self._waiting = topics | self._waiting
            raise

    def _heard(self, connection: object, sender: int, _channel: str, topic: object) -> None:
        """Pass on a wake-up of another process; our own come back too."""
        own = self._connection
        if own is not None and own is connection and sender == own.get_server_pid():
            return
        self._hear(str(topic))

    def _lost(self, connection: object) -> None:
        """Make the connection again, which has ended without our doing."""
        if self._connection is connection:
            self._connection = None
            self._wake.set()

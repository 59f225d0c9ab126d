"""A bell that every process on one database hears, carried by LISTEN and NOTIFY on a connection of its own.

A ring says only that there is work; whoever hears it looks for it in the tables, and whoever misses it finds the work
at its next poll. So a ring is never waited for, never part of a transaction that writes, and a lost connection is no
error: it is made again, and what was rung meanwhile is sent then. Reads and writes no table.
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

_SQL: Final = load(__package__, "bell.sql")

CHANNEL: Final = "clarion"
"""The server's channel; every database has channels of its own, so one name serves every installation."""

EVERY: Final = 0.02
"""Seconds between two sends: rings within that time are one, so a burst of commits costs at most fifty a second."""

RECONNECT_AFTER: Final = 1.0
"""Seconds before a connection is tried again: as long as the poll that stands in for it."""

PATIENCE: Final = 10.0
"""Seconds for a connection, and for a send: by then the server is as good as down."""

Hear: TypeAlias = Callable[[str], None]
_FAILED: Final = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError)


async def open_bell(url: str, *, hear: Hear) -> "PostgresBell":
    """Connect and listen; `hear` is called with the topic of every ring of another process."""
    bell = PostgresBell(url, hear=hear)
    store = without_password(url)
    with failures(store), address_failures(store):
        await bell.start()
    return bell


class PostgresBell:
    """One process's end of the bell."""

    def __init__(self, url: str, *, hear: Hear) -> None:
        """Describe a bell; nothing is connected yet."""
        self._url = url
        self._hear = hear
        self._rung: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._closing = False
        self._connection: Connection | None = None
        self._carrying: asyncio.Task[None] | None = None

    def ring(self, topic: str) -> None:
        """Ring for a topic, soon and without waiting."""
        self._rung[topic] = None
        self._wake.set()

    async def start(self) -> None:
        """Connect, listen, and begin to carry rings."""
        self._connection = await self._connect()
        self._carrying = asyncio.create_task(self._carry())  # noqa: TID251  close() awaits it

    async def close(self) -> None:
        """Send what was rung, and hear nothing more."""
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
            server_settings={"application_name": "clarion bell"},
        )
        await connection.add_listener(CHANNEL, self._heard)
        connection.add_termination_listener(self._lost)
        return connection

    async def _carry(self) -> None:
        """Send rings, together and not too often, and keep the connection up, until the bell is closed."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._send()
            except _FAILED:
                self._wake.set()  # what was rung is still to be sent
                if not self._closing:
                    await asyncio.sleep(RECONNECT_AFTER)
            if self._closing:
                return
            await asyncio.sleep(EVERY)

    async def _send(self) -> None:
        """Send all that was rung since the last time; rings that come meanwhile are for the next."""
        if self._connection is None:
            self._connection = await self._connect()
        if not self._rung:
            return
        topics, self._rung = self._rung, {}
        try:
            await self._connection.execute(_SQL["ring"].sql, CHANNEL, list(topics))
        except _FAILED:
            self._rung = topics | self._rung
            raise

    def _heard(self, connection: object, sender: int, _channel: str, topic: object) -> None:
        """Pass on a ring of another process; our own come back too."""
        own = self._connection
        if own is not None and own is connection and sender == own.get_server_pid():
            return
        self._hear(str(topic))

    def _lost(self, connection: object) -> None:
        """Make the connection again, which has ended without our doing."""
        if self._connection is connection:
            self._connection = None
            self._wake.set()

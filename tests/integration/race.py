"""Two stores on one PostgreSQL database that meet at a chosen statement of the first one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, NamedTuple

import asyncpg

from clarion.adapters.stores.postgres import Patience, PostgresStore, open_store
from clarion.testing.clock import ManualClock
from tests.integration.watched_connection import Connection, Gate, done_or_blocked, watched

Call = Callable[[PostgresStore], Awaitable[Any]]


class Meeting(NamedTuple):
    """What came of two calls: their results, and whether the second had to wait for the first."""

    tenant: str
    first: Any
    second: Any
    waited: bool


class Race(NamedTuple):
    """Two stores, the first behind a gate, another program's connection, and one that only looks on."""

    first: PostgresStore
    second: PostgresStore
    gate: Gate
    other: Connection
    observer: Connection

    async def meet(self, tenant: str, first: Call, second: Call, *, stop_before: int) -> Meeting:
        """Run the first up to a statement, the second as far as it comes, and then both to their end."""
        self.gate.close_before(stop_before)
        async with asyncio.TaskGroup() as group:
            one = group.create_task(_result(first(self.first)))
            await self.gate.reached_by(one)
            other = group.create_task(_result(second(self.second)))
            waited = await done_or_blocked(other, observer=self.observer)
            self.gate.open()
        return Meeting(tenant, one.result(), other.result(), waited)

    async def statements(self, call: Call) -> int:
        """Count the statements of a call that nobody disturbs."""
        self.gate.close_before(None)
        await call(self.first)
        return len(self.gate.passed)


async def _result(call: Awaitable[Any]) -> Any:
    return await call


@asynccontextmanager
async def open_race(url: str) -> AsyncIterator[Race]:
    """Open everything that a race needs."""
    gate = Gate()
    # Plans are kept for as long as a race may take, so that no statement is sent but those of the callers.
    patience = Patience(plans=timedelta(hours=1))
    first = await open_store(url, clock=ManualClock(), patience=patience, connection_class=watched(gate.before))
    second = await open_store(url, clock=ManualClock())
    other, observer = await asyncpg.connect(url), await asyncpg.connect(url)
    yield Race(first, second, gate, other, observer)
    await observer.close()
    await other.close()
    await second.close()
    await first.close()

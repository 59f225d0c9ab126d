"""Connections, time limits, and the repetition of transactions that the server broke off.

Everything that this store asks of PostgreSQL goes through here: a bounded pool, one READ COMMITTED transaction a store
method, and our own errors instead of the driver's. What is asked lives in `ensure/`, `queue/` and beside them.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Self, TypeAlias, TypeVar

import asyncpg
import msgspec

from clarion.adapters.stores.migration.failure import without_password
from clarion.adapters.stores.postgres.failure import BROKEN_OFF, address_failures, failures
from clarion.adapters.stores.query import load
from clarion.errors import BrokenInvariant, StoreBusy, StoreUnreachable

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    Connection: TypeAlias = PoolConnectionProxy[asyncpg.Record]

T = TypeVar("T")

_SQL: Final = load(__package__, "session.sql")

ATTEMPTS_MAX = 5
"""Of a transaction that others broke off. The server makes a loser wait for the winner's locks, so each attempt is a
turn in a queue and needs no pause; five losses in a row mean more contention than waiting can cure."""

CONNECTIONS_MAX = 10
"""For each process: a statement of ours takes milliseconds, so ten keep a server of a few cores busy, and ten
processes stay below its default of a hundred connections."""


# Every statement here is written to be one walk: from a set that the caller gave, along an index, row by row and in its
# order. So the planner is left no other way, and plans for any set alike: to know one would tell it only its length.
_PLANS: Final = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}


_FIRST: Final = 0.02
"""What part of the time the first plans are kept for: with a second, about as long as a thousand rows take."""


class Overtaken(Exception):
    """A row was changed by somebody else between our read and our write; the transaction must look again."""


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long the store waits for a server, and how many connections it opens to one."""

    connect: timedelta = timedelta(seconds=10)  # as the migration: by then it is as good as down
    acquire: timedelta = timedelta(seconds=15)  # for a free connection: a new one, and a few transactions before us
    # For another's row: what an ensure waits for is an ensure, some ten milliseconds; a migration's step gives up its
    # locks after two seconds.
    lock: timedelta = timedelta(seconds=10)
    # For a whole statement: a thousand rows on a busy machine take a hundredth of it. Above `lock`, so that a wait for
    # a lock is reported as one.
    statement: timedelta = timedelta(seconds=20)
    # When the server's own limit does not come through the wire, the connection is dead. Above `statement`.
    command: timedelta = timedelta(seconds=30)
    # Between two statements of a transaction there is only Python: a process that stands still must not hold locks.
    idle_in_transaction: timedelta = timedelta(seconds=30)
    # For how long plans are kept at most. To plan the largest of our statements takes a millisecond.
    plans: timedelta = timedelta(seconds=1)
    connections_max: int = CONNECTIONS_MAX


class Plans:
    """How old the plans of one connection are.

    A queue is empty in one moment and has thousands of rows in the next, and to an empty table every index is as good
    as any other. So plans are kept for a moment only when work begins, and for ever longer while it goes on.
    """

    def __init__(self, *, now: float, keep_max: float) -> None:
        """Begin with a connection that has none."""
        self._keep_max = keep_max
        self._keep = keep_max * _FIRST
        self._made = self._used = now

    def are_old(self, now: float) -> bool:
        """Tell whether plans that were made before are to be forgotten, and take them for forgotten."""
        rested, self._used = now - self._used, now
        if rested > self._keep_max:
            self._keep = self._keep_max * _FIRST
        elif now - self._made < self._keep:
            return False
        else:
            self._keep = min(self._keep * 2, self._keep_max)
        self._made = now
        return True


class Session:
    """A pool of connections to one database."""

    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]", *, store: str, patience: Patience) -> None:
        """Wrap an open pool; `store` is the database's address without its password, for messages."""
        self._pool = pool
        self._store = store
        self._patience = patience
        self._plans: dict[int, Plans] = {}  # of each connection, by its process on the server

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        patience: Patience,
        connection_class: type["asyncpg.Connection[asyncpg.Record]"],
    ) -> Self:
        """Open a pool with its first connection."""
        store = without_password(url)
        with failures(store), address_failures(store):
            pool = await asyncpg.create_pool(
                url,
                min_size=1,
                max_size=patience.connections_max,
                timeout=patience.connect.total_seconds(),
                command_timeout=patience.command.total_seconds(),
                connection_class=connection_class,
                server_settings=_settings(patience),
                init=_learn_arrays,
                reset=_leave_as_it_is,
            )
        return cls(pool, store=store, patience=patience)

    async def close(self) -> None:
        """Close every connection, after waiting for what still runs on them as long as a command may take."""
        try:
            await asyncio.wait_for(self._pool.close(), self._patience.command.total_seconds())
        except TimeoutError:
            self._pool.terminate()

    async def read(self, work: Callable[["Connection"], Awaitable[T]]) -> T:
        """Run `work`, statements that only read, on a connection that is in no transaction."""

        async def once() -> T:
            async with self._connection() as connection:
                return await work(connection)

        return await self._repeat(once)

    async def single(self, work: Callable[["Connection"], Awaitable[T]]) -> T:
        """Run `work`, one statement, which is a transaction by itself: to begin and to commit takes no round trips."""
        return await self.read(work)

    async def transact(self, work: Callable[["Connection"], Awaitable[T]]) -> T:
        """Run `work` in one READ COMMITTED transaction.

        A connection that is lost while it commits leaves the outcome unknown; it is StoreUnreachable as any other loss,
        because the caller may always repeat a store method.
        """

        async def once() -> T:
            async with self._connection() as connection, connection.transaction(isolation="read_committed"):
                return await work(connection)

        return await self._repeat(once)

    async def _repeat(self, once: Callable[[], Awaitable[T]]) -> T:
        """Begin again from the start where others broke it off, which is safe: every store method is idempotent."""
        lost: Exception | None = None
        for _ in range(ATTEMPTS_MAX):
            try:
                return await once()
            except (*BROKEN_OFF, Overtaken) as broken_off:
                lost = broken_off
        raise StoreBusy(
            f"others at {self._store} changed the same rows {ATTEMPTS_MAX} times before us",
            hint="try again; if it lasts, look for a program that changes one row over and over",
        ) from lost

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator["Connection"]:
        """Lend a connection, and turn what goes wrong on it into our errors."""
        with failures(self._store):
            connection = await self._acquire()
            try:
                await self._forget_old_plans(connection)
                yield connection
            finally:
                await self._pool.release(connection)

    async def _forget_old_plans(self, connection: "Connection") -> None:
        """Have plans made anew that were made when tables may have been much smaller."""
        now, pid = asyncio.get_running_loop().time(), connection.get_server_pid()
        plans = self._plans.get(pid)
        if plans is None:
            plans = self._plans[pid] = Plans(now=now, keep_max=self._patience.plans.total_seconds())

            def forget(_: object) -> None:
                self._plans.pop(pid, None)

            connection.add_termination_listener(forget)
        if plans.are_old(now):
            await connection.execute(_SQL["forget_plans"].sql)

    async def _acquire(self) -> "Connection":
        """Take a connection from the pool, and tell a pool that is used up from a server that does not answer."""
        if self._pool.is_closing():
            raise BrokenInvariant("a store was used after it was closed")
        try:
            return await self._pool.acquire(timeout=self._patience.acquire.total_seconds())
        except TimeoutError:
            if self._pool.get_size() < self._pool.get_max_size():
                raise StoreUnreachable(
                    f"{self._store} did not accept a connection in time",
                    hint="see that the server runs and can be reached, then try again",
                ) from None
            raise StoreBusy(
                f"all {self._pool.get_max_size()} connections to {self._store} stayed in use",
                hint="try again, or run another process beside this one",
            ) from None


def _settings(patience: Patience) -> dict[str, str]:
    """Give the settings that every session starts with."""
    return {
        "application_name": "clarion",
        "TimeZone": "UTC",
        "statement_timeout": _milliseconds(patience.statement),
        "lock_timeout": _milliseconds(patience.lock),
        "idle_in_transaction_session_timeout": _milliseconds(patience.idle_in_transaction),
        "default_transaction_isolation": "read committed",
        "jit": "off",  # compiling takes a hundred milliseconds, and no statement of ours takes ten
        **_PLANS,
    }


async def _learn_arrays(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Let the driver ask the server about array types now, and not in the middle of a connection's first batch."""
    await connection.prepare(_SQL["name_array_types"].sql)


async def _leave_as_it_is(_: object) -> None:
    """Spare the pool its reset, a round trip for each method: no statement of ours changes its session.

    The pool itself ends a transaction that was left open.
    """


def _milliseconds(duration: timedelta) -> str:
    """Write a duration as the server's settings take it."""
    return str(round(duration / timedelta(milliseconds=1)))

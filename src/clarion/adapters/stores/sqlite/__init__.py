"""The SQLite store: every port of storage over one file and one connection.

`store` is the asynchronous surface: a table of which work does what, and how urgently. A `runner` brings works to the
thread of the connection (a writer thread in production, inline in a simulation), and `core` runs them as transactions,
one for itself or several in one commit. Works that are the same on both engines come from `stores.shared`; the others
lie here with their SQL: `outgoing`, `queue/`, `track`. `session` keeps the connection, `clock` the store's time,
`setting` sets it by a person's word, `location` the address and the file, `damage` looks through the file when asked
to, `failure` says what SQLite's errors mean, `codec` turns records into parameters and rows into records.

A store opens a database that `migration` has prepared and refuses one that it may not use.
"""

from datetime import timedelta

from clarion.adapters.stores.migration import migrate_sqlite
from clarion.adapters.stores.sqlite.core import SqliteCore
from clarion.adapters.stores.sqlite.damage import require_sound
from clarion.adapters.stores.sqlite.location import Location
from clarion.adapters.stores.sqlite.runner import InlineRunner, Runner, WriterThread
from clarion.adapters.stores.sqlite.session import BUSY_TIMEOUT, Session
from clarion.adapters.stores.sqlite.setting import read_time, set_time
from clarion.adapters.stores.sqlite.store import SqliteStore
from clarion.ports.clock import Clock
from clarion.ports.store import ClockReading, Migrated

__all__ = [
    "InlineRunner",
    "Runner",
    "SqliteStore",
    "WriterThread",
    "inspect",
    "migrate",
    "open_store",
    "read_clock",
    "set_clock",
]


async def open_store(
    url: str, *, clock: Clock, runner: Runner | None = None, busy_timeout: timedelta = BUSY_TIMEOUT
) -> SqliteStore:
    """Open the file at `url`, for example `sqlite:///clarion.db`, or a new database in memory, `sqlite://:memory:`.

    The clock is the store's own from now on; see `clock`. The store closes the runner, by default a writer thread.
    """
    session = Session(Location.parse(url), clock=clock, busy_timeout=busy_timeout)
    store = SqliteStore(SqliteCore(session), runner=runner or WriterThread())
    await store.open()
    return store


async def inspect(url: str) -> None:
    """Read the whole file at `url` and raise where it is damaged; beside others that use it."""
    location, runner = Location.parse(url), WriterThread()
    try:
        await runner.run(lambda: require_sound(location))
    finally:
        await runner.close()


async def read_clock(url: str, *, clock: Clock) -> ClockReading:
    """Say what time it is in the file at `url`, also where this machine's clock is refused."""
    location, runner = Location.parse(url), WriterThread()
    try:
        return await runner.run(lambda: read_time(location, clock=clock))
    finally:
        await runner.close()


async def set_clock(url: str, *, clock: Clock, actor: str, reason: str) -> ClockReading:
    """Set the time of the file at `url` to this machine's clock; say what both were before."""
    location, runner = Location.parse(url), WriterThread()
    try:
        return await runner.run(lambda: set_time(location, clock=clock, actor=actor, reason=reason))
    finally:
        await runner.close()


async def migrate(url: str) -> Migrated:
    """Bring the file at `url` up to date, making it where there is none."""
    path, runner = Location.parse(url).file, WriterThread()
    try:
        return await runner.run(lambda: migrate_sqlite(path))
    finally:
        await runner.close()

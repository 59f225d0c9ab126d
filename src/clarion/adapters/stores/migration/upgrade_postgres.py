"""Bring a PostgreSQL database up to date while programs are at work on it.

Each step is a transaction of its own that waits at most two seconds for a lock: a step that waits for a table makes
everyone behind it wait too, so it gives up and comes back. Indexes of tables that are in use are built outside a
transaction, concurrently. Of several processes that migrate at once, one works and the others ask again and again; they
must not wait inside a statement, because CREATE INDEX CONCURRENTLY waits for every statement that is older than itself.
"""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import asyncpg
import msgspec

import clarion
from clarion.adapters.stores.migration.compatibility import read_postgres, revision_for
from clarion.adapters.stores.migration.failure import postgres_failures, without_password
from clarion.adapters.stores.migration.history import HISTORY, OUTSIDE, History
from clarion.errors import BrokenInvariant, StoreBusy
from clarion.ports.store import Migrated

if TYPE_CHECKING:
    from clarion.adapters.stores.migration.ledger import Postgres, Step

# Advisory locks belong to the database, and their numbers to nobody: this one spells "clarion" in ASCII.
TURN = 0x636C6172696F6E

CONNECT_SECONDS_MAX = 10  # a server that has not answered by then is as good as down to a person who waits
POLL_SECONDS = 0.05


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long a migration waits for others before it says that the store is busy."""

    # What a step may make the program's own statements wait (docs/how-to/migrate.md).
    lock_timeout: timedelta = timedelta(seconds=2)
    lock_attempts_max: int = 10
    lock_pause: timedelta = timedelta(seconds=1)  # lets what has piled up behind the step run
    # Building an index concurrently waits for older transactions, makes nobody wait, and giving up throws away what
    # may have been hours of work: so it waits for as long as a report or a backup may take.
    index_timeout: timedelta = timedelta(hours=2)
    turn_timeout: timedelta = timedelta(hours=2)  # another process may be building such an index


async def migrate_postgres(
    url: str,
    *,
    target: str | None = None,
    history: History = HISTORY,
    program: str = clarion.__version__,
    patience: Patience = Patience(),  # noqa: B008  frozen, so every call may share it
) -> Migrated:
    """Apply the steps that the database lacks, up to `target` or all of them, and report them."""
    store = without_password(url)
    with postgres_failures(store):
        # A connection of its own and in no transaction: it holds the turn and never a snapshot.
        holder = await asyncpg.connect(url, timeout=CONNECT_SECONDS_MAX)
        try:
            await holder.execute("SET idle_session_timeout = 0")
            await _take_turn(holder, store=store, patience=patience)
            before = revision_for(
                await read_postgres(holder), engine="postgres", store=store, program=program, history=history
            )
            steps = history.ahead(current=before, target=target)
            if steps:
                await _apply(url, target=steps[-1], history=history, patience=patience)
        finally:
            await holder.close(timeout=CONNECT_SECONDS_MAX)
    return Migrated(from_revision=before, to_revision=steps[-1] if steps else before, steps=steps)


async def _take_turn(holder: "Postgres", *, store: str, patience: Patience) -> None:
    """Wait until no other process migrates this database; the turn ends with the connection."""
    for _ in range(max(1, round(patience.turn_timeout.total_seconds() / POLL_SECONDS))):
        if await holder.fetchval("SELECT pg_try_advisory_lock($1)", TURN):
            return
        await asyncio.sleep(POLL_SECONDS)
    raise StoreBusy(f"another process is still migrating {store}", hint="wait until it has ended, then try again")


async def _apply(url: str, *, target: str, history: History, patience: Patience) -> None:
    """Apply the steps up to `target`, again from the first that is missing when one had to give way."""
    # Half a second, spent only by those who migrate.
    from clarion.adapters.stores.migration import ledger

    run_sql = partial(_run_sql, history, patience)
    connect = partial(_connect, url, patience)
    for attempts_left in reversed(range(patience.lock_attempts_max)):
        try:
            await ledger.upgrade_postgres(connect, history=history, target=target, run_sql=run_sql)
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            if attempts_left == 0:
                raise
            await asyncio.sleep(patience.lock_pause.total_seconds())
        else:
            return


async def _connect(url: str, patience: Patience) -> "Postgres":
    """Open the connection that the steps run on."""
    connection = await asyncpg.connect(url, timeout=CONNECT_SECONDS_MAX)
    # A role's own limit would end a long step half-way; ours is the lock's.
    await connection.execute(f"SET statement_timeout = 0; SET lock_timeout = {_milliseconds(patience.lock_timeout)}")
    return connection


def _run_sql(history: History, patience: Patience, step: "Step", name: str) -> str:
    """Run a step's file, inside the step's transaction or outside when it asks for that; return its text."""
    sql = history.sql("postgres", name)
    if sql.startswith(OUTSIDE):
        with step.outside_transaction():
            step.execute(f"SET lock_timeout = {_milliseconds(patience.index_timeout)}")
            for statement in outside_statements(sql):
                step.execute(statement)
            step.execute(f"SET lock_timeout = {_milliseconds(patience.lock_timeout)}")
    else:
        step.begin()
        step.execute(sql)
        if not step.is_in_transaction():
            raise BrokenInvariant(f"the schema step {name} ends the transaction that it runs in")
    return sql


def outside_statements(sql: str) -> Iterator[str]:
    """Split a file for outside a transaction, where the server takes one statement at a time; no text holds `;`."""
    lines = (line for line in sql.splitlines() if not line.lstrip().startswith("--"))
    return filter(None, (statement.strip() for statement in "\n".join(lines).split(";")))


def _milliseconds(duration: timedelta) -> int:
    """Return a duration as PostgreSQL's settings count it."""
    return round(duration / timedelta(milliseconds=1))

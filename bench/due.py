"""Is claiming what is due flat? A batch among ten thousand pending rows, a million, and 100,000 waiting for a retry.

    python -m bench.due

Each engine has a database for each of the three, with a thousand rows due in it. They take turns, claim by claim, so
that a machine that is slow for a while is so for all. The rows are made by the engine itself; no claim is undone.
"""

import argparse
import asyncio
import sqlite3
import tempfile
import time
from contextlib import AsyncExitStack, closing
from datetime import timedelta
from pathlib import Path

import asyncpg
import msgspec

from bench import raw
from bench.figure import Figure, Round, figure
from clarion.adapters import host
from clarion.adapters.stores import postgres, sqlite
from clarion.ports.store import Store
from clarion.testing.postgres import postgres_server

LEASE = timedelta(minutes=5)
DUE, BATCH, CLAIMS = 1_000, 50, 15
"""Of each database so many rows are due; the claims take three quarters of them."""


class Queue(msgspec.Struct, frozen=True):
    """How many rows of a database lie ahead, and how many wait for a retry."""

    ahead: int
    retrying: int = 0


QUEUES = {
    "small": Queue(10_000 - DUE),
    "large": Queue(1_000_000 - DUE),
    "retrying": Queue(10_000 - DUE, retrying=100_000),
}

_FILL = """
INSERT INTO automation_scheduler (
  tenant_id, scheduler_key, automation_type, trigger_type, setting, source_type, source, trigger_key, primary_entity,
  notification_type, input_hash, scheduled_at, next_retry_at, status, key_version, correlation_id{created}
)
SELECT 'tenant-' || n % 10, 'k-{name}-' || n, 'Reminder', 'DateBased', 's', 'order', CAST(n AS text), 't', 'e', 'n',
  'h1:0', {at}, {retry}, 'Pending', 1, 'bench'{now}
FROM {numbers}
"""


async def figures(folder: Path, *, fsync_ms: float) -> list[Figure]:
    """Measure a claimed row on both engines, among many and among few."""
    found = []
    async with AsyncExitStack() as stack:
        server = stack.enter_context(postgres_server(durable=True))
        for engine in ("postgres", "sqlite"):
            stores: dict[str, Store] = {}
            for name, queue in QUEUES.items():
                url = f"sqlite:///{folder / f'due-{name}.db'}"
                if engine == "postgres":
                    url = stack.enter_context(server.database())
                    await postgres.migrate(url)
                    await _fill_postgres(url, queue)
                    stores[name] = await postgres.open_store(url, clock=host.HostClock())
                else:
                    await sqlite.migrate(url)
                    _fill_sqlite(folder / f"due-{name}.db", queue)
                    stores[name] = await sqlite.open_store(url, clock=host.HostClock())
                stack.push_async_callback(stores[name].close)
            rounds: list[Round] = [{name: await _claim(store) for name, store in stores.items()} for _ in range(CLAIMS)]
            found += [
                figure(
                    f"claim due, {what}",
                    rounds[1:],  # the first opens connections and plans its statements
                    ours=name,
                    means="the cost of a claimed occurrence: flat if the limit and this are the same",
                    store=engine,
                    unit="µs/row",
                    limit="10,000 pending",
                    by="small",
                    fsync_ms=fsync_ms,
                )
                for name, what in (("large", "1,000,000 pending"), ("retrying", "100,000 waiting for a retry"))
            ]
    return found


async def _claim(store: Store) -> float:
    """Claim a batch; return the microseconds a row."""
    started = time.perf_counter()
    claims = await store.claim_due(limit=BATCH, lease=LEASE)
    return (time.perf_counter() - started) / len(claims) * 1e6


async def _fill_postgres(url: str, queue: Queue) -> None:
    connection = await asyncpg.connect(url)
    for name, count, at, retry in _kinds(queue, "now() + interval '{} hours'"):
        numbers = f"generate_series(1, {count}) AS n"
        await connection.execute(
            _FILL.format(name=name, at=at, retry=retry, numbers=numbers, created="", now=""), timeout=900
        )
    await connection.execute("VACUUM ANALYZE automation_scheduler", timeout=600)
    await connection.execute("CHECKPOINT", timeout=600)
    await connection.close()


def _fill_sqlite(path: Path, queue: Queue) -> None:
    now = int(time.time() * 1e6)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        for name, count, at, retry in _kinds(queue, f"{now} + {{}} * 3600000000"):
            numbers = (
                f"(WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {count}) SELECT n FROM c)"  # noqa: S608  our own
            )
            connection.execute(
                _FILL.format(name=name, at=at, retry=retry, numbers=numbers, created=", created_at", now=f", {now}")
            )
        connection.execute("COMMIT")


def _kinds(queue: Queue, hours: str) -> list[tuple[str, int, str, str]]:
    """Name each kind of row, how many there are, when they are planned and when they are tried again."""
    past, ahead = hours.format(-1), hours.format(24)
    kinds = [("due", DUE, past, "NULL"), ("ahead", queue.ahead, ahead, "NULL"), ("retry", queue.retrying, past, ahead)]
    return [kind for kind in kinds if kind[1]]


def main() -> None:
    """Measure and print."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for one in asyncio.run(figures(folder, fsync_ms=raw.fsync_latency(folder))):
            print(
                f"{one.store}: {one.name}: {one.ours:.0f} against {one.of or 0:.0f} {one.unit}, {one.share or 0:.2f} x"
            )


if __name__ == "__main__":
    main()

"""Is claiming flat? The cost of a claimed row in a table of ten thousand rows and in one of a million.

Two databases of one server take turns, claim by claim, so that a machine that is slow for a while is so for both. The
rows are made by the server itself; no claim is undone, so the claims walk through the table as they would in a long
drain. Both tables are vacuumed and written out before, so that neither has pages in a better state than the other: the
first change of a page after a checkpoint logs the whole of it. Measured again while another session holds a snapshot of
the larger one open, which keeps dead rows from being cleared away.
"""

import time
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import asyncpg

from bench.figure import Figure, Round, figure
from bench.stage import TENANT, addresses, job, open_stage, publish
from clarion.bootstrap import Platform
from clarion.domain.claim import FlowQuota, LowMark
from clarion.domain.identity import Channel
from clarion.testing.postgres import postgres_server

SMALL, LARGE = 10_000, 1_000_000

LEASE = timedelta(minutes=5)
BATCH = 200
CLAIMS = 50
"""Claims a measurement: ten thousand rows, all that the smaller table has."""

_FILL = """
INSERT INTO outgoing_message
  (tenant_id, bucket, pk, rk, message_id, address_id, channel, flow_id, due_at, correlation_id)
SELECT $1, $2, $3, md5(n::text) || '_sms', gen_random_uuid(), $4, 'sms', $5, now() - interval '1 hour', 'bench'
FROM generate_series(1, $6::int) AS n
"""
_FILL_KEYS = """
INSERT INTO outgoing_key (tenant_id, bucket, pk, rk, message_id, outgoing_id)
SELECT tenant_id, bucket, pk, rk, message_id, id FROM outgoing_message
"""


class Table:
    """The rows of one flow in a database of their own, claimed as a worker does, low mark and all."""

    def __init__(self, platform: Platform, url: str, *, rows: int) -> None:
        """Describe a table of so many due rows; nothing is in it yet."""
        self._platform = platform
        self.url = url
        self._rows = rows
        self._flow_id = 0
        self._low: LowMark | None = None

    async def fill(self) -> None:
        """Empty the table and fill it anew."""
        version = await publish(self._platform, "bench-sms", Channel.SMS, {"sms.liquid": "x" * 120})
        (address,) = await addresses(self._platform, Channel.SMS, count=1)
        parent = await job(self._platform, "bench-sms", version, key="claims")
        connection = await asyncpg.connect(self.url)
        self._low = None
        self._flow_id = await connection.fetchval(
            "INSERT INTO flow (tenant_id, lane, route, broadcast) VALUES ($1, 'normal', 'sms', '') "
            "ON CONFLICT (tenant_id, lane, route, broadcast, account) DO UPDATE SET lane = 'normal' RETURNING id",
            TENANT,
        )
        await connection.execute("TRUNCATE outgoing_message, outgoing_key, transition")
        values = (TENANT, parent.bucket, parent.row_key, address.id, self._flow_id, self._rows)
        await connection.execute(_FILL, *values, timeout=600)
        await connection.execute(_FILL_KEYS, timeout=600)
        await connection.execute("VACUUM ANALYZE outgoing_message, outgoing_key", timeout=600)
        await connection.execute("CHECKPOINT", timeout=600)
        await connection.close()

    async def claim(self) -> float:
        """Claim one batch; return the microseconds a row."""
        quota = FlowQuota(flow_id=self._flow_id, quota=BATCH, account="null", low=self._low)
        started = time.perf_counter()
        claimed = await self._platform.store.claim_outgoing(
            [quota], token=self._platform.ids.new_guid(), lease=LEASE, actor="bench"
        )
        taken = time.perf_counter() - started
        last = max(claimed, key=lambda one: (one.was_due_at, one.id))
        self._low = LowMark(due_at=last.was_due_at, id=last.id)
        return taken / len(claimed) * 1e6


async def figures(folder: Path, *, fsync_ms: float) -> list[Figure]:
    """Measure a claimed row in the larger table beside one in the smaller."""
    alone, watched = await take_turns(folder)
    return [
        figure(
            name,
            rounds,
            ours="large",
            means="the cost of a claimed row: flat if the limit and this are the same",
            store="postgres",
            unit="µs/row",
            limit=f"in a table of {SMALL:,} rows",
            by="small",
            fsync_ms=fsync_ms,
        )
        for name, rounds in (
            (f"claim from {LARGE:,} rows", alone),
            (f"claim from {LARGE:,} rows, snapshot held open", watched),
        )
    ]


async def take_turns(folder: Path) -> tuple[list[Round], list[Round]]:
    """Claim from both tables in turn, first with nobody else there, then while a snapshot is held open."""
    async with AsyncExitStack() as stack:
        server = stack.enter_context(postgres_server(durable=True))
        tables = []
        for rows in (SMALL, LARGE):
            url = stack.enter_context(server.database())
            stage = await stack.enter_async_context(
                open_stage(url, vault=folder / f"claims-{rows}", provider="null://")
            )
            tables.append(Table(stage, url, rows=rows))
            await tables[-1].fill()
        small, large = tables
        alone = [{"small": await small.claim(), "large": await large.claim()} for _ in range(CLAIMS)]
        await small.fill()
        holder = await asyncpg.connect(large.url)
        await holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await holder.execute("SELECT count(*) FROM flow")
        watched = [{"small": await small.claim(), "large": await large.claim()} for _ in range(CLAIMS)]
        await holder.close()
    return alone, watched

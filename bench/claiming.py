"""Is claiming flat? The cost of a claimed row in a table of ten thousand rows and in one of a million.

The rows are made by the server itself; every claim is undone by nothing, so the claims walk through the table as they
would in a long drain. Both tables are vacuumed and written out before, so that neither has pages in a better state than
the other: the first change of a page after a checkpoint logs the whole of it. Measured again while another session
holds a snapshot open, which keeps dead rows from being cleared away.
"""

import statistics
import time
from collections.abc import AsyncIterator
from datetime import timedelta

import asyncpg

from bench.stage import TENANT, addresses, job, publish
from clarion.bootstrap import Platform
from clarion.domain.claim import FlowQuota, LowMark
from clarion.domain.identity import Channel

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


async def microseconds_a_row(platform: Platform, url: str, *, rows: int, snapshot: bool) -> float:
    """Fill a flow with so many due rows and return the median cost of claiming one of them."""
    version = await publish(platform, "bench-sms", Channel.SMS, {"sms.liquid": "x" * 120})
    (address,) = await addresses(platform, Channel.SMS, count=1)
    parent = await job(platform, "bench-sms", version, key=f"claim-{rows}-{snapshot}")
    connection = await asyncpg.connect(url)
    holder = await asyncpg.connect(url)
    flow_id = await connection.fetchval(
        "INSERT INTO flow (tenant_id, lane, route, source) VALUES ($1, 'normal', 'sms', '') "
        "ON CONFLICT (tenant_id, lane, route, source, account) DO UPDATE SET lane = 'normal' RETURNING id",
        TENANT,
    )
    await connection.execute("TRUNCATE outgoing_message, outgoing_key, transition")
    await connection.execute(_FILL, TENANT, parent.bucket, parent.row_key, address.id, flow_id, rows, timeout=600)
    await connection.execute(_FILL_KEYS, timeout=600)
    await connection.execute("VACUUM ANALYZE outgoing_message, outgoing_key", timeout=600)
    await connection.execute("CHECKPOINT", timeout=600)
    held = holder.transaction(isolation="repeatable_read")
    await held.start()
    if snapshot:
        await holder.fetchval("SELECT count(*) FROM flow")
    try:
        return statistics.median([taken async for taken in _claims(platform, flow_id)])
    finally:
        await held.rollback()
        await holder.close()
        await connection.close()


async def _claims(platform: Platform, flow_id: int) -> AsyncIterator[float]:
    """Claim in batches as a worker does, low mark and all; yield the microseconds a row of each."""
    low: LowMark | None = None
    for _ in range(CLAIMS):
        quota = FlowQuota(flow_id=flow_id, quota=BATCH, account="null", low=low)
        started = time.perf_counter()
        claimed = await platform.store.claim_outgoing(
            [quota], token=platform.ids.new_guid(), lease=LEASE, actor="bench"
        )
        taken = time.perf_counter() - started
        if not claimed:
            return
        last = max(claimed, key=lambda one: (one.was_due_at, one.id))
        low = LowMark(due_at=last.was_due_at, id=last.id)
        yield taken / len(claimed) * 1e6

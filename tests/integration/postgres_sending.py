"""Messages on their way through a PostgreSQL store, for tests of what several callers do to each other."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from clarion.adapters.stores.postgres import PostgresStore
from clarion.domain.call import CallOutcome
from clarion.domain.claim import CallResult, ClaimedMessage, FlowQuota
from clarion.domain.guard import JobEntry
from clarion.domain.outgoing import OutgoingMessage, OutgoingStatus
from clarion.ports.track import ProviderEvent
from clarion.testing import factories as make
from tests.integration.race import Race
from tests.integration.watched_connection import Connection

TENANT: Final = "acme"
BROADCAST: Final = "spring"
ROUTE: Final = "email:default"
LEASE: Final = timedelta(minutes=1)
BATCH: Final = 200


async def send(store: PostgresStore, numbers: range = range(1), **fields: object) -> list[OutgoingMessage]:
    """Store messages of jobs of their own, all of one broadcast, so that their totals are kept."""
    jobs = [make.notification_job(n) for n in numbers]
    await store.ensure_notification_jobs(TENANT, [JobEntry(job=job) for job in jobs])
    versions = await store.ensure_address_versions(TENANT, [make.address_version(n) for n in numbers])
    items = [
        make.outgoing_item(job, version.record, **{"broadcast": BROADCAST, "route": ROUTE, **fields})
        for job, version in zip(jobs, versions, strict=True)
    ]
    return [answer.record for answer in await store.ensure_outgoing_messages(TENANT, items)]


async def claim(store: PostgresStore, token: int = 1, quota: int = BATCH) -> list[ClaimedMessage]:
    found = await store.discover_flows(routes=[ROUTE], lows={})
    quotas = [FlowQuota(flow_id=head.flow_id, quota=quota, account="main") for head in found.heads]
    return await take(store, quotas, token)


async def take(store: PostgresStore, quotas: Sequence[FlowQuota], token: int) -> list[ClaimedMessage]:
    return await store.claim_outgoing(quotas, token=make.guid(token, "token"), lease=LEASE, actor="worker")


def result(message: ClaimedMessage, outcome: CallOutcome, *, delay: timedelta = timedelta()) -> CallResult:
    return CallResult(
        id=message.id,
        bucket=message.bucket,
        claim_token=message.claim_token,
        attempt=message.attempts,
        outcome=outcome,
        delay=delay,
    )


def receipt(message: OutgoingMessage) -> ProviderEvent:
    """Make a report that a message was delivered."""
    return ProviderEvent(
        account="main",
        event_id=f"event-{message.id}",
        status=OutgoingStatus.DELIVERED,
        message_id=message.message_id,
        recipient_key_hash=message.rk[:32],
        happened_at=make.SOURCE_AT,
        raw="",
    )


async def check_bookkeeping(connection: Connection) -> None:
    """Every change of state has left its line, and the totals are the sum of the rows."""
    rows = await connection.fetch("SELECT id, status, version FROM outgoing_message")
    lines = Counter([row["outgoing_id"] for row in await connection.fetch("SELECT outgoing_id FROM transition")])
    assert {row["id"]: row["version"] - 1 for row in rows if row["version"] > 1} == lines
    counts = await connection.fetch("SELECT status, sum(n) AS n FROM flow_count GROUP BY status")
    assert {row["status"]: row["n"] for row in counts if row["n"]} == Counter(row["status"] for row in rows)


async def statuses(race: Race) -> list[str]:
    rows = await race.observer.fetch("SELECT status FROM outgoing_message ORDER BY id")
    await check_bookkeeping(race.observer)
    return [row["status"] for row in rows]

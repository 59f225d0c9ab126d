"""Messages in an SQLite store for tests: made, claimed and recorded in sets."""

from collections.abc import Sequence
from datetime import timedelta

from clarion.adapters.stores.sqlite import SqliteStore
from clarion.domain.address import AddressVersion
from clarion.domain.call import Accepted, CallOutcome
from clarion.domain.claim import CallResult, ClaimedMessage, FlowQuota
from clarion.domain.guard import JobEntry
from clarion.domain.outgoing import OutgoingItem
from clarion.testing import factories

TENANT = factories.TENANT
LEASE = timedelta(seconds=60)


async def addresses(store: SqliteStore, count: int) -> list[AddressVersion]:
    given = [factories.address_version(n) for n in range(count)]
    return [answer.record for answer in await store.ensure_address_versions(TENANT, given)]


async def of_one_campaign(store: SqliteStore, count: int, **fields: object) -> list[OutgoingItem]:
    """A campaign's job and addresses are stored; its messages are not."""
    (job,) = await store.ensure_messaging_jobs(TENANT, [factories.messaging_job()])
    return factories.outgoing_items(job.record, await addresses(store, count), **fields)


async def of_many_jobs(store: SqliteStore, count: int, **fields: object) -> list[OutgoingItem]:
    """So many direct notifications to one person each, every one in the order of its recipient."""
    entries = [JobEntry(job=factories.notification_job(n)) for n in range(count)]
    jobs = await store.ensure_notification_jobs(TENANT, entries)
    people = await addresses(store, count)
    return [
        factories.outgoing_item(job.record, address, order_key=address.recipient_id_hash, **fields)
        for job, address in zip(jobs, people, strict=True)
    ]


async def claim(store: SqliteStore, *, quota: int, name: str = "first") -> list[ClaimedMessage]:
    """Claim so many rows of every flow of the mail route that has work."""
    found = await store.discover_flows(routes=["email:default"], lows={})
    quotas = [FlowQuota(flow_id=head.flow_id, quota=quota, account=head.account or "main") for head in found.heads]
    token_guid = factories.guid(1, f"token-{name}")
    return await store.claim_outgoing(quotas, token=token_guid, lease=LEASE, actor="worker")


def results(claimed: Sequence[ClaimedMessage], outcome: CallOutcome | None = None) -> list[CallResult]:
    """What came back of claims: accepted, each with an id of its own, unless told otherwise."""
    return [
        CallResult(
            id=one.id,
            bucket=one.bucket,
            claim_token=one.claim_token,
            attempt=one.attempts,
            outcome=outcome or Accepted(provider_message_id=f"provider-{one.id}"),
            content_hash="k1:0",
            latency_ms=3,
        )
        for one in claimed
    ]

"""A retry and the erasing of a one-time code that meet on PostgreSQL: never is a message due whose data is gone (X-23).

The first is stopped before each of its statements, the second runs as far as it comes, then the first goes on.
"""

from collections.abc import AsyncIterator
from typing import Final

import pytest

from clarion.adapters.stores.postgres import PostgresStore
from clarion.domain.call import Refused
from clarion.domain.guard import JobEntry
from clarion.domain.identity import Lane
from clarion.domain.notification import NotificationStatus, Stage
from clarion.errors import Gone
from clarion.testing import factories as make
from tests.integration.postgres_sending import LEASE, ROUTE, TENANT, claim, result
from tests.integration.race import Race, open_race

SENT_AGAIN, ERASED = ("RetryReady", True), ("FailedFinal", False)


@pytest.fixture
async def race(migrated_postgres_url: str) -> AsyncIterator[Race]:
    async with open_race(migrated_postgres_url) as race:
        yield race


async def failed_code(race: Race) -> tuple[int, int]:
    """Store a one-time code whose only message has failed; return the message's id and version."""
    store, job = race.second, make.notification_job(0, payload=b"sealed", one_time_code=True)
    await store.ensure_notification_jobs(TENANT, [JobEntry(job=job, scheduler=make.scheduler_of(job))])
    (pending,) = await store.claim_stage(Stage.SCHEDULE, lanes=tuple(Lane), limit=10, lease=LEASE)
    (address,) = await store.ensure_address_versions(TENANT, [make.address_version()])
    await store.ensure_outgoing_messages(
        TENANT, [make.outgoing_item(job, address.record, hold=pending.hold, route=ROUTE)]
    )
    await store.finish_stage([pending.ended(NotificationStatus.DONE, stage=Stage.GENERATE, reason="1 message")])
    (claimed,) = await claim(store)
    await store.record_outgoing([result(claimed, Refused(reason="no"))], actor="worker")
    row = await race.observer.fetchrow("SELECT id, version FROM outgoing_message")
    assert row is not None
    return row["id"], row["version"]


async def standing(race: Race) -> tuple[str, bool]:
    """Say how the message stands, and whether its data is there."""
    row = await race.observer.fetchrow(
        "SELECT o.status, j.payload IS NOT NULL AS kept FROM outgoing_message AS o JOIN notification_job AS j ON true"
    )
    assert row is not None
    return row["status"], row["kept"]


async def retry(store: PostgresStore, message: tuple[int, int]) -> bool:
    """Have it sent again; False where that is refused because its data is gone."""
    outgoing_id, version = message
    try:
        return await store.retry_outgoing(TENANT, outgoing_id, version=version, actor="sam", reason="mended")
    except Gone:
        return False


async def erase(store: PostgresStore) -> int:
    return (await store.erase_codes(after=0, limit=10)).erased


TABLES: Final = (
    *("outgoing_message", "outgoing_key", "transition", "delivery_attempt", "flow_count", "support_case", "audit_log"),
    *("notification_scheduler", "notification_job"),
)


async def take_everything_away(race: Race) -> None:
    for table in TABLES:
        await race.other.execute(f"DELETE FROM {table}")  # noqa: S608  our own names


@pytest.mark.parametrize("retries_first", [True, False])
async def test_either_it_is_sent_again_with_its_data_or_it_is_erased(race: Race, retries_first: bool) -> None:
    async def again(store: PostgresStore) -> bool:
        return await retry(store, message)

    first, second = (again, erase) if retries_first else (erase, again)
    message = await failed_code(race)
    statements = await race.statements(first)
    waited = 0
    for stop_before in range(1, statements + 1):
        await take_everything_away(race)
        message = await failed_code(race)
        met = await race.meet(TENANT, first, second, stop_before=stop_before)
        retried, erased = (met.first, met.second) if retries_first else (met.second, met.first)
        assert (bool(retried), bool(erased)) in [(True, False), (False, True)]
        assert await standing(race) == (SENT_AGAIN if retried else ERASED)
        waited += met.waited
    assert bool(waited) is not retries_first, "a retry waits for whoever erases, who in turn passes by what is held"

"""F-50, I-22: a pending job that cannot be read stays claimed, is logged, fails in the end, and holds up no other."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import asyncpg
import msgspec
import pytest
from structlog.testing import capture_logs

from clarion.adapters.stores.postgres import open_store as open_postgres
from clarion.adapters.stores.sqlite import InlineRunner
from clarion.adapters.stores.sqlite import open_store as open_sqlite
from clarion.domain.guard import JobEntry
from clarion.domain.identity import Lane
from clarion.domain.notification import Stage
from clarion.ports.store import Store
from clarion.testing import factories as make
from clarion.testing.clock import ManualClock
from clarion.testing.contracts.pump import LEASE

TENANT = "acme"
Execute = Callable[[str], Awaitable[object]]

SQLITE = {
    "a time before the first year": "UPDATE notification_job SET source_at = -63000000000000000 WHERE guid = '{guid}'",
    "a time after the last year": "UPDATE notification_job SET source_at = 9223372036854775807 WHERE guid = '{guid}'",
    "a message id that is none": "UPDATE notification_job SET message_id = 'x' WHERE guid = '{guid}'",
}
POSTGRES = {
    "a time before the first year": "UPDATE notification_job SET source_at = '0044-03-15 BC' WHERE guid = '{guid}'",
    "a time after the last year": "UPDATE notification_job SET source_at = '20000-01-01' WHERE guid = '{guid}'",
}
DUE = {
    "sqlite": "UPDATE notification_scheduler SET due_at = -63000000000000000 WHERE artifact_rk = '{row_key}'",
    "postgres": "UPDATE notification_scheduler SET due_at = '0001-12-31 10:00+00 BC' WHERE artifact_rk = '{row_key}'",
}


class Damaged(msgspec.Struct, frozen=True):
    """A store and a way around it."""

    store: Store
    execute: Execute


@pytest.fixture
async def sqlite(migrated_sqlite_path: Path) -> AsyncIterator[Damaged]:
    async def execute(statement: str) -> None:
        with closing(sqlite3.connect(migrated_sqlite_path, isolation_level=None)) as other:
            assert other.execute(statement).rowcount == 1

    store = await open_sqlite(f"sqlite:///{migrated_sqlite_path}", clock=ManualClock(), runner=InlineRunner())
    yield Damaged(store, execute)
    await store.close()


@pytest.fixture
async def postgres(migrated_postgres_url: str) -> AsyncIterator[Damaged]:
    other = await asyncpg.connect(migrated_postgres_url)

    async def execute(statement: str) -> None:
        assert await other.execute(statement) == "UPDATE 1"

    store = await open_postgres(migrated_postgres_url, clock=ManualClock())
    yield Damaged(store, execute)
    await store.close()
    await other.close()


async def make_pending(store: Store) -> None:
    """Store three jobs, of which the second will be damaged."""
    jobs = [make.notification_job(n) for n in (1, 2, 3)]
    await store.ensure_notification_jobs(TENANT, [JobEntry(job=job, scheduler=make.scheduler_of(job)) for job in jobs])


async def claim(store: Store, lease: timedelta = LEASE) -> set[int]:
    """Claim all that is due; return the numbers of the jobs."""
    claims = await store.claim_stage(Stage.SCHEDULE, lanes=tuple(Lane), limit=10, lease=lease)
    numbers = {make.notification_job(n).guid: n for n in (1, 2, 3)}
    return {numbers[one.job.guid] for one in claims}


async def assert_held_up_by_nobody(damaged: Damaged, statement: str) -> None:
    """Damage one of three jobs, and see the others claimed, it logged, and failed by its rescues."""
    store = damaged.store
    await make_pending(store)
    await damaged.execute(statement.format(guid=make.notification_job(2).guid))
    with capture_logs() as logs:
        assert await claim(store, lease=timedelta()) == {1, 3}
    (line,) = logs
    assert (line["event"], line["tenant_id"]) == ("a pending job cannot be read and stays claimed", TENANT)
    assert await claim(store) == set()
    assert await store.rescue_stages(limit=10, rescues_max=0) == 3
    gauge = await store.measure()
    assert gauge.stages_waiting == 0
    assert len(await store.list_support_cases(TENANT)) == 3


@pytest.mark.parametrize("statement", SQLITE.values(), ids=SQLITE)
async def test_on_sqlite_a_job_that_cannot_be_read_holds_up_no_other(sqlite: Damaged, statement: str) -> None:
    await assert_held_up_by_nobody(sqlite, statement)


@pytest.mark.parametrize("statement", POSTGRES.values(), ids=POSTGRES)
async def test_on_postgres_a_job_that_cannot_be_read_holds_up_no_other(postgres: Damaged, statement: str) -> None:
    await assert_held_up_by_nobody(postgres, statement)


async def test_on_sqlite_a_due_time_before_the_first_year_holds_up_no_other(sqlite: Damaged) -> None:
    await make_pending(sqlite.store)
    await sqlite.execute(DUE["sqlite"].format(row_key=make.notification_job(2).row_key))
    with capture_logs():
        assert await claim(sqlite.store, lease=timedelta()) >= {1, 3}
    assert await sqlite.store.rescue_stages(limit=10, rescues_max=5) == 3
    assert await claim(sqlite.store) == {1, 2, 3}


async def test_on_postgres_a_due_time_before_the_first_year_is_due(postgres: Damaged) -> None:
    await make_pending(postgres.store)
    await postgres.execute(DUE["postgres"].format(row_key=make.notification_job(2).row_key))
    assert await claim(postgres.store) == {1, 2, 3}

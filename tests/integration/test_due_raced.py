"""One due row and more than one worker: whoever is second, late or dead, the row is claimed and finished once.

On PostgreSQL two stores meet at every statement of the first. On a SQLite file two connections, each with a thread of
its own, go for the same rows at once.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from clarion.adapters.stores.sqlite import WriterThread, open_store
from clarion.domain.automation import AutomationScheduler, AutomationStatus
from clarion.domain.entity_event import EntityHistory, HistoryKind
from clarion.domain.occurrence_line import occurrence_line
from clarion.errors import StoreUnreachable
from clarion.ports.automation import DueClaim, DueEnd
from clarion.ports.store import Store
from clarion.testing import factories as make
from tests.integration.race import Call, Race, open_race
from tests.integration.sqlite_machine import Machine

TENANT = make.TENANT
LEASE = timedelta(minutes=5)
OVER = timedelta()
"""The lease of a worker that is found to be late at once."""

FOLLOWING = make.automation_scheduler(1000, scheduled_at=datetime(2100, 1, 1, tzinfo=UTC))
ROWS = 40


@pytest.fixture
async def race(migrated_postgres_url: str) -> AsyncIterator[Race]:
    async with open_race(migrated_postgres_url) as race:
        yield race


async def made(store: Store, tenant: str = TENANT, *, count: int = 1) -> list[AutomationScheduler]:
    """Store occurrences that have been due for long."""
    answers = await store.ensure_automation_schedulers(tenant, [make.automation_scheduler(n) for n in range(count)])
    for one in answers:
        await store.run_occurrence_now(tenant, one.record.scheduler_key, actor="sam", reason="due")
    return [one.record for one in answers]


def taken(lease: timedelta = LEASE, *, limit: int = 10) -> Call:
    return lambda store: store.claim_due(limit=limit, lease=lease)


def end(one: DueClaim, worker: str) -> DueEnd:
    """Complete a claim, with all that goes into its transaction: what follows it, and a line that names the worker."""
    line = occurrence_line(one.row, HistoryKind.HANDED_OVER, cause=worker, at=one.row.scheduled_at, text=worker)
    return DueEnd(
        tenant_id=one.tenant_id,
        scheduler_key=one.row.scheduler_key,
        version=one.row.version,
        to=AutomationStatus.COMPLETED,
        dispatch_result=f'{{"by":"{worker}"}}',
        next=FOLLOWING,
        line=line,
    )


def finishing(one: DueClaim, worker: str) -> Call:
    return lambda store: store.finish_due([end(one, worker)])


async def require_finished_by(store: Store, tenant: str, row: AutomationScheduler, worker: str) -> None:
    """The row, what is told of it and what follows it are of one worker."""
    found = await store.find_occurrence(tenant, row.scheduler_key)
    assert found is not None
    assert (found.status, found.dispatch_result) == (AutomationStatus.COMPLETED, f'{{"by":"{worker}"}}')
    lines = await told(store, tenant, row)
    assert [line.cause for line in lines if line.kind is HistoryKind.HANDED_OVER] == [worker]
    assert await store.find_occurrence(tenant, FOLLOWING.scheduler_key) is not None


async def told(store: Store, tenant: str, row: AutomationScheduler) -> Sequence[EntityHistory]:
    return await store.list_history(tenant, UUID(row.primary_entity), limit=100)


async def take_over(store: Store) -> set[tuple[str, str]]:
    """Do what other workers do with a claim whose lease ran out."""
    await store.rescue_due(limit=10)
    return await store.finish_due([end(one, "second") for one in await store.claim_due(limit=10, lease=LEASE)])


@pytest.mark.parametrize("limit", [10, 1], ids=["all of it", "as many as one claim takes"])
async def test_of_two_workers_who_meet_at_any_statement_one_claims_a_due_row(race: Race, limit: int) -> None:
    await made(race.second, "alone")
    count = await race.statements(taken(limit=limit))
    for n in range(1, count + 1):
        tenant = f"acme-{n}"
        (row,) = await made(race.second, tenant)
        meeting = await race.meet(tenant, taken(limit=limit), taken(limit=limit), stop_before=n)
        assert not meeting.waited, "who is second takes what is free, and waits for nobody"
        claims: list[DueClaim] = meeting.first + meeting.second
        (one,) = claims
        assert (one.tenant_id, one.row.scheduler_key, one.row.version) == (tenant, row.scheduler_key, row.version + 2)


async def test_a_late_worker_finishes_nothing_that_another_took_over_whenever_they_meet(race: Race) -> None:
    """Its row, what follows it and the lines are of the one who was told that it moved the row."""
    await made(race.second, "alone")
    (alone,) = await taken()(race.second)
    count = await race.statements(finishing(alone, "first"))
    winners = []
    for n in range(1, count + 1):
        tenant = f"acme-{n}"
        (row,) = await made(race.second, tenant)
        (late,) = await taken(OVER)(race.second)
        meeting = await race.meet(tenant, finishing(late, "first"), take_over, stop_before=n)
        assert sorted([*meeting.first, *meeting.second]) == [(tenant, row.scheduler_key)]
        winners.append("first" if meeting.first else "second")
        await require_finished_by(race.second, tenant, row, winners[-1])
    assert set(winners) == {"first", "second"}


async def test_a_worker_that_is_killed_at_any_statement_of_its_claim_leaves_the_row_to_the_next(race: Race) -> None:
    await made(race.second, "alone")
    for n in range(1, await race.statements(taken()) + 1):
        (row,) = await made(race.second, f"acme-{n}")
        await killed(race, taken(), before=n)
        (one,) = await taken()(race.second)
        assert (one.row.scheduler_key, one.row.retry_count) == (row.scheduler_key, 0)


async def test_a_worker_that_is_killed_at_any_statement_of_its_finish_leaves_nothing_of_it(race: Race) -> None:
    """Neither a line nor the occurrence that follows; who takes the claim over finishes the row, once."""
    await made(race.second, "alone")
    (alone,) = await taken()(race.second)
    for n in range(1, await race.statements(finishing(alone, "first")) + 1):
        tenant = f"acme-{n}"
        (row,) = await made(race.second, tenant)
        (claimed,) = await taken(OVER)(race.second)
        await killed(race, finishing(claimed, "first"), before=n)
        assert await race.second.find_occurrence(tenant, row.scheduler_key) == claimed.row
        assert await take_over(race.second) == {(tenant, row.scheduler_key)}
        await require_finished_by(race.second, tenant, row, "second")


async def killed(race: Race, call: Call, *, before: int) -> None:
    """End the first one's connection before a statement of a call."""
    race.gate.close_before(before)
    async with asyncio.TaskGroup() as group:
        calling = group.create_task(unanswered(call(race.first)))
        await race.gate.reached_by(calling)
        assert race.gate.stopped_at is not None
        await race.other.execute("SELECT pg_terminate_backend($1, 10000)", race.gate.stopped_at.get_server_pid())
        race.gate.open()


async def unanswered(call: Awaitable[object]) -> None:
    with pytest.raises(StoreUnreachable):
        await call


async def test_two_connections_to_a_sqlite_file_share_what_is_due_and_claim_nothing_twice(
    migrated_sqlite_path: Path,
) -> None:
    async with two_on_one_file(Machine(migrated_sqlite_path)) as (one, other):
        rows = await made(one, count=ROWS)

        async def all_of(store: Store) -> list[str]:
            mine: list[str] = []
            while claims := await store.claim_due(limit=3, lease=LEASE):
                mine += [claim.row.scheduler_key for claim in claims]
            return mine

        shares = await asyncio.gather(*(all_of(store) for store in (one, other, one, other)))
        assert sorted(key for share in shares for key in share) == sorted(row.scheduler_key for row in rows)


async def test_a_worker_on_a_sqlite_file_that_is_late_finishes_nothing(migrated_sqlite_path: Path) -> None:
    machine = Machine(migrated_sqlite_path)
    async with two_on_one_file(machine) as (first, second):
        (row,) = await made(first)
        (late,) = await first.claim_due(limit=10, lease=LEASE)
        assert await take_over(second) == set()
        machine.elapse(LEASE)
        assert await take_over(second) == {(TENANT, row.scheduler_key)}
        assert await first.finish_due([end(late, "first")]) == set()
        await require_finished_by(first, TENANT, row, "second")


@asynccontextmanager
async def two_on_one_file(machine: Machine) -> AsyncIterator[tuple[Store, Store]]:
    """Open a file twice, each time with a thread of its own."""
    async with AsyncExitStack() as stack:
        stores: list[Store] = []
        for _ in range(2):
            store = await open_store(f"sqlite:///{machine.path}", clock=machine.clock(), runner=WriterThread())
            stack.push_async_callback(store.close)
            stores.append(store)
        yield stores[0], stores[1]

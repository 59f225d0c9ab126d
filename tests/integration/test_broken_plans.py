"""A plan that is broken off at any of its statements leaves nothing behind, and is carried out whole when repeated.

On SQLite an error stands before each statement; on PostgreSQL the server ends the connection there.
"""

import asyncio
from itertools import count
from typing import Any, cast

from clarion.adapters.stores.postgres import PostgresStore
from clarion.adapters.stores.shared.plan import apply_plans
from clarion.adapters.stores.shared.store import Urgency
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain.automation import AutomationScheduler, AutomationStatus
from clarion.domain.ensured import Outcome
from clarion.domain.planning import AppliedPlan, SourcePlan
from clarion.errors import StoreUnreachable
from clarion.ports.store import Store
from clarion.testing.contracts.harness import everything
from clarion.testing.contracts.planning import ended, moved_unit, occurrence, plan, state
from clarion.testing.factories import TENANT
from clarion.testing.store import StandIn
from tests.integration.race import open_race
from tests.integration.watched_connection import Connection

WRITTEN = ("source_plan", "automation_scheduler", "threshold_state", "entity_history", "support_case")


class Broken(Exception):
    """The process is gone."""


class Breaking:
    """A transaction that breaks off before its n-th statement."""

    def __init__(self, transaction: Transaction, *, before: int) -> None:
        self._transaction = transaction
        self._left = before

    def __getattr__(self, name: str) -> Any:
        if self._left == 0:
            raise Broken
        self._left -= 1
        return getattr(self._transaction, name)


async def prepared(store: Store, tenant_id: str = TENANT) -> SourcePlan:
    """Plan a source, and give the plan that ends one occurrence, begins one, contradicts one and moves the state."""
    first = plan(ensure=(occurrence(offset_days=30), occurrence(offset_days=7)), states=(state(),))
    (applied,) = await store.apply_plans(tenant_id, [first])
    old, other = (one.record for one in applied.ensured)
    return plan(
        serial=1,
        deactivate=(ended(old),),
        ensure=(occurrence(offset_days=1), moved_unit(other)),
        states=(state(met=False),),
        cause="event 2",
    )


def require_whole(applied: AppliedPlan, rows: list[AutomationScheduler]) -> None:
    """All of it is there."""
    assert [one.outcome for one in applied.ensured] == [Outcome.CREATED, Outcome.CONFLICT]
    assert {(row.offset_days, row.status, row.on_support_hold) for row in rows} == {
        (30, AutomationStatus.DEACTIVATED, False),
        (7, AutomationStatus.PENDING, True),
        (1, AutomationStatus.PENDING, False),
    }


async def test_on_sqlite_a_plan_that_breaks_off_at_any_statement_leaves_nothing() -> None:
    harness = StandIn()
    given = await prepared(harness.store)
    before = await everything(harness)
    applied = None
    for n in count():

        async def broken(transaction: Transaction, before: int = n) -> list[AppliedPlan]:
            return await apply_plans(cast(Transaction, Breaking(transaction, before=before)), TENANT, [given])

        try:
            (applied,) = await harness.store.run(broken, Urgency.SOON)
        except Broken:
            assert await everything(harness) == before, n
        else:
            break
    assert n > len(WRITTEN)
    assert applied is not None
    require_whole(applied, await harness.rows(TENANT, AutomationScheduler))


async def test_on_postgresql_a_plan_whose_connection_is_ended_at_any_statement_leaves_nothing(
    migrated_postgres_url: str,
) -> None:
    async with open_race(migrated_postgres_url) as race:
        other = await prepared(race.second, "other")
        statements = await race.statements(lambda store: store.apply_plans("other", [other]))
        assert statements > len(WRITTEN)
        given = await prepared(race.second)
        before = await contents(race.other)
        for n in range(1, statements + 1):
            race.gate.close_before(n)
            async with asyncio.TaskGroup() as group:
                calling = group.create_task(applied_or_none(race.first, given))
                await race.gate.reached_by(calling)
                assert race.gate.stopped_at is not None
                pid = race.gate.stopped_at.get_server_pid()
                await race.other.execute("SELECT pg_terminate_backend($1, 10000)", pid)
                race.gate.open()
            assert calling.result() is None
            assert await contents(race.other) == before, n
        race.gate.close_before(None)
        applied = await applied_or_none(race.first, given)
        assert applied is not None
        found = await race.second.find_standings_of_sources(TENANT, given.source_type, [given.source])
        require_whole(applied, [*found[given.source].open_rows, *await ended_rows(race.second, given)])


async def applied_or_none(store: PostgresStore, given: SourcePlan) -> AppliedPlan | None:
    try:
        (applied,) = await store.apply_plans(TENANT, [given])
    except StoreUnreachable:
        return None
    return applied


async def ended_rows(store: PostgresStore, given: SourcePlan) -> list[AutomationScheduler]:
    found = [await store.find_occurrence(TENANT, one.scheduler_key) for one in given.deactivate]
    return [row for row in found if row is not None]


async def contents(connection: Connection) -> list[list[str]]:
    """Read every row that a plan may write, as text."""
    tables = [f"SELECT row::text AS row FROM {name} AS row ORDER BY 1" for name in WRITTEN]  # noqa: S608  our own names
    return [[row["row"] for row in await connection.fetch(sql)] for sql in tables]

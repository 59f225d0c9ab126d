"""Everything that a PostgreSQL store does with occurrences, done once: planned, claimed, finished, listed and held."""

from datetime import timedelta
from typing import Final

from clarion.adapters.stores.postgres import PostgresStore
from clarion.domain.automation import AutomationStatus, AutomationType
from clarion.ports.automation import DueEnd, Standing
from clarion.testing import factories as make
from clarion.testing.contracts.planning import TYPE, ended, plan, source, state
from tests.integration.postgres_fill import TENANT

LEASE: Final = timedelta(minutes=1)


async def use_automation(store: PostgresStore, around: range) -> None:
    await use_plans(store, around)
    await use_claims(store, f"{TENANT}-{around.start}")  # of which the second tenant is new
    await use_words(store)


async def use_plans(store: PostgresStore, around: range) -> None:
    """Some of these sources have been planned before, and of some there are occurrences."""
    sources = [source(n) for n in around]
    keys = [make.automation_scheduler(n).scheduler_key for n in around]
    found = await store.find_standings_of_sources(TENANT, TYPE, sources, keys=keys)
    plans = []
    for n in around:
        standing = found.get(source(n))
        rows = standing.open_rows if standing else ()
        plans.append(
            plan(
                n,
                serial=standing.serial if standing else 0,
                deactivate=tuple(map(ended, rows)) if n % 2 else (),
                ensure=(make.automation_scheduler(n, local_time="11:00"),) if n % 3 else (),
                states=(state(n),),
            )
        )
    assert not any(one.overtaken for one in await store.apply_plans(TENANT, plans))
    entity = make.guid(around[0], "order")
    lines = await store.list_history(TENANT, entity, limit=10)
    await store.write_history(TENANT, lines)
    await store.list_history(TENANT, entity, subject=lines[0].subject, limit=10)
    await store.find_occurrence(TENANT, keys[0])


async def use_claims(store: PostgresStore, tenant_id: str) -> None:
    """More is due than is claimed, of two tenants; some claims are given back, and some are left behind."""
    await store.ensure_automation_schedulers(tenant_id, [make.automation_scheduler(n) for n in range(5)])
    claims = await store.claim_due(limit=20, lease=LEASE)
    assert len(claims) == 20
    ends = [
        DueEnd(
            tenant_id=one.tenant_id,
            scheduler_key=one.row.scheduler_key,
            version=one.row.version,
            to=AutomationStatus.PENDING,
            hold=place % 2 == 0,
            delay=LEASE,
        )
        for place, one in enumerate(claims)
    ]
    assert len(await store.finish_due(ends)) == 20
    assert await store.claim_due(limit=20, lease=timedelta())
    assert await store.rescue_due(limit=10)


async def use_words(store: PostgresStore) -> None:
    """Of the first that is due: held, released, run now and deactivated."""
    for automation_type in (None, AutomationType.REMINDER):
        for standing in (Standing.WAITING, Standing.DUE):
            await store.list_occurrences(TENANT, standing=standing, automation_type=automation_type, limit=10)
    (row,) = await store.list_occurrences(TENANT, standing=Standing.DUE, limit=1)
    for verb in (
        store.hold_occurrence,
        store.release_occurrence,
        store.run_occurrence_now,
        store.deactivate_occurrence,
    ):
        assert await verb(TENANT, row.scheduler_key, actor="sam", reason="why not")

"""Everything that a PostgreSQL store does with occurrences, done once: planned, claimed, finished, listed and held."""

from clarion.adapters.stores.postgres import PostgresStore
from clarion.testing import factories as make
from clarion.testing.contracts.planning import TYPE, ended, plan, source, state
from tests.integration.postgres_fill import TENANT


async def use_automation(store: PostgresStore, around: range) -> None:
    await use_plans(store, around)


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
    await store.write_history(TENANT, await store.list_history(TENANT, entity, limit=10))
    await store.find_occurrence(TENANT, keys[0])

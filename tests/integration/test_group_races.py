"""Two who edit groups at once, on two connections: no circle comes to stand, and no change of members is lost."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from clarion.adapters.stores.postgres import PostgresStore
from clarion.adapters.stores.sqlite import SqliteStore, open_store
from clarion.domain.group import MemberChange
from clarion.errors import InvalidInput
from clarion.ports.store import Store
from clarion.testing.clock import ManualClock
from clarion.testing.factories import guid, person
from tests.integration.race import Race, open_race

A, B, C = (guid(n, "group") for n in (1, 2, 3))
ONE, TWO = ([person(n).recipient_id_hash] for n in (1, 2))


@pytest.fixture
async def race(migrated_postgres_url: str) -> AsyncIterator[Race]:
    async with open_race(migrated_postgres_url) as race:
        yield race


async def three_groups(store: Store, tenant: str) -> None:
    """A → nothing, B → C; so A into C closes a circle if B comes into A."""
    for group in (A, B, C):
        await store.put_group(tenant, guid=group, name="g")
    await store.put_group(tenant, guid=B, name="g", children=[C])


async def nest(store: Store, tenant: str, outer: UUID, inner: UUID) -> str:
    """Put one group into another, and say what came of it."""
    try:
        await store.put_group(tenant, guid=outer, name="g", children=[inner], actor="sam")
    except InvalidInput as error:
        return "refused" if "already" in error.message else error.message
    return "stored"


async def inside(store: Store, tenant: str, group: UUID) -> tuple[UUID, ...]:
    found = await store.find_group(tenant, group)
    assert found is not None
    return found.children


async def test_of_two_edits_that_make_a_circle_together_one_is_refused_wherever_they_meet(race: Race) -> None:
    """The first is stopped before each of its statements in turn."""
    await three_groups(race.second, "alone")
    count = await race.statements(lambda store: nest(store, "alone", A, B))
    assert count >= 8
    waited = []
    for n in range(1, count + 1):
        tenant = f"acme-{n}"
        await three_groups(race.second, tenant)

        def first(store: PostgresStore, tenant: str = tenant) -> Any:
            return nest(store, tenant, A, B)

        def second(store: PostgresStore, tenant: str = tenant) -> Any:
            return nest(store, tenant, C, A)

        meeting = await race.meet(tenant, first, second, stop_before=n)
        assert sorted((meeting.first, meeting.second)) == ["refused", "stored"], n
        circle = [await inside(race.second, tenant, group) for group in (A, C)]
        assert circle in ([(B,), ()], [(), (A,)]), n
        assert len(await race.second.list_audit(tenant)) == 1
        waited.append(meeting.waited)
    assert waited[-1], "the second waits for the first one's lock"


async def test_changes_of_one_groups_members_wait_for_each_other_and_both_stand(race: Race) -> None:
    """One adds whom the other takes out: whoever is later has the last word, and nobody waits in a circle."""
    await race.second.put_group("alone", guid=A, name="g", members=ONE)

    def swap(tenant: str, add: list[str], remove: list[str]) -> Any:
        return lambda store: store.change_members(tenant, A, add=add, remove=remove, actor="sam")

    count = await race.statements(swap("alone", TWO, ONE))
    for n in range(1, count + 1):
        tenant = f"acme-{n}"
        await race.second.put_group(tenant, guid=A, name="g", members=ONE)
        meeting = await race.meet(tenant, swap(tenant, TWO, ONE), swap(tenant, ONE, TWO), stop_before=n)
        members = [one.recipient_id_hash for one in await race.second.list_members(tenant, A)]
        swapped = MemberChange(added=1, removed=1, unknown=1)
        same = MemberChange(unchanged=2, unknown=1)
        if meeting.second == swapped:
            assert (meeting.first, members) == (swapped, ONE), n
        else:
            assert (meeting.first, meeting.second, members) == (swapped, same, TWO), n


@pytest.fixture
async def two(migrated_sqlite_path: Path) -> AsyncIterator[tuple[SqliteStore, SqliteStore]]:
    """Two stores on one file, each with a connection and a thread of its own."""
    url = f"sqlite:///{migrated_sqlite_path}"
    stores = (await open_store(url, clock=ManualClock()), await open_store(url, clock=ManualClock()))
    yield stores
    for store in stores:
        await store.close()


async def test_two_connections_to_one_file_close_no_circle(two: tuple[SqliteStore, SqliteStore]) -> None:
    one, other = two
    for n in range(20):
        tenant = f"acme-{n}"
        await three_groups(one, tenant)
        answers = await asyncio.gather(nest(one, tenant, A, B), nest(other, tenant, C, A))
        assert sorted(answers) == ["refused", "stored"]
        circle = [await inside(other, tenant, group) for group in (A, C)]
        assert circle in ([(B,), ()], [(), (A,)])

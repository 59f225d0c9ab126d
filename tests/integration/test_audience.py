"""Who is in an audience, on both engines: every way to be in one, in pages whose cost does not depend on its size."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest

from clarion.adapters.stores import postgres, sqlite
from clarion.adapters.stores.sqlite import InlineRunner
from clarion.domain.audience import GROUP_DEPTH_MAX, Audience
from clarion.ports.store import Store
from clarion.testing.clock import ManualClock
from clarion.testing.contracts.set_clock import PostgresDatabase
from clarion.testing.factories import guid
from clarion.testing.store import SqliteDatabase
from tests.integration.sqlite_look import connection_of

TENANT = "acme"
OTHER = "other"


def people(*numbers: int) -> list[str]:
    return [f"{number:032x}" for number in numbers]


class House:
    """A store, and rows put into its tables past it."""

    def __init__(self, store: Store, database: SqliteDatabase | PostgresDatabase) -> None:
        self.store = store
        self._database = database

    async def insert(self, table: str, *rows: Sequence[object], tenant_id: str = TENANT) -> None:
        for row in rows:
            values = [tenant_id, *(self._database.written(value) for value in row)]
            places = ", ".join(f"${number}" for number in range(1, len(values) + 1))
            sql = f"INSERT INTO {table} VALUES ({places}) RETURNING 1 AS done"  # noqa: S608  our own words
            await self._database.fetch(sql, values)

    async def all_of(self, audience: Audience, *, limit: int, tenant_id: str = TENANT) -> list[list[str]]:
        """Read every page."""
        pages: list[list[str]] = []
        after = ""
        while page := list(await self.store.find_audience(tenant_id, audience, after=after, limit=limit)):
            pages.append(page)
            assert page[0] > after, "or it would never end"
            after = page[-1]
        return pages


@pytest.fixture(params=["sqlite", "postgres"])
async def house(request: pytest.FixtureRequest) -> AsyncIterator[House]:
    if request.param == "sqlite":
        path: Path = request.getfixturevalue("migrated_sqlite_path")
        opened = await sqlite.open_store(f"sqlite:///{path}", clock=ManualClock(), runner=InlineRunner())
        yield House(opened, SqliteDatabase(connection_of(opened)))
        await opened.close()
        return
    url: str = request.getfixturevalue("migrated_postgres_url")
    store = await postgres.open_store(url, clock=ManualClock())
    connection = await asyncpg.connect(url)
    yield House(store, PostgresDatabase(connection))
    await connection.close()
    await store.close()


def group(n: int) -> UUID:
    return guid(n, "group")


async def test_everybody_in_any_part_is_found_once_in_the_order_of_hashes(house: House) -> None:
    unit, child = guid(1, "unit"), guid(1, "child")
    await house.insert("group_member", *([group(1), one] for one in people(7, 3, 5)))
    await house.insert("group_member", *([group(2), one] for one in people(5, 9)))
    await house.insert("unit_member", *([unit, one] for one in people(1, 3)))
    await house.insert("role_holder", *(["teacher", held, one] for held, one in [("", people(4)[0])]))
    await house.insert("role_holder", *(["teacher", str(unit), one] for one in people(2, 9)))
    await house.insert("role_holder", *(["teacher", str(guid(2, "unit")), one] for one in people(10)))
    await house.insert("role_holder", *(["head", "", one] for one in people(11)))
    await house.insert("entity_relation", *(["child", child, "guardian", one] for one in people(6, 7)))
    await house.insert("entity_relation", *(["child", child, "doctor", one] for one in people(12)))
    await house.insert("entity_relation", *(["child", child, "teacher", one] for one in people(15)))
    await house.insert("entity_relation", *(["pupil", child, "guardian", one] for one in people(13)))
    await house.insert("group_member", *([group(1), one] for one in people(14)), tenant_id=OTHER)
    audience = Audience(
        groups=(group(1), group(2)),
        roles=(("teacher", ""), ("teacher", str(unit))),
        units=(unit,),
        relations=(("child", child, "guardian"),),
    )
    for limit in (1, 2, 4, 9, 100):
        pages = await house.all_of(audience, limit=limit)
        assert [one for page in pages for one in page] == people(1, 2, 3, 4, 5, 6, 7, 9)
        assert [len(page) for page in pages[:-1]] == [limit] * (len(pages) - 1)
    assert await house.all_of(audience, limit=10, tenant_id=OTHER) == [people(14)]
    assert await house.all_of(Audience(), limit=10) == []
    assert await house.all_of(Audience(roles=(("teacher", ""),)), limit=10) == [people(4)]


async def test_a_group_holds_those_who_are_in_the_groups_inside_it(house: House) -> None:
    """Also where a group is in two others, and where they hold each other in a circle."""
    for n in range(1, 5):
        await house.insert("group_member", [group(n), *people(n)])
    for outer, inner in [(1, 2), (1, 3), (2, 4), (3, 4), (4, 1)]:
        await house.insert("group_child", [group(outer), group(inner)])
    for outer in range(1, 5):
        assert await house.all_of(Audience(groups=(group(outer),)), limit=10) == [people(1, 2, 3, 4)]
    await house.insert("group_child", [group(5), group(1)], tenant_id=OTHER)
    assert await house.all_of(Audience(groups=(group(5),)), limit=10) == []


async def test_groups_are_looked_into_down_to_a_depth(house: House) -> None:
    for n in range(GROUP_DEPTH_MAX + 2):
        await house.insert("group_member", [group(n), *people(n)])
        await house.insert("group_child", [group(n), group(n + 1)])
    found = await house.all_of(Audience(groups=(group(0),)), limit=100)
    assert found == [people(*range(GROUP_DEPTH_MAX))]


async def test_a_page_costs_the_same_however_many_come_before_or_behind_it(migrated_sqlite_path: Path) -> None:
    """Counted in instructions of SQLite's own machine; on PostgreSQL the rows visited are (test_postgres_queries)."""
    store = await sqlite.open_store(f"sqlite:///{migrated_sqlite_path}", clock=ManualClock(), runner=InlineRunner())
    connection = connection_of(store)
    for n, size in ((1, 1000), (2, 20_000)):
        rows = [(TENANT, str(group(n)), f"{number:032x}") for number in range(size)]
        connection.executemany("INSERT INTO group_member VALUES (?, ?, ?)", rows)

    async def cost(n: int, after: str) -> int:
        steps = [0]

        def count() -> None:
            steps[0] += 1

        connection.set_progress_handler(count, 10)
        found = await store.find_audience(TENANT, Audience(groups=(group(n),)), after=after, limit=100)
        connection.set_progress_handler(None, 0)
        assert len(found) == 100
        return steps[0]

    first = await cost(1, "")
    assert first > 100, "or nothing was counted"
    for after in ("", f"{10_000:032x}", f"{19_899:032x}"):
        assert await cost(2, after) < first * 1.1
    await store.close()

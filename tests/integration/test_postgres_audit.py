"""Acts and their entries on PostgreSQL: a connection that ends, and two people who meet, at every statement."""

from collections.abc import AsyncIterator
from itertools import count

import pytest

from clarion.adapters.stores.postgres import PostgresStore, open_store
from clarion.domain.audit import broken_link
from clarion.errors import StoreUnreachable
from clarion.testing.clock import ManualClock
from clarion.testing.contracts.auditing import DEEDS, Arrange, Deed, disabling, log_of, pausing, worded
from tests.contract.test_store_postgres import PostgresHarness
from tests.integration.race import Call, Race, open_race
from tests.integration.watched_connection import Connection, watched

STATEMENTS_MIN = 6
"""BEGIN, the act itself, three of the log, COMMIT."""


@pytest.fixture
async def race(migrated_postgres_url: str) -> AsyncIterator[Race]:
    async with open_race(migrated_postgres_url) as race:
        yield race


def by(actor: str, deed: Deed) -> Call:
    """Let somebody do it, at whatever store."""
    return lambda store: deed.do(store, actor)


async def arranged(race: Race, arrange: Arrange) -> tuple[PostgresHarness, Deed, int]:
    """Give a tenant of its own everything for an act; tell how long its log is."""
    harness = PostgresHarness(race.second, race.observer)
    await harness.empty_queue()
    deed = await arrange(harness)
    return harness, deed, len(await log_of(harness))


class Cut:
    """Ends a store's connection before the n-th statement from now."""

    def __init__(self) -> None:
        self.left = 0

    async def before(self, connection: Connection, query: str) -> None:
        self.left -= 1
        if self.left == 0:
            connection.terminate()


@pytest.mark.parametrize("arrange", DEEDS)
async def test_an_act_whose_connection_ends_at_any_statement_leaves_neither(
    race: Race, migrated_postgres_url: str, arrange: Arrange
) -> None:
    cut = Cut()
    store = await open_store(migrated_postgres_url, clock=ManualClock(), connection_class=watched(cut.before))
    for n in count(1):
        harness, deed, before = await arranged(race, arrange)
        cut.left = n
        if not await broke_off(store, deed):
            break
        assert await log_of(harness, after=before) == []
        assert await deed.do(race.second, "sam")
        (entry,) = await log_of(harness, after=before)
        assert worded(entry) == ("sam", *deed[1:])
    assert n > STATEMENTS_MIN
    await store.close()


async def broke_off(store: PostgresStore, deed: Deed) -> bool:
    """Do the act, and tell whether its connection ended."""
    try:
        assert await deed.do(store, "kim")
    except StoreUnreachable:
        return True
    return False


@pytest.mark.parametrize("arrange", DEEDS)
async def test_two_people_who_do_the_same_at_once_have_one_entry(race: Race, arrange: Arrange) -> None:
    _, deed, _ = await arranged(race, arrange)
    statements = await race.statements(by("sam", deed))
    assert statements >= STATEMENTS_MIN
    for n in range(1, statements + 1):
        harness, deed, before = await arranged(race, arrange)
        meeting = await race.meet(harness.tenant_id, by("sam", deed), by("kim", deed), stop_before=n)
        (entry,) = await log_of(harness, after=before)
        assert (meeting.first, meeting.second) == (entry.actor == "sam", entry.actor == "kim")
        assert broken_link(harness.tenant_id, await log_of(harness)) is None


@pytest.mark.parametrize("arrange", DEEDS)
async def test_two_people_who_do_different_things_at_once_keep_the_chain(race: Race, arrange: Arrange) -> None:
    other = pausing if arrange is disabling else disabling
    _, deed, _ = await arranged(race, arrange)
    for n in range(1, await race.statements(by("sam", deed)) + 1):
        harness, deed, _ = await arranged(race, arrange)
        second = await other(harness)
        before = len(await log_of(harness))
        meeting = await race.meet(harness.tenant_id, by("sam", deed), by("kim", second), stop_before=n)
        assert (meeting.first, meeting.second) == (True, True)
        assert {entry.actor for entry in await log_of(harness, after=before)} == {"sam", "kim"}
        assert broken_link(harness.tenant_id, await log_of(harness)) is None


async def test_nobody_waits_for_the_log_of_another_tenant(race: Race) -> None:
    mine, deed, _ = await arranged(race, disabling)
    theirs = PostgresHarness(race.second, race.observer)
    their_deed = await disabling(theirs)
    meeting = await race.meet(
        mine.tenant_id,
        by("sam", deed),
        by("kim", their_deed),
        stop_before=STATEMENTS_MIN,  # the log's lock is held
    )
    assert (meeting.first, meeting.second, meeting.waited) == (True, True, False)

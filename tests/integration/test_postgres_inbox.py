"""Two who use one inbox of the PostgreSQL store at once, interleaved at every statement of the first.

Whatever both do, the lines and the counts are afterwards those of a plain list to which one of them came first, and
the counts are those of the lines.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import asyncpg
import pytest

from clarion.adapters.stores.postgres import PostgresStore
from clarion.domain.inbox import Marking
from clarion.testing.contracts.inbox import READER, PlainInbox, counted, line, words
from tests.integration.race import Race, open_race

OLD, NEW, EXPIRING = 1, 2, 3
PAST_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)


class Act(NamedTuple):
    """Something that is done to an inbox, and what it does to a plain list of lines."""

    name: str
    do: Callable[[PostgresStore, str], Awaitable[Any]]
    plain: Callable[[PlainInbox], Any]

    def __str__(self) -> str:
        """Name it in a test's id."""
        return self.name


def one(marking: Marking) -> Act:
    return Act(
        f"{marking} one",
        lambda store, tenant: store.mark_lines(tenant, READER, [line(OLD).message_id], marking),
        lambda plain: plain.mark([OLD], marking),
    )


def every(marking: Marking) -> Act:
    return Act(
        f"{marking} all",
        lambda store, tenant: store.mark_inbox(tenant, READER, marking),
        lambda plain: plain.mark(list(plain.lines), marking),
    )


ACTS = [
    Act(
        "new line",
        lambda store, tenant: store.ensure_user_messages(tenant, [line(NEW)]),
        lambda plain: plain.add({NEW: None}),
    ),
    one(Marking.READ),
    one(Marking.UNREAD),
    one(Marking.ARCHIVE),
    every(Marking.READ),
    every(Marking.UNREAD),
    every(Marking.ARCHIVE),
    Act("sweep", lambda store, tenant: store.sweep_inbox(tenant, READER, limit=10), lambda _: None),
    Act("janitor", lambda store, _: store.sweep_inboxes(limit=10), lambda _: None),
]


@pytest.fixture
async def race(migrated_postgres_url: str) -> AsyncIterator[Race]:
    async with open_race(migrated_postgres_url) as race:
        yield race


async def prepare(race: Race, tenant: str) -> None:
    """Give an inbox a line, and one that has expired and is not swept yet."""
    await race.second.ensure_user_messages(tenant, [line(OLD), line(EXPIRING, expires_at=PAST_AT)])


def plain_inbox() -> PlainInbox:
    plain = PlainInbox()
    plain.add({OLD: None})
    return plain


async def found(race: Race, tenant: str) -> dict[int, set[str]]:
    numbers = {line(n).message_id: n for n in (OLD, NEW)}
    listed = await race.second.list_inbox(tenant, READER)
    return {numbers[one.message_id]: words(one.state) for one in listed}


@pytest.mark.parametrize("first", ACTS, ids=str)
async def test_whoever_comes_first_lines_and_counts_agree(race: Race, first: Act) -> None:
    await prepare(race, "alone")
    statements = await race.statements(lambda store: first.do(store, "alone"))
    for number, second in enumerate(ACTS):
        waited = [await meet(race, f"acme-{number}-{n}", first, second, n) for n in range(1, statements + 1)]
        assert not waited[0], "before its first statement nobody has to wait for it"
        assert waited == sorted(waited), "once somebody has to wait, they do until the first has ended"


async def meet(race: Race, tenant: str, first: Act, second: Act, stop_before: int) -> bool:
    """Let two meet in an inbox of their own; return whether the second had to wait."""
    await prepare(race, tenant)
    meeting = await race.meet(
        tenant, lambda store: first.do(store, tenant), lambda store: second.do(store, tenant), stop_before=stop_before
    )
    orders = []
    for order in ((first, second), (second, first)):
        plain = plain_inbox()
        for act in order:
            act.plain(plain)
        orders.append(plain.lines)
    lines = await found(race, tenant)
    assert lines in orders
    while await race.second.sweep_inbox(tenant, READER, limit=10):
        pass
    assert await race.second.count_inbox(tenant, READER) == counted(list(lines.values()))
    return meeting.waited


async def test_two_janitors_enter_a_line_of_an_older_program_once(race: Race) -> None:
    """The second passes over what the first is entering, and does not wait."""
    await prepare(race, "acme")
    await race.other.execute("DELETE FROM inbox_state")
    await race.other.execute("DELETE FROM inbox_count")
    await race.other.execute("UPDATE user_message SET in_inbox = false")
    meeting = await race.meet(
        "acme",
        lambda store: store.enter_lines(limit=10),
        lambda store: store.enter_lines(limit=10),
        stop_before=3,  # after BEGIN and the lock
    )
    assert (meeting.first, meeting.second, meeting.waited) == (2, 0, False)
    while await race.second.sweep_inbox("acme", READER, limit=10):
        pass
    assert await race.second.count_inbox("acme", READER) == counted([set()])


async def test_an_inbox_of_any_size_is_marked_by_one_row(race: Race) -> None:
    """Counted by the server: what a mark of all lines writes does not grow with them."""
    lines = [line(n) for n in range(1000)]
    await race.second.ensure_user_messages("acme", lines)
    before = await written(race.observer)
    await race.first.mark_inbox("acme", READER, Marking.READ)
    after = await written(race.observer)
    assert {table: after[table] - before[table] for table in after} == {"inbox_state": 0, "user_message": 0}
    assert (await race.second.count_inbox("acme", READER)).unread == 0


async def written(connection: "asyncpg.Connection[asyncpg.Record]") -> dict[str, int]:
    """Count versions of rows by the last transaction that wrote them."""
    return {
        table: await connection.fetchval(
            f"SELECT count(DISTINCT xmin::text) FROM {table}"  # noqa: S608  our own names
        )
        for table in ("inbox_state", "user_message")
    }

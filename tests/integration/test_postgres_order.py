"""Rows of one order key on PostgreSQL: one that may go waits for one poll at most, whoever met whom at what statement.

A claim puts rows in line while another caller closes the row that they wait for. One of the two is stopped before each
of its statements, and the other runs as far as it comes. Neither may see what the other does, so that nobody wakes the
row in line; it must look again by itself within one poll.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from itertools import count
from typing import Final

import pytest

from clarion.adapters.stores.postgres import PostgresStore
from clarion.domain.call import Accepted, Deferred, Refused, Unknown
from clarion.domain.claim import ClaimedMessage, FlowQuota
from clarion.domain.outgoing import OutgoingMessage
from clarion.testing import factories as make
from tests.integration.postgres_sending import ROUTE, TENANT, receipt, result, send, take
from tests.integration.race import Call, Race, open_race

OTHER_ROUTE: Final = "email:other"
POLL: Final = timedelta(seconds=1)
NUMBERS: Final = count(1)
TOKENS: Final = count(1)


@pytest.fixture
async def race(migrated_postgres_url: str) -> AsyncIterator[Race]:
    async with open_race(migrated_postgres_url) as race:
        yield race


async def put(race: Race, size: int, **fields: object) -> list[OutgoingMessage]:
    """Store new messages of one order key, each of a job of its own."""
    start = next(NUMBERS) * 100
    return await send(race.second, range(start, start + size), **{"order_key": "0" * 32, "broadcast": "", **fields})


async def claim(store: PostgresStore, *routes: str) -> list[ClaimedMessage]:
    found = await store.discover_flows(routes=routes or (ROUTE, OTHER_ROUTE), lows={})
    quotas = [FlowQuota(flow_id=head.flow_id, quota=9, account=head.account or "main") for head in found.heads]
    return await take(store, quotas, next(TOKENS))


async def the_next(race: Race) -> ClaimedMessage:
    """Claim what may go now, and nothing else."""
    (claimed,) = await claim(race.second)
    return claimed


async def accept(store: PostgresStore, message: ClaimedMessage) -> None:
    await store.record_outgoing([result(message, Accepted())], actor="worker")


async def check_that_all_go_on(race: Race, *ids: int | None, where: object) -> None:
    """Send these one after the other: each may go at once, or after one poll at most."""
    for expected in ids:
        claimed = await claim(race.second)
        if not claimed:
            await race.other.execute("UPDATE outgoing_message SET due_at = due_at - $1::interval", POLL)
            claimed = await claim(race.second)
        assert [one.id for one in claimed] == [expected], where
        await accept(race.second, claimed[0])


async def accept_all(race: Race, claimed: list[ClaimedMessage], ids: list[int | None]) -> None:
    """Send what a claim has taken after all, because the row ahead was closed before it looked."""
    for one in claimed:
        await accept(race.second, one)
        ids.remove(one.id)


async def take_everything_away(race: Race) -> None:
    for table in ("outgoing_message", "outgoing_key", "webhook_event", "delivery_attempt"):
        await race.other.execute(f"DELETE FROM {table}")  # noqa: S608  our own names


Prepare = Callable[[Race], Awaitable[tuple[Call, list[int | None]]]]
"""Puts two messages into the store of which the second waits for the first. Gives what closes the first, and the ids of
those that go out after that."""


async def in_flight(race: Race) -> tuple[ClaimedMessage, list[int | None]]:
    """The first is in flight, and the second has just come."""
    await put(race, 1)
    claimed = await the_next(race)
    (second,) = await put(race, 1)
    return claimed, [second.id]


async def accepted(race: Race) -> tuple[Call, list[int | None]]:
    claimed, ids = await in_flight(race)
    return lambda store: accept(store, claimed), ids


async def refused(race: Race) -> tuple[Call, list[int | None]]:
    claimed, ids = await in_flight(race)
    return lambda store: store.record_outgoing([result(claimed, Refused(reason="no"))], actor="worker"), ids


async def unknown(race: Race) -> tuple[Call, list[int | None]]:
    claimed, ids = await in_flight(race)
    return lambda store: store.record_outgoing([result(claimed, Unknown(reason="lost"))], actor="worker"), ids


async def put_off(race: Race) -> tuple[Call, list[int | None]]:
    """It is not closed, but so far from its retry that nobody waits for it."""
    claimed, ids = await in_flight(race)
    later = result(claimed, Deferred(reason="busy"), delay=timedelta(minutes=5))
    return lambda store: store.record_outgoing([later], actor="worker"), ids


async def received(race: Race) -> tuple[Call, list[int | None]]:
    (first,) = await put(race, 1)
    await the_next(race)
    (second,) = await put(race, 1)
    await race.second.keep_events(TENANT, [receipt(first)])
    return lambda store: store.apply_events(limit=10, actor="track"), [second.id]


async def rescued(race: Race) -> tuple[Call, list[int | None]]:
    claimed, ids = await in_flight(race)
    await race.other.execute("UPDATE outgoing_message SET lease_until = now() WHERE id = $1", claimed.id)
    return lambda store: store.rescue_outgoing(limit=10), ids


async def near_its_retry(race: Race) -> tuple[int, list[int | None]]:
    """The first waits for its retry, which is so near that the second waits for it. Gives the number of its job."""
    number = next(NUMBERS) * 100
    await send(race.second, range(number, number + 1), order_key="0" * 32, broadcast="")
    claimed = await the_next(race)
    later = result(claimed, Deferred(reason="busy"), delay=timedelta(seconds=30))
    await race.second.record_outgoing([later], actor="worker")
    (second,) = await put(race, 1)
    return number, [second.id]


async def canceled(race: Race) -> tuple[Call, list[int | None]]:
    number, ids = await near_its_retry(race)
    return lambda store: store.cancel_job(TENANT, make.notification_job(number).guid, actor="sam"), ids


async def swept(race: Race) -> tuple[Call, list[int | None]]:
    _, ids = await near_its_retry(race)
    await race.other.execute("UPDATE outgoing_message SET cancel_at = now() WHERE status = 'RetryReady'")
    return lambda store: store.sweep_canceled(limit=10), ids


async def expired(race: Race) -> tuple[Call, list[int | None]]:
    """On a route of its own, so that one claim picks the first and the other one the second."""
    await put(race, 1, route=OTHER_ROUTE)
    await race.other.execute("UPDATE outgoing_message SET expires_at = now()")
    (second,) = await put(race, 1)
    return lambda store: claim(store, OTHER_ROUTE), [second.id]


CLOSING: Final[tuple[Prepare, ...]] = (
    accepted,
    refused,
    unknown,
    put_off,
    received,
    rescued,
    canceled,
    swept,
    expired,
)


def put_in_line(store: PostgresStore) -> Awaitable[list[ClaimedMessage]]:
    return claim(store, ROUTE)


async def test_a_row_that_is_being_put_in_line_while_the_one_ahead_is_closed_waits_for_a_poll_at_most(
    race: Race,
) -> None:
    for prepare in CLOSING:
        await take_everything_away(race)
        await prepare(race)
        statements = await race.statements(put_in_line)
        assert statements >= 8, "discover, the plain claim, BEGIN, gates, rows, who is behind, a place in line, COMMIT"
        for n in range(1, statements + 1):
            await take_everything_away(race)
            close, ids = await prepare(race)
            meeting = await race.meet(TENANT, put_in_line, close, stop_before=n)
            await accept_all(race, meeting.first, ids)
            await check_that_all_go_on(race, *ids, where=f"{prepare.__name__}, put in line before statement {n}")


async def test_a_row_that_is_put_in_line_while_the_one_ahead_is_being_closed_waits_for_a_poll_at_most(
    race: Race,
) -> None:
    for prepare in CLOSING:
        await take_everything_away(race)
        close, _ = await prepare(race)
        await close(race.second)  # the first time makes the flow that uncertain rows are pinned to
        await take_everything_away(race)
        close, _ = await prepare(race)
        for n in range(1, await race.statements(close) + 1):
            await take_everything_away(race)
            close, ids = await prepare(race)
            meeting = await race.meet(TENANT, close, put_in_line, stop_before=n)
            await accept_all(race, meeting.second, ids)
            await check_that_all_go_on(race, *ids, where=f"{prepare.__name__}, closed before statement {n}")


async def test_a_claim_that_takes_so_long_that_two_ahead_of_its_row_are_sent_leaves_it_due_within_a_poll(
    race: Race,
) -> None:
    """The row is third in line when the claim looks, and first when it commits."""

    async def prepare() -> tuple[Call, list[int | None]]:
        await put(race, 2)
        claimed = await the_next(race)  # and the second is in line

        async def send_two(store: PostgresStore) -> None:
            await accept(store, claimed)
            await accept(store, await the_next(race))

        (third,) = await put(race, 1)
        return send_two, [third.id]

    await prepare()
    for n in range(1, await race.statements(put_in_line) + 1):
        await take_everything_away(race)
        send_two, ids = await prepare()
        meeting = await race.meet(TENANT, put_in_line, send_two, stop_before=n)
        await accept_all(race, meeting.first, ids)
        await check_that_all_go_on(race, *ids, where=n)


async def test_a_line_is_looked_at_by_its_first_row_only_and_moves_up_one_by_one(race: Race) -> None:
    """Else a long line would be picked again and again, and hold up whatever else is in its flow."""
    await put(race, 1)
    await the_next(race)
    rows = await put(race, 5)
    assert await claim(race.second) == []
    waits = await race.observer.fetch("SELECT due_at - now() AS due_in FROM outgoing_message WHERE in_line ORDER BY id")
    assert [row["due_in"] <= POLL for row in waits] == [True, False, False, False, False]
    await race.other.execute("UPDATE outgoing_message SET lease_until = now() WHERE status = 'Sending'")
    assert await race.second.rescue_outgoing(limit=10) == 1
    for row in rows:
        claimed = await the_next(race)
        assert claimed.id == row.id
        await accept(race.second, claimed)


async def test_a_wake_up_that_passes_over_a_row_which_somebody_holds_wakes_the_one_behind_it(race: Race) -> None:
    """Whoever holds it may be closing it, and may have looked who is next before the others came."""
    await put(race, 1)
    first = await the_next(race)
    held, behind = await put(race, 2)
    assert await claim(race.second) == []
    await race.other.execute("BEGIN")
    await race.other.execute("SELECT FROM outgoing_message WHERE id = $1 FOR UPDATE", held.id)
    for outcome in (Accepted(), Refused(reason="no")):
        await race.second.record_outgoing([result(first, outcome)], actor="worker")
        in_line = await race.observer.fetchval("SELECT in_line FROM outgoing_message WHERE id = $1", behind.id)
        assert in_line is False
        await race.observer.execute("UPDATE outgoing_message SET in_line = true WHERE id = $1", behind.id)
        await race.observer.execute(
            "UPDATE outgoing_message SET status = 'Sending', lease_until = now() WHERE id = $1", first.id
        )
    await race.other.execute("ROLLBACK")


async def test_a_row_in_line_that_a_repeated_result_holds_while_it_is_to_be_woken_is_due_within_a_poll(
    race: Race,
) -> None:
    """The result changes nothing, but the wake-up has passed over its row."""

    async def prepare() -> tuple[Call, Call, list[int | None]]:
        ahead = await put(race, 2)
        (last,) = await put(race, 1)
        later = [one.id for one in ahead]
        await race.other.execute(
            "UPDATE outgoing_message SET due_at = due_at + interval '1 hour' WHERE id = ANY ($1)", later
        )
        called = result(await the_next(race), Deferred(reason="busy"))
        await race.second.record_outgoing([called], actor="worker")
        await race.other.execute(
            "UPDATE outgoing_message SET due_at = due_at - interval '1 hour' WHERE id = ANY ($1)", later
        )
        await accept(race.second, await the_next(race))
        second = await the_next(race)
        assert second.id == ahead[1].id
        return (
            lambda store: store.record_outgoing([called], actor="worker"),
            lambda store: accept(store, second),
            [last.id],
        )

    repeat, _, _ = await prepare()
    for n in range(1, await race.statements(repeat) + 1):
        await take_everything_away(race)
        repeat, close, ids = await prepare()
        await race.meet(TENANT, repeat, close, stop_before=n)
        await check_that_all_go_on(race, *ids, where=n)

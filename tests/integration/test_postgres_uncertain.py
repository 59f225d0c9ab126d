"""Two callers that meet at one message on PostgreSQL: rescue, settle, the record of an uncertain row, cancel, retry.

The first is stopped before each of its statements, the second runs as far as it comes, then the first goes on. Whatever
the statement, all that is stored afterwards is what it would be if one had come after the other, in one of the two
orders (I-17, I-31, F-37). Nothing here knows what that is: it is tried, without anybody else around.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from itertools import product
from typing import Any, Final, NamedTuple

import msgspec
import pytest

from clarion.adapters.stores.postgres import PostgresStore
from clarion.domain.call import Accepted, CallOutcome, Deferred, NotCalled, Refused, Unknown
from clarion.domain.claim import ClaimedMessage, Settlement
from clarion.testing import factories as make
from tests.integration.postgres_sending import TENANT, claim, receipt, result, send
from tests.integration.race import Call, Race, open_race


@pytest.fixture
async def race(migrated_postgres_url: str) -> AsyncIterator[Race]:
    async with open_race(migrated_postgres_url) as race:
        yield race


class Caller(NamedTuple):
    """What somebody does to the message. One that passes over what others hold does it again later."""

    name: str
    call: Call
    comes_again: bool = False


TABLES: Final = (
    "outgoing_message",
    "outgoing_key",
    "transition",
    "delivery_attempt",
    "webhook_event",
    "support_case",
    "flow_count",
    "audit_log",
)
STORED: Final = (
    """
    SELECT
      o.status, o.version, f.account AS pinned, o.attempts, o.not_called, o.replays, o.replay_authorised, o.account,
      o.due_at IS NULL, o.lease_until IS NULL, o.settle_at IS NULL, o.cancel_at IS NULL, o.cancel_actor,
      o.first_unknown_at IS NULL, o.provider_message_id, o.reason, o.reason_class
    FROM outgoing_message AS o JOIN flow AS f ON f.id = o.flow_id
    """,
    "SELECT version, from_status, to_status, actor, reason FROM transition ORDER BY version",
    "SELECT attempt, status, provider_message_id, reason, latency_ms FROM delivery_attempt ORDER BY attempt",
    "SELECT event_id, applied_at IS NULL FROM webhook_event ORDER BY event_id",
    "SELECT kind, status, seen_count FROM support_case ORDER BY case_id",
    """
    SELECT c.status, f.account, sum(c.n) FROM flow_count AS c JOIN flow AS f ON f.id = c.flow_id
    GROUP BY 1, 2 HAVING sum(c.n) <> 0 ORDER BY 1, 2
    """,
    "SELECT act, actor FROM audit_log ORDER BY seq",
)
"""All that is kept of the message; ids and instants differ each time."""


async def stored(race: Race) -> list[list[tuple[Any, ...]]]:
    return [[tuple(row) for row in await race.observer.fetch(sql)] for sql in STORED]


async def take_everything_away(race: Race) -> None:
    for table in TABLES:
        await race.other.execute(f"DELETE FROM {table}")  # noqa: S608  our own names


def recorded(claimed: ClaimedMessage, outcome: CallOutcome) -> Caller:
    results = [result(claimed, outcome)]
    name = f"record {type(outcome).__name__}"
    return Caller(name, lambda store: store.record_outgoing(results, actor="worker"))


async def in_flight(race: Race) -> dict[str, Caller]:
    """A message in flight whose lease has run out, and all who may come to it."""
    (message,) = await send(race.second)
    (claimed,) = await claim(race.second)
    await race.other.execute("UPDATE outgoing_message SET lease_until = now()")
    await race.second.keep_events(TENANT, [msgspec.structs.replace(receipt(message), event_id="delivered")])
    return _by_name(
        Caller("rescue", lambda store: store.rescue_outgoing(limit=10), comes_again=True),
        Caller("receipt", lambda store: store.apply_events(limit=10, actor="track"), comes_again=True),
        Caller("cancel", lambda store: store.cancel_job(TENANT, make.notification_job(0).guid, actor="sam")),
        *(recorded(claimed, outcome) for outcome in OUTCOMES),
    )


OUTCOMES: Final[tuple[CallOutcome, ...]] = (
    Accepted(provider_message_id="p-1"),
    Refused(reason="no"),
    Deferred(reason="busy"),
    NotCalled(reason="not ready"),
    Unknown(reason="lost"),
)


async def uncertain(race: Race) -> dict[str, Caller]:
    """A message that was rescued and waits for a decision, and all who may come to it."""
    callers = await in_flight(race)
    assert await race.second.rescue_outgoing(limit=10) == 1
    (send_,) = await race.second.find_uncertain(accounts=("main",), limit=10)

    def settled(name: str, *, replay: bool, twice: bool = False) -> Caller:
        settlement = Settlement(
            id=send_.id,
            bucket=send_.bucket,
            version=send_.version,
            replay=replay,
            counts_as_duplicate=twice,
            reason="decided",
        )
        return Caller(name, lambda store: store.settle_uncertain([settlement], actor="settle"))

    return callers | _by_name(
        settled("settle: replay", replay=True),
        settled("settle: replay, perhaps twice", replay=True, twice=True),
        settled("settle: leave", replay=False),
        Caller(
            "retry",
            lambda store: store.retry_outgoing(
                TENANT, send_.id, version=send_.version, actor="sam", reason="send it again"
            ),
        ),
    )


async def replayed(race: Race) -> dict[str, Caller]:
    """A message that is to be replayed and is due, and all who may come to it."""
    callers = await uncertain(race)
    await callers["settle: replay"].call(race.second)

    async def claim_again(store: PostgresStore) -> None:
        await claim(store, token=2)

    return callers | _by_name(
        Caller("claim", claim_again, comes_again=True),
        Caller("sweep", lambda store: store.sweep_canceled(limit=10), comes_again=True),
    )


def _by_name(*callers: Caller) -> dict[str, Caller]:
    return {caller.name: caller for caller in callers}


Situation = Callable[[Race], Awaitable[dict[str, Caller]]]
Meetings = tuple[Situation, Sequence[str], Sequence[str]]

MEETINGS: Final[dict[str, Meetings]] = {
    "rescue": (
        in_flight,
        ["rescue"],
        ["rescue", "record Accepted", "record Refused", "record NotCalled", "record Unknown", "receipt", "cancel"],
    ),
    "record of a row that is rescued": (
        in_flight,
        ["record Refused", "record Unknown", "receipt"],
        ["rescue", "cancel", "receipt"],
    ),
    "cancel": (
        in_flight,
        ["cancel"],
        ["rescue", "record Accepted", "record Deferred", "record Unknown", "receipt", "cancel"],
    ),
    "settle": (
        uncertain,
        ["settle: replay", "settle: leave"],
        [
            "record Accepted",
            "record Refused",
            "record NotCalled",
            "receipt",
            "cancel",
            "retry",
            "settle: replay, perhaps twice",
            "settle: leave",
        ],
    ),
    "record of an uncertain row": (
        uncertain,
        ["record Refused", "record Accepted", "record NotCalled"],
        ["record Refused", "receipt", "settle: replay", "cancel", "retry", "rescue"],
    ),
    "cancel and retry of an uncertain row": (
        uncertain,
        ["cancel", "retry"],
        ["record Accepted", "record Refused", "receipt", "settle: replay", "cancel", "retry"],
    ),
    "cancel and late proof of a replay": (
        replayed,
        ["cancel", "record Accepted", "record Refused", "receipt"],
        ["claim", "cancel", "record Accepted"],
    ),
}


async def one_after_the_other(race: Race, situation: Situation, *names: str) -> list[list[tuple[Any, ...]]]:
    await take_everything_away(race)
    callers = await situation(race)
    for name in names:
        await callers[name].call(race.second)
    return await come_again(race, callers, names)


async def come_again(race: Race, callers: dict[str, Caller], names: Sequence[str]) -> list[list[tuple[Any, ...]]]:
    """Let those do it again who passed over what the other one held, and look at what is stored then."""
    for name in names:
        if callers[name].comes_again:
            await callers[name].call(race.second)
    return await stored(race)


@pytest.mark.parametrize("meetings", MEETINGS.values(), ids=MEETINGS)
async def test_two_who_meet_at_a_message_come_to_the_same_as_one_after_the_other(
    race: Race, meetings: Meetings
) -> None:
    situation, firsts, seconds = meetings
    callers = await situation(race)
    for (
        name
    ) in firsts:  # makes the flow that uncertain rows are pinned to, so that the statements are as many each time
        await callers[name].call(race.second)
    for names in product(firsts, seconds):
        allowed = [
            await one_after_the_other(race, situation, *names),
            await one_after_the_other(race, situation, *reversed(names)),
        ]
        await take_everything_away(race)
        callers = await situation(race)
        for n in range(1, await race.statements(callers[names[0]].call) + 1):
            await take_everything_away(race)
            callers = await situation(race)
            await race.meet(TENANT, callers[names[0]].call, callers[names[1]].call, stop_before=n)
            found = await come_again(race, callers, names)
            assert found in allowed, f"{names} met before statement {n}"


async def test_of_two_who_first_pin_rows_of_a_flow_to_an_account_both_use_the_flow_that_one_of_them_makes(
    race: Race,
) -> None:
    """The first uncertain rows of a flow make the flow that such rows are pinned to."""

    async def prepare() -> tuple[Call, Call]:
        await take_everything_away(race)
        await race.other.execute("DELETE FROM flow WHERE account <> ''")
        await send(race.second, range(2))
        one, other = await claim(race.second)
        return recorded(one, Unknown(reason="lost")).call, recorded(other, Unknown(reason="lost")).call

    first, _ = await prepare()
    for n in range(1, await race.statements(first) + 1):
        first, second = await prepare()
        await race.meet(TENANT, first, second, stop_before=n)
        rows = await race.observer.fetch(
            "SELECT o.status, f.account, o.flow_id FROM outgoing_message AS o JOIN flow AS f ON f.id = o.flow_id"
        )
        assert [(row["status"], row["account"]) for row in rows] == [("Uncertain", "main")] * 2, n
        assert len({row["flow_id"] for row in rows}) == 1
        assert await race.observer.fetchval("SELECT count(*) FROM flow") == 2


async def test_two_rescuers_share_out_what_was_left_behind_and_rescue_nothing_twice(race: Race) -> None:
    await send(race.second, range(4))
    assert len(await claim(race.second)) == 4
    await race.other.execute("UPDATE outgoing_message SET lease_until = now()")

    async def rescue_two(store: PostgresStore) -> int:
        return await store.rescue_outgoing(limit=2)

    meeting = await race.meet(TENANT, rescue_two, rescue_two, stop_before=3)
    assert (meeting.first, meeting.second, meeting.waited) == (2, 2, False)
    rows = await race.observer.fetch("SELECT status, version FROM outgoing_message")
    assert [tuple(row) for row in rows] == [("Uncertain", 3)] * 4

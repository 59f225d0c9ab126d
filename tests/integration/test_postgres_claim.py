"""Claim and record on PostgreSQL: their statements, and two claimers, pauses and cancels that meet.

The contract says what comes of them one after the other; here two stores meet at a statement of the first. A claim and
a plain record are one statement each, without a transaction around it, so a caller that is stopped before COMMIT is
played by another program that has done the same and not committed yet.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Final

import pytest

from clarion.adapters.stores.postgres import Patience, PostgresStore, open_store
from clarion.adapters.stores.query import load
from clarion.domain.call import Accepted, CallOutcome, Deferred, Misconfigured, NotCalled, Refused, Unknown
from clarion.domain.claim import CallResult, FlowQuota, Gate, Recorded
from clarion.domain.outgoing import OutgoingStatus
from clarion.testing import factories as make
from clarion.testing.clock import ManualClock
from tests.integration.postgres_sending import BATCH, LEASE, ROUTE, SOURCE, TENANT, claim, result, send, statuses, take
from tests.integration.race import Race, open_race
from tests.integration.watched_connection import Connection, done_or_blocked, watched

CLAIM: Final = load("clarion.adapters.stores.postgres.queue", "claim.sql")["claim_outgoing"].sql


@pytest.fixture
async def race(migrated_postgres_url: str) -> AsyncIterator[Race]:
    async with open_race(migrated_postgres_url) as race:
        yield race


class Sent:
    """The statements that a store sends, BEGIN and COMMIT apart."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    async def before(self, _: Connection, query: str) -> None:
        if query not in ("BEGIN ISOLATION LEVEL READ COMMITTED;", "COMMIT;"):
            self.statements.append(query)

    def taken(self) -> int:
        """Count those since the last time."""
        count = len(self.statements)
        self.statements.clear()
        return count


@pytest.fixture
def sent() -> Sent:
    return Sent()


@pytest.fixture
async def store(migrated_postgres_url: str, sent: Sent) -> AsyncIterator[PostgresStore]:
    patience = Patience(plans=timedelta(hours=1))
    store = await open_store(
        migrated_postgres_url, clock=ManualClock(), patience=patience, connection_class=watched(sent.before)
    )
    yield store
    await store.close()


MIXED: Final[tuple[CallOutcome, ...]] = (
    Accepted(provider_message_id="p"),
    Deferred(reason="busy", throttled=True),
    Refused(reason="unknown", recipient_not_found=True),
    Misconfigured(reason="no such sender"),
    Unknown(reason="lost"),
    NotCalled(reason="not ready"),
)


@pytest.mark.parametrize("size", [1, BATCH])
@pytest.mark.parametrize("outcomes, count", [(MIXED[:1], 1), (MIXED[:3], 1), (MIXED, 4)], ids=["sent", "plain", "all"])
async def test_a_claim_is_one_statement_and_a_record_at_most_four(
    store: PostgresStore, sent: Sent, size: int, outcomes: Sequence[CallOutcome], count: int
) -> None:
    size = max(size, len(outcomes))
    await send(store, range(size))
    found = await store.discover_flows(routes=[ROUTE], lows={})
    sent.taken()
    claimed = await take(store, [FlowQuota(flow_id=found.heads[0].flow_id, quota=size, account="main")], 1)
    assert (len(claimed), sent.taken()) == (size, 1)
    results = [result(message, outcomes[n % len(outcomes)]) for n, message in enumerate(claimed)]
    await store.record_outgoing(results, actor="worker")
    assert sent.taken() == count


async def test_results_of_one_row_that_came_together_are_recorded_one_after_the_other(race: Race) -> None:
    await send(race.second)
    (first,) = await claim(race.second, token=1)
    await race.second.record_outgoing([result(first, NotCalled(reason="not ready"))], actor="worker")
    (second,) = await claim(race.second, token=2)
    late = [result(first, Deferred(reason="busy")), result(second, Unknown(reason="lost")), result(second, Accepted())]
    recorded = await race.second.record_outgoing(late, actor="worker")
    assert recorded == [
        Recorded(id=first.id, status=None),
        Recorded(id=first.id, status=OutgoingStatus.UNCERTAIN),
        Recorded(id=first.id, status=OutgoingStatus.SENT_TO_PROVIDER),
    ]
    assert await statuses(race) == ["SentToProvider"]


async def claim_and_stop(race: Race, token: int = 9) -> int:
    """Claim all of the source that is due on the other connection, and do not commit; return how many."""
    flows = await race.other.fetch("SELECT id FROM flow WHERE account = '' AND source = $1", SOURCE)
    ids = [flow["id"] for flow in flows]
    await race.other.execute("BEGIN")
    rows = await race.other.fetch(
        CLAIM,
        ids,
        [BATCH] * len(ids),
        ["main"] * len(ids),
        [None] * len(ids),
        [None] * len(ids),
        make.guid(token, "token"),
        LEASE,
        "worker",
        LEASE,
    )
    return len(rows)


class LostReply:
    """Ends a store's connection when the claim has been made and before its reply is read."""

    def __init__(self) -> None:
        self.times = 0

    async def before(self, connection: Connection, query: str) -> None:
        if query == CLAIM and self.times:
            self.times -= 1
            raise ConnectionResetError("the reply is lost")


@pytest.mark.parametrize("committed", [True, False])
async def test_a_claim_whose_reply_is_lost_is_looked_for_by_its_token(
    race: Race, migrated_postgres_url: str, committed: bool
) -> None:
    """F-24. The other program makes the very claim whose reply the store then does not get."""
    await send(race.second, range(3))
    lost = LostReply()
    store = await open_store(migrated_postgres_url, clock=ManualClock(), connection_class=watched(lost.before))
    assert await claim_and_stop(race, token=1) == 3
    await race.other.execute("COMMIT" if committed else "ROLLBACK")
    flow_id = await race.observer.fetchval("SELECT id FROM flow")
    lost.times = 1
    found = await take(store, [FlowQuota(flow_id=flow_id, quota=9, account="main")], 1)
    assert [message.attempts for message in found] == [1, 1, 1] * committed
    recorded = await store.record_outgoing([result(message, Accepted()) for message in found], actor="worker")
    assert len(recorded) == len(found)
    assert await statuses(race) == ["SentToProvider" if committed else "Created"] * 3
    await store.close()


@pytest.mark.parametrize("gate", [Gate.PAUSED, Gate.CANCELED])
@pytest.mark.parametrize("end, claimed", [("COMMIT", 3), ("ROLLBACK", 0)])
async def test_closing_a_gate_waits_for_claims_under_way_and_none_begins_after_it(
    race: Race, gate: Gate, end: str, claimed: int
) -> None:
    await send(race.second, range(3))
    assert await claim_and_stop(race) == 3
    async with asyncio.TaskGroup() as group:
        closing = group.create_task(race.second.set_gate(TENANT, SOURCE, gate, actor="sam"))
        assert await done_or_blocked(closing, observer=race.observer)
        await race.other.execute(end)
    await send(race.second, range(3, 5))  # made after the gate was closed
    flows = await race.observer.fetch("SELECT id FROM flow")
    quotas = [FlowQuota(flow_id=flow["id"], quota=9, account="main") for flow in flows]
    assert await take(race.first, quotas, 2) == []
    assert (await statuses(race)).count("Sending") == claimed


@pytest.mark.parametrize("gate", [Gate.PAUSED, Gate.CANCELED])
@pytest.mark.parametrize("end, claimed", [("COMMIT", 0), ("ROLLBACK", 3)])
async def test_a_claim_waits_for_a_gate_that_is_being_closed_and_sees_it(
    race: Race, gate: Gate, end: str, claimed: int
) -> None:
    await send(race.second, range(3))
    await race.other.execute("BEGIN")
    await race.other.execute("UPDATE source SET gate = $1", gate)
    async with asyncio.TaskGroup() as group:
        claiming = group.create_task(claim(race.second))
        assert await done_or_blocked(claiming, observer=race.observer)
        await race.other.execute(end)
    assert len(claiming.result()) == claimed


async def test_a_gate_that_is_closed_while_a_claim_is_on_its_way_stops_it(race: Race) -> None:
    await send(race.second, range(3))
    race.gate.close_before(2)  # after its look at the flows: before the claim itself
    async with asyncio.TaskGroup() as group:
        claiming = group.create_task(claim(race.first))
        await race.gate.reached_by(claiming)
        await race.second.set_gate(TENANT, SOURCE, Gate.PAUSED, actor="sam")
        race.gate.open()
    assert claiming.result() == []
    await race.second.set_gate(TENANT, SOURCE, Gate.OPEN, actor="sam")
    assert len(await claim(race.second)) == 3


async def test_a_pause_does_not_wait_for_claims_of_other_sources(race: Race) -> None:
    await send(race.second, range(3))
    await send(race.second, range(3, 6), source="autumn")
    assert await claim_and_stop(race) == 3
    await race.second.set_gate(TENANT, "autumn", Gate.CANCELED, actor="sam")
    await race.other.execute("COMMIT")


async def test_a_cancel_of_a_job_waits_for_a_claim_under_way_and_reaches_what_comes_back(race: Race) -> None:
    await send(race.second, range(2))
    assert await claim_and_stop(race) == 2
    async with asyncio.TaskGroup() as group:
        canceling = group.create_task(race.second.cancel_job(TENANT, make.notification_job(0).guid, actor="sam"))
        assert await done_or_blocked(canceling, observer=race.observer)
        await race.other.execute("COMMIT")
    assert canceling.result() is True
    assert await statuses(race) == ["Sending", "Sending"]
    rows = await race.observer.fetch("SELECT id, bucket, claim_token FROM outgoing_message ORDER BY id")
    back = [CallResult(**dict(row), attempt=1, outcome=Deferred(reason="busy")) for row in rows]
    await race.second.record_outgoing(back, actor="worker")
    assert [message.id for message in await claim(race.first)] == [rows[1]["id"]]
    assert await statuses(race) == ["Canceled", "Sending"]


async def test_a_claim_passes_over_a_row_that_is_being_canceled(race: Race) -> None:
    first, second = await send(race.second, range(2))
    await race.other.execute("BEGIN")
    await race.other.execute("UPDATE outgoing_message SET cancel_at = now() WHERE id = $1", first.id)
    assert [message.id for message in await claim(race.second)] == [second.id]
    await race.other.execute("COMMIT")
    assert await claim(race.second, token=2) == []
    assert await statuses(race) == ["Canceled", "Sending"]


async def test_of_two_claimers_on_one_row_exactly_one_gets_it(race: Race) -> None:
    await send(race.second)
    assert await claim_and_stop(race) == 1
    assert await claim(race.second) == []  # without waiting
    await race.other.execute("ROLLBACK")
    assert len(await claim(race.second)) == 1
    assert await statuses(race) == ["Sending"]


async def test_many_claimers_at_once_share_the_rows_out_and_lose_none(race: Race) -> None:
    await send(race.second, range(BATCH))
    stores = [race.first, race.second]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(claim(stores[n % 2], token=n, quota=10)) for n in range(40)]
    taken = Counter(message.id for task in tasks for message in task.result())
    while rest := await claim(race.second, token=99):
        taken.update(message.id for message in rest)
    assert len(taken) == BATCH
    assert set(taken.values()) == {1}
    assert await statuses(race) == ["Sending"] * BATCH


async def test_of_two_rows_of_one_order_key_a_second_claimer_does_not_get_the_later_one(race: Race) -> None:
    await send(race.second, range(2), order_key="0" * 32)
    assert await claim_and_stop(race) == 1
    assert await claim(race.second) == []
    await race.other.execute("COMMIT")
    assert await claim(race.second) == []
    assert await statuses(race) == ["Sending", "Created"]

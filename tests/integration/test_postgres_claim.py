"""Claim and record on PostgreSQL: their statements, and what two connections do to each other.

The contract says what comes of them one after the other; here two stores meet at a statement of the first. A claim and
a plain record are one statement each, without a transaction around it, so a caller that is stopped before COMMIT is
played by another program that has done the same and not committed yet.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any, Final

import pytest

from clarion.adapters.stores.postgres import Patience, PostgresStore, open_store
from clarion.adapters.stores.query import load
from clarion.domain.call import Accepted, CallOutcome, Deferred, Misconfigured, NotCalled, Refused, Unknown
from clarion.domain.claim import CallResult, ClaimedMessage, FlowQuota, Gate, Recorded
from clarion.domain.guard import JobEntry
from clarion.domain.outgoing import OutgoingMessage, OutgoingStatus
from clarion.ports.track import ProviderEvent
from clarion.testing import factories as make
from clarion.testing.clock import ManualClock
from tests.integration.race import Race, open_race
from tests.integration.watched_connection import Connection, done_or_blocked, watched

TENANT: Final = "acme"
SOURCE: Final = "spring"
ROUTE: Final = "email:default"
LEASE: Final = timedelta(minutes=1)
BATCH: Final = 200
CLAIM: Final = load("clarion.adapters.stores.postgres.queue", "claim.sql")["claim_outgoing"].sql


@pytest.fixture
async def race(migrated_postgres_url: str) -> AsyncIterator[Race]:
    async with open_race(migrated_postgres_url) as race:
        yield race


async def send(store: PostgresStore, numbers: range = range(1), **fields: object) -> list[OutgoingMessage]:
    """Store messages of jobs of their own, all of one source, so that their totals are kept."""
    jobs = [make.notification_job(n) for n in numbers]
    await store.ensure_notification_jobs(TENANT, [JobEntry(job=job) for job in jobs])
    versions = await store.ensure_address_versions(TENANT, [make.address_version(n) for n in numbers])
    items = [
        make.outgoing_item(job, version.record, **{"source": SOURCE, "route": ROUTE, **fields})
        for job, version in zip(jobs, versions, strict=True)
    ]
    return [answer.record for answer in await store.ensure_outgoing_messages(TENANT, items)]


async def claim(store: PostgresStore, token: int = 1, quota: int = BATCH) -> list[ClaimedMessage]:
    found = await store.discover_flows(routes=[ROUTE], lows={})
    quotas = [FlowQuota(flow_id=head.flow_id, quota=quota, account="main") for head in found.heads]
    return await take(store, quotas, token)


async def take(store: PostgresStore, quotas: Sequence[FlowQuota], token: int) -> list[ClaimedMessage]:
    return await store.claim_outgoing(quotas, token=make.guid(token, "token"), lease=LEASE, actor="worker")


def result(message: ClaimedMessage, outcome: CallOutcome) -> CallResult:
    return CallResult(
        id=message.id,
        bucket=message.bucket,
        claim_token=message.claim_token,
        attempt=message.attempts,
        outcome=outcome,
    )


async def check_bookkeeping(connection: Connection) -> None:
    """Every change of state has left its line, and the totals are the sum of the rows."""
    rows = await connection.fetch("SELECT id, status, version FROM outgoing_message")
    lines = Counter([row["outgoing_id"] for row in await connection.fetch("SELECT outgoing_id FROM transition")])
    assert {row["id"]: row["version"] - 1 for row in rows if row["version"] > 1} == lines
    counts = await connection.fetch("SELECT status, sum(n) AS n FROM flow_count GROUP BY status")
    assert {row["status"]: row["n"] for row in counts if row["n"]} == Counter(row["status"] for row in rows)


async def statuses(race: Race) -> list[str]:
    rows = await race.observer.fetch("SELECT status FROM outgoing_message ORDER BY id")
    await check_bookkeeping(race.observer)
    return [row["status"] for row in rows]


# Statements.


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


# A claim that has not committed: the same statement in another program's open transaction.


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


@pytest.mark.parametrize("gate", [Gate.PAUSED, Gate.CANCELED])
@pytest.mark.parametrize("end, claimed", [("COMMIT", 3), ("ROLLBACK", 0)])
async def test_closing_a_gate_waits_for_claims_under_way_and_none_begins_after_it(
    race: Race, gate: Gate, end: str, claimed: int
) -> None:
    await send(race.second, range(3))
    assert await claim_and_stop(race) == 3
    async with asyncio.TaskGroup() as group:
        closing = group.create_task(race.second.set_gate(TENANT, SOURCE, gate))
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
        await race.second.set_gate(TENANT, SOURCE, Gate.PAUSED)
        race.gate.open()
    assert claiming.result() == []
    await race.second.set_gate(TENANT, SOURCE, Gate.OPEN)
    assert len(await claim(race.second)) == 3


async def test_a_pause_does_not_wait_for_claims_of_other_sources(race: Race) -> None:
    await send(race.second, range(3))
    await send(race.second, range(3, 6), source="autumn")
    assert await claim_and_stop(race) == 3
    await race.second.set_gate(TENANT, "autumn", Gate.CANCELED)
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


# A webhook against a record.


def delivered(message: OutgoingMessage) -> ProviderEvent:
    return ProviderEvent(
        account="main",
        event_id=f"event-{message.id}",
        status=OutgoingStatus.DELIVERED,
        message_id=message.message_id,
        recipient_key_hash=message.rk[:32],
        happened_at=make.SOURCE_AT,
        raw="",
    )


OUTCOMES: Final = (Accepted(provider_message_id="p-1"), Unknown(reason="lost"), Deferred(reason="busy"))


async def apply(store: PostgresStore) -> int:
    return await store.apply_events(limit=10, actor="track")


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
async def test_a_webhook_and_a_record_come_to_the_same_at_whatever_statement_they_meet(
    race: Race, outcome: CallOutcome
) -> None:
    """Whoever comes first; the result's provider id and its attempt are kept either way."""

    async def prepare() -> tuple[Any, Any]:
        await race.other.execute("DELETE FROM outgoing_message; DELETE FROM webhook_event; DELETE FROM transition")
        await race.other.execute("DELETE FROM delivery_attempt; DELETE FROM flow_count")
        (message,) = await send(race.second)
        (claimed,) = await claim(race.second)
        await race.second.keep_events(TENANT, [delivered(message)])
        return apply, lambda store: store.record_outgoing([result(claimed, outcome)], actor="worker")

    first, _ = await prepare()
    count = await race.statements(first)
    for n in range(1, count + 1):
        one, other = await prepare()
        await race.meet(TENANT, one, other, stop_before=n)
        if outcome != OUTCOMES[2]:
            assert await statuses(race) == ["Delivered"]
        row = await race.observer.fetchrow(
            "SELECT o.status, o.provider_message_id, o.lease_until FROM outgoing_message o"
        )
        attempts = await race.observer.fetch("SELECT status, provider_message_id FROM delivery_attempt")
        assert row is not None
        assert (row["status"], row["lease_until"]) == ("Delivered", None)
        assert len(attempts) == 1
        if isinstance(outcome, Accepted):
            assert row["provider_message_id"] == attempts[0]["provider_message_id"] == "p-1"
        await check_bookkeeping(race.observer)


async def test_two_who_apply_receipts_at_once_take_different_ones(race: Race) -> None:
    messages = await send(race.second, range(4))
    await race.second.record_outgoing([result(one, Accepted()) for one in await claim(race.second)], actor="worker")
    await race.second.keep_events(TENANT, [delivered(message) for message in messages])
    meeting = await race.meet(
        TENANT,
        lambda store: store.apply_events(limit=2, actor="track"),
        lambda store: store.apply_events(limit=2, actor="track"),
        stop_before=3,
    )
    assert (meeting.first, meeting.second, meeting.waited) == (2, 2, False)
    assert await statuses(race) == ["Delivered"] * 4


async def test_a_record_and_a_rescue_of_the_same_row_come_to_the_same(race: Race) -> None:
    """The rescuer passes over a row that is being recorded; a record waits for the rescue, and settles the doubt."""
    await send(race.second)
    found = await race.second.discover_flows(routes=[ROUTE], lows={})
    quotas = [FlowQuota(flow_id=found.heads[0].flow_id, quota=1, account="main")]
    token = make.guid(1, "token")
    (claimed,) = await race.second.claim_outgoing(quotas, token=token, lease=timedelta(), actor="worker")
    meeting = await race.meet(
        TENANT,
        lambda store: store.rescue_outgoing(limit=10),
        lambda store: store.record_outgoing([result(claimed, Accepted(provider_message_id="p"))], actor="worker"),
        stop_before=6,
    )
    assert meeting.waited
    assert (meeting.first, meeting.second[0].status) == (1, OutgoingStatus.SENT_TO_PROVIDER)
    assert await statuses(race) == ["SentToProvider"]
    (attempt,) = await race.observer.fetch("SELECT status, provider_message_id FROM delivery_attempt")
    assert tuple(attempt) == ("Accepted", "p")

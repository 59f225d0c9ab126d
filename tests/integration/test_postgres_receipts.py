"""Receipts, results and rescues that meet at one message on PostgreSQL, whoever comes first (I-17, I-31, F-37)."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, Final

import pytest

from clarion.adapters.stores.postgres import PostgresStore
from clarion.domain.call import Accepted, CallOutcome, Deferred, Unknown
from clarion.domain.claim import FlowQuota
from clarion.testing import factories as make
from tests.integration.postgres_sending import ROUTE, TENANT, claim, receipt, result, send, statuses
from tests.integration.race import Race, open_race


@pytest.fixture
async def race(migrated_postgres_url: str) -> AsyncIterator[Race]:
    async with open_race(migrated_postgres_url) as race:
        yield race


OUTCOMES: Final = (Accepted(provider_message_id="p-1"), Unknown(reason="lost"), Deferred(reason="busy"))


async def apply(store: PostgresStore) -> int:
    return await store.apply_events(limit=10, actor="track")


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
async def test_a_webhook_and_a_record_come_to_the_same_at_whatever_statement_they_meet(
    race: Race, outcome: CallOutcome
) -> None:
    """Whoever comes first; the result's provider id and its attempt are kept either way."""

    async def prepare() -> tuple[Any, Any]:
        await race.other.execute("DELETE FROM outgoing_message; DELETE FROM outgoing_key; DELETE FROM transition")
        await race.other.execute("DELETE FROM delivery_attempt; DELETE FROM flow_count; DELETE FROM webhook_event")
        (message,) = await send(race.second)
        (claimed,) = await claim(race.second)
        await race.second.keep_events(TENANT, [receipt(message)])
        return apply, lambda store: store.record_outgoing([result(claimed, outcome)], actor="worker")

    first, _ = await prepare()
    count = await race.statements(first)
    for n in range(1, count + 1):
        one, other = await prepare()
        await race.meet(TENANT, one, other, stop_before=n)
        assert await statuses(race) == ["Delivered"]
        row = await race.observer.fetchrow("SELECT provider_message_id, lease_until, due_at FROM outgoing_message")
        (attempt,) = await race.observer.fetch("SELECT provider_message_id FROM delivery_attempt")
        told = "p-1" if isinstance(outcome, Accepted) else None
        assert row is not None
        assert tuple(row) == (told, None, None)
        assert attempt["provider_message_id"] == told


async def test_two_who_apply_receipts_at_once_take_different_ones(race: Race) -> None:
    messages = await send(race.second, range(4))
    await race.second.record_outgoing([result(one, Accepted()) for one in await claim(race.second)], actor="worker")
    await race.second.keep_events(TENANT, [receipt(message) for message in messages])
    meeting = await race.meet(
        TENANT,
        lambda store: store.apply_events(limit=2, actor="track"),
        lambda store: store.apply_events(limit=2, actor="track"),
        stop_before=3,
    )
    assert (meeting.first, meeting.second, meeting.waited) == (2, 2, False)
    assert await statuses(race) == ["Delivered"] * 4


async def test_a_record_and_a_rescue_of_the_same_row_come_to_the_same(race: Race) -> None:
    """The rescuer passes over a row that is being recorded; a record waits for the rescue, and settles the row."""
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
    assert meeting.first == 1
    assert await statuses(race) == ["SentToProvider"]
    (attempt,) = await race.observer.fetch("SELECT status, provider_message_id FROM delivery_attempt")
    assert tuple(attempt) == ("Accepted", "p")

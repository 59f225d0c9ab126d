"""An opt-out against a claim, and a preference that is changed twice at once, on two connections to PostgreSQL (I-16).

What was committed before the claim's statement began is honoured, at whatever statement the claim was stopped; what is
not committed by then is not waited for.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest

from clarion.adapters.stores.postgres import PostgresStore
from clarion.domain.call import Unknown
from clarion.domain.claim import Settlement
from clarion.domain.identity import Channel
from clarion.domain.suppression import Change, scope_of
from clarion.testing import factories as make
from tests.integration.postgres_sending import BATCH, TENANT, claim, result, send, statuses
from tests.integration.race import Race, open_race

RECIPIENT = make.address_version(0).recipient_id_hash
NEWS = "news"


@pytest.fixture
async def race(migrated_postgres_url: str) -> AsyncIterator[Race]:
    async with open_race(migrated_postgres_url) as race:
        yield race


async def opt_out(store: PostgresStore) -> object:
    change = Change(category=NEWS, channel=Channel.EMAIL, on=False)
    return await store.set_preferences(TENANT, RECIPIENT, [change], actor="recipient")


async def test_an_opt_out_while_a_claim_is_on_its_way_stops_it(race: Race) -> None:
    """After its look at the flows, before the claim itself."""
    await send(race.second, range(3), category=NEWS)
    race.gate.close_before(2)
    async with asyncio.TaskGroup() as group:
        claiming = group.create_task(claim(race.first))
        await race.gate.reached_by(claiming)
        await opt_out(race.second)
        race.gate.open()
    assert len(claiming.result()) == 2
    assert await statuses(race) == ["Suppressed", "Sending", "Sending"]


@pytest.mark.parametrize("stop_before", [2, 3, 4, 5, 6, 7])
async def test_an_opt_out_is_honoured_by_a_claim_that_is_ruled_row_by_row(race: Race, stop_before: int) -> None:
    """Two rows of one order key are not plain.

    The claim tries (2), begins anew (3), locks gates (4) and rows (5), looks who goes first (6) and who may get it (7).
    """
    await send(race.second, range(2), order_key="0" * 32, category=NEWS)
    race.gate.close_before(stop_before)
    async with asyncio.TaskGroup() as group:
        claiming = group.create_task(claim(race.first))
        await race.gate.reached_by(claiming)
        await opt_out(race.second)
        race.gate.open()
    taken = {one.recipient_id_hash for one in claiming.result()}
    assert RECIPIENT not in taken
    assert (await statuses(race))[0] == "Suppressed"


async def test_a_claim_does_not_wait_for_an_opt_out_that_is_not_committed(race: Race) -> None:
    """Whoever is claimed before may be called; what waits after it is not."""
    await send(race.second, range(1), category=NEWS)
    met = await race.meet(TENANT, opt_out, claim, stop_before=await last_statement(race))
    assert not met.waited
    assert len(met.second) == 1
    await send(race.second, range(1), category=NEWS, attempt_no=2)
    assert await claim(race.second, token=2) == []
    assert await statuses(race) == ["Sending", "Suppressed"]


async def last_statement(race: Race) -> int:
    """Count the statements of an opt-out, whose last one is its COMMIT, and take it back."""
    count = await race.statements(opt_out)
    await race.second.set_preferences(TENANT, RECIPIENT, [Change(category=NEWS, on=True)], actor="recipient")
    return count


async def test_a_replay_after_an_opt_out_makes_no_call(race: Race) -> None:
    await send(race.second, range(1), category=NEWS)
    (first,) = await claim(race.second)
    await race.second.record_outgoing([result(first, Unknown(reason="lost"))], actor="worker")
    (doubt,) = await race.second.find_uncertain(accounts=("main",), limit=1)
    await opt_out(race.second)
    replay = Settlement(id=doubt.id, bucket=doubt.bucket, version=doubt.version, replay=True, reason="harmless")
    await race.second.settle_uncertain([replay], actor="settle")
    assert await claim(race.second, token=2, quota=BATCH) == []
    assert await statuses(race) == ["Uncertain"]


async def test_a_preference_changed_twice_at_once_is_one_of_the_two_in_each_cell(race: Race) -> None:
    """Stopped at every statement of the first: the second waits or comes before, and neither sees an error."""
    off = [Change(category=NEWS, channel=Channel.EMAIL, on=False), Change(category=NEWS, channel=Channel.SMS, on=True)]
    on = [Change(category=NEWS, channel=Channel.EMAIL, on=True), Change(category=NEWS, channel=Channel.SMS, on=False)]

    def setting(changes: list[Change], subject: str):  # type: ignore[no-untyped-def]  # a call on either store
        async def call(store: PostgresStore) -> object:
            return await store.set_preferences(TENANT, subject, changes, actor="recipient")

        return call

    async def begin(subject: str) -> None:
        """Let email be off and sms be on, so that each change has something to take away and something to add."""
        await race.second.set_preferences(TENANT, subject, off, actor="recipient")

    alone = make.address_version(100).recipient_id_hash
    await begin(alone)
    count = await race.statements(setting(on, alone))
    for n in range(1, count + 1):
        subject = make.address_version(n).recipient_id_hash
        await begin(subject)
        await race.meet(TENANT, setting(on, subject), setting(off, subject), stop_before=n)
        (stored,) = (await race.second.find_suppressions(TENANT, [subject])).values()
        assert set(stored) in ({scope_of(NEWS, Channel.EMAIL)}, {scope_of(NEWS, Channel.SMS)})


async def test_a_category_that_is_switched_on_stays_on_though_one_of_its_channels_is_at_the_same_time(
    race: Race,
) -> None:
    """What the other leaves behind for the channels that it does not name is not left behind in the end."""

    def switching_on(channel: Channel | None, subject: str):  # type: ignore[no-untyped-def]  # a call on either store
        async def call(store: PostgresStore) -> object:
            return await store.set_preferences(
                TENANT, subject, [Change(category=NEWS, channel=channel, on=True)], actor="recipient"
            )

        return call

    async def begin(subject: str) -> None:
        await race.second.set_preferences(TENANT, subject, [Change(category=NEWS, on=False)], actor="recipient")

    alone = make.address_version(100).recipient_id_hash
    await begin(alone)
    count = await race.statements(switching_on(Channel.EMAIL, alone))
    for n in range(1, count + 1):
        subject = make.address_version(n).recipient_id_hash
        await begin(subject)
        await race.meet(TENANT, switching_on(Channel.EMAIL, subject), switching_on(None, subject), stop_before=n)
        assert await race.second.find_suppressions(TENANT, [subject]) == {}

"""How many statements the hot paths take: a few for each batch, however many messages, flows, jobs and outcomes.

Apart from them stand the counts of campaigns, the commit itself, and the clock's mark once a second.
"""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from clarion.adapters.stores.sqlite import InlineRunner, SqliteStore, open_store
from clarion.domain.call import Accepted, CallOutcome, Deferred, Misconfigured, NotCalled, Refused, Unknown
from clarion.domain.ensured import Outcome
from clarion.domain.identity import Lane
from clarion.domain.notification import Stage
from clarion.testing import factories
from clarion.testing.clock import ManualClock
from tests.integration.sqlite_campaign import TENANT, claim, of_many_jobs, of_one_campaign, results
from tests.integration.sqlite_look import connection_of, counted

BATCH = 500
CLAIM = 200


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def store(migrated_sqlite_path: Path, clock: ManualClock) -> AsyncIterator[SqliteStore]:
    opened = await open_store(f"sqlite:///{migrated_sqlite_path}", clock=clock, runner=InlineRunner())
    yield opened
    await opened.close()


async def test_500_messages_of_a_campaign_are_made_by_3_statements(store: SqliteStore, clock: ManualClock) -> None:
    first, *items = await of_one_campaign(store, BATCH + 1)
    clock.advance(timedelta(seconds=2))
    with counted(store) as statements:
        await store.ensure_outgoing_messages(TENANT, [first])
    assert len(statements.methods) == 5, "and two more for the campaign's first set: its gate and its flow"
    clock.advance(timedelta(seconds=2))
    with counted(store) as statements:
        answers = await store.ensure_outgoing_messages(TENANT, items)
    assert [answer.outcome for answer in answers] == [Outcome.CREATED] * BATCH
    assert len(statements.methods) == 3
    assert len(statements.shared) == 2, "the campaign's count and the clock's mark"


async def test_500_messages_of_500_jobs_are_made_by_3_statements(store: SqliteStore) -> None:
    first, *items = await of_many_jobs(store, BATCH + 1)
    await store.ensure_outgoing_messages(TENANT, [first])
    with counted(store) as statements:
        answers = await store.ensure_outgoing_messages(TENANT, items)
    assert [answer.outcome for answer in answers] == [Outcome.CREATED] * BATCH
    assert len(statements.methods) == 3


async def test_a_batch_of_500_is_repeated_by_4_statements_that_write_nothing(
    store: SqliteStore, clock: ManualClock, migrated_sqlite_path: Path
) -> None:
    items = await of_one_campaign(store, BATCH)
    first = await store.ensure_outgoing_messages(TENANT, items)
    clock.advance(timedelta(seconds=2))
    with closing(sqlite3.connect(migrated_sqlite_path)) as watcher:
        version = watcher.execute("PRAGMA data_version").fetchone()
        changes = connection_of(store).total_changes
        with counted(store) as statements:
            again = await store.ensure_outgoing_messages(TENANT, items)
        assert connection_of(store).total_changes == changes
        assert watcher.execute("PRAGMA data_version").fetchone() == version
    assert [answer.outcome for answer in again] == [Outcome.FOUND] * BATCH
    assert [answer.record for answer in again] == [answer.record for answer in first]
    assert (len(statements.methods), statements.shared) == (4, [])


async def test_one_differing_row_of_500_is_one_conflict_and_one_case_by_5_statements(store: SqliteStore) -> None:
    items = await of_one_campaign(store, BATCH)
    await store.ensure_outgoing_messages(TENANT, items)
    before = connection_of(store).execute("SELECT * FROM outgoing_message ORDER BY id").fetchall()
    items[250] = msgspec.structs.replace(items[250], message_id=factories.guid(1))
    with counted(store) as statements:
        answers = await store.ensure_outgoing_messages(TENANT, items)
    assert [place for place, answer in enumerate(answers) if answer.outcome is not Outcome.FOUND] == [250]
    assert answers[250].outcome is Outcome.CONFLICT
    assert answers[250].differing == ("message_id",)
    assert len(statements.methods) == 5
    assert connection_of(store).execute("SELECT * FROM outgoing_message ORDER BY id").fetchall() == before
    assert [case.case_id for case in await store.list_support_cases(TENANT)] == [answers[250].case_id]


async def test_a_set_of_one_takes_as_many_statements_as_a_set_of_a_thousand(store: SqliteStore) -> None:
    with counted(store) as for_one:
        await store.ensure_user_messages(TENANT, [factories.user_message(0)])
    with counted(store) as for_many:
        await store.ensure_user_messages(TENANT, [factories.user_message(n) for n in range(1, 1001)])
    assert len(for_one.methods) == 4, "insert, read, and enter: the inboxes, then the lines"
    assert len(for_one.shared) == 1, "the first mark of the clock"
    assert (len(for_many.methods), len(for_many.shared)) == (4, 0)


async def test_200_messages_are_claimed_by_3_statements_and_recorded_by_5(store: SqliteStore) -> None:
    await store.ensure_outgoing_messages(TENANT, await of_many_jobs(store, CLAIM))
    with counted(store) as for_claim:
        claimed = await claim(store, quota=CLAIM)
    with counted(store) as for_record:
        await store.record_outgoing(results(claimed), actor="worker")
    states = connection_of(store).execute("SELECT status, count(*) FROM outgoing_message GROUP BY status").fetchall()
    assert states == [("SentToProvider", CLAIM)]
    discovery, picking = for_claim.methods[:2], for_claim.methods[2:]
    assert (len(discovery), len(picking)) == (2, 3)
    assert len(for_record.methods) == 5, "rows read and written, attempts, lines, and whoever is next in line"
    assert for_record.shared == []


async def test_a_campaigns_counts_are_one_statement(store: SqliteStore) -> None:
    await store.ensure_outgoing_messages(TENANT, await of_one_campaign(store, CLAIM))
    with counted(store) as for_claim:
        claimed = await claim(store, quota=CLAIM)
    with counted(store) as for_record:
        await store.record_outgoing(results(claimed), actor="worker")
    assert (len(for_claim.methods) - 2, len(for_claim.shared)) == (3, 1)
    assert (len(for_record.methods), len(for_record.shared)) == (4, 1)
    counts = connection_of(store).execute("SELECT status, n FROM flow_count WHERE n <> 0").fetchall()
    assert counts == [("SentToProvider", CLAIM)]


async def test_the_number_of_flows_makes_no_difference_to_a_claim(store: SqliteStore) -> None:
    items = await of_many_jobs(store, CLAIM)
    items = [msgspec.structs.replace(item, broadcast=f"campaign-{n % 50}") for n, item in enumerate(items)]
    await store.ensure_outgoing_messages(TENANT, items)
    with counted(store) as statements:
        claimed = await claim(store, quota=3)
    assert len(claimed) == 150
    assert len(statements.methods) - 2 == 3


async def test_expired_rows_and_those_in_line_take_a_few_statements_more_however_many_they_are(
    store: SqliteStore, clock: ManualClock
) -> None:
    items = await of_many_jobs(store, CLAIM)
    soon = clock.now() + timedelta(seconds=1)
    mixed = [
        msgspec.structs.replace(item, expires_at=soon if n % 4 == 0 else None, order_key=items[n // 4 * 4].order_key)
        for n, item in enumerate(items)
    ]
    await store.ensure_outgoing_messages(TENANT, mixed)
    clock.advance(timedelta(seconds=1))
    with counted(store) as statements:
        assert await claim(store, quota=CLAIM) == [], "all wait for the first of their key, which has expired"
    assert len(statements.methods) - 2 == 10
    with counted(store) as statements:
        assert len(await claim(store, quota=CLAIM)) == CLAIM // 4, "the second of each key"
    assert len(statements.methods) - 2 == 7


OUTCOMES: dict[str, tuple[CallOutcome, int]] = {
    "accepted": (Accepted(), 5),
    "deferred": (Deferred(reason="busy", throttled=True), 4),
    "refused": (Refused(reason="no"), 5),
    "nobody": (Refused(reason="no", recipient_not_found=True), 6),  # with the contact that is retired
    "not called": (NotCalled(reason="not ready"), 3),  # it leaves no attempt
    "unknown": (Unknown(reason="lost"), 6),  # with the flow that is pinned to its account
    "misconfigured": (Misconfigured(reason="bad password"), 5),  # with the account's support case
}


@pytest.mark.parametrize("outcome, expected", OUTCOMES.values(), ids=OUTCOMES)
async def test_each_outcome_takes_the_same_number_of_statements_for_one_and_for_200(
    store: SqliteStore, outcome: CallOutcome, expected: int
) -> None:
    await store.ensure_outgoing_messages(TENANT, await of_many_jobs(store, CLAIM + 2))
    first, one, *many = await claim(store, quota=CLAIM + 2)
    await store.record_outgoing(
        results([first], outcome), actor="worker"
    )  # makes the flow that uncertain sends are pinned to
    with counted(store) as for_one:
        await store.record_outgoing(results([one], outcome), actor="worker")
    with counted(store) as for_many:
        await store.record_outgoing(results(many, outcome), actor="worker")
    assert len(for_one.methods) == len(for_many.methods) == expected


async def test_all_outcomes_in_one_batch_take_a_bounded_number_of_statements(store: SqliteStore) -> None:
    await store.ensure_outgoing_messages(TENANT, await of_many_jobs(store, CLAIM))
    claimed = await claim(store, quota=CLAIM)
    outcomes = [outcome for outcome, _ in OUTCOMES.values()]
    mixed = [
        msgspec.structs.replace(result, outcome=outcomes[n % len(outcomes)])
        for n, result in enumerate(results(claimed))
    ]
    with counted(store) as statements:
        await store.record_outgoing(mixed, actor="worker")
    told = "the five, the account's case, the contacts, and the pinned flow looked for, made and read"
    assert len(statements.methods) == 10, told


async def test_late_replies_of_rescued_rows_take_no_more_statements(store: SqliteStore, clock: ManualClock) -> None:
    await store.ensure_outgoing_messages(TENANT, await of_many_jobs(store, CLAIM))
    claimed = await claim(store, quota=CLAIM)
    clock.advance(timedelta(minutes=2))
    assert await store.rescue_outgoing(limit=1) == 1
    with counted(store) as for_rescue:
        assert await store.rescue_outgoing(limit=CLAIM) == CLAIM - 1
    with counted(store) as for_record:
        await store.record_outgoing(results(claimed, Refused(reason="no")), actor="worker")
    assert len(for_rescue.methods) == 7, "leases, rows, the pinned flow, and the four that write"
    assert len(for_record.methods) == 6, "rows and attempts read, the flow of no account, and the three that write"


async def test_rows_that_wait_in_line_are_woken_by_one_statement_more(
    store: SqliteStore,
) -> None:
    items = await of_many_jobs(store, CLAIM)
    pairs = [msgspec.structs.replace(item, order_key=items[n // 2].order_key) for n, item in enumerate(items)]
    await store.ensure_outgoing_messages(TENANT, pairs)
    claimed = await claim(store, quota=CLAIM)
    assert len(claimed) == CLAIM // 2
    with counted(store) as statements:
        await store.record_outgoing(results(claimed), actor="worker")
    assert len(statements.methods) == 6
    assert len(await claim(store, quota=CLAIM)) == CLAIM // 2


async def test_stages_and_sweeps_are_sets_too(store: SqliteStore, clock: ManualClock) -> None:
    entries = [factories.guarded_entry(f"key-{n}") for n in range(CLAIM)]
    await store.ensure_notification_jobs(TENANT, entries)
    with counted(store) as for_claim:
        claimed = await store.claim_stage(Stage.SCHEDULE, lanes=tuple(Lane), limit=CLAIM, lease=timedelta(seconds=1))
    assert len(claimed) == CLAIM
    clock.advance(timedelta(seconds=1))
    with counted(store) as for_rescue:
        assert await store.rescue_stages(limit=CLAIM, rescues_max=0) == CLAIM
    assert len(for_claim.methods) == 2
    assert len(for_rescue.methods) == 3, "found, moved to Failed, and their support cases"

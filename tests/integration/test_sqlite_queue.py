"""The queue on SQLite beyond the contract: the order of a set, and claims against gates."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from clarion.adapters.stores.sqlite import InlineRunner, SqliteStore, open_store
from clarion.adapters.stores.sqlite.clock import microseconds
from clarion.domain.call import Unknown
from clarion.domain.claim import Gate, Settlement
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.suppression import Change
from clarion.errors import BrokenInvariant, StoreBusy
from clarion.ports.track import ProviderEvent
from clarion.testing import factories
from clarion.testing.clock import START_AT, ManualClock
from tests.integration.sqlite_campaign import TENANT, claim, of_many_jobs, of_one_campaign, results
from tests.integration.sqlite_look import connection_of, counted


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def store(migrated_sqlite_path: Path, clock: ManualClock) -> AsyncIterator[SqliteStore]:
    url = f"sqlite:///{migrated_sqlite_path}"
    opened = await open_store(url, clock=clock, runner=InlineRunner(), busy_timeout=timedelta())
    yield opened
    await opened.close()


async def test_rows_of_one_recipient_in_one_set_go_out_in_the_order_of_the_set(store: SqliteStore) -> None:
    """Their keys are in another order: the row key of a direct job begins with the newest."""
    items = await of_many_jobs(store, 10)
    same = [msgspec.structs.replace(item, order_key=items[0].order_key) for item in items]
    await store.ensure_outgoing_messages(TENANT, same)
    went = []
    for number in range(10):
        (one,) = await claim(store, quota=10, name=str(number))
        went.append(one.message_id)
        await store.record_outgoing(results([one]), actor="worker")
    assert went == [item.message_id for item in items]


async def test_a_claim_while_a_gate_is_being_closed_waits_for_it_and_finds_it_closed(
    store: SqliteStore, migrated_sqlite_path: Path
) -> None:
    items = await of_one_campaign(store, 3)
    await store.ensure_outgoing_messages(TENANT, items)
    with closing(sqlite3.connect(migrated_sqlite_path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("UPDATE broadcast SET gate = 'Paused' WHERE tenant_id = ?", (TENANT,))
        with pytest.raises(StoreBusy):
            await claim(store, quota=3)
        other.execute("COMMIT")
    assert await claim(store, quota=3) == []
    await store.set_gate(TENANT, items[0].broadcast, Gate.OPEN, actor="sam")
    assert len(await claim(store, quota=3)) == 3


async def test_a_claim_while_somebody_opts_out_waits_for_it_and_sends_nothing(
    store: SqliteStore, migrated_sqlite_path: Path, clock: ManualClock
) -> None:
    """I-16: on another connection, whose transaction ends before the claim's begins."""
    items = [msgspec.structs.replace(item, category="news") for item in await of_many_jobs(store, 2)]
    await store.ensure_outgoing_messages(TENANT, items)
    opted_out = items[0].recipient_id_hash
    with closing(sqlite3.connect(migrated_sqlite_path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute(
            "INSERT INTO suppression (tenant_id, subject, scope, cause, created_by, created_at) "
            "VALUES (?, ?, 'news:email', 'preference', 'recipient', 0)",
            (TENANT, opted_out),
        )
        with pytest.raises(StoreBusy):
            await claim(store, quota=3)
        other.execute("COMMIT")
    assert [one.recipient_id_hash for one in await claim(store, quota=3)] == [items[1].recipient_id_hash]
    url = f"sqlite:///{migrated_sqlite_path}"
    second = await open_store(url, clock=clock, runner=InlineRunner(), busy_timeout=timedelta())
    again = [msgspec.structs.replace(item, attempt_no=2) for item in items]
    await store.ensure_outgoing_messages(TENANT, again)
    await second.set_preferences(TENANT, items[1].recipient_id_hash, [Change(category="news", on=False)], actor="sam")
    await second.close()
    assert await claim(store, quota=3) == []


async def test_canceling_a_campaign_is_one_update_and_the_sweep_goes_in_chunks(store: SqliteStore) -> None:
    items = await of_one_campaign(store, 250)
    await store.ensure_outgoing_messages(TENANT, items)
    with counted(store) as statements:
        await store.set_gate(TENANT, items[0].broadcast, Gate.CANCELED, actor="sam")
    assert len(statements.methods) == 3  # one update, and two statements of the audit log
    assert [await store.sweep_canceled(limit=100) for _ in range(4)] == [100, 100, 50, 0]
    counts = connection_of(store).execute("SELECT status, n FROM flow_count WHERE n <> 0").fetchall()
    assert counts == [("Canceled", 250)]


async def test_events_without_a_row_keep_nobody_behind_them_waiting(store: SqliteStore, clock: ManualClock) -> None:
    await store.ensure_outgoing_messages(TENANT, await of_many_jobs(store, 1))
    (one,) = await claim(store, quota=1)
    await store.record_outgoing(results([one]), actor="worker")

    def events(*ids: str) -> list[ProviderEvent]:
        return [
            ProviderEvent(
                account="main",
                event_id=event_id,
                status=OutgoingStatus.DELIVERED,
                provider_message_id=event_id,
                happened_at=START_AT,
                raw="{}",
            )
            for event_id in ids
        ]

    strangers = [f"stranger-{n}" for n in range(1000)]
    await store.keep_events(TENANT, events(*strangers))
    clock.advance(timedelta(seconds=1))
    await store.keep_events(TENANT, events(f"provider-{one.id}"))
    applied = [await store.apply_events(limit=10, actor="track") for _ in range(3)]
    assert sum(applied) == 1
    waiting = connection_of(store).execute("SELECT count(*) FROM webhook_event WHERE applied_at IS NULL").fetchone()
    assert waiting == (1000,), "they wait on, for ever if need be"


async def test_a_move_that_would_leave_a_second_line_is_refused_and_nothing_of_it_is_kept(store: SqliteStore) -> None:
    await store.ensure_outgoing_messages(TENANT, await of_many_jobs(store, 1))
    (one,) = await claim(store, quota=1)
    connection = connection_of(store)
    line = "INSERT INTO transition VALUES (?, ?, ?, ?, 'Sending', 'SentToProvider', 0, 'nobody', NULL)"
    connection.execute(line, (TENANT, one.bucket, one.id, 3))
    with pytest.raises(BrokenInvariant, match=r"transition\.version"):
        await store.record_outgoing(results([one]), actor="worker")
    assert connection.execute("SELECT status FROM outgoing_message").fetchall() == [("Sending",)]
    assert connection.execute("SELECT * FROM delivery_attempt").fetchall() == []


async def test_a_group_of_a_thousand_people_is_found_by_one_statement(store: SqliteStore) -> None:
    members = [f"{n:032x}" for n in range(1000)]
    group = factories.guid(1, "group")
    await store.put_group(TENANT, guid=group, name="parents", members=members)
    with counted(store) as statements:
        found = await store.find_members(TENANT, [group])
    assert found == {group: tuple(members)}
    assert len(statements.methods) == 1


async def test_two_results_of_one_row_in_one_set_are_recorded_one_after_the_other(
    store: SqliteStore, clock: ManualClock
) -> None:
    """A claim that was given up for lost answers while the next one comes to nothing."""
    await store.ensure_outgoing_messages(TENANT, await of_many_jobs(store, 1))
    (first,) = await claim(store, quota=1, name="first")
    clock.advance(timedelta(minutes=2))
    await store.rescue_outgoing(limit=1)
    (send,) = await store.find_uncertain(accounts=(first.account,), limit=1)
    settlement = Settlement(id=send.id, bucket=send.bucket, version=send.version, replay=True, reason="again")
    await store.settle_uncertain([settlement], actor="settle")
    (second,) = await claim(store, quota=1, name="second")
    both = [*results([second], Unknown(reason="lost")), *results([first])]
    await store.record_outgoing(both, actor="worker")
    lines = "SELECT to_status FROM transition ORDER BY version"
    assert [to for (to,) in connection_of(store).execute(lines)] == [
        *("Sending", "Uncertain", "RetryReady", "Sending", "Uncertain", "SentToProvider"),
    ]
    attempts = connection_of(store).execute("SELECT attempt, status FROM delivery_attempt ORDER BY attempt").fetchall()
    assert attempts == [(1, "Accepted"), (2, "Unknown")]
    (may_have_arrived,) = connection_of(store).execute("SELECT first_unknown_at FROM outgoing_message").fetchone()
    assert may_have_arrived == microseconds(START_AT), "when the first of them was claimed"

"""Setting the store's time by a person's word: what waits keeps the time that it had left, and the log says who."""

import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from clarion.adapters.stores.sqlite import SqliteStore, read_clock, set_clock
from clarion.adapters.stores.sqlite.clock import instant
from clarion.domain.call import Accepted, Unknown
from clarion.domain.claim import CallResult, FlowQuota
from clarion.domain.guard import JobEntry
from clarion.domain.identity import Lane
from clarion.domain.notification import Stage
from clarion.domain.outgoing import OutgoingStatus
from clarion.errors import StoreBusy
from clarion.ports.track import ProviderEvent
from clarion.testing import factories
from tests.integration.sqlite_machine import Machine

TENANT = factories.TENANT
MONTH = timedelta(days=30)
WEEK = timedelta(days=7)
LEASE = timedelta(seconds=60)
LIFE = timedelta(minutes=5)
ROUTE = "email:default"


@pytest.fixture
async def machine(migrated_sqlite_path: Path) -> Machine:
    """One that was used with a right clock, and then started with a wall clock that is a month ahead."""
    machine = Machine(migrated_sqlite_path)
    store = await machine.open()
    for tenant_id in (TENANT, "another"):
        await store.ensure_tenant(tenant_id, {})
    await store.close()
    machine.start_again()
    return machine


async def set_right(machine: Machine) -> None:
    await set_clock(f"sqlite:///{machine.path}", clock=machine.clock(), actor="cli:kim", reason="a month ahead")


async def accept(store: SqliteStore, number: int, *, expires: bool = True, **fields: object) -> None:
    (parent,) = await store.ensure_notification_jobs(TENANT, [JobEntry(job=factories.notification_job(number))])
    (address,) = await store.ensure_address_versions(TENANT, [factories.address_version(number)])
    expires_at = await store.now() + LIFE if expires else None
    item = factories.outgoing_item(parent.record, address.record, expires_at=expires_at, **fields)
    await store.ensure_outgoing_messages(TENANT, [item])


def pending(key: str, due_at: datetime | None) -> JobEntry:
    """A job with its scheduler row, put off by its caller or due at once."""
    entry = factories.guarded_entry(key)
    return msgspec.structs.replace(
        entry, scheduler=entry.scheduler and msgspec.structs.replace(entry.scheduler, due_at=due_at)
    )


async def claim(store: SqliteStore, token: int) -> list[CallResult]:
    """Claim what is due, and give the results of calls that nobody knows the outcome of."""
    found = await store.discover_flows(routes=(ROUTE,), lows={})
    quotas = [FlowQuota(flow_id=head.flow_id, quota=9, account="main") for head in found.heads]
    claimed = await store.claim_outgoing(quotas, token=factories.guid(token, "token"), lease=LEASE, actor="worker")
    return [
        CallResult(
            id=one.id, bucket=one.bucket, claim_token=one.claim_token, attempt=1, outcome=Unknown(reason="no reply")
        )
        for one in claimed
    ]


def looked_up(machine: Machine, table: str, *columns: str) -> list[tuple[datetime | None, ...]]:
    """The instants of a table's rows, in order."""
    with closing(sqlite3.connect(machine.path)) as connection:
        found = connection.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY rowid").fetchall()  # noqa: S608
    return [tuple(None if value is None else instant(value) for value in row) for row in found]


async def test_set_back_everything_that_waits_has_as_much_time_left_as_before(machine: Machine) -> None:
    store = await machine.open(off_by=MONTH)
    await accept(store, 1)
    await store.record_outgoing(await claim(store, 1), actor="worker")  # uncertain
    machine.elapse(timedelta(seconds=10))
    await accept(store, 2)
    await claim(store, 2)  # leased, by a process that is killed now
    await accept(store, 3)  # waiting
    machine.elapse(timedelta(seconds=5))
    await store.close()
    now_at = machine.true_at
    leased_at = now_at - timedelta(seconds=5)
    uncertain_at = leased_at - timedelta(seconds=10)

    await set_right(machine)
    columns = ("due_at", "lease_until", "expires_at", "settle_at", "first_unknown_at")
    assert looked_up(machine, "outgoing_message", *columns) == [
        (None, None, uncertain_at + LIFE, uncertain_at, uncertain_at),
        (None, leased_at + LEASE, leased_at + LIFE, None, None),
        (leased_at, None, leased_at + LIFE, None, None),
    ]
    store = await machine.open()
    assert await store.now() == now_at
    assert await store.rescue_outgoing(limit=9) == 0, "its lease has not ended"
    assert [one.id for one in await claim(store, 3)] == [3]
    machine.elapse(LEASE - timedelta(seconds=5))
    assert await store.rescue_outgoing(limit=9) == 1
    await store.close()


async def test_set_back_a_pending_job_is_due_as_before_and_one_that_was_put_off_at_its_callers_time(
    machine: Machine,
) -> None:
    store = await machine.open(off_by=MONTH)
    callers_at = machine.true_at + WEEK
    dues = [None, callers_at + MONTH, None]  # the second is later still, by the wrong clock too
    await store.ensure_notification_jobs(TENANT, [pending(f"key-{n}", due_at) for n, due_at in enumerate(dues)])
    await store.claim_stage(Stage.SCHEDULE, lanes=tuple(Lane), limit=1, lease=LEASE)
    await store.close()
    await set_right(machine)
    found = looked_up(machine, "notification_scheduler", "due_at", "lease_until")
    assert (None, machine.true_at + LEASE) in found
    assert (callers_at + MONTH, None) in found
    assert {due_at for due_at, _ in found} == {None, machine.true_at, callers_at + MONTH}


async def test_set_back_a_job_that_was_put_off_before_the_leap_waits_for_its_time_again(
    migrated_sqlite_path: Path,
) -> None:
    machine = Machine(migrated_sqlite_path)
    store = await machine.open()
    callers_at = machine.true_at + WEEK
    await store.ensure_notification_jobs(TENANT, [pending("key-1", callers_at)])
    await store.close()
    machine.start_again()
    store = await machine.open(off_by=MONTH)
    await accept(store, 2)
    await store.close()
    await set_right(machine)
    store = await machine.open()
    assert not await store.claim_stage(Stage.SCHEDULE, lanes=tuple(Lane), limit=9, lease=LEASE)
    machine.elapse(WEEK)
    assert len(await store.claim_stage(Stage.SCHEDULE, lanes=tuple(Lane), limit=9, lease=LEASE)) == 1
    await store.close()


async def test_set_back_a_message_whose_turn_in_line_has_come_is_due_at_once(machine: Machine) -> None:
    store = await machine.open(off_by=MONTH)
    for number in (1, 2):
        await accept(store, number, order_key="one recipient")
    (first,) = await claim(store, 1)
    machine.elapse(timedelta(seconds=2))
    await store.record_outgoing([msgspec.structs.replace(first, outcome=Accepted())], actor="worker")
    await store.close()
    await set_right(machine)
    store = await machine.open()
    assert [one.id for one in await claim(store, 2)] == [2]
    await store.close()


async def test_set_back_a_message_that_was_put_off_waits_for_its_callers_time(machine: Machine) -> None:
    store = await machine.open(off_by=MONTH)
    callers_at = machine.true_at + WEEK
    await accept(store, 1, expires=False, due_at=callers_at + MONTH, order_key="one recipient")
    await accept(store, 2, expires=False, due_at=await store.now() + timedelta(seconds=1))
    machine.elapse(timedelta(seconds=2))
    due_at = machine.true_at + MONTH - timedelta(seconds=1)
    await store.close()
    await set_right(machine)
    assert looked_up(machine, "outgoing_message", "due_at") == [(callers_at + MONTH,), (due_at,)]


async def test_set_back_a_receipt_that_waits_for_its_message_is_looked_at_as_soon_as_before(machine: Machine) -> None:
    store = await machine.open(off_by=MONTH)
    receipt = ProviderEvent(
        account="main",
        event_id="event-1",
        status=OutgoingStatus.DELIVERED,
        provider_message_id="not known yet",
        happened_at=machine.true_at,
        raw="{}",
    )
    await store.keep_events(TENANT, [receipt])
    before = looked_up(machine, "webhook_event", "look_at", "received_at")
    await store.close()
    await set_right(machine)
    after = looked_up(machine, "webhook_event", "look_at", "received_at")
    assert after == [tuple(at and at - MONTH for at in row) for row in before]


async def test_set_forwards_it_is_as_if_the_time_had_passed(machine: Machine) -> None:
    store = await machine.open(off_by=-timedelta(hours=5))  # time stands at the mark, which is the true one
    await accept(store, 1)
    await claim(store, 1)
    await store.close()
    before = looked_up(machine, "outgoing_message", "lease_until", "expires_at")
    machine.true_at += timedelta(hours=5)  # the machine did not count them: it was suspended from outside
    await set_right(machine)
    assert looked_up(machine, "outgoing_message", "lease_until", "expires_at") == before
    store = await machine.open()
    assert await store.now() == machine.true_at
    assert await store.rescue_outgoing(limit=9) == 1
    await store.close()


async def test_who_set_it_and_why_stands_in_every_tenants_log(machine: Machine) -> None:
    await (await machine.open(off_by=MONTH)).close()
    store = await machine.open(off_by=MONTH)
    await accept(store, 1)
    await store.close()
    await set_right(machine)
    store = await machine.open()
    for tenant_id in (TENANT, "another"):
        entry = (await store.list_audit(tenant_id))[-1]
        assert (entry.act, entry.subject, entry.actor, entry.reason) == ("set", "clock", "cli:kim", "a month ahead")
        assert entry.at == machine.true_at
        details = msgspec.json.decode(entry.details)
        assert details == {
            "from": (machine.true_at + MONTH).isoformat(),
            "to": machine.true_at.isoformat(),
        }
    await store.close()


async def test_it_is_refused_while_another_process_has_the_file_open(machine: Machine) -> None:
    store = await machine.open(off_by=MONTH)
    await accept(store, 1)
    with pytest.raises(StoreBusy, match=r"other processes have .* open: stop serve, work"):
        await set_right(machine)
    assert await store.now() == machine.true_at + MONTH
    await accept(store, 2)
    await store.close()
    await set_right(machine)


async def test_both_times_are_shown_also_where_the_machines_clock_is_refused(machine: Machine) -> None:
    store = await machine.open()
    await accept(store, 1)
    await store.close()
    reading = await read_clock(f"sqlite:///{machine.path}", clock=machine.clock(off_by=MONTH))
    assert (reading.store_at, reading.mark_at) == (machine.true_at, machine.true_at)
    assert reading.ahead == -MONTH


async def test_a_month_that_was_no_leap_is_mended_by_the_same_command(machine: Machine) -> None:
    """The machine stood switched off for longer than is believed without asking."""
    machine.true_at += 4 * MONTH
    await set_right(machine)
    store = await machine.open()
    assert await store.now() == machine.true_at
    await store.close()

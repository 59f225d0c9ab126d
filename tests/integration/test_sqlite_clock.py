"""The store's clock on SQLite: what leases and due times are judged by, whatever happens to the host's clock (I-37)."""

import sqlite3
from contextlib import closing, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from clarion.adapters.stores.query import Query
from clarion.adapters.stores.sqlite import InlineRunner, SqliteStore, open_store
from clarion.adapters.stores.sqlite.clock import MICROSECOND, Kept, StoreClock, microseconds
from clarion.domain.guard import JobEntry
from clarion.errors import BrokenInvariant, ClockLeap
from clarion.testing import factories
from clarion.testing.clock import START_AT, ManualClock
from tests.integration.sqlite_look import connection_of
from tests.integration.sqlite_machine import Machine

TENANT = factories.TENANT
START = microseconds(START_AT)
SECOND = 1_000_000
DAY = timedelta(days=1)


async def open_at(path: Path, clock: ManualClock) -> SqliteStore:
    return await open_store(f"sqlite:///{path}", clock=clock, runner=InlineRunner())


def now(store: SqliteStore) -> int:
    """The time as the store's SQL sees it."""
    ((value,),) = connection_of(store).execute("SELECT clarion_now()").fetchall()
    assert isinstance(value, int)
    return value


async def write(store: SqliteStore, n: int) -> None:
    await store.ensure_user_messages(TENANT, [factories.user_message(n)])


def mark(path: Path) -> int:
    """The mark that is committed, as another process reads it."""
    with closing(sqlite3.connect(path)) as reader:
        ((value,),) = reader.execute("SELECT high_water FROM store_clock").fetchall()
    assert isinstance(value, int)
    return value


@pytest.mark.parametrize("jump", [-DAY, DAY], ids=["back", "forwards"])
async def test_a_wall_clock_that_is_set_while_the_store_is_open_changes_nothing(
    migrated_sqlite_path: Path, jump: timedelta
) -> None:
    clock = ManualClock()
    store = await open_at(migrated_sqlite_path, clock)
    clock.advance(timedelta(seconds=1))
    clock.jump(START_AT + jump)
    clock.advance(timedelta(seconds=1))
    assert now(store) == START + 2 * SECOND
    await store.close()


async def test_a_wall_clock_set_back_between_two_starts_makes_no_lease_expire_early_or_late(
    migrated_sqlite_path: Path,
) -> None:
    clock = ManualClock()
    store = await open_at(migrated_sqlite_path, clock)
    await write(store, 1)
    leased_until = now(store) + 30 * SECOND
    await store.close()

    clock.jump(START_AT - DAY)
    store = await open_at(migrated_sqlite_path, clock)
    clock.advance(timedelta(seconds=30) - MICROSECOND)
    assert now(store) < leased_until
    clock.advance(MICROSECOND)
    assert now(store) == leased_until
    await store.close()


async def test_a_wall_clock_that_went_on_between_two_starts_is_believed(migrated_sqlite_path: Path) -> None:
    clock = ManualClock()
    store = await open_at(migrated_sqlite_path, clock)
    await write(store, 1)
    await store.close()
    clock.advance(DAY)
    store = await open_at(migrated_sqlite_path, clock)
    assert now(store) == START + DAY // MICROSECOND
    await store.close()


async def test_the_mark_is_written_with_other_writes_and_at_most_once_a_second(migrated_sqlite_path: Path) -> None:
    clock = ManualClock()
    store = await open_at(migrated_sqlite_path, clock)
    assert mark(migrated_sqlite_path) == 0, "opening writes nothing"
    marks = []
    for n, milliseconds in enumerate((0, 600, 399, 1, 999, 5000)):
        clock.advance(timedelta(milliseconds=milliseconds))
        await write(store, n)
        marks.append(mark(migrated_sqlite_path) - START)
    assert marks == [0, 0, 0, SECOND, SECOND, 6_999_000]
    await store.close()


async def test_a_transaction_that_writes_nothing_else_leaves_the_mark_alone(migrated_sqlite_path: Path) -> None:
    clock = ManualClock()
    store = await open_at(migrated_sqlite_path, clock)
    await write(store, 1)
    clock.advance(timedelta(minutes=1))
    await write(store, 1)
    await store.list_support_cases(TENANT)
    assert mark(migrated_sqlite_path) == START
    await store.close()


async def test_a_mark_that_was_not_committed_is_written_by_the_next_transaction(migrated_sqlite_path: Path) -> None:
    store = await open_at(migrated_sqlite_path, ManualClock())
    with pytest.raises(BrokenInvariant, match="FOREIGN KEY"):
        fail_to_commit(store)
    assert mark(migrated_sqlite_path) == 0
    await write(store, 1)
    assert mark(migrated_sqlite_path) == START
    await store.close()


def fail_to_commit(store: SqliteStore) -> None:
    """Write a row that SQLite refuses only when the transaction ends, after the mark."""
    with store._core._session.transaction() as transaction:
        transaction.rows(Query(name="later", reason="", sql="PRAGMA defer_foreign_keys = ON"))
        key = "INSERT INTO tenant_key VALUES ('nobody', 'data', 1, x'00', clarion_now())"
        transaction.rows(Query(name="orphan", reason="", sql=key))


async def test_a_process_catches_up_with_one_whose_clock_is_ahead(migrated_sqlite_path: Path) -> None:
    ahead, behind = ManualClock(START_AT + DAY), ManualClock()
    behind_store = await open_at(migrated_sqlite_path, behind)
    ahead_store = await open_at(migrated_sqlite_path, ahead)
    await write(ahead_store, 1)
    await write(behind_store, 2)
    assert now(behind_store) == now(ahead_store)
    assert mark(migrated_sqlite_path) == now(ahead_store), "the mark did not fall"
    await behind_store.close()
    await ahead_store.close()


def test_time_stands_still_inside_a_transaction_and_goes_on_after_it() -> None:
    host = ManualClock()
    clock = StoreClock(host, Kept())
    with clock.standing_still():
        host.advance(timedelta(seconds=3))
        assert clock.now() == START
    assert clock.now() == START + 3 * SECOND


async def test_a_row_that_does_not_say_when_is_due_now_by_the_stores_clock(migrated_sqlite_path: Path) -> None:
    clock = ManualClock()
    store = await open_at(migrated_sqlite_path, clock)
    clock.jump(START_AT - DAY)
    clock.advance(timedelta(microseconds=1))
    await store.ensure_notification_jobs(TENANT, [JobEntry(job=factories.notification_job())])
    (answer,) = await store.ensure_notification_schedulers(TENANT, [factories.notification_scheduler()])
    assert answer.record.due_at == START_AT + MICROSECOND
    await store.close()


@pytest.mark.parametrize(
    "at",
    [datetime(1, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), datetime.max.replace(tzinfo=UTC)],
    ids=str,
)
async def test_an_instant_comes_back_to_the_microsecond(migrated_sqlite_path: Path, at: datetime) -> None:
    store = await open_at(migrated_sqlite_path, ManualClock())
    given = factories.automation_scheduler(scheduled_at=at)
    (answer,) = await store.ensure_automation_schedulers(TENANT, [given])
    assert answer.record.scheduled_at == at
    await store.close()


@pytest.fixture
def machine(migrated_sqlite_path: Path) -> Machine:
    return Machine(migrated_sqlite_path)


async def use(machine: Machine, n: int = 1) -> None:
    """Have a process with a right clock write something."""
    store = await machine.open()
    await write(store, n)
    await store.close()


@pytest.mark.parametrize("off_by", [DAY, -DAY, -3 * DAY, timedelta(hours=5)], ids=str)
async def test_every_process_of_a_machine_goes_by_the_first_ones_time_whatever_its_own_wall_clock_says(
    machine: Machine, off_by: timedelta
) -> None:
    await use(machine)
    machine.elapse(timedelta(seconds=100))
    store = await machine.open(off_by=off_by)
    assert now(store) == START + 100 * SECOND
    await write(store, 2)
    assert mark(machine.path) == START + 100 * SECOND
    await store.close()


async def test_a_wall_clock_that_leaps_while_the_machine_runs_is_refused_and_changes_nothing(machine: Machine) -> None:
    await use(machine)
    machine.elapse(timedelta(days=40))
    with pytest.raises(ClockLeap, match=r"is 30 days ahead of the time in .*: set the clock right.* clarion clock set"):
        await machine.open(off_by=30 * DAY)
    assert mark(machine.path) == START
    store = await machine.open()
    assert now(store) == START + 40 * DAY // MICROSECOND, "a file that nobody used for 40 days is no leap"
    await store.close()


@pytest.mark.parametrize("ahead, refused", [(DAY, False), (DAY + MICROSECOND, True)])
async def test_the_bound_while_the_machine_runs_is_a_day(machine: Machine, ahead: timedelta, refused: bool) -> None:
    await use(machine)
    with pytest.raises(ClockLeap) if refused else nullcontext():
        await (await machine.open(off_by=ahead)).close()


@pytest.mark.parametrize("off_for, refused", [(40 * DAY, False), (92 * DAY, False), (92 * DAY + MICROSECOND, True)])
async def test_a_machine_may_be_switched_off_for_a_season(machine: Machine, off_for: timedelta, refused: bool) -> None:
    await use(machine)
    machine.true_at += off_for
    machine.start_again()
    if refused:
        with pytest.raises(ClockLeap, match=r"is 92 days ahead of the last time that was written to"):
            await machine.open()
        return
    store = await machine.open()
    assert now(store) == START + off_for // MICROSECOND
    await store.close()


async def test_after_a_start_with_the_clock_set_back_time_goes_on_from_the_mark(machine: Machine) -> None:
    await use(machine)
    machine.start_again()
    store = await machine.open(off_by=-3 * DAY)
    machine.elapse(timedelta(seconds=7))
    assert now(store) == START + 7 * SECOND
    await write(store, 2)
    await store.close()
    store = await machine.open()
    assert now(store) == START + 7 * SECOND, "a clock that is right again counts from the next start on"
    await store.close()


async def test_of_two_that_open_the_file_after_a_start_the_first_to_write_decides(machine: Machine) -> None:
    await use(machine)
    machine.start_again()
    machine.elapse(timedelta(minutes=1))
    wrong, right = await machine.open(off_by=DAY), await machine.open()
    await write(right, 2)
    await write(wrong, 3)
    assert now(wrong) == now(right) == START + 60 * SECOND
    await wrong.close()
    await right.close()


async def test_a_new_file_takes_any_time(machine: Machine) -> None:
    store = await machine.open(off_by=400 * DAY)
    assert now(store) == START + 400 * DAY // MICROSECOND
    await store.close()


async def test_reading_follows_a_process_that_is_ahead(migrated_sqlite_path: Path) -> None:
    """Where the machine does not say which start this is: the door must not stamp with a time that others have left."""
    behind = await open_at(migrated_sqlite_path, ManualClock())
    ahead = await open_at(migrated_sqlite_path, ManualClock(START_AT + DAY))
    await write(ahead, 1)
    assert await behind.now() == START_AT + DAY
    await behind.close()
    await ahead.close()

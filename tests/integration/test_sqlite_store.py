"""The SQLite store beyond the contract: what survives the JSON, what is refused, and what lies in the file."""

import shutil
import sqlite3
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from clarion.adapters.stores.sqlite import InlineRunner, SqliteStore, open_store
from clarion.domain import key
from clarion.domain.address import AddressVersion
from clarion.domain.ensured import Outcome
from clarion.domain.guard import JobEntry
from clarion.domain.identity import Channel
from clarion.errors import BrokenInvariant, InvalidInput
from clarion.testing import factories
from clarion.testing.clock import ManualClock
from clarion.testing.contracts.kind import NOTIFICATION_SCHEDULER
from tests.integration.sqlite_look import connection_of, counted

TENANT = factories.TENANT


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def store(migrated_sqlite_path: Path, clock: ManualClock) -> AsyncIterator[SqliteStore]:
    opened = await open_store(f"sqlite:///{migrated_sqlite_path}", clock=clock, runner=InlineRunner())
    yield opened
    await opened.close()


async def addresses(store: SqliteStore, count: int) -> list[AddressVersion]:
    given = [factories.address_version(n) for n in range(count)]
    return [answer.record for answer in await store.ensure_address_versions(TENANT, given)]


Ensure = Callable[[SqliteStore], Awaitable[object]]

ENSURES: dict[str, Ensure] = {
    "tenant": lambda store: store.ensure_tenant(TENANT, {}),
    "automation_schedulers": lambda store: store.ensure_automation_schedulers(
        TENANT, [factories.automation_scheduler(n) for n in range(3)]
    ),
    "automation_jobs": lambda store: store.ensure_automation_jobs(TENANT, [factories.automation_job()]),
    "notification_jobs": lambda store: store.ensure_notification_jobs(
        TENANT, [factories.guarded_entry(), JobEntry(job=factories.notification_job())]
    ),
    "notification_schedulers": lambda store: NOTIFICATION_SCHEDULER.ensure(
        store, TENANT, [factories.notification_scheduler()]
    ),
    "messaging_jobs": lambda store: store.ensure_messaging_jobs(TENANT, [factories.messaging_job()]),
    "address_versions": lambda store: store.ensure_address_versions(TENANT, [factories.address_version()]),
    "user_messages": lambda store: store.ensure_user_messages(TENANT, [factories.user_message()]),
}


@pytest.mark.parametrize("ensure", ENSURES.values(), ids=ENSURES)
async def test_whatever_is_ensured_again_writes_nothing(store: SqliteStore, clock: ManualClock, ensure: Ensure) -> None:
    before = connection_of(store).total_changes
    await ensure(store)
    after = connection_of(store).total_changes
    clock.advance(timedelta(seconds=2))
    await ensure(store)
    assert before < after == connection_of(store).total_changes


async def test_a_thousand_items_of_difficult_text_and_bytes_come_back_as_they_were(store: SqliteStore) -> None:
    given = [
        factories.user_message(
            n, event_type=factories.TEXT + chr(1 + n % 0x1F) + "\\u0000", content=factories.BYTES * 4
        )
        for n in range(1000)
    ]
    answers = await store.ensure_user_messages(TENANT, given)
    assert [msgspec.structs.replace(answer.record, id=None) for answer in answers] == given


async def test_a_set_over_the_limit_is_refused_and_an_empty_one_asks_the_database_nothing(store: SqliteStore) -> None:
    with counted(store) as statements:
        with pytest.raises(InvalidInput, match="1001 items, 1000 is the most"):
            await store.ensure_user_messages(TENANT, [factories.user_message()] * 1001)
        assert await store.ensure_user_messages(TENANT, []) == []
    assert (statements.frame, statements.methods) == ([], [])


@pytest.mark.parametrize(
    "text, complaint",
    [("end\0less", "a NUL character"), ("half \ud83d", "half of a surrogate pair")],
)
async def test_text_that_sqlite_would_cut_or_refuse_is_refused_by_us(
    store: SqliteStore, text: str, complaint: str
) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        await store.ensure_user_messages(TENANT, [factories.user_message(event_type=text)])
    assert await store.ensure_user_messages(TENANT, [factories.user_message()])


async def test_a_number_too_large_for_its_column_is_refused(store: SqliteStore) -> None:
    with pytest.raises(InvalidInput, match="a value that its column cannot hold"):
        await store.ensure_automation_jobs(TENANT, [factories.automation_job(key_version=2**63)])


async def test_a_key_that_the_program_would_refuse_is_refused_by_the_schema_and_nothing_is_stored(
    store: SqliteStore,
) -> None:
    good, bad = factories.automation_job(1), factories.automation_job(2, row_key="x" * 513)
    with pytest.raises(BrokenInvariant, match="CHECK constraint failed"):
        await store.ensure_automation_jobs(TENANT, [good, bad])
    (answer,) = await store.ensure_automation_jobs(TENANT, [good])
    assert answer.outcome is Outcome.CREATED


async def test_one_guid_under_two_row_keys_is_reported_as_a_defect(store: SqliteStore) -> None:
    job = factories.notification_job()
    await store.ensure_notification_jobs(TENANT, [JobEntry(job=job)])
    with pytest.raises(BrokenInvariant, match="a NotificationJob shares its id"):
        await store.ensure_notification_jobs(TENANT, [JobEntry(job=msgspec.structs.replace(job, row_key="other"))])


@pytest.mark.parametrize("attempt_no", [None, 2, 32767])
async def test_the_row_key_made_in_sql_is_the_one_that_the_domain_makes(
    store: SqliteStore, attempt_no: int | None
) -> None:
    (job,) = await store.ensure_messaging_jobs(TENANT, [factories.messaging_job()])
    (address,) = await addresses(store, 1)
    item = factories.outgoing_item(job.record, address, attempt_no=attempt_no)
    (answer,) = await store.ensure_outgoing_messages(TENANT, [item])
    assert answer.record.rk == key.outgoing_rk(
        recipient_key_hash=address.key_hash, channel=Channel.EMAIL, attempt_no=attempt_no
    )


async def test_the_id_of_a_deleted_row_is_never_given_to_another(store: SqliteStore) -> None:
    (first,) = await addresses(store, 1)
    connection_of(store).execute("DELETE FROM address_version")
    (second,) = await addresses(store, 1)
    assert first.id is not None
    assert second.id is not None
    assert second.id > first.id


async def test_every_commit_is_on_disk_before_it_is_answered(store: SqliteStore) -> None:
    settings = {
        name: connection_of(store).execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "temp_store", "wal_autocheckpoint")
    }
    full, memory = 2, 2
    assert settings == {
        "journal_mode": "wal",
        "synchronous": full,
        "foreign_keys": 1,
        "busy_timeout": 5000,
        "temp_store": memory,
        "wal_autocheckpoint": 4096,
    }


@pytest.fixture
def public_path(migrated_sqlite_path: Path) -> Path:
    migrated_sqlite_path.chmod(0o664)
    return migrated_sqlite_path


async def test_the_file_and_its_log_are_for_their_owner_only(public_path: Path, clock: ManualClock) -> None:
    store = await open_store(f"sqlite:///{public_path}", clock=clock, runner=InlineRunner())
    await store.ensure_tenant(TENANT, {})
    modes = {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in public_path.parent.iterdir()}
    await store.close()
    assert modes == {"clarion.db": "0o600", "clarion.db-wal": "0o600", "clarion.db-shm": "0o600"}


async def test_a_log_that_a_killed_process_left_open_to_others_is_closed_to_them(
    public_path: Path, tmp_path: Path, clock: ManualClock
) -> None:
    store = await open_store(f"sqlite:///{public_path}", clock=clock, runner=InlineRunner())
    await store.ensure_tenant(TENANT, {})
    left = tmp_path / "left"
    shutil.copytree(public_path.parent, left)  # what a kill leaves: the log with the tenant in it
    await store.close()
    for path in left.iterdir():
        path.chmod(0o644)
    again = await open_store(f"sqlite:///{left}/{public_path.name}", clock=clock, runner=InlineRunner())
    modes = {oct(stat.S_IMODE(path.stat().st_mode)) for path in left.iterdir()}
    await again.close()
    assert modes == {"0o600"}


async def test_a_closed_store_leaves_one_file_with_everything_in_it(
    migrated_sqlite_path: Path, clock: ManualClock
) -> None:
    store = await open_store(f"sqlite:///{migrated_sqlite_path}", clock=clock)
    await store.ensure_tenant(TENANT, {})
    await store.close()
    assert [path.name for path in migrated_sqlite_path.parent.iterdir()] == ["clarion.db"]
    with closing(sqlite3.connect(migrated_sqlite_path)) as reader:
        assert reader.execute("SELECT tenant_id FROM tenant").fetchall() == [(TENANT,)]


async def test_a_store_in_memory_needs_no_migration_and_shares_nothing(clock: ManualClock) -> None:
    one = await open_store("sqlite://:memory:", clock=clock, runner=InlineRunner())
    other = await open_store("sqlite://:memory:", clock=clock)
    await one.ensure_tenant(TENANT, {})
    assert await one.find_tenant_keys(TENANT) == {}
    assert await other.find_tenant_keys(TENANT) is None
    await one.close()
    await other.close()

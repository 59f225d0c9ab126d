"""The SQLite store beyond the contract: how many statements, what they go through, and what survives the JSON."""

import re
import sqlite3
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from clarion.adapters.stores import query, sqlite
from clarion.adapters.stores.sqlite import InlineRunner, SqliteStore, open_store
from clarion.domain import key
from clarion.domain.address import AddressVersion
from clarion.domain.ensured import Outcome
from clarion.domain.guard import JobEntry
from clarion.domain.identity import Channel
from clarion.domain.outgoing import OutgoingBatch
from clarion.errors import BrokenInvariant, InvalidInput, ProgramTooOld
from clarion.testing import factories
from clarion.testing.clock import ManualClock

TENANT = factories.TENANT
BATCH = 500


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def store(migrated_sqlite_path: Path, clock: ManualClock) -> AsyncIterator[SqliteStore]:
    opened = await open_store(f"sqlite:///{migrated_sqlite_path}", clock=clock, runner=InlineRunner())
    yield opened
    await opened.close()


def connection_of(store: SqliteStore) -> sqlite3.Connection:
    """The store's own connection, which belongs to this thread because the runner is inline."""
    opened = store._core._session._opened
    assert opened is not None
    return opened[0]


@contextmanager
def counted(store: SqliteStore) -> Iterator[list[str]]:
    """Every statement that SQLite runs for the store, BEGIN and COMMIT apart."""
    statements: list[str] = []

    def trace(statement: str) -> None:
        if statement not in ("BEGIN IMMEDIATE", "COMMIT"):
            statements.append(statement)

    connection_of(store).set_trace_callback(trace)
    yield statements
    connection_of(store).set_trace_callback(None)


async def addresses(store: SqliteStore, count: int) -> list[AddressVersion]:
    given = [factories.address_version(n) for n in range(count)]
    return [answer.record for answer in await store.ensure_address_versions(TENANT, given)]


async def campaign(store: SqliteStore, *, count: int) -> OutgoingBatch:
    """A campaign's job and addresses are stored; its messages are not."""
    (job,) = await store.ensure_messaging_jobs(TENANT, [factories.messaging_job()])
    return factories.outgoing_batch(job.record, await addresses(store, count))


async def test_a_batch_of_500_is_made_by_at_most_4_statements_even_when_the_clock_is_marked(
    store: SqliteStore, clock: ManualClock
) -> None:
    batch = await campaign(store, count=BATCH)
    clock.advance(timedelta(seconds=2))
    with counted(store) as statements:
        answers = await store.ensure_outgoing_messages(TENANT, batch)
    assert [answer.outcome for answer in answers] == [Outcome.CREATED] * BATCH
    assert len(statements) == 4
    assert "store_clock" in statements[-1]


async def test_a_batch_of_500_is_repeated_by_3_statements_that_write_nothing(
    store: SqliteStore, clock: ManualClock, migrated_sqlite_path: Path
) -> None:
    batch = await campaign(store, count=BATCH)
    first = await store.ensure_outgoing_messages(TENANT, batch)
    clock.advance(timedelta(seconds=2))
    with closing(sqlite3.connect(migrated_sqlite_path)) as watcher:
        version = watcher.execute("PRAGMA data_version").fetchone()
        changes = connection_of(store).total_changes
        with counted(store) as statements:
            again = await store.ensure_outgoing_messages(TENANT, batch)
        assert connection_of(store).total_changes == changes
        assert watcher.execute("PRAGMA data_version").fetchone() == version
    assert [answer.outcome for answer in again] == [Outcome.FOUND] * BATCH
    assert [answer.record for answer in again] == [answer.record for answer in first]
    assert len(statements) == 3


async def test_one_differing_row_of_500_is_one_conflict_and_one_case_by_4_statements(
    store: SqliteStore, clock: ManualClock
) -> None:
    batch = await campaign(store, count=BATCH)
    await store.ensure_outgoing_messages(TENANT, batch)
    before = connection_of(store).execute("SELECT * FROM outgoing_message ORDER BY id").fetchall()
    other = msgspec.structs.replace(batch.items[250], message_id=factories.guid(1))
    items = (*batch.items[:250], other, *batch.items[251:])
    clock.advance(timedelta(seconds=2))
    with counted(store) as statements:
        answers = await store.ensure_outgoing_messages(TENANT, msgspec.structs.replace(batch, items=items))
    assert [place for place, answer in enumerate(answers) if answer.outcome is not Outcome.FOUND] == [250]
    assert answers[250].outcome is Outcome.CONFLICT
    assert answers[250].differing == ("message_id",)
    assert len(statements) == 4
    assert connection_of(store).execute("SELECT * FROM outgoing_message ORDER BY id").fetchall() == before
    assert [case.case_id for case in await store.list_support_cases(TENANT)] == [answers[250].case_id]


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
    "notification_schedulers": lambda store: store.ensure_notification_schedulers(
        TENANT, [factories.notification_scheduler()]
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


async def test_a_set_of_one_takes_as_many_statements_as_a_set_of_a_thousand(store: SqliteStore) -> None:
    with counted(store) as for_one:
        await store.ensure_user_messages(TENANT, [factories.user_message(0)])
    with counted(store) as for_many:
        await store.ensure_user_messages(TENANT, [factories.user_message(n) for n in range(1, 1001)])
    assert len(for_one) == 3, "insert, read, and the first mark of the clock"
    assert len(for_many) == 2


def every_query() -> list[query.Query]:
    """Every statement that lies beside the store's code, so that a new one need not be listed here."""
    package = Path(sqlite.__file__).parent
    names = {
        path: ".".join((sqlite.__name__, *path.relative_to(package).parent.parts)) for path in package.rglob("*.sql")
    }
    return [named for path, name in sorted(names.items()) for named in query.load(name, path.name).values()]


async def fill(store: SqliteStore) -> None:
    """Put so many rows into the tables that looking one up is cheaper than going through them."""
    numbers = range(100)
    await store.ensure_automation_schedulers(TENANT, [factories.automation_scheduler(n) for n in numbers])
    await store.ensure_automation_jobs(TENANT, [factories.automation_job(n) for n in numbers])
    await store.ensure_notification_jobs(TENANT, [factories.guarded_entry(f"key-{n}") for n in numbers])
    await store.ensure_user_messages(TENANT, [factories.user_message(n) for n in numbers])
    await store.ensure_messaging_jobs(TENANT, [factories.messaging_job(n) for n in numbers])
    batch = await campaign(store, count=len(numbers))
    items = [msgspec.structs.replace(item, route=f"email:{n}") for n, item in enumerate(batch.items)]
    await store.ensure_outgoing_messages(TENANT, msgspec.structs.replace(batch, items=tuple(items)))


class _AnyParameter(dict[str, object]):
    """Parameters under every name; a plan does not depend on their values."""

    def __missing__(self, name: str) -> object:
        return "[]"


@pytest.mark.parametrize("analyzed", [False, True], ids=["without statistics", "with statistics of full tables"])
@pytest.mark.parametrize("named", every_query(), ids=lambda named: named.name)
async def test_no_query_goes_through_a_table(store: SqliteStore, named: query.Query, *, analyzed: bool) -> None:
    connection = connection_of(store)
    if analyzed:
        await fill(store)
        connection.execute("ANALYZE")
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {named.sql}", _AnyParameter())]
    scanned = {found[1] for line in plan if (found := re.match(r"SCAN (\w+)", line))}
    assert scanned <= {"g", "parent", "given", "made", "CONSTANT"}, plan  # the set itself, and what is made of it
    assert not [line for line in plan if "AUTOMATIC" in line], plan
    # To search by the tenant alone is to go through all that it has; only of itself and its keys it has few.
    by_tenant = {found[1] for line in plan if (found := re.match(r"SEARCH (\w+) .*\(tenant_id=\?\)", line))}
    assert by_tenant <= {"t", "k", "tenant_key"}, plan


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
    assert statements == []


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
    with pytest.raises(BrokenInvariant, match=r"notification_job\.guid"):
        await store.ensure_notification_jobs(TENANT, [JobEntry(job=msgspec.structs.replace(job, row_key="other"))])


async def test_a_state_of_a_newer_program_asks_for_an_update(store: SqliteStore) -> None:
    await store.ensure_automation_jobs(TENANT, [factories.automation_job()])
    connection_of(store).execute("UPDATE automation_job SET automation_type = 'Oracle'")
    with pytest.raises(ProgramTooOld, match="AutomationType 'Oracle'"):
        await store.ensure_automation_jobs(TENANT, [factories.automation_job()])


@pytest.mark.parametrize("attempt_no", [None, 2, 32767])
async def test_the_row_key_made_in_sql_is_the_one_that_the_domain_makes(
    store: SqliteStore, attempt_no: int | None
) -> None:
    batch = await campaign(store, count=1)
    (item,) = batch.items
    batch = msgspec.structs.replace(batch, items=(msgspec.structs.replace(item, attempt_no=attempt_no),))
    (answer,) = await store.ensure_outgoing_messages(TENANT, batch)
    address = factories.address_version(0)
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
        for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "temp_store")
    }
    full, memory = 2, 2
    assert settings == {
        "journal_mode": "wal",
        "synchronous": full,
        "foreign_keys": 1,
        "busy_timeout": 5000,
        "temp_store": memory,
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

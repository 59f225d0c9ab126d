"""What the PostgreSQL store says when the server is away, refuses, is full, or breaks a transaction off.

Each is one line that says what to do and never the password; nothing of the driver's own comes through.
"""

import asyncio
import errno
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from clarion.adapters.stores.migration import migrate_postgres
from clarion.adapters.stores.migration.failure import why_unreachable
from clarion.adapters.stores.postgres import Patience, PostgresStore, open_store
from clarion.adapters.stores.postgres.session import ATTEMPTS_MAX
from clarion.domain.ensured import Outcome
from clarion.errors import (
    BadConfiguration,
    BrokenInvariant,
    ClarionError,
    InvalidInput,
    SchemaMissing,
    StoreBusy,
    StoreFull,
    StoreReadOnly,
    StoreUnreachable,
)
from clarion.testing import factories as make
from clarion.testing import postgres
from clarion.testing.clock import ManualClock
from tests.integration.race import Race, open_race
from tests.integration.watched_connection import Connection, Gate, watched

TENANT = "acme"
SECRET = "s3cr3t-and-nobody-elses"  # noqa: S105  of a server that lives for one test
# For limits that a test waits for: short, and still long for a statement that nobody holds up on a busy machine.
SOON = timedelta(milliseconds=500)


@contextmanager
def one_line(kind: type[ClarionError], *, says: str) -> Iterator[None]:
    """Expect an error of this kind that says something, on one line and without the password."""
    with pytest.raises(kind, match=says) as raised:
        yield
    text = str(raised.value)
    assert "\n" not in text
    assert raised.value.hint in text
    assert SECRET not in text + repr(raised.value.__cause__)


async def open_and_close(url: str) -> None:
    await (await open_store(url, clock=ManualClock())).close()


@pytest.fixture
async def race(migrated_postgres_url: str) -> AsyncIterator[Race]:
    async with open_race(migrated_postgres_url) as race:
        yield race


@pytest.fixture
async def store(migrated_postgres_url: str) -> AsyncIterator[PostgresStore]:
    store = await open_store(migrated_postgres_url, clock=ManualClock())
    yield store
    await store.close()


@pytest.fixture
async def admin(migrated_postgres_url: str) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(migrated_postgres_url)
    yield connection
    await connection.close()


async def ensure(store: PostgresStore, n: int = 1) -> Outcome:
    (answer,) = await store.ensure_address_versions(TENANT, [make.address_version(n)])
    return answer.outcome


@pytest.mark.parametrize(
    "place, why",
    [
        ("127.0.0.1:1/db", "it refuses connections"),
        ("localhost:1/db", "it refuses connections"),
        ("no-such-host.invalid/db", "no address is known for its host"),
        ("/db?host=/nowhere", "no server has a socket in that folder"),
    ],
)
async def test_a_server_that_is_down_is_named_without_its_password_and_with_why(place: str, why: str) -> None:
    """The same words at work and in a migration, and none of Python's."""
    for ask in (open_and_close, migrate_postgres):
        with one_line(StoreUnreachable, says=rf"does not answer \({why}\): see that the server runs"):
            await ask(f"postgresql://me:{SECRET}@{place}")


@pytest.mark.parametrize(
    "error, why",
    [
        (TimeoutError(), "it took too long"),
        (OSError("Multiple exceptions: [Errno 111] Connect call failed, [Errno 99] no"), "it refuses connections"),
        (OSError("something"), "it cannot be reached"),
        (ConnectionResetError(errno.ECONNRESET, "x"), "Connection reset by peer"),
        (asyncpg.InterfaceError("pool is closed"), "the connection was lost"),
        (asyncpg.ConnectionDoesNotExistError("connection was closed in the middle"), "the connection was lost"),
    ],
    ids=repr,
)
def test_why_no_answer_came_is_said_in_our_words(error: Exception, why: str) -> None:
    assert why_unreachable(error) == why


@pytest.mark.parametrize("url", ["postgresql://me:{}@host:port/db", "postgresql://me:{}@,/db", "mysql://me:{}@host/db"])
async def test_an_address_that_cannot_be_read_is_not_repeated(url: str) -> None:
    with one_line(BadConfiguration, says="an address that cannot be read"):
        await open_and_close(url.format(SECRET))


async def test_a_wrong_password_and_an_unknown_database_are_told_apart() -> None:
    with postgres.postgres_server() as server:
        admin = await asyncpg.connect(server.url)
        await admin.execute(f"CREATE ROLE guarded LOGIN PASSWORD '{SECRET}'")
        rules = server.folder / "data" / "pg_hba.conf"
        rules.write_text("local all guarded scram-sha-256\n" + rules.read_text())
        await admin.execute("SELECT pg_reload_conf()")
        await admin.close()
        with one_line(BadConfiguration, says="refuses the user or the password.*correct the credentials"):
            await open_and_close(f"postgresql://guarded:wrong-{SECRET}@/postgres?host={server.folder}")
        with one_line(StoreUnreachable, says="has no such database.*create the database"):
            await open_and_close(f"postgresql://guarded:{SECRET}@/nowhere?host={server.folder}")
        with one_line(SchemaMissing, says="the database is empty.*clarion migrate"):
            await open_and_close(f"postgresql://guarded:{SECRET}@/postgres?host={server.folder}")


async def test_a_database_without_the_schema_is_refused(postgres_url: str) -> None:
    with one_line(SchemaMissing, says="clarion migrate --store postgresql://"):
        await open_and_close(postgres_url)


async def test_a_server_that_is_stopped_and_started_again_is_found_again() -> None:
    with postgres.postgres_server() as server:
        await migrate_postgres(server.url)
        store = await open_store(server.url, clock=ManualClock())
        server.stop()
        for _ in range(2):
            with one_line(StoreUnreachable, says="see that the server runs"):
                await ensure(store)
        server.start()
        assert await ensure(store) is Outcome.CREATED
        await store.close()


async def test_a_connection_that_is_lost_before_any_statement_is_replaced_for_the_next_call(race: Race) -> None:
    """Lost before COMMIT nothing was made, lost after it everything: to repeat is right in both cases (F-03)."""
    count = await race.statements(ensure)
    for n in range(1, count + 1):
        race.gate.close_before(n)
        async with asyncio.TaskGroup() as group:
            calling = group.create_task(outcome_or_error(ensure(race.first, n + 1)))
            await race.gate.reached_by(calling)
            assert race.gate.stopped_at is not None
            await race.other.execute("SELECT pg_terminate_backend($1, 10000)", race.gate.stopped_at.get_server_pid())
            race.gate.open()
        assert isinstance(calling.result(), StoreUnreachable)
        race.gate.close_before(None)
        assert await ensure(race.first, n + 1) is Outcome.CREATED


async def outcome_or_error(call: Any) -> Outcome | ClarionError:
    try:
        outcome: Outcome = await call
    except ClarionError as error:
        return error
    return outcome


async def test_a_read_only_database_is_read_and_not_written(migrated_postgres_url: str, admin: Connection) -> None:
    database = await admin.fetchval("SELECT current_database()")
    await admin.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    store = await open_store(migrated_postgres_url, clock=ManualClock())
    assert await store.find_tenant_keys(TENANT) is None
    with one_line(StoreReadOnly, says="is read-only.*name the primary"):
        await ensure(store)
    await store.close()


async def test_a_role_without_rights_is_told_which_it_needs(migrated_postgres_url: str, admin: Connection) -> None:
    await admin.execute("CREATE ROLE looker LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO looker")
    store = await open_store(migrated_postgres_url.replace("clarion@", "looker@"), clock=ManualClock())
    with one_line(BadConfiguration, says="forbids it.*grant the role SELECT, INSERT"):
        await ensure(store)
    await store.close()
    await admin.execute("DROP OWNED BY looker; DROP ROLE looker")


async def test_a_server_without_a_free_connection_says_so(migrated_postgres_url: str, admin: Connection) -> None:
    await admin.execute("CREATE ROLE crowded LOGIN CONNECTION LIMIT 0")
    with one_line(StoreUnreachable, says="has no connection left.*max_connections"):
        await open_and_close(migrated_postgres_url.replace("clarion@", "crowded@"))
    await admin.execute("DROP ROLE crowded")


async def refuse(admin: Connection, sqlstate: str, *, times: int) -> None:
    """Let the server refuse inserts with an error, as often as said; sequences count what is rolled back too."""
    await admin.execute(f"""
        CREATE SEQUENCE refusals;
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF nextval('refusals') <= {times} THEN
                RAISE EXCEPTION 'refused' USING ERRCODE = '{sqlstate}', DETAIL = 'a row of ours';
            END IF;
            RETURN new;
        END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON address_version FOR EACH ROW EXECUTE FUNCTION refuse();
    """)


@pytest.mark.parametrize(
    "sqlstate, kind, says",
    [
        ("53100", StoreFull, "no space left.*make space"),
        ("53200", StoreBusy, "lacks memory"),
        ("57014", StoreBusy, "longer than a statement may"),
        ("58030", StoreUnreachable, "its files"),
        ("XX001", StoreUnreachable, "internal error"),
        ("42P01", SchemaMissing, "clarion migrate"),
        ("22003", InvalidInput, "a value that its column cannot hold"),
        ("23505", BrokenInvariant, "23505"),
        ("P0001", BrokenInvariant, "P0001"),
    ],
)
async def test_each_error_of_the_server_has_a_meaning(
    store: PostgresStore, admin: Connection, sqlstate: str, kind: type[ClarionError], says: str
) -> None:
    await refuse(admin, sqlstate, times=1)
    with one_line(kind, says=says):
        await ensure(store)
    assert await ensure(store) is Outcome.CREATED


@pytest.mark.parametrize("sqlstate", ["40001", "40P01"])
async def test_a_transaction_that_the_server_breaks_off_is_repeated(
    store: PostgresStore, admin: Connection, sqlstate: str
) -> None:
    await refuse(admin, sqlstate, times=ATTEMPTS_MAX - 1)
    assert await ensure(store) is Outcome.CREATED
    assert await admin.fetchval("SELECT last_value FROM refusals") == ATTEMPTS_MAX


@pytest.mark.parametrize("sqlstate", ["40001", "40P01"])
async def test_a_transaction_is_repeated_only_so_often(store: PostgresStore, admin: Connection, sqlstate: str) -> None:
    await refuse(admin, sqlstate, times=1000)
    with one_line(StoreBusy, says="changed the same rows 5 times before us.*try again"):
        await ensure(store)
    assert await admin.fetchval("SELECT last_value FROM refusals") == ATTEMPTS_MAX


async def test_a_statement_that_a_migration_made_stale_is_prepared_anew(
    store: PostgresStore, admin: Connection
) -> None:
    await ensure(store)
    await admin.execute("ALTER TABLE address_version ALTER COLUMN serial TYPE bigint")
    assert await ensure(store) is Outcome.FOUND


@pytest.mark.parametrize(
    "patience, says",
    [
        (Patience(lock=SOON), "holds locks for longer than we wait"),
        (Patience(statement=SOON), "took longer than a statement may"),
    ],
)
async def test_a_row_that_somebody_holds_is_waited_for_only_so_long(
    migrated_postgres_url: str, admin: Connection, patience: Patience, says: str
) -> None:
    store = await open_store(migrated_postgres_url, clock=ManualClock(), patience=patience)
    await admin.execute("BEGIN")
    await admin.execute("LOCK TABLE address_version")
    with one_line(StoreBusy, says=says):
        await ensure(store)
    await admin.execute("ROLLBACK")
    assert await ensure(store) is Outcome.CREATED
    await store.close()


async def test_a_pool_that_is_used_up_is_no_server_that_is_down(migrated_postgres_url: str) -> None:
    gate = Gate()
    patience = Patience(connections_max=1, acquire=SOON)
    store = await open_store(
        migrated_postgres_url, clock=ManualClock(), patience=patience, connection_class=watched(gate.before)
    )
    gate.close_before(2)
    async with asyncio.TaskGroup() as group:
        holding = group.create_task(ensure(store))
        await gate.reached_by(holding)
        with one_line(StoreBusy, says="all 1 connections to .* stayed in use"):
            await ensure(store, 2)
        gate.open()
    assert holding.result() is Outcome.CREATED
    await store.close()


async def test_a_server_that_stands_still_is_not_waited_for_forever(migrated_postgres_url: str) -> None:
    gate = Gate()
    store = await open_store(
        migrated_postgres_url,
        clock=ManualClock(),
        patience=Patience(command=SOON),
        connection_class=watched(gate.before),
    )
    gate.close_before(2)
    async with asyncio.TaskGroup() as group:
        calling = group.create_task(outcome_or_error(ensure(store)))
        await gate.reached_by(calling)
        assert gate.stopped_at is not None
        backend = gate.stopped_at.get_server_pid()
        os.kill(backend, signal.SIGSTOP)
        try:
            gate.open()
            await calling
        finally:
            os.kill(backend, signal.SIGCONT)
    # Whether the call or the reset of its connection runs out of time first is the machine's choice.
    assert isinstance(calling.result(), StoreUnreachable)
    await store.close()


async def test_a_store_that_is_closed_says_so(migrated_postgres_url: str) -> None:
    store = await open_store(migrated_postgres_url, clock=ManualClock())
    await store.close()
    with one_line(BrokenInvariant, says="after it was closed"):
        await ensure(store)


@pytest.mark.parametrize("text", ["a NUL \0", "half a pair \ud800"])
async def test_text_that_no_column_holds_is_the_callers_to_change(store: PostgresStore, text: str) -> None:
    with one_line(InvalidInput, says="the set holds"):
        await store.ensure_address_versions(TENANT, [make.address_version(correlation_id=text)])
    with one_line(InvalidInput, says="the set holds"):
        await store.find_tenant_keys(text)


async def test_a_row_that_the_schema_refuses_is_our_defect_and_is_not_shown(store: PostgresStore) -> None:
    with pytest.raises(BrokenInvariant, match="23514, address_version_key_hash_check") as raised:
        await store.ensure_address_versions(TENANT, [make.address_version(key_hash="secret", ciphertext=b"secret")])
    assert "secret" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


async def test_two_jobs_with_one_guid_are_a_defect_and_make_nothing(store: PostgresStore, admin: Connection) -> None:
    first, second = make.guarded_entry("key-1"), make.guarded_entry("key-2")
    await store.ensure_notification_jobs(TENANT, [first])
    clash = make.guarded_entry("key-2", guid=first.job.guid)
    assert clash.guard == second.guard
    with one_line(BrokenInvariant, says="a NotificationJob shares its id"):
        await store.ensure_notification_jobs(TENANT, [clash])
    assert await admin.fetchval("SELECT count(*) FROM idempotency_guard") == 1

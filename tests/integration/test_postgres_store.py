"""What the PostgreSQL store does besides the contract: its statements, its plans, its sessions."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg
import msgspec
import pytest

from clarion.adapters.stores.postgres import Patience, PostgresStore, open_store
from clarion.domain.address import AddressVersion
from clarion.domain.automation import AutomationType
from clarion.domain.ensured import Outcome
from clarion.domain.guard import JobEntry
from clarion.domain.outgoing import OutgoingBatch
from clarion.domain.seal import Purpose
from clarion.errors import ProgramTooOld
from clarion.testing import factories as make
from clarion.testing.clock import ManualClock
from tests.integration.watched_connection import Connection, watched

BATCH = 500
TENANT = "acme"


@pytest.fixture
async def connection(migrated_postgres_url: str) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(migrated_postgres_url)
    yield connection
    await connection.close()


@pytest.fixture
async def store(migrated_postgres_url: str) -> AsyncIterator[PostgresStore]:
    store = await open_store(migrated_postgres_url, clock=ManualClock())
    yield store
    await store.close()


class Statements:
    """Counts what a store sends, and notes which transaction id each of its transactions was given in the end."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.transaction_ids: list[int | None] = []

    async def before(self, connection: Connection, query: str) -> None:
        if query == "COMMIT;":
            self.transaction_ids.append(await connection.fetchval("SELECT pg_current_xact_id_if_assigned()::text"))

    def logged(self, record: Any) -> None:  # the driver's LoggedQuery
        if record.query not in ("BEGIN ISOLATION LEVEL READ COMMITTED;", "COMMIT;") and "xact_id" not in record.query:
            self.sent.append(record.query)


@pytest.fixture
def statements() -> Statements:
    return Statements()


@pytest.fixture
async def counted(migrated_postgres_url: str, statements: Statements) -> AsyncIterator[PostgresStore]:
    """A store on one fresh connection, whose driver logs each query that it sends."""
    store = await open_store(
        migrated_postgres_url,
        clock=ManualClock(),
        patience=Patience(connections_max=1),
        connection_class=watched(statements.before),
    )

    async def log(connection: Any) -> None:
        connection.add_query_logger(statements.logged)

    await store._session.read(log)
    yield store
    await store.close()


async def addresses(store: PostgresStore, numbers: range) -> list[AddressVersion]:
    answers = await store.ensure_address_versions(TENANT, [make.address_version(n) for n in numbers])
    return [answer.record for answer in answers]


async def campaign_batch(store: PostgresStore, numbers: range = range(BATCH)) -> OutgoingBatch:
    (campaign,) = await store.ensure_messaging_jobs(TENANT, [make.messaging_job()])
    return make.outgoing_batch(campaign.record, await addresses(store, numbers))


async def test_a_batch_of_500_outgoing_messages_takes_at_most_four_statements(
    counted: PostgresStore, store: PostgresStore, statements: Statements
) -> None:
    batch = await campaign_batch(store)
    odd = msgspec.structs.replace(batch.items[7], message_id=make.guid(99))
    with_odd = msgspec.structs.replace(batch, items=(*batch.items[:7], odd, *batch.items[8:]))
    seen: list[tuple[int, Counter[Outcome]]] = []
    for given in (batch, batch, with_odd):
        answers = await counted.ensure_outgoing_messages(TENANT, given)
        seen.append((len(statements.sent), Counter(answer.outcome for answer in answers)))
        statements.sent.clear()
    assert seen == [
        (3, {Outcome.CREATED: BATCH}),
        (3, {Outcome.FOUND: BATCH}),
        (4, {Outcome.FOUND: BATCH - 1, Outcome.CONFLICT: 1}),
    ]
    assert len(await store.list_support_cases(TENANT)) == 1


async def test_the_statements_of_a_batch_do_not_grow_with_it(
    counted: PostgresStore, store: PostgresStore, statements: Statements
) -> None:
    counts: set[int] = set()
    for size in (1, 10, 100):
        await counted.ensure_outgoing_messages(TENANT, await campaign_batch(store, range(1000 * size, 1001 * size)))
        counts.add(len(statements.sent))
        statements.sent.clear()
    assert counts == {3}


SEQUENCES = "SELECT sequencename, last_value FROM pg_sequences ORDER BY 1"
Ensure = Callable[[PostgresStore], Awaitable[Any]]
REPEATED: dict[str, Ensure] = {
    "tenant": lambda store: store.ensure_tenant(TENANT, {(Purpose.DATA, 1): b"wrapped"}),
    "automation_schedulers": lambda store: store.ensure_automation_schedulers(TENANT, [make.automation_scheduler()]),
    "automation_jobs": lambda store: store.ensure_automation_jobs(TENANT, [make.automation_job()]),
    "notification_jobs": lambda store: store.ensure_notification_jobs(TENANT, [make.guarded_entry()]),
    "notification_schedulers": lambda store: store.ensure_notification_schedulers(
        TENANT, [make.notification_scheduler()]
    ),
    "messaging_jobs": lambda store: store.ensure_messaging_jobs(TENANT, [make.messaging_job()]),
    "address_versions": lambda store: store.ensure_address_versions(TENANT, [make.address_version()]),
    "user_messages": lambda store: store.ensure_user_messages(TENANT, [make.user_message()]),
}


@pytest.mark.parametrize("name", REPEATED)
async def test_a_repeat_takes_no_transaction_id_and_no_number_of_a_sequence(
    counted: PostgresStore, statements: Statements, connection: Connection, name: str
) -> None:
    await REPEATED[name](counted)
    before = await connection.fetch(SEQUENCES)
    await REPEATED[name](counted)
    first, second = statements.transaction_ids
    assert first is not None
    assert second is None
    assert await connection.fetch(SEQUENCES) == before


async def test_a_repeated_batch_under_a_hold_takes_no_transaction_id_either(
    counted: PostgresStore, store: PostgresStore, statements: Statements, connection: Connection
) -> None:
    batch = await held_batch(store, connection)
    await counted.ensure_outgoing_messages(TENANT, batch)
    before = await connection.fetch(SEQUENCES)
    await counted.ensure_outgoing_messages(TENANT, batch)
    first, second = statements.transaction_ids
    assert first is not None
    assert second is None
    assert await connection.fetch(SEQUENCES) == before


async def held_batch(store: PostgresStore, connection: Connection) -> OutgoingBatch:
    job = make.notification_job()
    await store.ensure_notification_jobs(TENANT, [JobEntry(job=job)])
    (scheduler,) = await store.ensure_notification_schedulers(TENANT, [make.scheduler_of(job)])
    await connection.execute(
        "UPDATE notification_scheduler SET status = 'Processing', due_at = NULL, lease_until = now() WHERE id = $1",
        scheduler.record.id,
    )
    return make.outgoing_batch(job, await addresses(store, range(3)), hold=(scheduler.record.id, 1))


async def test_sessions_are_named_and_count_in_utc(store: PostgresStore, connection: Connection) -> None:
    await store.find_tenant_keys(TENANT)
    assert await connection.fetchval("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'clarion'") == 1

    async def settings(session: Any) -> list[str]:
        names = ("TimeZone", "statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
        return [await session.fetchval(f"SHOW {name}") for name in names]

    assert await store._session.read(settings) == ["UTC", "20s", "10s", "30s"]


async def test_the_pool_opens_no_more_connections_than_it_may(
    migrated_postgres_url: str, connection: Connection
) -> None:
    store = await open_store(migrated_postgres_url, clock=ManualClock(), patience=Patience(connections_max=2))
    async with asyncio.TaskGroup() as group:
        for n in range(20):
            group.create_task(store.ensure_address_versions(TENANT, [make.address_version(n)]))
    assert await connection.fetchval("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'clarion'") == 2
    await store.close()


async def test_the_server_and_not_the_clock_that_is_given_says_what_time_it_is(
    store: PostgresStore, connection: Connection
) -> None:
    before = await connection.fetchval("SELECT now()")
    (answer,) = await store.ensure_notification_schedulers(TENANT, [make.notification_scheduler()])
    assert before <= answer.record.due_at <= await connection.fetchval("SELECT now()")


async def test_a_value_that_only_a_newer_program_knows_asks_for_an_update(
    store: PostgresStore, connection: Connection
) -> None:
    await store.ensure_automation_jobs(TENANT, [make.automation_job()])
    await connection.execute("UPDATE automation_job SET automation_type = 'Horoscope'")
    with pytest.raises(ProgramTooOld, match="Horoscope"):
        await store.ensure_automation_jobs(TENANT, [make.automation_job(automation_type=AutomationType.REMINDER)])

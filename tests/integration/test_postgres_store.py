"""What the PostgreSQL store does besides the contract: its statements, its plans, its sessions."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

import asyncpg
import msgspec
import pytest

from clarion.adapters.stores.postgres import Patience, PostgresStore, open_store
from clarion.adapters.stores.postgres.session import Plans, Session
from clarion.domain.address import AddressVersion
from clarion.domain.ensured import Outcome
from clarion.domain.guard import JobEntry
from clarion.domain.outgoing import OutgoingItem
from clarion.domain.seal import Purpose
from clarion.errors import InvalidInput, StoreUnreachable
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
        patience=Patience(connections_max=1, plans=timedelta(hours=1)),
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


async def campaign_items(store: PostgresStore, numbers: range = range(BATCH)) -> list[OutgoingItem]:
    (campaign,) = await store.ensure_messaging_jobs(TENANT, [make.messaging_job()])
    return make.outgoing_items(campaign.record, await addresses(store, numbers))


async def job_items(store: PostgresStore, numbers: range) -> list[OutgoingItem]:
    """One message for each of as many jobs."""
    jobs = [JobEntry(job=make.notification_job(n)) for n in numbers]
    answers = await store.ensure_notification_jobs(TENANT, jobs)
    found = zip(answers, await addresses(store, numbers), strict=True)
    return [make.outgoing_item(answer.record, address) for answer, address in found]


@pytest.mark.parametrize("items_of", [campaign_items, job_items])
async def test_500_outgoing_messages_take_a_few_statements_whatever_the_number_of_their_parents(
    counted: PostgresStore, store: PostgresStore, statements: Statements, items_of: Any
) -> None:
    """Of a new set three, a fourth to read what was there, a fifth for cases; more where its flow and gate are new."""
    first, *items = await items_of(store, range(BATCH + 1))
    odd = msgspec.structs.replace(items[7], message_id=make.guid(99))
    late = [msgspec.structs.replace(item, attempt_no=2, hold=(1, n)) for n, item in enumerate(items[:10])]
    with_odd = [*items[:7], odd, *items[8:], *late]
    seen: list[tuple[int, Counter[Outcome]]] = []
    for given in ([first], items, items, with_odd):
        answers = await counted.ensure_outgoing_messages(TENANT, given)
        seen.append((len(statements.sent), Counter(answer.outcome for answer in answers)))
        statements.sent.clear()
    assert seen == [
        (5 if items_of is campaign_items else 4, {Outcome.CREATED: 1}),
        (3, {Outcome.CREATED: BATCH}),
        (4, {Outcome.FOUND: BATCH}),
        (5, {Outcome.FOUND: BATCH - 1, Outcome.CONFLICT: 1, Outcome.SUPERSEDED: 10}),
    ]
    assert len(await store.list_support_cases(TENANT)) == 1


async def test_an_item_that_is_wrong_about_the_address_of_another_one_is_refused(store: PostgresStore) -> None:
    (right,) = await campaign_items(store, range(1))
    wrong = msgspec.structs.replace(right, recipient_id_hash="f" * 32)
    for items in ([right, wrong], [wrong, right]):
        with pytest.raises(InvalidInput, match="no address version"):
            await store.ensure_outgoing_messages(TENANT, items)


async def test_the_statements_of_a_batch_do_not_grow_with_it(
    counted: PostgresStore, store: PostgresStore, statements: Statements
) -> None:
    counts: list[int] = []
    for size in (1, 10, 100):
        await counted.ensure_outgoing_messages(TENANT, await campaign_items(store, range(1000 * size, 1001 * size)))
        counts.append(len(statements.sent))
        statements.sent.clear()
    assert counts == [5, 3, 3], "two more for the gate and the flow of the first set"


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
    counted: PostgresStore, store: PostgresStore, statements: Statements, connection: Connection, name: str
) -> None:
    await store.ensure_notification_jobs(TENANT, [JobEntry(job=make.notification_job())])
    await REPEATED[name](counted)
    before = await connection.fetch(SEQUENCES)
    await REPEATED[name](counted)
    *first, second = statements.transaction_ids
    assert None not in first
    assert len(first) == (0 if name == "notification_jobs" else 1), "new jobs are one statement and no transaction"
    assert second is None
    assert await connection.fetch(SEQUENCES) == before


async def test_new_jobs_are_stored_by_one_statement(counted: PostgresStore, statements: Statements) -> None:
    """However many; and a set of which one is known by the transaction that it always was."""
    for numbers in (range(1), range(1, 501)):
        statements.sent.clear()
        answers = await counted.ensure_notification_jobs(TENANT, [make.guarded_entry(f"key-{n}") for n in numbers])
        assert {answer.outcome for answer in answers} == {Outcome.CREATED}
        assert len(statements.sent) == 1


async def test_a_repeated_set_under_a_hold_takes_no_transaction_id_either(
    counted: PostgresStore, store: PostgresStore, statements: Statements, connection: Connection
) -> None:
    items = await held_items(store, connection)
    await counted.ensure_outgoing_messages(TENANT, items)
    before = await connection.fetch(SEQUENCES)
    await counted.ensure_outgoing_messages(TENANT, items)
    first, second = statements.transaction_ids
    assert first is not None
    assert second is None
    assert await connection.fetch(SEQUENCES) == before


async def held_items(store: PostgresStore, connection: Connection) -> list[OutgoingItem]:
    job = make.notification_job()
    await store.ensure_notification_jobs(TENANT, [JobEntry(job=job)])
    (scheduler,) = await store.ensure_notification_schedulers(TENANT, [make.scheduler_of(job)])
    await connection.execute(
        "UPDATE notification_scheduler SET status = 'Processing', due_at = NULL, lease_until = now() WHERE id = $1",
        scheduler.record.id,
    )
    return make.outgoing_items(job, await addresses(store, range(3)), hold=(scheduler.record.id, 1))


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
    await store.ensure_notification_jobs(TENANT, [JobEntry(job=make.notification_job())])
    (answer,) = await store.ensure_notification_schedulers(TENANT, [make.notification_scheduler()])
    assert before <= answer.record.due_at <= await connection.fetchval("SELECT now()")


def test_plans_are_kept_for_a_moment_when_work_begins_and_for_longer_while_it_goes_on() -> None:
    plans = Plans(now=0.0, keep_max=50.0)
    forgotten = [at for at in range(1, 200) if plans.are_old(at)]
    assert [later - earlier for earlier, later in pairwise([0, *forgotten])] == [1, 2, 4, 8, 16, 32, 50, 50]
    assert plans.are_old(260.0)  # after a rest
    assert not plans.are_old(260.5)
    assert plans.are_old(261.0)


async def test_plans_that_were_made_for_small_tables_are_forgotten(migrated_postgres_url: str) -> None:
    sent: list[str] = []

    async def before(_: Connection, query: str) -> None:
        sent.append(query)

    store = await open_store(
        migrated_postgres_url,
        clock=ManualClock(),
        patience=Patience(plans=timedelta()),
        connection_class=watched(before),
    )
    for _ in range(3):
        await store.find_tenant_keys(TENANT)
    await store.close()
    assert sent.count("DISCARD PLANS") >= 2


async def test_what_is_known_of_a_connections_plans_ends_with_it(migrated_postgres_url: str) -> None:
    session = await Session.open(migrated_postgres_url, patience=Patience(), connection_class=asyncpg.Connection)
    for _ in range(3):
        pid = await session.read(lambda c: c.fetchval("SELECT pg_backend_pid()"))
        assert list(session._plans) == [pid]  # nothing else shows it
        with pytest.raises(StoreUnreachable):
            await session.read(lambda c: c.execute("SELECT pg_terminate_backend(pg_backend_pid())"))
    await session.close()

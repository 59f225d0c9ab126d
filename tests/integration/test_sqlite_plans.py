"""What SQLite goes through for each of the store's statements: what it looks up, and never a whole table."""

import asyncio
import re
import shutil
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from clarion.adapters.stores import query, shared, sqlite
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.sqlite import InlineRunner, SqliteStore, open_store
from clarion.adapters.stores.sqlite.session import OUTGOING_KEY
from clarion.domain.call import Unknown
from clarion.domain.claim import Gate
from clarion.domain.entity_event import EventMapping, EventStatus
from clarion.domain.outgoing import OutgoingStatus
from clarion.ports.catalog import ApiKey, NewTemplate, Role
from clarion.ports.source import EventEnd
from clarion.ports.track import ProviderEvent
from clarion.testing import factories
from clarion.testing.clock import START_AT, ManualClock
from tests.integration.sqlite_campaign import TENANT, addresses, claim, of_many_jobs, of_one_campaign, results
from tests.integration.sqlite_look import connection_of

NUMBERS = range(100)
HASH = "h1:0"

# The set itself, as json_each unpacks it, and what a statement makes of it before it looks anything up.
SETS = {
    "g",
    "given",
    "made",
    "quota",
    "q",
    "p",
    "line",
    "head",
    "heads",
    "w",
    "found",
    "parent",
    "CONSTANT",
}
# What is gone through on purpose: flows and processes are few, partial indexes hold only what they are named for, and
# what a sub-select has found.
FEW_OF: dict[str, set[str]] = {
    "measure": {"f", "sending", "uncertain", "cases", "counted"},
    "measure_routes": {"f"},
    "list_workers": {"worker"},
    "sweep_workers": {"worker"},
    "lock_rows_of_canceled": {"s"},
    "read_events_of_messages": {"e"},
    "find_job_of_message": {"m"},
    "list_settings": {"s"},
    "count_deliveries": {"m"},
    "find_standings": {"m"},
    "list_jobs_of_recipient": {"made"},
    "find_audiences": {"i", "w", "h", "v", "page"},
    "insert_user_messages": {"m", "h"},
    "lock_lines_outside": {"u"},
    "insert_notification_schedulers": {"n"},
    "find_tenants_with_due": {"t"},
    "lock_due_of_tenants": {"h", "v"},
    "insert_entity_events": {"n"},
    "read_event_turn": {"t"},
    "put_event_turn": {"event_turn"},
    "find_waiting_tenants": {"walk"},
    "lock_due_events": {"h", "v"},
    "walk_repaired_types": {"walk"},
    "lock_due_repairs": {"h", "v"},
}
# Copies a whole tenant, up to a bound: nearly all of a table, where there is one tenant.
COPYING = "copy_"
# By hand and hardly ever, while nobody else uses the file: it may take as long as it takes.
ALL_OF = "setting.sql"
# Looked up by the tenant alone: of itself it has one row, of its keys, templates, business units, attributes and groups
# inside others a few.
FEW_OF_A_TENANT = {"t", "k", "tenant", "tenant_key", "unit", "usage_count", "nesting", "declared"}

# Looked up by the type of their sources: settings, of which a type has few, and the round of its reconciliation.
OF_A_TYPE = {"find_reminders", "lock_due_repairs", "finish_repair"}


@pytest.fixture(scope="module")
def empty_path(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file without rows and without statistics."""
    return Path(shutil.copy(sqlite_template, tmp_path_factory.mktemp("plans") / "clarion.db"))


@pytest.fixture(scope="module")
def full_path(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with so many rows that looking one up is cheaper than going through them, and with their statistics."""
    path = Path(shutil.copy(sqlite_template, tmp_path_factory.mktemp("plans") / "clarion.db"))

    async def prepare() -> None:
        store = await open_store(f"sqlite:///{path}", clock=ManualClock(), runner=InlineRunner())
        connection_of(store).execute("PRAGMA synchronous = OFF")  # these rows need not outlive a power cut
        await fill(store)
        connection_of(store).execute("ANALYZE")
        await store.close()

    asyncio.run(prepare())
    return path


@pytest.fixture(scope="module")
def drained_path(full_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same file after all messages were sent, with the statistics of its empty queue."""
    path = Path(shutil.copy(full_path, tmp_path_factory.mktemp("plans") / "clarion.db"))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "UPDATE outgoing_message SET status = 'SentToProvider', due_at = NULL, lease_until = NULL, settle_at = NULL"
        )
        connection.execute("ANALYZE")
        connection.commit()
    return path


def every_query() -> list[query.Query]:
    """Every statement that lies beside the store's code, so that a new one need not be listed here."""
    found: list[query.Query] = []
    for package in (sqlite, shared):
        folder = Path(package.__file__ or "").parent
        for path in sorted(path for path in folder.rglob("*.sql") if path.name != ALL_OF):
            place = ".".join((package.__name__, *path.relative_to(folder).parent.parts))
            if "{" not in path.read_text() and package is sqlite:  # sent as it is written
                found += query.load(place, path.name).values()
                continue
            for one in Statements(path.name, package=place).values():
                found.append(query.Query(name=one.name, reason=one.reason, sql=one.sqlite))
    return found


class _AnyParameter(dict[str, object]):
    """Parameters under every name; a plan does not depend on their values."""

    def __missing__(self, name: str) -> object:
        return "[]"


# A plan follows from the statistics alone: a queue that was analyzed when full has the same plans when it is drained.
each_picture = pytest.mark.parametrize(
    "path",
    ["empty_path", "full_path", "drained_path"],
    ids=["never analyzed", "analyzed when full", "analyzed when drained"],
)


def plan_of(path: Path, named: query.Query) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        connection.create_function("clarion_now", 0, lambda: 0)
        connection.create_function("clarion_bytes", 1, lambda text: text)
        connection.execute(OUTGOING_KEY)
        return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {named.sql}", _AnyParameter())]


@pytest.mark.parametrize("named", every_query(), ids=lambda named: named.name)
@each_picture
def test_no_query_goes_through_a_table(path: str, named: query.Query, request: pytest.FixtureRequest) -> None:
    plan = plan_of(request.getfixturevalue(path), named)
    scanned = {found[1] for line in plan if (found := re.match(r"SCAN (\w+)", line))}
    of_a_copy = {"t"} if named.name.startswith(COPYING) else set()
    assert scanned <= SETS | FEW_OF.get(named.name, set()) | of_a_copy, plan
    assert not [line for line in plan if "AUTOMATIC" in line], plan
    by_tenant = {found[1] for line in plan if (found := re.match(r"SEARCH (\w+) .*\(tenant_id=\?\)", line))}
    assert by_tenant <= FEW_OF_A_TENANT, plan
    by_type = [line for line in plan if re.match(r"SEARCH .*\(tenant_id=\? AND source_type=\?\)$", line)]
    assert not by_type or named.name in OF_A_TYPE, plan  # a tenant may have a hundred thousand of one type


BY_ORDER_KEY = [named for named in every_query() if re.search(r"\w\.order_key = ", named.sql)]


@pytest.mark.parametrize("named", BY_ORDER_KEY, ids=lambda named: named.name)
@each_picture
def test_rows_of_an_order_key_are_looked_up_by_it(
    path: str, named: query.Query, request: pytest.FixtureRequest
) -> None:
    """The index of the queue would do as well while the queue is empty, and a moment later it is full."""
    plan = plan_of(request.getfixturevalue(path), named)
    for alias in re.findall(r"(\w+)\.order_key = ", named.sql):
        (line, *others) = [line for line in plan if re.match(rf"(SEARCH|SCAN) {alias} ", line)]
        for looked_up in (line, *others):
            by_id = "PRIMARY KEY (rowid=?)" in looked_up
            assert by_id or "outgoing_message_order (order_key=?" in looked_up, plan


def test_three_queries_look_rows_up_by_their_order_key() -> None:
    assert {named.name for named in BY_ORDER_KEY} == {"find_rows_behind", "lock_next_in_line", "pick_messages"}


async def fill(store: SqliteStore) -> None:
    """Put so many rows into the tables that looking one up is cheaper than going through them."""
    await store.ensure_tenant(TENANT, {})
    await store.ensure_automation_schedulers(TENANT, [factories.automation_scheduler(n) for n in range(1000)])
    await store.ensure_automation_jobs(TENANT, [factories.automation_job(n) for n in NUMBERS])
    await store.ensure_notification_jobs(TENANT, [factories.guarded_entry(f"key-{n}") for n in NUMBERS])
    lines = [factories.user_message(n, job_row_key=f"job-{n % 50}") for n in NUMBERS]
    await store.ensure_user_messages(TENANT, lines)
    await store.ensure_messaging_jobs(TENANT, [factories.messaging_job(n) for n in NUMBERS])
    await fill_queue(store)
    await fill_catalog(store)
    await fill_sources(store)


async def fill_queue(store: SqliteStore) -> None:
    """Rows in many flows and many states, with lines, attempts and receipts."""
    campaign = await of_one_campaign(store, len(NUMBERS))
    campaign = [msgspec.structs.replace(item, broadcast=f"campaign-{n}") for n, item in enumerate(campaign)]
    await store.ensure_outgoing_messages(TENANT, campaign)
    await store.ensure_outgoing_messages(TENANT, await of_many_jobs(store, len(NUMBERS)))
    claimed = await claim(store, quota=len(NUMBERS))
    await store.record_outgoing(results(claimed[:50]), actor="worker")
    await store.record_outgoing(results(claimed[50:100], Unknown(reason="lost")), actor="worker")
    for n in NUMBERS[::2]:
        await store.set_gate(TENANT, f"campaign-{n}", Gate.CANCELED if n % 4 else Gate.PAUSED, actor="sam")
    await store.keep_events(
        TENANT,
        [
            ProviderEvent(
                account="main",
                event_id=f"event-{n}",
                status=OutgoingStatus.DELIVERED,
                provider_message_id=f"provider-{n}",
                message_id=factories.guid(n),
                recipient_key_hash=f"{n:032x}",
                happened_at=START_AT + timedelta(seconds=n),
                raw="{}",
            )
            for n in NUMBERS
        ],
    )
    await store.apply_events(limit=10, actor="track")


async def fill_sources(store: SqliteStore) -> None:
    """Sources, and events in each state."""
    await store.put_sources(TENANT, [factories.source_record(n) for n in NUMBERS], actor="app", correlation_id="c")
    await store.ensure_events(TENANT, [factories.entity_event(n) for n in NUMBERS])
    claims = await store.claim_events(limit=100, lease=timedelta(minutes=1))
    ends = [
        EventEnd(
            tenant_id=TENANT, event_id=one.event.id or 0, version=one.event.version, to=list(EventStatus)[2 + n % 2]
        )
        for n, one in enumerate(claims[:50])
    ]
    await store.finish_events(ends)
    for n in NUMBERS:
        mapping = EventMapping(event_type=f"type-{n}", notification_type=None)
        await store.put_mapping(TENANT, mapping, actor="sam")
        await store.put_reminder(TENANT, factories.reminder_setting(n, source_type=f"type-{n % 9}"), actor="sam")


async def fill_catalog(store: SqliteStore) -> None:
    """People, groups, templates, keys and the acts that made them."""
    known = await addresses(store, len(NUMBERS))
    await store.put_people(TENANT, [factories.person(n, address) for n, address in enumerate(known)])
    for n in NUMBERS:
        members = [address.recipient_id_hash for address in known[: n % 10]]
        await store.put_group(TENANT, guid=factories.guid(n, "group"), name=f"group {n}", members=members)
        template = NewTemplate(template_key=f"type-{n % 50}", content_hash=f"h1:{n}", bundle="{}")
        await store.publish_templates(TENANT, [template], actor="sam")
        await store.set_type_enabled(TENANT, f"type-{n}", enabled=bool(n % 2), actor="sam")
        key = ApiKey(key_id=f"key-{n:04}", tenant_id=TENANT, secret_hash=HASH, actor=f"app-{n}", role=Role.SENDER)
        await store.put_api_key(key, actor="sam")

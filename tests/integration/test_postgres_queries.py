"""Every named query of the PostgreSQL store: it fits the schema, it is used, and it never reads a whole table.

The plans are those that the server really used, with the rows that it really visited, as its module auto_explain
reports them, on 20,000 messages and thousands of rows of everything else. A queue is full at one time and empty at
another, and the server's picture of it is often the wrong one; so the same is asked under every picture.
"""

import re
from collections.abc import AsyncIterator, Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final

import asyncpg
import msgspec
import pytest

from clarion.adapters.stores import shared
from clarion.adapters.stores.postgres import Patience, PostgresStore, open_store
from clarion.adapters.stores.query import Query, load
from clarion.adapters.stores.shared.statement import Statements
from clarion.testing.clock import ManualClock
from tests.integration.postgres_fill import FILL, ROWS, fill
from tests.integration.postgres_use import use_everything
from tests.integration.watched_connection import Connection, watched

PACKAGE: Final = "clarion.adapters.stores.postgres"
FOLDERS: Final = ("", "queue")
VISITED_MAX: Final = 1000
"""Rows of one table that one statement may visit: some batches' worth, and far from any table."""

NOT_EXPLAINED: Final = {"name_array_types", "forget_plans", "wake", "read_durability"}
"""Never executed, not planned, and not sent by the store."""

COUNTING: Final = {"measure", "measure_routes", "list_workers", "sweep_workers", "list_roles"}
"""Counts rows, up to a bound of its own; goes through all flows, through all processes, which are few, or through all
who hold a role in a tenant, which are its staff."""

COPYING: Final = "copy_"
"""How the names of statements begin that copy a whole tenant, up to a bound."""


def every_query() -> Iterator[Query]:
    """Load every named query of the store."""
    for name in FOLDERS:
        package = f"{PACKAGE}.{name}" if name else PACKAGE
        for file in sorted(_sql_files(files(package))):
            if "$1" in (files(package) / file).read_text():  # sent as it is written
                yield from load(package, file).values()
            else:
                yield from _compiled(Statements(file, package=package))
    for file in (*_sql_files(files(shared)), *(f"queue/{name}" for name in _sql_files(files(shared) / "queue"))):
        yield from _compiled(Statements(file))


def _compiled(statements: Statements) -> Iterator[Query]:
    """Give statements as PostgreSQL is sent them."""
    for one in statements.values():
        yield Query(name=one.name, reason=one.reason, sql=one.postgres)


def _sql_files(folder: Traversable) -> Iterator[str]:
    return (file.name for file in folder.iterdir() if file.name.endswith(".sql"))


SENT: Final = """
INSERT INTO outgoing_message (
  tenant_id, bucket, pk, rk, message_id, address_id, channel, flow_id, order_key, status, correlation_id
)
SELECT 'acme', 202512, 'pk-' || n, 'rk', gen_random_uuid(), n, 'email', 1, md5(n::text), 'SentToProvider', 'c'
FROM generate_series(1, 5000) AS n;
ANALYZE outgoing_message;
"""
"""Messages that were sent: the queue is empty and the table is not, so that an index of the queue seems cheap."""

LOOKED_UP: Final = re.compile(r"(\w+)\.order_key = \w+\.order_key")
"""A look-up of rows by their order key, and what they are called in it."""


async def test_no_look_up_by_order_key_could_use_an_index_of_the_queue(migrated_postgres_url: str) -> None:
    """It names the whole condition of the order index; a part of it would do for the queue's index too.

    Which of the two seems cheaper follows from their sizes and from statistics: a queue that was analysed while it was
    empty was read as a whole for every message. Without the order index the planner shows what else it may use.
    """
    connection = await asyncpg.connect(migrated_postgres_url)
    await connection.execute(SENT)
    await connection.execute("DROP INDEX outgoing_message_order; SET enable_seqscan = off")
    await connection.execute("SET plan_cache_mode = force_generic_plan")
    looking = [query for query in every_query() if LOOKED_UP.search(query.sql)]
    for query in looking:
        await connection.execute(f"PREPARE {query.name} AS {query.sql}")
        given = ", ".join(["NULL"] * len({*re.findall(r"\$\d+", query.sql)}))
        plan = msgspec.json.decode(await connection.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE {query.name} ({given})"))
        looked_up = {*LOOKED_UP.findall(query.sql)}
        found = [node for node in _nodes(plan[0]["Plan"]) if node.get("Alias") in looked_up]
        assert found, plan
        others = {"outgoing_message_queue", "outgoing_message_lease"}
        assert not others & {node.get("Index Name") for node in found}, query.name
    await connection.close()
    names = {"accept_outgoing", "claim_plain", "find_rows_behind", "lock_next_in_line"}
    assert {query.name for query in looking} == names


async def test_every_named_query_fits_the_schema(migrated_postgres_url: str) -> None:
    connection = await asyncpg.connect(migrated_postgres_url)
    queries = list(every_query())
    assert len({query.name for query in queries}) == len(queries) > 60
    for query in queries:
        await connection.prepare(query.sql)
    await connection.close()


class Plans:
    """The plans that the server reports, by the text of their statement."""

    def __init__(self) -> None:
        self.by_query: dict[str, list[Any]] = {}

    async def before(self, connection: Connection, _: str) -> None:
        connection.add_log_listener(self._reported)  # each time: the pool takes the listeners off

    def _reported(self, _: object, message: Any) -> None:
        heading, _, plan = str(message.message).partition("plan:")
        if heading.startswith("duration:"):
            report = msgspec.json.decode(plan)
            self.by_query.setdefault(report["Query Text"], []).append(report["Plan"])

    def offenders(self, query: str) -> set[str]:
        """Name the tables of which a statement read every row, or more than its share."""
        nodes = [node for plan in self.by_query[query] for node in _nodes(plan) if "Relation Name" in node]
        return {node["Relation Name"] for node in nodes if "Seq Scan" in node["Node Type"] or _visits_many(node)}


def _visits_many(node: Any) -> bool:
    """Tell whether a node looked at more rows than a statement may; writing nodes look at none themselves."""
    if "Scan" not in node["Node Type"]:
        return False
    rows = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
    return bool(rows * node["Actual Loops"] > VISITED_MAX)


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from _nodes(inner)


@pytest.fixture
def plans() -> Plans:
    return Plans()


@pytest.fixture
async def connection(migrated_postgres_url: str) -> AsyncIterator[Connection]:
    """A way around the store, on a database whose server reports every plan to those who connect from now on."""
    connection = await asyncpg.connect(migrated_postgres_url)
    database = await connection.fetchval("SELECT current_database()")
    for setting in (
        "session_preload_libraries = auto_explain",
        "auto_explain.log_min_duration = 0",
        "auto_explain.log_analyze = on",
        "auto_explain.log_timing = off",
        "auto_explain.log_level = notice",
        "auto_explain.log_format = json",
    ):
        await connection.execute(f"ALTER DATABASE {database} SET {setting}")
    yield connection
    await connection.close()


@pytest.fixture
async def explained(migrated_postgres_url: str, connection: Connection, plans: Plans) -> AsyncIterator[PostgresStore]:  # noqa: ARG001  its settings
    """A store with one connection, which keeps its plans."""
    store = await open_store(
        migrated_postgres_url,
        clock=ManualClock(),
        patience=Patience(connections_max=1),
        connection_class=watched(plans.before),
    )
    yield store
    await store.close()


async def fill_tables(url: str, connection: Connection) -> None:
    store = await open_store(url, clock=ManualClock())
    await fill(store)
    await store.close()
    await connection.execute(FILL)


# The server's own ANALYZE, which comes when it likes, would correct its picture.
LEFT_ALONE: Final = """
DO $$
DECLARE found record;
BEGIN
  FOR found IN SELECT tablename FROM pg_tables WHERE schemaname = 'public'
  LOOP
    EXECUTE format('ALTER TABLE %I SET (autovacuum_enabled = off)', found.tablename);
  END LOOP;
END
$$;
"""
DRAIN: Final = "UPDATE outgoing_message SET status = 'SentToProvider', due_at = NULL WHERE due_at IS NOT NULL"
FILL_AGAIN: Final = "UPDATE outgoing_message SET status = 'Created', due_at = now() WHERE status = 'SentToProvider'"


# A listener that stays on its connection, which the driver takes for an oversight, is how the plans come here.
@pytest.mark.filterwarnings("ignore:.* active log listener")
@pytest.mark.parametrize(
    "picture", ["never analysed", "analysed when empty", "analysed when full", "analysed when full, then drained"]
)
async def test_every_named_query_is_used_and_none_reads_a_whole_table(
    migrated_postgres_url: str, connection: Connection, explained: PostgresStore, plans: Plans, picture: str
) -> None:
    await connection.execute(LEFT_ALONE)
    if picture == "never analysed":  # and planned while the tables were empty: such plans must not stay in use
        await use_everything(explained, connection, start=10 * ROWS)
    await fill_tables(migrated_postgres_url, connection)
    if picture == "analysed when empty":  # the queue: the table has the messages that were sent
        await connection.execute(DRAIN)
        await connection.execute("ANALYZE")
        await connection.execute(FILL_AGAIN)
    elif picture != "never analysed":
        await connection.execute("ANALYZE")
    if picture.endswith("drained"):
        await connection.execute(DRAIN)
    plans.by_query.clear()
    await use_everything(explained, connection, start=ROWS)
    named = {query.sql: query.name for query in every_query() if query.name not in NOT_EXPLAINED}
    assert {named[sql] for sql in plans.by_query if sql in named} == set(named.values())
    seen = {
        name: plans.offenders(sql)
        for sql, name in named.items()
        if name not in COUNTING and not name.startswith(COPYING)
    }
    assert {name: tables for name, tables in seen.items() if tables} == {}

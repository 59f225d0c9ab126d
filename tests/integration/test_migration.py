"""Migrating a database: in steps or at once, by one process or by several, and when a step goes wrong."""

import asyncio
import contextlib
import sqlite3
import stat
import subprocess
import sys
import zipfile
from datetime import timedelta
from pathlib import Path

import asyncpg
import msgspec
import pytest
from alembic.script import ScriptDirectory

from clarion.adapters.stores.migration import (
    HISTORY,
    History,
    Migrated,
    Patience,
    check_postgres,
    check_sqlite,
    migrate_postgres,
    migrate_sqlite,
)
from clarion.adapters.stores.migration.upgrade_sqlite import statements
from clarion.errors import BadConfiguration, BrokenInvariant, StoreBusy
from clarion.testing.postgres import PostgresServer
from clarion.testing.schema import Table, describe_postgres, describe_sqlite
from tests.integration.toy_history import BAD, GROUND, INDEXES, WIDER, Toy, both, write_history

ROOT = Path(__file__).parents[2]
PROCESSES = 6

# Says that it is ready, waits for the word to go, migrates, and prints the report.
RACER = """
import asyncio, sys
import msgspec
from clarion.adapters.stores.migration import ledger, migrate_postgres, migrate_sqlite
where = sys.argv[1]
print("ready", flush=True)
sys.stdin.readline()
report = asyncio.run(migrate_postgres(where)) if where.startswith("postgresql:") else migrate_sqlite(where)
print(msgspec.json.encode(report).decode(), flush=True)
"""


async def schema_of_postgres(url: str) -> dict[str, Table]:
    connection = await asyncpg.connect(url)
    try:
        return await describe_postgres(connection)
    finally:
        await connection.close()


def schema_of_sqlite(path: Path) -> dict[str, Table]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return describe_sqlite(connection)


def race(where: str) -> list[Migrated]:
    """Migrate one database from several processes that begin together."""
    command = [sys.executable, "-c", RACER, where]
    pipe = subprocess.PIPE
    racers = [
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=ROOT) for _ in range(PROCESSES)
    ]
    for racer in racers:
        assert racer.stdout
        assert racer.stdout.readline() == "ready\n", racer.communicate()[1]
    for racer in racers:
        assert racer.stdin
        racer.stdin.write("go\n")
        racer.stdin.flush()
    answers = [racer.communicate() for racer in racers]
    assert [error for _, error in answers] == [""] * PROCESSES
    return [msgspec.json.decode(output, type=Migrated) for output, _ in answers]


def assert_one_did_all(reports: list[Migrated]) -> None:
    done = Migrated(from_revision=None, to_revision=HISTORY.head, steps=HISTORY.revisions)
    found = Migrated(from_revision=HISTORY.head, to_revision=HISTORY.head, steps=())
    assert sorted(reports, key=lambda report: len(report.steps)) == [found] * (PROCESSES - 1) + [done]


async def test_several_processes_that_migrate_postgresql_at_once_all_succeed_and_one_does_the_work(
    postgres_url: str, migrated_postgres_url: str
) -> None:
    assert_one_did_all(race(postgres_url))
    assert await schema_of_postgres(postgres_url) == await schema_of_postgres(migrated_postgres_url)


def test_several_processes_that_migrate_sqlite_at_once_all_succeed_and_one_does_the_work(
    tmp_path: Path, migrated_sqlite_path: Path
) -> None:
    assert_one_did_all(race(str(tmp_path / "raced.db")))
    assert schema_of_sqlite(tmp_path / "raced.db") == schema_of_sqlite(migrated_sqlite_path)


@pytest.fixture(params=["ours", "toy"])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> History:
    """Our own steps, and a history that has several of every kind however few ours has."""
    return HISTORY if request.param == "ours" else write_history(tmp_path / "toy", GROUND, INDEXES, WIDER)


async def test_postgresql_migrated_step_by_step_equals_one_migrated_at_once(
    postgres_server: PostgresServer, postgres_url: str, history: History
) -> None:
    before = None
    for revision in history.revisions:
        report = await migrate_postgres(postgres_url, target=revision, history=history)
        assert report == Migrated(from_revision=before, to_revision=revision, steps=(revision,))
        before = revision
    with postgres_server.database() as at_once:
        await migrate_postgres(at_once, history=history)
        assert await schema_of_postgres(postgres_url) == await schema_of_postgres(at_once)


def test_sqlite_migrated_step_by_step_equals_one_migrated_at_once(tmp_path: Path, history: History) -> None:
    before = None
    for revision in history.revisions:
        report = migrate_sqlite(tmp_path / "steps.db", target=revision, history=history)
        assert report == Migrated(from_revision=before, to_revision=revision, steps=(revision,))
        before = revision
    migrate_sqlite(tmp_path / "at_once.db", history=history)
    assert schema_of_sqlite(tmp_path / "steps.db") == schema_of_sqlite(tmp_path / "at_once.db")


async def test_two_migrations_of_two_databases_in_one_process_do_not_mix(
    postgres_url: str, migrated_postgres_url: str, tmp_path: Path
) -> None:
    toy = write_history(tmp_path, GROUND, INDEXES, WIDER)
    ours, others = await asyncio.gather(
        migrate_postgres(postgres_url, history=toy), migrate_postgres(migrated_postgres_url)
    )
    assert (ours.steps, others.steps) == (toy.revisions, ())
    assert "note" in (await schema_of_postgres(postgres_url))["job"].columns


async def test_a_bad_step_leaves_postgresql_at_the_revision_before_it(postgres_url: str, tmp_path: Path) -> None:
    good = write_history(tmp_path / "good", GROUND, INDEXES)
    bad = write_history(tmp_path / "bad", GROUND, INDEXES, BAD)
    with pytest.raises(BrokenInvariant, match=r"schema step 0003_toy\.sql does not fit .*nowhere"):
        await migrate_postgres(postgres_url, history=bad)
    schema = await schema_of_postgres(postgres_url)
    assert sorted(schema) == ["alembic_version", "job", "schema_info", "schema_step"]
    assert sorted(schema["job"].indexes) == ["job_name", "job_state"]
    assert (await migrate_postgres(postgres_url, history=good)).from_revision == "0002"


async def test_a_bad_first_step_leaves_postgresql_empty_and_a_repaired_one_goes_through(
    postgres_url: str, tmp_path: Path
) -> None:
    with pytest.raises(BrokenInvariant):
        await migrate_postgres(postgres_url, history=write_history(tmp_path / "bad", BAD))
    assert await schema_of_postgres(postgres_url) == {}
    assert (await migrate_postgres(postgres_url)).to_revision == HISTORY.head


def test_a_bad_step_leaves_nothing_behind_on_sqlite_not_even_the_good_steps_before_it(tmp_path: Path) -> None:
    path = tmp_path / "clarion.db"
    with pytest.raises(BrokenInvariant, match=r"schema step 0003_toy\.sql does not fit .*nowhere"):
        migrate_sqlite(path, history=write_history(tmp_path / "bad", GROUND, INDEXES, BAD))
    assert schema_of_sqlite(path) == {}
    assert migrate_sqlite(path).to_revision == HISTORY.head


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
async def test_a_step_that_ends_its_own_transaction_is_refused(postgres_url: str, tmp_path: Path, end: str) -> None:
    toy = write_history(tmp_path / "toy", GROUND, both(f"{end}; CREATE TABLE half (a integer);"))
    with pytest.raises(BrokenInvariant, match=r"0002_toy\.sql ends the transaction"):
        await migrate_postgres(postgres_url, history=toy)
    with pytest.raises(BrokenInvariant, match=r"0002_toy\.sql ends the transaction"):
        migrate_sqlite(tmp_path / "clarion.db", history=toy)
    assert "half" not in schema_of_sqlite(tmp_path / "clarion.db")


async def test_what_an_interrupted_build_of_an_index_left_is_cleared_and_built_again(
    postgres_url: str, tmp_path: Path
) -> None:
    toy = write_history(tmp_path, GROUND, INDEXES)
    await migrate_postgres(postgres_url, history=toy, target="0001")
    connection = await asyncpg.connect(postgres_url)
    await connection.execute("INSERT INTO job VALUES ('acme', 'a', 'open'), ('acme', 'b', 'open')")
    with pytest.raises(asyncpg.UniqueViolationError):
        await connection.execute("CREATE UNIQUE INDEX CONCURRENTLY job_state ON job (tenant_id, state)")
    assert not (await describe_postgres(connection))["job"].indexes["job_state"].valid
    await connection.close()
    await migrate_postgres(postgres_url, history=toy)
    indexes = (await schema_of_postgres(postgres_url))["job"].indexes
    assert [(name, index.valid) for name, index in sorted(indexes.items())] == [("job_name", True), ("job_state", True)]


async def waiting_for_locks(connection: "asyncpg.Connection[asyncpg.Record]", *, statement: str) -> set[int]:
    """Say which server processes wait for a lock with such a statement."""
    rows = await connection.fetch(
        "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1 || '%'", statement
    )
    return {row["pid"] for row in rows}


async def test_a_step_gives_way_to_a_held_lock_and_comes_back(postgres_url: str, tmp_path: Path) -> None:
    toy = write_history(tmp_path, GROUND, WIDER)
    await migrate_postgres(postgres_url, history=toy, target="0001")
    short = Patience(lock_timeout=timedelta(milliseconds=20), lock_attempts_max=10_000, lock_pause=timedelta())
    holder, watcher = await asyncpg.connect(postgres_url), await asyncpg.connect(postgres_url)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group, holder.transaction():
        await holder.execute("LOCK TABLE job IN ACCESS SHARE MODE")
        migration = group.create_task(migrate_postgres(postgres_url, history=toy, patience=short))
        seen: set[int] = set()
        while len(seen) < 2:  # a second connection: the first has given way
            seen |= await waiting_for_locks(watcher, statement="ALTER TABLE job")
    assert (await migration).steps == ("0002",)
    await holder.close()
    await watcher.close()


async def test_a_lock_that_is_never_released_ends_in_an_error_that_says_so(postgres_url: str, tmp_path: Path) -> None:
    toy = write_history(tmp_path, GROUND, WIDER)
    await migrate_postgres(postgres_url, history=toy, target="0001")
    short = Patience(lock_timeout=timedelta(milliseconds=20), lock_attempts_max=3, lock_pause=timedelta())
    holder = await asyncpg.connect(postgres_url)
    async with holder.transaction():
        await holder.execute("LOCK TABLE job IN ACCESS SHARE MODE")
        with pytest.raises(StoreBusy, match="long transactions"):
            await migrate_postgres(postgres_url, history=toy, patience=short)
    await holder.close()
    assert (await migrate_postgres(postgres_url, history=toy)).from_revision == "0001"


async def test_building_an_index_waits_for_older_transactions_and_does_not_give_way(
    postgres_url: str, tmp_path: Path
) -> None:
    toy = write_history(tmp_path, GROUND, INDEXES)
    await migrate_postgres(postgres_url, history=toy, target="0001")
    short = Patience(lock_timeout=timedelta(milliseconds=1), lock_attempts_max=1, lock_pause=timedelta())
    holder, watcher = await asyncpg.connect(postgres_url), await asyncpg.connect(postgres_url)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group, holder.transaction():
        await holder.execute("INSERT INTO job VALUES ('acme', 'a', 'open')")
        migration = group.create_task(migrate_postgres(postgres_url, history=toy, patience=short))
        looks = 0
        while looks < 50:  # many round trips, each longer than the lock_timeout of a step
            looks += len(await waiting_for_locks(watcher, statement="CREATE INDEX CONCURRENTLY"))
    assert (await migration).steps == ("0002",)
    await holder.close()
    await watcher.close()


async def test_a_turn_that_never_comes_ends_in_an_error_that_says_so(postgres_url: str) -> None:
    holder = await asyncpg.connect(postgres_url)
    await holder.execute("SELECT pg_advisory_lock($1)", 0x636C6172696F6E)
    with pytest.raises(StoreBusy, match="another process is still migrating"):
        await migrate_postgres(postgres_url, patience=Patience(turn_timeout=timedelta()))
    await holder.close()


async def test_triggers_functions_and_texts_with_semicolons_pass_both_engines_whole(
    postgres_url: str, tmp_path: Path
) -> None:
    trigger = Toy(
        postgres="""
        CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.state := ';'; RETURN NEW; END; $$;
        CREATE TRIGGER job_touch BEFORE UPDATE ON job FOR EACH ROW EXECUTE FUNCTION touch();
        INSERT INTO job VALUES ('acme', 'one; two', 'a');""",
        sqlite="""
        CREATE TRIGGER job_touch AFTER UPDATE ON job BEGIN SELECT 1; SELECT 2; END;
        INSERT INTO job VALUES ('acme', 'one; two', 'a')""",
    )
    toy = write_history(tmp_path / "toy", GROUND, trigger)
    await migrate_postgres(postgres_url, history=toy)
    migrate_sqlite(tmp_path / "clarion.db", history=toy)
    assert "job_touch" in (await schema_of_postgres(postgres_url))["job"].triggers
    assert "job_touch" in schema_of_sqlite(tmp_path / "clarion.db")["job"].triggers


def test_statements_are_split_where_sqlite_says_that_one_ends() -> None:
    sql = "SELECT 1; SELECT ';';\n-- a; b\nCREATE TRIGGER t AFTER UPDATE ON job BEGIN SELECT 1; END; SELECT 2"
    assert [statement.strip() for statement in statements(sql)] == [
        "SELECT 1;",
        "SELECT ';';",
        "-- a; b\nCREATE TRIGGER t AFTER UPDATE ON job BEGIN SELECT 1; END;",
        "SELECT 2",
    ]


def test_a_new_database_file_is_for_its_owner_only(tmp_path: Path) -> None:
    migrate_sqlite(tmp_path / "clarion.db")
    assert stat.S_IMODE((tmp_path / "clarion.db").stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["with space.db", "50%.db", "a?mode=ro.db", "a#b.db", ":memory:"])
def test_any_file_name_means_that_file(tmp_path: Path, name: str) -> None:
    migrate_sqlite(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).stat().st_size > 0


async def test_a_target_that_does_not_exist_is_named_and_one_that_lies_behind_changes_nothing(
    migrated_postgres_url: str, migrated_sqlite_path: Path
) -> None:
    with pytest.raises(BadConfiguration, match="'9999'"):
        await migrate_postgres(migrated_postgres_url, target="9999")
    with pytest.raises(BadConfiguration, match="'9999'"):
        migrate_sqlite(migrated_sqlite_path, target="9999")
    nothing = Migrated(from_revision=HISTORY.head, to_revision=HISTORY.head, steps=())
    assert await migrate_postgres(migrated_postgres_url, target="0001") == nothing
    assert migrate_sqlite(migrated_sqlite_path, target="0001") == nothing


def test_the_order_of_file_names_is_the_order_of_the_ledger() -> None:
    script = ScriptDirectory(str(HISTORY.folder))
    assert tuple(revision.revision for revision in script.walk_revisions())[::-1] == HISTORY.revisions
    assert script.get_heads() == [HISTORY.head]


def test_opening_a_store_does_not_import_the_migration_tool() -> None:
    code = """
import sys
import clarion.adapters.stores.migration
print(sorted({"alembic", "sqlalchemy"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"


def test_the_wheel_carries_every_step_and_migrates_from_where_it_is_installed(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, capture_output=True, check=True, cwd=ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    code = """
import sys
import clarion
from clarion.adapters.stores.migration import migrate_sqlite
assert clarion.__file__.startswith(sys.argv[1]), clarion.__file__
print(migrate_sqlite(sys.argv[2]).to_revision)
"""
    installed = str(tmp_path / "installed")
    done = subprocess.run(
        [sys.executable, "-c", code, installed, str(tmp_path / "clarion.db")],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={"PYTHONPATH": installed},
    )
    assert done.stdout == f"{HISTORY.head}\n"
    assert History(tmp_path / "installed/clarion/adapters/stores/migration").revisions == HISTORY.revisions


async def test_a_database_notes_the_checksum_of_every_file_of_the_steps_that_it_ran(
    postgres_url: str, tmp_path: Path
) -> None:
    """Those of a step that runs outside a transaction too; so no file is left out by its revision either."""
    toy = write_history(tmp_path / "toy", GROUND, INDEXES, WIDER)
    await migrate_postgres(postgres_url, history=toy)
    connection = await asyncpg.connect(postgres_url)
    rows = await connection.fetch("SELECT file, checksum FROM schema_step")
    await connection.close()
    assert {row["file"]: row["checksum"] for row in rows} == toy.checksums("postgres")
    for history, path in ((toy, tmp_path / "toy.db"), (HISTORY, tmp_path / "clarion.db")):
        migrate_sqlite(path, history=history)
        with contextlib.closing(sqlite3.connect(path)) as file:
            noted = dict(file.execute("SELECT file, checksum FROM schema_step").fetchall())
        assert noted == history.checksums("sqlite")


async def test_a_migrated_database_may_be_opened(migrated_postgres_url: str, migrated_sqlite_path: Path) -> None:
    connection = await asyncpg.connect(migrated_postgres_url)
    await check_postgres(connection)
    await connection.close()
    with contextlib.closing(sqlite3.connect(migrated_sqlite_path)) as file:
        check_sqlite(file)

"""Opening and migrating a database that is not as it should be: one clear error each, and nothing is changed."""

import contextlib
import os
import pwd
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest

import clarion
from clarion.adapters.stores.migration import (
    HISTORY,
    History,
    Migrated,
    check_postgres,
    check_sqlite,
    migrate_postgres,
    migrate_sqlite,
)
from clarion.adapters.stores.migration.failure import without_password
from clarion.errors import (
    BadConfiguration,
    ClarionError,
    ProgramTooOld,
    SchemaEdited,
    SchemaMissing,
    SchemaUnknown,
    StoreBusy,
    StoreFull,
    StoreReadOnly,
    StoreUnreachable,
)
from clarion.testing.postgres import PostgresServer
from clarion.testing.postgres import postgres_server as start_postgres
from tests.integration.toy_history import GROUND, INDEXES, WIDER, both, write_history

FOREIGN = {
    "another application's ledger": "CREATE TABLE alembic_version (version_num text); "
    "INSERT INTO alembic_version VALUES ('e13f0c')",
    "tables without a ledger": "CREATE TABLE customer (id integer)",
    "a ledger and tables": "CREATE TABLE alembic_version (version_num text); "
    "INSERT INTO alembic_version VALUES ('0001'); CREATE TABLE customer (id integer)",
    "another schema_info": "CREATE TABLE schema_info (release text); CREATE TABLE alembic_version (version_num text); "
    "INSERT INTO alembic_version VALUES ('0001')",
    "an unreadable min_program": "CREATE TABLE schema_info (min_program text); INSERT INTO schema_info VALUES ('new'); "
    "CREATE TABLE alembic_version (version_num text); INSERT INTO alembic_version VALUES ('0001')",
    "an empty schema_info": "CREATE TABLE schema_info (min_program text); "
    "CREATE TABLE alembic_version (version_num text); INSERT INTO alembic_version VALUES ('0001')",
}
# Clarion's own, but made by steps that were edited since: the first two are what databases were before the steps were
# frozen, when nothing noted what a step was.
BEFORE_FREEZING = """
CREATE TABLE alembic_version (version_num text); INSERT INTO alembic_version VALUES ('{revision}');
CREATE TABLE schema_info (min_program text); INSERT INTO schema_info VALUES ('0.1.0');
CREATE TABLE tenant (tenant_id text PRIMARY KEY);
"""
EDITED = {
    "four steps": BEFORE_FREEZING.format(revision="0004"),
    "one step": BEFORE_FREEZING.format(revision="0001"),
    "a step that was edited": "UPDATE schema_step SET checksum = 'other' WHERE file = '0001_jobs.sql'",
    "a step that has no line": "DELETE FROM schema_step WHERE file = '0001_jobs.sql'",
    "a later program's": "UPDATE schema_step SET checksum = 'other' WHERE file = '0001_jobs.sql'; "
    "UPDATE alembic_version SET version_num = '0099'",
}
EMPTY = {"nothing": "SELECT 1", "an empty ledger": "CREATE TABLE alembic_version (version_num text)"}


async def on_postgres(url: str, sql: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(sql)
    await connection.close()


async def open_postgres(url: str, *, program: str = clarion.__version__, history: History = HISTORY) -> None:
    connection = await asyncpg.connect(url)
    try:
        await check_postgres(connection, store="postgresql://db/clarion", program=program, history=history)
    finally:
        await connection.close()


def on_sqlite(path: Path, sql: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(sql)


def open_sqlite(path: Path, *, program: str = clarion.__version__, history: History = HISTORY) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row  # as a store may have it
        check_sqlite(connection, store="sqlite:///clarion.db", program=program, history=history)


@pytest.mark.parametrize("sql", EMPTY.values(), ids=EMPTY.keys())
async def test_an_empty_database_is_refused_with_the_command_that_fills_it(
    postgres_url: str, tmp_path: Path, sql: str
) -> None:
    await on_postgres(postgres_url, sql)
    on_sqlite(tmp_path / "clarion.db", sql)
    with pytest.raises(SchemaMissing, match="run: clarion migrate --store postgresql://db/clarion"):
        await open_postgres(postgres_url)
    with pytest.raises(SchemaMissing, match=r"run: clarion migrate --store sqlite:///clarion\.db"):
        open_sqlite(tmp_path / "clarion.db")
    assert (await migrate_postgres(postgres_url)).steps == HISTORY.revisions
    assert migrate_sqlite(tmp_path / "clarion.db").steps == HISTORY.revisions


@pytest.mark.parametrize("sql", FOREIGN.values(), ids=FOREIGN.keys())
async def test_a_foreign_database_is_neither_opened_nor_migrated(postgres_url: str, tmp_path: Path, sql: str) -> None:
    path = tmp_path / "clarion.db"
    await on_postgres(postgres_url, sql)
    on_sqlite(path, sql)
    before = path.read_bytes()
    with pytest.raises(SchemaUnknown):
        await open_postgres(postgres_url)
    with pytest.raises(SchemaUnknown):
        await migrate_postgres(postgres_url)
    with pytest.raises(SchemaUnknown):
        open_sqlite(path)
    with pytest.raises(SchemaUnknown):
        migrate_sqlite(path)
    assert path.read_bytes() == before
    connection = await asyncpg.connect(postgres_url)
    assert await connection.fetchval("SELECT to_regclass('tenant')") is None
    await connection.close()


@pytest.mark.parametrize("sql", EDITED.values(), ids=EDITED.keys())
async def test_a_database_made_by_another_edit_of_a_step_is_neither_opened_nor_migrated(
    postgres_url: str, tmp_path: Path, sql: str
) -> None:
    path = tmp_path / "clarion.db"
    if "schema_step" in sql:
        await migrate_postgres(postgres_url)
        migrate_sqlite(path)
    await on_postgres(postgres_url, sql)
    on_sqlite(path, sql)
    before = path.read_bytes()
    says = r"made by another version of Clarion \(its 0001_\w+\.sql differs\) and cannot be brought up to date: run"
    with pytest.raises(SchemaEdited, match=says):
        await open_postgres(postgres_url)
    with pytest.raises(SchemaEdited, match=says):
        await migrate_postgres(postgres_url)
    with pytest.raises(SchemaEdited, match=says):
        open_sqlite(path)
    with pytest.raises(SchemaEdited, match=says):
        migrate_sqlite(path)
    assert path.read_bytes() == before


async def test_the_steps_that_a_database_lacks_are_not_asked_after(postgres_url: str, tmp_path: Path) -> None:
    """A file of a later step may differ until the database has run it."""
    toy = write_history(tmp_path / "toy", GROUND, INDEXES)
    await migrate_postgres(postgres_url, history=toy, target="0001")
    migrate_sqlite(tmp_path / "clarion.db", history=toy, target="0001")
    other = write_history(tmp_path / "other", GROUND, WIDER)
    assert (await migrate_postgres(postgres_url, history=other)).steps == ("0002",)
    assert migrate_sqlite(tmp_path / "clarion.db", history=other).steps == ("0002",)
    with pytest.raises(SchemaEdited, match="0002_toy"):
        await open_postgres(postgres_url, history=toy)
    with pytest.raises(SchemaEdited, match="0002_toy"):
        open_sqlite(tmp_path / "clarion.db", history=toy)


async def test_a_database_that_asks_for_a_newer_program_refuses_this_one(
    migrated_postgres_url: str, migrated_sqlite_path: Path
) -> None:
    newer = "UPDATE schema_info SET min_program = '99.0.0'"
    await on_postgres(migrated_postgres_url, newer)
    on_sqlite(migrated_sqlite_path, newer)
    says = rf"asks for Clarion 99\.0\.0 or newer and this is {clarion.__version__}.*update this program"
    with pytest.raises(ProgramTooOld, match=says):
        await open_postgres(migrated_postgres_url)
    with pytest.raises(ProgramTooOld, match=says):
        await migrate_postgres(migrated_postgres_url)
    with pytest.raises(ProgramTooOld, match=says):
        open_sqlite(migrated_sqlite_path)
    with pytest.raises(ProgramTooOld, match=says):
        migrate_sqlite(migrated_sqlite_path)


async def test_an_old_program_works_on_a_newer_schema_until_a_step_raises_min_program(
    postgres_url: str, tmp_path: Path
) -> None:
    path = tmp_path / "clarion.db"
    raising = both("UPDATE schema_info SET min_program = '0.3.0'")
    old = write_history(tmp_path / "old", GROUND)
    new = write_history(tmp_path / "new", GROUND, INDEXES, WIDER)
    newest = write_history(tmp_path / "newest", GROUND, INDEXES, WIDER, raising)

    await migrate_postgres(postgres_url, history=new, program="0.2.0")
    migrate_sqlite(path, history=new, program="0.2.0")
    for program, history in [("0.1.0", old), ("0.2.0", new)]:
        await open_postgres(postgres_url, program=program, history=history)
        open_sqlite(path, program=program, history=history)
    nothing = Migrated(from_revision="0003", to_revision="0003", steps=())
    assert await migrate_postgres(postgres_url, history=old, program="0.1.0") == nothing
    assert migrate_sqlite(path, history=old, program="0.1.0") == nothing

    await migrate_postgres(postgres_url, history=newest, program="0.3.0")
    migrate_sqlite(path, history=newest, program="0.3.0")
    for program, history in [("0.1.0", old), ("0.2.0", new)]:
        with pytest.raises(ProgramTooOld):
            await open_postgres(postgres_url, program=program, history=history)
        with pytest.raises(ProgramTooOld):
            open_sqlite(path, program=program, history=history)


async def test_a_new_program_asks_for_the_steps_that_an_older_schema_lacks(postgres_url: str, tmp_path: Path) -> None:
    toy = write_history(tmp_path / "toy", GROUND, INDEXES, WIDER)
    await migrate_postgres(postgres_url, history=toy, target="0001")
    migrate_sqlite(tmp_path / "clarion.db", history=toy, target="0001")
    with pytest.raises(SchemaMissing, match=r"revision 0001 and this program needs 0003.*clarion migrate"):
        await open_postgres(postgres_url, history=toy)
    with pytest.raises(SchemaMissing, match=r"revision 0001 and this program needs 0003.*clarion migrate"):
        open_sqlite(tmp_path / "clarion.db", history=toy)


@pytest.mark.parametrize("program", ["0.9.0", "0.9", "0.9.0.dev3", "0.9.1", "0.10.0", "1.0"])
async def test_versions_compare_by_their_numbers(migrated_sqlite_path: Path, program: str) -> None:
    on_sqlite(migrated_sqlite_path, "UPDATE schema_info SET min_program = '0.9.0'")
    open_sqlite(migrated_sqlite_path, program=program)
    with pytest.raises(ProgramTooOld):
        open_sqlite(migrated_sqlite_path, program="0.8.12")


async def test_a_server_that_is_down_is_named_without_its_password() -> None:
    with pytest.raises(StoreUnreachable, match=r"postgresql://me@127\.0\.0\.1:1/clarion does not answer") as caught:
        await migrate_postgres("postgresql://me:geheim@127.0.0.1:1/clarion?password=geheim")
    assert "geheim" not in str(caught.value)


async def test_a_server_that_was_stopped_is_unreachable_and_one_started_again_is_migrated() -> None:
    with start_postgres() as server:
        url = server.create_database("clarion")
        server.stop()
        with pytest.raises(StoreUnreachable, match="see that the server runs"):
            await migrate_postgres(url)
        server.start()
        assert (await migrate_postgres(url)).to_revision == HISTORY.head


async def test_what_a_server_refuses_is_told_by_what_to_do_about_it(postgres_server: PostgresServer) -> None:
    with pytest.raises(StoreUnreachable, match="create the database"):
        await migrate_postgres(postgres_server.url_of("absent"))
    with pytest.raises(BadConfiguration, match="correct the credentials"):
        await migrate_postgres(postgres_server.url.replace("clarion@", "stranger@"))
    with pytest.raises(BadConfiguration, match="address that cannot be read"):
        await migrate_postgres("postgres-is-here")


async def test_a_role_that_may_not_create_and_one_that_may_not_write_are_told_apart(postgres_url: str) -> None:
    await on_postgres(
        postgres_url,
        """
        DROP ROLE IF EXISTS guest, reader;
        CREATE ROLE guest LOGIN;
        CREATE ROLE reader LOGIN SUPERUSER;
        ALTER ROLE reader SET default_transaction_read_only = on;
        """,
    )
    with pytest.raises(BadConfiguration, match="grant the role CREATE"):
        await migrate_postgres(postgres_url.replace("clarion@", "guest@"))
    with pytest.raises(StoreReadOnly, match="name the primary server"):
        await migrate_postgres(postgres_url.replace("clarion@", "reader@"))


async def test_a_server_without_a_second_connection_for_us_is_told_by_what_to_do(postgres_url: str) -> None:
    await on_postgres(postgres_url, "DROP ROLE IF EXISTS single; CREATE ROLE single LOGIN CONNECTION LIMIT 1")
    with pytest.raises(StoreUnreachable, match=r"no connection left.*raise its max_connections"):
        await migrate_postgres(postgres_url.replace("clarion@", "single@"))


@pytest.fixture
def private_folder(sqlite_template: Path) -> Iterator[Path]:
    """A folder of a user whom file modes bind, who we are for the length of the test: root is bound by none.

    The template has been made by now, so all modules that a migration imports are in memory: they may lie under a home
    that this user cannot enter.
    """
    assert sqlite_template.exists()
    folder = Path(tempfile.mkdtemp())
    us = os.geteuid()
    if us == 0:
        nobody = pwd.getpwnam("nobody").pw_uid
        os.chown(folder, nobody, -1)
        os.seteuid(nobody)
    try:
        yield folder
    finally:
        os.seteuid(us)
        folder.chmod(stat.S_IRWXU)
        shutil.rmtree(folder)


def test_a_read_only_file_that_lacks_a_step_is_said_to_be_so(private_folder: Path) -> None:
    path = private_folder / "clarion.db"
    toy = write_history(private_folder / "toy", GROUND, WIDER)
    migrate_sqlite(path, history=toy, target="0001")
    path.chmod(0o400)
    with pytest.raises(StoreReadOnly, match=r"clarion\.db is read-only.*make the file and its folder writable"):
        migrate_sqlite(path, history=toy)


def test_a_read_only_file_that_lacks_nothing_is_left_in_peace(private_folder: Path) -> None:
    path = private_folder / "clarion.db"
    toy = write_history(private_folder / "toy", GROUND, WIDER)
    migrate_sqlite(path, history=toy)
    path.chmod(0o400)
    assert migrate_sqlite(path, history=toy).steps == ()


def test_a_folder_that_cannot_be_written_is_said_to_be_so(private_folder: Path) -> None:
    toy = write_history(private_folder / "toy", GROUND, WIDER)
    migrate_sqlite(private_folder / "clarion.db", history=toy, target="0001")
    private_folder.chmod(0o500)
    with pytest.raises(StoreReadOnly, match="make the folder writable"):
        migrate_sqlite(private_folder / "another.db", history=toy)
    with pytest.raises(StoreReadOnly, match="make the file and its folder writable"):
        migrate_sqlite(private_folder / "clarion.db", history=toy)


def test_a_file_that_cannot_be_read_is_said_to_be_so(private_folder: Path) -> None:
    path = private_folder / "clarion.db"
    path.touch(mode=0)
    with pytest.raises(StoreUnreachable, match="cannot be opened"):
        migrate_sqlite(path)


def test_a_locked_file_is_said_to_be_so(migrated_sqlite_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(migrated_sqlite_path, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreBusy, match=r"locked by another process.*stop the process"):
            migrate_sqlite(migrated_sqlite_path, busy_timeout=timedelta())
        with (
            contextlib.closing(sqlite3.connect(migrated_sqlite_path, timeout=0)) as late,
            pytest.raises(StoreBusy, match="locked by another process"),
        ):
            check_sqlite(late)


def test_a_file_that_somebody_keeps_reading_is_busy_and_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "clarion.db"
    toy = write_history(tmp_path / "toy", GROUND, WIDER)
    migrate_sqlite(path, history=toy, target="0001")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM job").fetchone() == (0,)
        with pytest.raises(StoreBusy, match="locked by another process"):
            migrate_sqlite(path, history=toy, busy_timeout=timedelta())
        reader.execute("COMMIT")
    assert migrate_sqlite(path, history=toy).steps == ("0002",)


def test_a_folder_that_is_not_there_and_a_file_that_is_no_database_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(StoreUnreachable, match="absent does not exist"):
        migrate_sqlite(tmp_path / "absent" / "clarion.db")
    with pytest.raises(StoreUnreachable, match="cannot be opened"):
        migrate_sqlite(tmp_path)
    (tmp_path / "letter.txt").write_text("Dear reader, " * 100)
    with pytest.raises(SchemaUnknown, match="is not an SQLite database"):
        migrate_sqlite(tmp_path / "letter.txt")
    assert (tmp_path / "letter.txt").read_text() == "Dear reader, " * 100


def test_a_full_disk_is_said_to_be_so(tmp_path: Path) -> None:
    full = both("PRAGMA max_page_count = 1; CREATE TABLE one_more (a integer)")
    with pytest.raises(StoreFull, match="make space"):
        migrate_sqlite(tmp_path / "clarion.db", history=write_history(tmp_path / "toy", GROUND, full))


@pytest.mark.parametrize(
    "url, shown",
    [
        ("postgresql://me:secret@db:5432/clarion?sslmode=require", "postgresql://me@db:5432/clarion"),
        ("postgresql://me:a@b:c@db/clarion", "postgresql://me@db/clarion"),
        ("postgresql://me@/clarion?host=/run/pg&password=secret", "postgresql://me@/clarion?host=/run/pg"),
        ("postgresql://db/clarion", "postgresql://db/clarion"),
        ("postgresql://[me:secret@db/clarion", "the store"),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_password(url) == shown


def test_every_error_is_one_line_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear reader, " * 100)
    with pytest.raises(ClarionError) as caught:
        migrate_sqlite(tmp_path / "letter.txt")
    assert "\n" not in str(caught.value)
    assert caught.value.hint in str(caught.value)

"""What can be wrong with an SQLite store, each as one clear error that says what to do."""

import asyncio
import os
import shutil
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from clarion.adapters.stores.sqlite import InlineRunner, SqliteStore, inspect, migrate, open_store
from clarion.adapters.stores.sqlite.session import require_library
from clarion.domain.ensured import Outcome
from clarion.errors import (
    BadConfiguration,
    ClarionError,
    InvalidInput,
    SchemaMissing,
    SchemaUnknown,
    StoreBusy,
    StoreDamaged,
    StoreFull,
    StoreReadOnly,
    StoreUnreachable,
)
from clarion.testing import factories
from clarion.testing.clock import ManualClock
from tests.integration.sqlite_look import connection_of

TENANT = factories.TENANT
NOBODY = 65534


async def open_now(path: Path | str) -> SqliteStore:
    """Open a store that waits for no lock."""
    return await open_store(f"sqlite:///{path}", clock=ManualClock(), runner=InlineRunner(), busy_timeout=timedelta())


@pytest.fixture
async def store(migrated_sqlite_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await open_now(migrated_sqlite_path)
    yield opened
    await opened.close()


def execute(store: SqliteStore, statement: str) -> None:
    connection_of(store).execute(statement)


@contextmanager
def other_connection(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Give up root's right to ignore file modes, for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def public_path(migrated_sqlite_path: Path) -> Iterator[Path]:
    """A migrated file where an ordinary user can reach it: pytest's own folder lies below one of mode 0700."""
    folder = Path(tempfile.mkdtemp(prefix="clarion-sqlite-"))
    path = Path(shutil.copy(migrated_sqlite_path, folder / "clarion.db"))
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
        os.chown(path, NOBODY, NOBODY)
    yield path
    folder.chmod(0o700)
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "sqlite:",
        "sqlite:clarion.db",
        "sqlite://clarion.db",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///clarion.db?mode=ro",
        "sqlite:///clarion.db#1",
        "sqlite:///clarion\0.db",
        "postgresql:///clarion",
    ],
)
async def test_an_address_of_another_form_is_refused_with_the_right_ones(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"write sqlite:///clarion\.db .* sqlite:////var/.* sqlite://:memory:"):
        await open_store(url, clock=ManualClock())


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The present folder, with one in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    return tmp_path


async def test_a_path_after_three_slashes_is_relative_and_taken_as_it_is(here: Path) -> None:
    url = "sqlite:///data/is%20 it.db"
    await migrate(url)
    store = await open_store(url, clock=ManualClock())
    await store.close()
    assert list(contents(here / "data")) == ["is%20 it.db"]


@pytest.mark.usefixtures("here")
async def test_errors_name_a_relative_path_as_it_was_given() -> None:
    with pytest.raises(SchemaMissing) as raised:
        await open_now("data/none.db")
    assert str(raised.value) == (
        "there is no store at data/none.db yet: run: clarion migrate --store sqlite:///data/none.db"
    )


async def test_a_store_in_memory_cannot_be_migrated() -> None:
    with pytest.raises(InvalidInput, match="has no file"):
        await migrate("sqlite://:memory:")


def test_an_sqlite_that_does_not_know_our_sql_is_refused() -> None:
    require_library((3, 38, 0))
    with pytest.raises(BadConfiguration, match=r"is 3\.37\.2 and Clarion needs 3\.38\.0"):
        require_library((3, 37, 2))


def make_empty(path: Path) -> None:
    path.write_bytes(b"")


def make_text(path: Path) -> None:
    path.write_text("Dear diary, " * 1000, encoding="utf-8")


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_foreign(path: Path) -> None:
    path.unlink()
    with other_connection(path) as connection:
        connection.execute("CREATE TABLE diary (entry text)")


def make_damaged(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))


def damage_last_page(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-4096] + b"\xff" * 4096)


def remove(path: Path) -> None:
    path.unlink()


def remove_folder(path: Path) -> None:
    path.unlink()
    path.parent.rmdir()


def make_parent_a_file(path: Path) -> None:
    remove_folder(path)
    path.parent.write_bytes(b"")


BROKEN: dict[str, tuple[Callable[[Path], None], type[ClarionError], str]] = {
    "a file that is not there": (remove, SchemaMissing, "run: clarion migrate --store sqlite:///"),
    "a folder that is not there": (remove_folder, StoreUnreachable, "create it, or name a file in another one"),
    "a file in place of a folder": (make_parent_a_file, StoreUnreachable, "correct the path"),
    "a folder in place of a file": (make_folder, StoreUnreachable, "name the database's file itself"),
    "an empty file": (make_empty, SchemaMissing, "run: clarion migrate --store sqlite:///"),
    "a text": (make_text, StoreUnreachable, "is no SQLite database .*: name another file"),
    "another program's database": (make_foreign, SchemaUnknown, "give an empty database or Clarion's own"),
    "a damaged database": (make_damaged, StoreUnreachable, "is damaged .*: stop all that use it and restore it"),
}


@pytest.fixture
def own_folder_path(migrated_sqlite_path: Path) -> Path:
    """A migrated file in a folder that may go with it."""
    folder = migrated_sqlite_path.parent / "own"
    folder.mkdir()
    return Path(shutil.move(migrated_sqlite_path, folder / "clarion.db"))


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
async def test_what_is_no_store_is_refused_with_one_line_and_left_as_it_was(
    own_folder_path: Path, broken: tuple[Callable[[Path], None], type[ClarionError], str]
) -> None:
    make, kind, hint = broken
    make(own_folder_path)
    before = contents(own_folder_path.parent)
    with pytest.raises(kind, match=hint) as raised:
        await open_now(own_folder_path)
    assert "\n" not in str(raised.value)
    assert contents(own_folder_path.parent) == before


def contents(folder: Path) -> dict[str, bytes | None]:
    """Everything in a folder, if it is one."""
    return {path.name: path.read_bytes() if path.is_file() else None for path in folder.glob("*")}


def forbid_writing(path: Path) -> None:
    path.chmod(path.stat().st_mode & ~0o222)


async def test_a_file_that_cannot_be_written_is_refused_when_the_store_is_opened(public_path: Path) -> None:
    forbid_writing(public_path)
    with ordinary_user(), pytest.raises(StoreReadOnly, match="make the file and its folder writable"):
        await open_now(public_path)


async def test_a_folder_that_cannot_be_written_is_refused_when_the_store_is_opened(public_path: Path) -> None:
    forbid_writing(public_path.parent)
    with ordinary_user(), pytest.raises(StoreReadOnly, match="make the file and its folder writable"):
        await open_now(public_path)


async def test_a_store_that_becomes_read_only_says_so_and_can_still_be_read(store: SqliteStore) -> None:
    await store.ensure_tenant(TENANT, {})
    execute(store, "PRAGMA query_only = ON")
    with pytest.raises(StoreReadOnly, match="make the file and its folder writable"):
        await store.ensure_user_messages(TENANT, [factories.user_message()])
    assert await store.find_tenant_keys(TENANT) == {}


async def test_a_file_that_another_process_has_locked_is_busy_and_can_still_be_read(
    store: SqliteStore, migrated_sqlite_path: Path
) -> None:
    with other_connection(migrated_sqlite_path) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match=r"end what holds it \(another Clarion, a backup, a shell"):
            await store.ensure_user_messages(TENANT, [factories.user_message()])
        assert await store.find_tenant_keys(TENANT) is None
        other.execute("ROLLBACK")
    (answer,) = await store.ensure_user_messages(TENANT, [factories.user_message()])
    assert answer.outcome is Outcome.CREATED


async def test_a_file_that_is_locked_when_it_is_opened_is_busy(migrated_sqlite_path: Path) -> None:
    with other_connection(migrated_sqlite_path) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreBusy):
            await open_now(migrated_sqlite_path)


async def test_a_full_disk_stores_nothing_of_a_set_and_all_of_it_when_there_is_space_again(store: SqliteStore) -> None:
    items = [factories.user_message(n, content=factories.BYTES * 16) for n in range(200)]
    execute(store, "PRAGMA max_page_count = 100")
    with pytest.raises(StoreFull, match="make space on its disk; nothing of this work was stored"):
        await store.ensure_user_messages(TENANT, items)
    execute(store, "PRAGMA max_page_count = 100000")
    answers = await store.ensure_user_messages(TENANT, items)
    assert {answer.outcome for answer in answers} == {Outcome.CREATED}


async def test_damage_that_no_start_would_find_is_found_when_somebody_looks(
    store: SqliteStore, migrated_sqlite_path: Path
) -> None:
    url = f"sqlite:///{migrated_sqlite_path}"
    await store.ensure_user_messages(TENANT, [factories.user_message(n) for n in range(100)])
    await inspect(url)  # beside the open store, and with all of it still in the log
    execute(store, "PRAGMA wal_checkpoint(TRUNCATE)")
    await store.close()
    damage_last_page(migrated_sqlite_path)
    again = await open_now(migrated_sqlite_path)
    await again.close()
    with pytest.raises(StoreUnreachable, match=r"is damaged .*: stop all that use it and restore it") as raised:
        await inspect(url)
    assert "\n" not in str(raised.value)


async def test_a_store_in_memory_has_nothing_to_look_through() -> None:
    await inspect("sqlite://:memory:")


async def test_damage_that_is_found_at_work_is_reported(store: SqliteStore, migrated_sqlite_path: Path) -> None:
    await store.ensure_user_messages(TENANT, [factories.user_message(n) for n in range(100)])
    execute(store, "PRAGMA wal_checkpoint(TRUNCATE)")
    make_damaged(migrated_sqlite_path)
    execute(store, "PRAGMA shrink_memory")  # so that the pages are read again
    with pytest.raises(StoreDamaged, match="restore it from a backup"):
        await store.ensure_user_messages(TENANT, [factories.user_message(n) for n in range(100)])


def delete(path: Path) -> None:
    for part in ("", "-wal", "-shm"):
        path.with_name(path.name + part).unlink()


def replace(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").rename(path)


@pytest.mark.parametrize("lose", [delete, replace])
async def test_a_file_that_was_deleted_or_replaced_takes_nothing_more(
    store: SqliteStore, migrated_sqlite_path: Path, lose: Callable[[Path], None]
) -> None:
    """SQLite would go on with the file that was opened, which is gone with the process."""
    await store.ensure_user_messages(TENANT, [factories.user_message(1)])
    lose(migrated_sqlite_path)
    with pytest.raises(StoreDamaged, match="was deleted or replaced while it was in use: stop all that use it"):
        await store.ensure_user_messages(TENANT, [factories.user_message(2)])
    with pytest.raises(StoreDamaged):
        await store.list_tenants(limit=1)


def test_a_file_that_every_user_may_write_is_refused(migrated_sqlite_path: Path) -> None:
    migrated_sqlite_path.chmod(0o666)
    with pytest.raises(BadConfiguration, match=r"every user may write to .*clarion.db.* run: chmod 600 "):
        asyncio.run(open_now(migrated_sqlite_path))
    assert migrated_sqlite_path.stat().st_mode & 0o777 == 0o666, "a person has to look at it first"

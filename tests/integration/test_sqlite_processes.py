"""Several processes on one SQLite file: whoever comes second waits, and whoever is killed leaves nothing half done."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from clarion.adapters.host import HostClock
from clarion.adapters.stores.shared.messaging import ensure_user_messages
from clarion.adapters.stores.shared.transaction import finished
from clarion.adapters.stores.sqlite import InlineRunner, open_store
from clarion.adapters.stores.sqlite.session import _use_log
from clarion.domain.ensured import Outcome
from clarion.testing import factories
from clarion.testing.clock import ManualClock
from tests.integration.sqlite_campaign import of_many_jobs
from tests.integration.sqlite_look import connection_of
from tests.integration.sqlite_worker import MESSAGES, SETS, Report

ROOT = Path(__file__).parents[2]
TENANT = factories.TENANT
FIRST_SET = MESSAGES[0]

WAIT_MAX = 30
"""Seconds until a test that waits for something which never comes fails instead of hanging."""


class Worker:
    """A process that is at its mark."""

    last_words = ""

    def __init__(self, task: str, path: Path, name: str = "a") -> None:
        command = [sys.executable, "-m", "tests.integration.sqlite_worker", task, str(path), name]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=ROOT)
        assert self.process.stdout
        assert self.process.stdout.readline() == "ready\n", self.process.communicate()[1]

    def go(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        output, error = self.process.communicate()
        assert (error, self.process.returncode) == ("", 0)
        return output

    def lines(self, count: int) -> list[str]:
        """Read so many lines of what it says."""
        assert self.process.stdout
        return [self.process.stdout.readline() for _ in range(count)]

    def kill(self) -> None:
        """End it as the kernel does when memory runs out: it gets no chance to tidy up."""
        self.process.kill()
        self.last_words, _ = self.process.communicate()


@pytest.fixture
def hanging(migrated_sqlite_path: Path) -> Iterator[Worker]:
    """A process that has written inside a transaction and does not end it."""
    worker = Worker("hang", migrated_sqlite_path)
    yield worker
    worker.kill()


def test_two_processes_that_ensure_the_same_keys_at_once_make_each_row_once_and_agree(
    migrated_sqlite_path: Path,
) -> None:
    workers = [Worker("ensure", migrated_sqlite_path, name) for name in ("a", "bb")]
    for worker in workers:
        worker.go()
    one, other = (msgspec.json.decode(worker.answer(), type=Report) for worker in workers)
    assert sorted(one.made + other.made) == list(range(SETS * len(FIRST_SET)))
    assert sorted(one.made_jobs + other.made_jobs) == sorted(one.jobs)
    assert one.jobs == other.jobs


async def test_two_processes_that_claim_at_once_share_the_messages_out_and_send_none_twice(
    migrated_sqlite_path: Path,
) -> None:
    store = await open_store(f"sqlite:///{migrated_sqlite_path}", clock=HostClock())
    made = await store.ensure_outgoing_messages(TENANT, await of_many_jobs(store, 200))
    await store.close()
    workers = [Worker("claim", migrated_sqlite_path, name) for name in ("a", "bb")]
    for worker in workers:
        worker.go()
    one, other = (msgspec.json.decode(worker.answer(), type=list[int]) for worker in workers)
    assert sorted(one + other) == sorted(answer.record.id or 0 for answer in made)
    with closing(sqlite3.connect(migrated_sqlite_path)) as reader:
        sent = reader.execute("SELECT count(*) FROM delivery_attempt WHERE status = 'Accepted'").fetchone()
    assert sent == (200,)


def test_several_processes_that_open_a_new_file_at_once_all_succeed(migrated_sqlite_path: Path) -> None:
    workers = [Worker("open", migrated_sqlite_path) for _ in range(4)]
    for worker in workers:
        worker.go()
    assert [worker.answer() for worker in workers] == ["opened\n"] * 4


async def test_a_process_killed_inside_a_transaction_leaves_nothing_of_it(
    migrated_sqlite_path: Path, hanging: Worker
) -> None:
    hanging.kill()
    store = await open_store(f"sqlite:///{migrated_sqlite_path}", clock=ManualClock())
    answers = await store.ensure_user_messages(TENANT, FIRST_SET)
    await store.close()
    assert {answer.outcome for answer in answers} == {Outcome.CREATED}
    assert integrity(migrated_sqlite_path) == "ok"


async def test_a_process_killed_after_its_answer_leaves_all_of_it(migrated_sqlite_path: Path) -> None:
    Worker("leave", migrated_sqlite_path).kill()
    store = await open_store(f"sqlite:///{migrated_sqlite_path}", clock=ManualClock())
    answers = await store.ensure_user_messages(TENANT, FIRST_SET)
    await store.close()
    assert {answer.outcome for answer in answers} == {Outcome.FOUND}
    assert integrity(migrated_sqlite_path) == "ok"


async def test_a_process_killed_in_the_middle_of_shared_commits_loses_nothing_that_it_answered(
    migrated_sqlite_path: Path,
) -> None:
    worker = Worker("flood", migrated_sqlite_path)
    answered = worker.lines(200)
    worker.kill()
    # The kernel keeps what was said and not read yet; the last line may have been cut off.
    answered += worker.last_words.splitlines(keepends=True)
    numbers = [int(line) for line in answered if line.endswith("\n")]
    store = await open_store(f"sqlite:///{migrated_sqlite_path}", clock=ManualClock())
    outcomes = set()
    for start in range(0, len(numbers), 1000):
        rows = [factories.user_message(n) for n in numbers[start : start + 1000]]
        outcomes |= {answer.outcome for answer in await store.ensure_user_messages(TENANT, rows)}
    await store.close()
    assert outcomes == {Outcome.FOUND}
    assert integrity(migrated_sqlite_path) == "ok"


def integrity(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        ((verdict,),) = connection.execute("PRAGMA integrity_check").fetchall()
    return str(verdict)


async def test_the_second_writer_waits_for_the_first_and_finds_its_rows(migrated_sqlite_path: Path) -> None:
    url = f"sqlite:///{migrated_sqlite_path}"
    first = await open_store(url, clock=ManualClock(), runner=InlineRunner())
    second = await open_store(url, clock=ManualClock())
    waits = threading.Event()
    await second._runner.run(lambda: connection_of(second).set_trace_callback(lambda _: waits.set()))
    async with asyncio.TaskGroup() as group:
        with first._core._session.transaction() as transaction:
            made = finished(ensure_user_messages(transaction, TENANT, FIRST_SET))
            asking = group.create_task(second.ensure_user_messages(TENANT, FIRST_SET))
            assert await asyncio.get_running_loop().run_in_executor(None, waits.wait, WAIT_MAX)
            assert not asking.done()
    found = asking.result()
    assert {answer.outcome for answer in made} == {Outcome.CREATED}
    assert {answer.outcome for answer in found} == {Outcome.FOUND}
    assert [answer.record for answer in found] == [answer.record for answer in made]
    await first.close()
    await second.close()


def test_whoever_cannot_switch_a_file_to_its_log_waits_for_the_one_who_holds_it(migrated_sqlite_path: Path) -> None:
    waits = threading.Event()

    def switch() -> None:
        with closing(sqlite3.connect(migrated_sqlite_path, isolation_level=None)) as connection:
            connection.set_trace_callback(lambda statement: waits.set() if statement == "BEGIN IMMEDIATE" else None)
            _use_log(connection, store="it")

    with closing(sqlite3.connect(migrated_sqlite_path, isolation_level=None)) as holder, ThreadPoolExecutor() as pool:
        holder.execute("BEGIN IMMEDIATE")
        switching = pool.submit(switch)
        assert waits.wait(WAIT_MAX)
        holder.execute("COMMIT")
        switching.result()
        assert holder.execute("PRAGMA journal_mode").fetchone() == ("wal",)

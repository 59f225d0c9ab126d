"""Two programs that ensure the same keys at the same time: each key is created once, neither sees an error (F-04)."""

import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import asyncpg
import msgspec

ROOT = Path(__file__).parents[2]
SETS = 20
SIZE = 25

# Ready when its store is open; begins at a line of input, so that both begin together. One goes through the numbers
# upwards and the other downwards, and every set overlaps with two of the other's.
PROGRAM = """
import asyncio, sys
import msgspec
from clarion.adapters.stores.postgres import open_store
from clarion.testing import factories as make
from clarion.testing.clock import ManualClock

async def main(url, direction, sets, size):
    store = await open_store(url, clock=ManualClock())
    (job,) = await store.ensure_messaging_jobs("acme", [make.messaging_job()])
    numbers = list(range(sets * size))[::direction]
    print("ready", flush=True)
    sys.stdin.readline()
    outcomes = []
    for start in range(0, len(numbers), size):
        part = numbers[start : start + size + size // 2]
        entries = [make.guarded_entry(f"key-{n}") for n in part]
        jobs = await store.ensure_notification_jobs("acme", entries)
        versions = await store.ensure_address_versions("acme", [make.address_version(n) for n in part])
        items = make.outgoing_items(job.record, [version.record for version in versions])
        messages = await store.ensure_outgoing_messages("acme", items)
        answers = ((type(a.record).__name__, a.record.id, a.outcome) for a in (*jobs, *versions, *messages))
        outcomes += answers
    await store.close()
    print(msgspec.json.encode(outcomes).decode())

asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
"""


def start(url: str, *, direction: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", PROGRAM, url, str(direction), str(SETS), str(SIZE)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=ROOT)


async def test_two_processes_create_each_key_once_and_neither_sees_an_error(migrated_postgres_url: str) -> None:
    with ExitStack() as stack:
        programs = [stack.enter_context(start(migrated_postgres_url, direction=direction)) for direction in (1, -1)]
        for program in programs:
            assert program.stdout is not None
            assert program.stdout.readline() == "ready\n"
        for program in programs:
            assert program.stdin is not None
            program.stdin.write("go\n")
            program.stdin.flush()
        ended = [program.communicate() for program in programs]
    assert [(program.returncode, errors) for program, (_, errors) in zip(programs, ended, strict=True)] == [(0, "")] * 2
    answers = [tuple(answer) for output, _ in ended for answer in msgspec.json.decode(output)]
    created = Counter((kind, row_id) for kind, row_id, outcome in answers if outcome == "created")
    assert set(created.values()) == {1}
    assert {outcome for _, _, outcome in answers} == {"created", "found"}
    connection = await asyncpg.connect(migrated_postgres_url)
    for kind, table in (
        ("NotificationJob", "notification_job"),
        ("AddressVersion", "address_version"),
        ("OutgoingMessage", "outgoing_message"),
    ):
        stored = await connection.fetch(f"SELECT id FROM {table}")  # noqa: S608  a name of the line above
        assert {(kind, row["id"]) for row in stored} == {key for key in created if key[0] == kind}
        assert len(stored) == SETS * SIZE
    await connection.close()

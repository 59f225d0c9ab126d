"""A process of its own for tests of the SQLite store: it says when it is ready, waits for the word, and does one thing.

python sqlite_worker.py ensure FILE NAME   ensure what every other `ensure` ensures, print what was made
python sqlite_worker.py open FILE NAME     open the store and print that it did
python sqlite_worker.py hang FILE NAME     write, print that it did, and stay inside the transaction
python sqlite_worker.py leave FILE NAME    ensure, print that it did, and stay without closing anything
python sqlite_worker.py claim FILE NAME    claim a few messages at a time until none is left, print whose they became
python sqlite_worker.py flood FILE NAME    ensure with many callers at once, printing each number when it is answered
"""

import asyncio
import sys
from datetime import timedelta
from itertools import count

import msgspec

from clarion.adapters.host import HostClock
from clarion.adapters.stores.shared.messaging import ensure_user_messages
from clarion.adapters.stores.shared.transaction import finished
from clarion.adapters.stores.sqlite import InlineRunner, SqliteStore, WriterThread, open_store
from clarion.domain.ensured import Outcome
from clarion.testing import factories
from tests.integration.sqlite_campaign import claim, results

TENANT = factories.TENANT
SETS, ITEMS = 20, 25
MESSAGES = [[factories.user_message(number * ITEMS + n) for n in range(ITEMS)] for number in range(SETS)]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What one process was answered: the inbox rows that it made, and where the job of each idempotency key lies."""

    made: list[int]
    jobs: dict[str, str]
    made_jobs: list[str]


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def wait_for_the_word() -> None:
    sys.stdin.readline()


async def ensure(store: SqliteStore, name: str) -> Report:
    """Ensure sets of inbox rows, and jobs under keys that every process dates differently."""
    made: list[int] = []
    answered = []
    created_at = factories.SOURCE_AT + timedelta(days=len(name))
    for number, messages in enumerate(MESSAGES):
        answers = await store.ensure_user_messages(TENANT, messages)
        made += [number * ITEMS + n for n, answer in enumerate(answers) if answer.outcome is Outcome.CREATED]
        entry = factories.guarded_entry(f"key-{number}", created_at=created_at)
        answered += await store.ensure_notification_jobs(TENANT, [entry])
    return Report(
        made=made,
        jobs={f"key-{number}": answer.record.row_key for number, answer in enumerate(answered)},
        made_jobs=[f"key-{number}" for number, answer in enumerate(answered) if answer.outcome is Outcome.CREATED],
    )


async def claim_all(store: SqliteStore, name: str) -> list[int]:
    """Claim and record a few messages at a time, until there is none to claim."""
    mine: list[int] = []
    while claimed := await claim(store, quota=3, name=f"{name}-{len(mine)}"):
        mine += [one.id for one in claimed]
        await store.record_outgoing(results(claimed), actor=name)
    return mine


async def flood(store: SqliteStore) -> None:
    """Ensure one inbox row after the other, twenty at a time, and say which ones were answered."""
    numbers = count()

    async def caller() -> None:
        for number in numbers:
            await store.ensure_user_messages(TENANT, [factories.user_message(number)])
            say(str(number))

    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(caller())


async def main(task: str, file: str, name: str) -> None:
    if task == "open":
        say("ready")
        wait_for_the_word()
    runner = WriterThread() if task == "flood" else InlineRunner()
    store = await open_store(f"sqlite:///{file}", clock=HostClock(), runner=runner)
    match task:
        case "open":
            say("opened")
        case "ensure":
            say("ready")
            wait_for_the_word()
            say(msgspec.json.encode(await ensure(store, name)).decode())
        case "claim":
            say("ready")
            wait_for_the_word()
            say(msgspec.json.encode(await claim_all(store, name)).decode())
        case "flood":
            say("ready")
            await flood(store)
        case "leave":
            await store.ensure_user_messages(TENANT, MESSAGES[0])
            say("ready")
            wait_for_the_word()
        case "hang":
            with store._core._session.transaction() as transaction:
                finished(ensure_user_messages(transaction, TENANT, MESSAGES[0]))
                say("ready")
                wait_for_the_word()
        case _:
            raise ValueError(task)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

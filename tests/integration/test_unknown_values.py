"""A value of a list that has grown since: said to be a newer program's, or left to it; nothing breaks over it.

The schema lists no channels, kinds, lanes, roles and the like, so a row of a newer program may hold one that this
program does not know.
"""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path

import asyncpg
import msgspec
import pytest

from clarion.adapters.stores.postgres import open_store as open_postgres
from clarion.adapters.stores.sqlite import InlineRunner
from clarion.adapters.stores.sqlite import open_store as open_sqlite
from clarion.domain.guard import JobEntry
from clarion.domain.identity import Lane
from clarion.domain.notification import Stage
from clarion.domain.seal import Purpose
from clarion.errors import ProgramTooOld
from clarion.ports.catalog import ApiKey, Role
from clarion.ports.store import Store
from clarion.testing import factories as make
from clarion.testing.clock import ManualClock
from clarion.testing.contracts.pump import LEASE

TENANT = make.TENANT
HASH = f"sha256:{'0' * 64}"
KEY = ApiKey(key_id="key-1234", tenant_id=TENANT, secret_hash=HASH, actor="ada", role=Role.SENDER)
JOB = make.notification_job(1)
MESSAGING_JOB = make.messaging_job(1)
ADDRESS = make.address_version(1)


class Aside(msgspec.Struct, frozen=True):
    """A store and a way around it."""

    store: Store
    change: Callable[[str], Awaitable[object]]


@pytest.fixture(params=["sqlite", "postgresql"])
async def aside(request: pytest.FixtureRequest) -> AsyncIterator[Aside]:
    """A store with one row of each kind."""
    if request.param == "sqlite":
        path: Path = request.getfixturevalue("migrated_sqlite_path")

        async def change(statement: str) -> None:
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                assert other.execute(statement).rowcount > 0

        store: Store = await open_sqlite(f"sqlite:///{path}", clock=ManualClock(), runner=InlineRunner())
        await fill(store)
        yield Aside(store, change)
    else:
        url: str = request.getfixturevalue("migrated_postgres_url")
        connection = await asyncpg.connect(url)
        store = await open_postgres(url, clock=ManualClock())
        await fill(store)
        yield Aside(store, connection.execute)
        await connection.close()
    await store.close()


async def fill(store: Store) -> None:
    await store.ensure_tenant(TENANT, {(purpose, 1): b"wrapped" for purpose in Purpose})
    await store.put_api_key(KEY, actor="ada")
    await store.ensure_messaging_jobs(TENANT, [MESSAGING_JOB])
    await store.ensure_notification_jobs(TENANT, [JobEntry(job=JOB, scheduler=make.scheduler_of(JOB))])
    (address,) = await store.ensure_address_versions(TENANT, [ADDRESS])
    await store.put_people(TENANT, [make.person(1, address.record)])


READERS: dict[str, tuple[str, Callable[[Store], Awaitable[object]]]] = {
    "role": ("UPDATE api_key SET role = 'new'", lambda store: store.find_api_key(KEY.key_id)),
    "purpose": ("UPDATE tenant_key SET purpose = 'new' WHERE purpose = 'data'", lambda s: s.find_tenant_keys(TENANT)),
    "domain": (
        "UPDATE person SET domain = 'new'",
        lambda store: store.find_recipients(TENANT, [ADDRESS.recipient_id_hash]),
    ),
    "channel": (
        "UPDATE contact SET channel = 'new'",
        lambda store: store.find_recipients(TENANT, [ADDRESS.recipient_id_hash]),
    ),
    "kind": (
        "UPDATE messaging_job SET kind = 'new'",
        lambda store: store.ensure_messaging_jobs(TENANT, [MESSAGING_JOB]),
    ),
}


@pytest.mark.parametrize("statement, read", READERS.values(), ids=READERS)
async def test_who_reads_it_is_told_that_a_newer_program_wrote_it(
    aside: Aside, statement: str, read: Callable[[Store], Awaitable[object]]
) -> None:
    await read(aside.store)
    await aside.change(statement)
    with pytest.raises(ProgramTooOld, match=r"'new', which this program does not know: a newer program wrote it"):
        await read(aside.store)


@pytest.mark.parametrize("column", ["lane", "stage"])
async def test_work_of_an_unknown_lane_or_stage_is_left_to_who_knows_it(aside: Aside, column: str) -> None:
    await aside.change(f"UPDATE notification_scheduler SET {column} = 'new'")  # noqa: S608  one of two words above
    for stage in Stage:
        assert await aside.store.claim_stage(stage, lanes=tuple(Lane), limit=10, lease=LEASE) == []

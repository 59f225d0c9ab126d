"""A value of a list that has grown since: said to be a newer program's, or left to it; nothing breaks over it.

The schema lists no channels, kinds, lanes, roles and the like, so a row of a newer program may hold one that this
program does not know.
"""

import re
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import get_args, get_type_hints

import asyncpg
import msgspec
import pytest

from clarion.adapters.stores.postgres import open_store as open_postgres
from clarion.adapters.stores.sqlite import InlineRunner
from clarion.adapters.stores.sqlite import open_store as open_sqlite
from clarion.domain.claim import LowMark
from clarion.domain.ensured import Outcome
from clarion.domain.fingerprint import Fingerprint
from clarion.domain.guard import JobEntry
from clarion.domain.identity import Lane
from clarion.domain.notification import Stage
from clarion.domain.seal import Purpose
from clarion.domain.setting import SettingChange
from clarion.domain.skip import SkipRule
from clarion.errors import ProgramTooOld
from clarion.ports.catalog import ApiKey, Role
from clarion.ports.store import Store
from clarion.testing import factories as make
from clarion.testing.clock import ManualClock
from clarion.testing.contracts.kind import KINDS, Kind
from clarion.testing.contracts.pump import LEASE

TENANT = make.TENANT
CHECKS = """
SELECT conrelid::regclass::text AS relation, conname AS name
FROM pg_constraint
WHERE contype = 'c' AND conislocal AND coninhcount = 0 AND connamespace = 'public'::regnamespace
"""
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
HASH = f"sha256:{'0' * 64}"
KEY = ApiKey(key_id="key-1234", tenant_id=TENANT, secret_hash=HASH, actor="ada", role=Role.SENDER)
JOB = make.notification_job(1)
MESSAGING_JOB = make.messaging_job(1)
ADDRESS = make.address_version(1)


class Aside(msgspec.Struct, frozen=True):
    """A store and a way around it."""

    store: Store
    change: Callable[[str], Awaitable[object]]
    change_unchecked: Callable[[str], Awaitable[object]]


@pytest.fixture(params=["sqlite", "postgresql"])
async def aside(request: pytest.FixtureRequest) -> AsyncIterator[Aside]:
    """A store with one row of each kind."""
    if request.param == "sqlite":
        path: Path = request.getfixturevalue("migrated_sqlite_path")

        async def change(statement: str) -> None:
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                assert other.execute(statement).rowcount > 0

        async def change_unchecked(statement: str) -> None:
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("PRAGMA ignore_check_constraints = ON")  # a newer schema has other ones
                assert other.execute(statement).rowcount == 1

        store: Store = await open_sqlite(f"sqlite:///{path}", clock=ManualClock(), runner=InlineRunner())
        await fill(store)
        yield Aside(store, change, change_unchecked)
    else:
        url: str = request.getfixturevalue("migrated_postgres_url")
        connection = await asyncpg.connect(url)
        store = await open_postgres(url, clock=ManualClock())

        async def change_in_a_newer_schema(statement: str) -> None:
            for row in await connection.fetch(CHECKS):
                await connection.execute(f"ALTER TABLE {row['relation']} DROP CONSTRAINT {row['name']}")
            assert await connection.execute(statement) == "UPDATE 1"

        await fill(store)
        yield Aside(store, connection.execute, change_in_a_newer_schema)
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
}


@pytest.mark.parametrize("statement, read", READERS.values(), ids=READERS)
async def test_who_reads_it_is_told_that_a_newer_program_wrote_it(
    aside: Aside, statement: str, read: Callable[[Store], Awaitable[object]]
) -> None:
    await read(aside.store)
    await aside.change(statement)
    with pytest.raises(ProgramTooOld, match=r"'new', which this program does not know: a newer program wrote it"):
        await read(aside.store)


@pytest.mark.parametrize("name, value", [("channels", '["sms", "new"]'), ("recipients", '[{"new": "x"}]')])
async def test_who_reads_a_setting_of_a_newer_program_is_told_so(aside: Aside, name: str, value: str) -> None:
    await aside.store.put_setting(TENANT, "welcome", None, SettingChange(enabled=False), actor="ada")
    await aside.change(f"UPDATE type_setting SET {name} = '{value}'")  # noqa: S608  our own words
    asked = (TENANT, "welcome", None)
    for read in (aside.store.find_settings([asked]), aside.store.list_settings(TENANT, limit=1)):
        with pytest.raises(ProgramTooOld, match=r'"new".*, which this program does not know: a newer program wrote it'):
            await read


async def test_a_rule_of_a_newer_program_is_read_as_another_rule(aside: Aside) -> None:
    """Nothing is decided by it: it only tells people and programs why something was not sent."""
    await aside.change("UPDATE notification_scheduler SET rule = 'quiet_hours', status = 'Skipped', due_at = NULL")
    timeline = await aside.store.find_job_timeline(TENANT, JOB.guid)
    assert timeline is not None
    assert timeline.scheduler is not None
    assert timeline.scheduler.rule is SkipRule.OTHER


@pytest.mark.parametrize("column", ["lane", "stage"])
async def test_work_of_an_unknown_lane_or_stage_is_left_to_who_knows_it(aside: Aside, column: str) -> None:
    await aside.change(f"UPDATE notification_scheduler SET {column} = 'new'")  # noqa: S608  one of two words above
    for stage in Stage:
        assert await aside.store.claim_stage(stage, lanes=tuple(Lane), limit=10, lease=LEASE) == []


async def test_messages_of_an_unknown_lane_are_left_to_who_knows_it_and_stop_no_others(aside: Aside) -> None:
    (address,) = await aside.store.ensure_address_versions(TENANT, [ADDRESS])
    for number, lane in ((2, Lane.NORMAL), (3, Lane.BULK)):
        item = make.outgoing_item(JOB, address.record, attempt_no=number, lane=lane, route="sms")
        await aside.store.ensure_outgoing_messages(TENANT, [item])
    await aside.change("UPDATE flow SET lane = 'new' WHERE lane = 'bulk'")
    found = await aside.store.discover_flows(routes=("sms",), lows={})
    assert [head.lane for head in found.heads] == [Lane.NORMAL]
    (known,) = found.heads
    unknown = await aside.store.discover_flows(
        routes=("sms",), lows={known.flow_id + 1: LowMark(due_at=LONG_AGO, id=0)}
    )
    assert unknown == found


def _columns_that_grow() -> Iterator[tuple[Kind, str, str]]:
    """Yield every column of a record that names one of a list, or the algorithm of a hash, and what may come."""
    for kind in KINDS:
        for name, hint in get_type_hints(kind.record).items():
            types = [one for one in (hint, *get_args(hint)) if isinstance(one, type)]
            if name in kind.key_fields:
                continue  # nobody here can ask for it
            if Fingerprint in types:
                yield kind, name, "h9:00"
            elif any(issubclass(one, Enum) and one is not SkipRule for one in types):
                yield kind, name, "new"


COLUMNS = tuple(_columns_that_grow())


def table_of(kind: Kind) -> str:
    return re.sub("(?<!^)(?=[A-Z])", "_", kind.record.__name__).lower()


@pytest.mark.parametrize("kind, name, value", COLUMNS, ids=[f"{kind}-{name}" for kind, name, _ in COLUMNS])
async def test_in_a_set_a_row_that_a_newer_program_wrote_withholds_its_own_item_only(
    aside: Aside, kind: Kind, name: str, value: str
) -> None:
    """The others are made, found and compared as ever; the row itself is left as it is, and no case is opened."""
    stored = await kind.ensure(aside.store, TENANT, [kind.make(n) for n in (11, 12, 13, 14)])
    await aside.change_unchecked(
        f"UPDATE {table_of(kind)} SET {name} = '{value}' WHERE id = {stored[1].record.id}"  # noqa: S608  our own names
    )
    asked = [kind.make(n) for n in (15, 14, 12, 13, 12, 11, 16)]
    answers = await kind.ensure(aside.store, TENANT, asked)
    created, found, newer = Outcome.CREATED, Outcome.FOUND, Outcome.NEWER
    assert [answer.outcome for answer in answers] == [created, found, newer, found, newer, found, created]
    assert [answer.record.key for answer in answers] == [item.key for item in asked]
    assert not answers[2].proceeds
    assert await aside.store.list_support_cases(TENANT) == []
    again = await kind.ensure(aside.store, TENANT, asked)
    assert [answer.outcome for answer in again] == [found, found, newer, found, newer, found, found]


@pytest.mark.parametrize("name", ["status", "channel"])
async def test_so_does_an_outgoing_message_of_an_unknown_state_or_channel(aside: Aside, name: str) -> None:
    versions = await aside.store.ensure_address_versions(TENANT, [make.address_version(n) for n in range(11, 16)])
    items = make.outgoing_items(JOB, [version.record for version in versions])
    stored = await aside.store.ensure_outgoing_messages(TENANT, items[:3])
    await aside.change_unchecked(
        f"UPDATE outgoing_message SET {name} = 'new' WHERE id = {stored[1].record.id}"  # noqa: S608  our own names
    )
    answers = await aside.store.ensure_outgoing_messages(TENANT, [*items[3:], *items[:3]])
    created, found, newer = Outcome.CREATED, Outcome.FOUND, Outcome.NEWER
    assert [answer.outcome for answer in answers] == [created, created, found, newer, found]
    assert [answer.record.rk for answer in answers[2:]] == [answer.record.rk for answer in stored]
    assert await aside.store.list_support_cases(TENANT) == []


async def test_so_does_a_guard_of_an_unknown_hash(aside: Aside) -> None:
    entries = [make.guarded_entry(f"key-{n}") for n in (1, 2, 3)]
    await aside.store.ensure_notification_jobs(TENANT, entries[:2])
    await aside.change(
        "UPDATE idempotency_guard SET payload_hash = 'k9:00' "  # noqa: S608  a hash of our own
        f"WHERE key_hash = '{entries[1].guard.key_hash if entries[1].guard else ''}'"
    )
    answers = await aside.store.ensure_notification_jobs(TENANT, entries)
    assert [answer.outcome for answer in answers] == [Outcome.FOUND, Outcome.NEWER, Outcome.CREATED]

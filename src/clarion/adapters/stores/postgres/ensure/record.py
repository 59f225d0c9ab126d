"""Ensures of records that stand by themselves: insert what is absent, read, compare.

One table a record kind, each with its two statements; occurrences may also be moved by an ensure, so theirs has a
third. Writes the record's own table and `support_case`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Generic, TypeVar
from uuid import UUID

import asyncpg
import msgspec

from clarion.adapters.stores import answer
from clarion.adapters.stores.answer import Key
from clarion.adapters.stores.postgres import codec
from clarion.adapters.stores.postgres.session import Overtaken
from clarion.adapters.stores.query import Query, load
from clarion.domain.address import AddressVersion
from clarion.domain.automation import AutomationJob, AutomationScheduler
from clarion.domain.ensured import Ensured
from clarion.domain.inbox import UserMessage
from clarion.domain.messaging import MessagingJob
from clarion.domain.notification import NotificationJob, NotificationScheduler
from clarion.domain.support import SupportCase
from clarion.errors import BrokenInvariant
from clarion.ports.ensure import NO_HOLDS, Holds

if TYPE_CHECKING:
    from clarion.adapters.stores.postgres.session import Connection

_AUTOMATION: Final = load(__package__, "automation.sql")
_NOTIFICATION: Final = load(__package__, "notification.sql")
_MESSAGING: Final = load(__package__, "messaging.sql")
_SUPPORT: Final = load(__package__, "support.sql")

R = TypeVar(
    "R",
    AddressVersion,
    AutomationJob,
    AutomationScheduler,
    MessagingJob,
    NotificationJob,
    NotificationScheduler,
    UserMessage,
)


class Table(msgspec.Struct, Generic[R], frozen=True, kw_only=True):
    """How the records of one kind are inserted and read; the insert returns the columns of the record's key."""

    insert: Query
    select: Query
    read: Callable[[asyncpg.Record], R]


AUTOMATION_SCHEDULERS: Final = Table[AutomationScheduler](
    insert=_AUTOMATION["insert_automation_schedulers"],
    select=_AUTOMATION["read_automation_schedulers"],
    read=codec.reader(AutomationScheduler),
)
AUTOMATION_JOBS: Final = Table[AutomationJob](
    insert=_AUTOMATION["insert_automation_jobs"],
    select=_AUTOMATION["read_automation_jobs"],
    read=codec.reader(AutomationJob),
)
NOTIFICATION_JOBS: Final = Table[NotificationJob](
    insert=_NOTIFICATION["insert_notification_jobs"],
    select=_NOTIFICATION["read_notification_jobs"],
    read=codec.reader(NotificationJob),
)
NOTIFICATION_SCHEDULERS: Final = Table[NotificationScheduler](
    insert=_NOTIFICATION["insert_notification_schedulers"],
    select=_NOTIFICATION["read_notification_schedulers"],
    read=codec.reader(NotificationScheduler),
)
MESSAGING_JOBS: Final = Table[MessagingJob](
    insert=_MESSAGING["insert_messaging_jobs"],
    select=_MESSAGING["read_messaging_jobs"],
    read=codec.reader(MessagingJob),
)
ADDRESS_VERSIONS: Final = Table[AddressVersion](
    insert=_MESSAGING["insert_address_versions"],
    select=_MESSAGING["read_address_versions"],
    read=codec.reader(AddressVersion),
)
USER_MESSAGES: Final = Table[UserMessage](
    insert=_MESSAGING["insert_user_messages"],
    select=_MESSAGING["read_user_messages"],
    read=codec.reader(UserMessage),
)


async def ensure(connection: "Connection", tenant_id: str, items: Sequence[R], *, table: Table[R]) -> list[Ensured[R]]:
    """Insert what is absent and compare what is there."""
    created = await insert_absent(connection, tenant_id, items, table=table)
    stored = await read_stored(connection, tenant_id, items, table=table)
    require_stored(items, stored)
    verdicts = answer.compare(tenant_id, items, stored=stored, created=created)
    await write_cases(connection, tenant_id, verdicts.cases)
    return verdicts.answers


async def ensure_user_messages(
    connection: "Connection", tenant_id: str, items: Sequence[UserMessage], *, holds: Holds
) -> list[Ensured[UserMessage]]:
    """Insert the inbox rows that are absent and whose hold stands, and compare those that are there."""
    created = await insert_absent(connection, tenant_id, items, table=USER_MESSAGES, holds=holds)
    stored = await read_stored(connection, tenant_id, items, table=USER_MESSAGES)
    verdicts = answer.compare_held(tenant_id, items, holds=holds, stored=stored, created=created)
    await write_cases(connection, tenant_id, verdicts.cases)
    return verdicts.answers


async def ensure_automation_schedulers(
    connection: "Connection", tenant_id: str, items: Sequence[AutomationScheduler]
) -> list[Ensured[AutomationScheduler]]:
    """Insert the occurrences that are absent; wake or move those that are there and want it."""
    created = await insert_absent(connection, tenant_id, items, table=AUTOMATION_SCHEDULERS)
    stored = await read_stored(connection, tenant_id, items, table=AUTOMATION_SCHEDULERS)
    require_stored(items, stored)
    verdicts = answer.settle(tenant_id, items, stored=stored, created=created)
    if verdicts.changed:
        rows = ({**codec.fields(row), "read_version": stored[row.key].version} for row in verdicts.changed)
        query = _AUTOMATION["move_automation_schedulers"]
        moved = await connection.fetch(query.sql, tenant_id, codec.as_json(rows))
        if len(moved) < len(verdicts.changed):
            raise Overtaken
    await write_cases(connection, tenant_id, verdicts.cases)
    return verdicts.answers


async def insert_absent(
    connection: "Connection", tenant_id: str, items: Iterable[R], *, table: Table[R], holds: Holds = NO_HOLDS
) -> set[Key]:
    """Insert the first record of each key that is not there, and return the keys that were."""
    first = {item.key: item for item in reversed(list(items))}
    rows = [codec.fields(item) for item in first.values()]
    for key, row in zip(first, rows, strict=True):
        if key in holds:
            row["hold_id"], row["hold_version"] = holds[key]
    made = await connection.fetch(table.insert.sql, tenant_id, codec.as_json(rows))
    return {tuple(map(str, row)) for row in made}


async def read_stored(connection: "Connection", tenant_id: str, items: Iterable[R], *, table: Table[R]) -> dict[Key, R]:
    """Read the rows of these records' keys, as they are after the insert."""
    one_of_each = {item.key: item for item in items}
    rows = await connection.fetch(table.select.sql, tenant_id, codec.parameter(one_of_each.values()))
    return {record.key: record for record in map(table.read, rows)}


def require_stored(items: Iterable[R], stored: dict[Key, R]) -> None:
    """Refuse to answer for a row that was neither inserted nor there: another unique key stood in its way."""
    for item in items:
        if item.key not in stored:
            raise BrokenInvariant(f"a {type(item).__name__} shares its id with one of another key")


async def write_cases(connection: "Connection", tenant_id: str, cases: Sequence[SupportCase]) -> None:
    """Open the cases of one tenant, or see them once more."""
    await write_cases_of_tenants(connection, [(tenant_id, case) for case in cases])


async def write_cases_of_tenants(connection: "Connection", cases: Sequence[tuple[str, SupportCase]]) -> None:
    """Open cases, or see them once more; one set may come upon a case several times."""
    if not cases:
        return
    seen: dict[tuple[str, UUID], SupportCase] = {}
    for tenant_id, case in cases:
        known = seen.get((tenant_id, case.case_id))
        before = 0 if known is None else known.seen_count
        seen[tenant_id, case.case_id] = msgspec.structs.replace(case, seen_count=before + case.seen_count)
    rows = ({"tenant_id": tenant_id, **codec.fields(case)} for (tenant_id, _), case in seen.items())
    await connection.execute(_SUPPORT["write_support_cases"].sql, codec.as_json(rows))

"""Ensures of records that stand by themselves: insert what is absent, read, compare.

One table of record kinds, each with its two statements; occurrences may also be moved by an ensure, so theirs has a
third. Writes the record's own table and `support_case`.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Generic, TypeVar

import msgspec

from clarion.adapters.stores import answer
from clarion.adapters.stores.answer import Key
from clarion.adapters.stores.query import Query, load
from clarion.adapters.stores.sqlite import codec
from clarion.adapters.stores.sqlite.session import Transaction
from clarion.domain.address import AddressVersion
from clarion.domain.automation import AutomationJob, AutomationScheduler
from clarion.domain.ensured import Ensured
from clarion.domain.inbox import UserMessage
from clarion.domain.messaging import MessagingJob
from clarion.domain.notification import NotificationJob, NotificationScheduler
from clarion.domain.support import SupportCase
from clarion.ports.ensure import NO_HOLDS, Holds

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
    """How the records of one kind are inserted and read; the insert returns the ids of the rows that it made."""

    kind: type[R]
    insert: Query
    select: Query


AUTOMATION_SCHEDULERS: Final = Table(
    kind=AutomationScheduler,
    insert=_AUTOMATION["insert_automation_schedulers"],
    select=_AUTOMATION["read_automation_schedulers"],
)
AUTOMATION_JOBS: Final = Table(
    kind=AutomationJob, insert=_AUTOMATION["insert_automation_jobs"], select=_AUTOMATION["read_automation_jobs"]
)
NOTIFICATION_JOBS: Final = Table(
    kind=NotificationJob,
    insert=_NOTIFICATION["insert_notification_jobs"],
    select=_NOTIFICATION["read_notification_jobs"],
)
NOTIFICATION_SCHEDULERS: Final = Table(
    kind=NotificationScheduler,
    insert=_NOTIFICATION["insert_notification_schedulers"],
    select=_NOTIFICATION["read_notification_schedulers"],
)
MESSAGING_JOBS: Final = Table(
    kind=MessagingJob, insert=_MESSAGING["insert_messaging_jobs"], select=_MESSAGING["read_messaging_jobs"]
)
ADDRESS_VERSIONS: Final = Table(
    kind=AddressVersion, insert=_MESSAGING["insert_address_versions"], select=_MESSAGING["read_address_versions"]
)
USER_MESSAGES: Final = Table(
    kind=UserMessage, insert=_MESSAGING["insert_user_messages"], select=_MESSAGING["read_user_messages"]
)


def ensure(transaction: Transaction, tenant_id: str, items: Sequence[R], *, table: Table[R]) -> list[Ensured[R]]:
    """Insert what is absent and compare what is there."""
    created, stored = insert_and_read(transaction, tenant_id, items, table=table)
    verdicts = answer.compare(tenant_id, items, stored=stored, created=created)
    write_cases(transaction, tenant_id, verdicts.cases)
    return verdicts.answers


def ensure_user_messages(
    transaction: Transaction, tenant_id: str, items: Sequence[UserMessage], *, holds: Holds = NO_HOLDS
) -> list[Ensured[UserMessage]]:
    """Insert the inbox rows that are absent and whose hold stands, and compare those that are there."""
    created, stored = insert_and_read(transaction, tenant_id, items, table=USER_MESSAGES, holds=holds)
    verdicts = answer.compare_held(tenant_id, items, holds=holds, stored=stored, created=created)
    write_cases(transaction, tenant_id, verdicts.cases)
    return verdicts.answers


def ensure_automation_schedulers(
    transaction: Transaction, tenant_id: str, items: Sequence[AutomationScheduler]
) -> list[Ensured[AutomationScheduler]]:
    """Insert the occurrences that are absent; wake or move those that are there and want it."""
    created, stored = insert_and_read(transaction, tenant_id, items, table=AUTOMATION_SCHEDULERS)
    verdicts = answer.settle(tenant_id, items, stored=stored, created=created)
    if verdicts.changed:
        query = _AUTOMATION["move_automation_schedulers"]
        transaction.rows(query, tenant_id=tenant_id, items=codec.parameter(verdicts.changed))
    write_cases(transaction, tenant_id, verdicts.cases)
    return verdicts.answers


def insert_and_read(
    transaction: Transaction, tenant_id: str, items: Sequence[R], *, table: Table[R], holds: Holds = NO_HOLDS
) -> tuple[set[Key], dict[Key, R]]:
    """Insert the records that are absent; return the keys that were, and the rows of all of them."""
    held = codec.as_json([{**codec.fields(item), "hold": holds.get(item.key)} for item in items]) if holds else None
    given = held or codec.parameter(items)
    made = {row[0] for row in transaction.rows(table.insert, tenant_id=tenant_id, items=given)}
    found = transaction.records(table.kind, table.select, tenant_id=tenant_id, items=given)
    return {row.key for row in found if row.id in made}, {row.key: row for row in found}


def insert_absent(transaction: Transaction, tenant_id: str, items: Iterable[R], *, table: Table[R]) -> None:
    """Insert the records that are absent, where nobody asks which."""
    transaction.rows(table.insert, tenant_id=tenant_id, items=codec.parameter(items))


def read_stored(transaction: Transaction, tenant_id: str, items: Iterable[R], *, table: Table[R]) -> dict[Key, R]:
    """Read the rows of these records' keys."""
    found = transaction.records(table.kind, table.select, tenant_id=tenant_id, items=codec.parameter(items))
    return {row.key: row for row in found}


def write_cases(transaction: Transaction, tenant_id: str, cases: Sequence[SupportCase]) -> None:
    """Open the cases of conflicts, or see them once more."""
    if cases:
        transaction.rows(_SUPPORT["write_support_cases"], tenant_id=tenant_id, items=codec.parameter(cases))


def open_support_cases(transaction: Transaction, tenant_id: str, cases: Sequence[SupportCase]) -> list[None]:
    """Open cases that were found outside of any ensure."""
    write_cases(transaction, tenant_id, cases)
    return []

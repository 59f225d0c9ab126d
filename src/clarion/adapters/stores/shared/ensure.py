"""How an ensure works: insert what is absent, read in a second statement, compare, open cases of conflicts.

A `Table` names the two statements of one kind of record; which records there are stands in `automation`, `messaging`,
`event` and `job`. The verdicts are in `answer`. Writes the table that it is given, and `support_case`.
"""

from collections.abc import Collection, Sequence
from typing import Generic, TypeAlias, TypeVar

import msgspec

from clarion.adapters.stores.shared import answer
from clarion.adapters.stores.shared.answer import Key
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.support import write_cases
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain.address import AddressVersion
from clarion.domain.automation import AutomationJob, AutomationScheduler
from clarion.domain.ensured import Ensured
from clarion.domain.entity_event import EntityEvent
from clarion.domain.inbox import UserMessage
from clarion.domain.messaging import MessagingJob
from clarion.domain.notification import NotificationJob, NotificationScheduler
from clarion.domain.person import PersonVersion
from clarion.errors import BrokenInvariant, ProgramTooOld

R = TypeVar(
    "R",
    AddressVersion,
    AutomationJob,
    AutomationScheduler,
    EntityEvent,
    MessagingJob,
    NotificationJob,
    NotificationScheduler,
    PersonVersion,
    UserMessage,
)

Stored: TypeAlias = dict[Key, R | None]
"""Rows by their keys; None for one that is there and that only a newer program can read."""


class Table(msgspec.Struct, Generic[R], frozen=True):
    """The records of one kind, inserted by the statement `insert_<name>` and read by `read_<name>`."""

    kind: type[R]
    sql: Statements
    name: str


class _Made(msgspec.Struct, frozen=True):
    id: int


async def ensure(transaction: Transaction, tenant_id: str, items: Sequence[R], table: Table[R]) -> list[Ensured[R]]:
    """Insert what is absent and compare what is there."""
    created, stored = await insert_and_read(transaction, tenant_id, items, table)
    verdicts = answer.compare(tenant_id, items, stored=stored, created=created)
    await write_cases(transaction, tenant_id, verdicts.cases)
    return verdicts.answers


async def insert_and_read(
    transaction: Transaction, tenant_id: str, items: Sequence[R], table: Table[R]
) -> tuple[set[Key], Stored[R]]:
    """Insert the records that are absent; return the keys that were, and the stored rows of all of them."""
    made = await insert_absent(transaction, tenant_id, items, table)
    stored = await read_stored(transaction, tenant_id, items, table)
    require_stored(items, stored)
    return keys_of(made, stored), stored


async def insert_absent(transaction: Transaction, tenant_id: str, items: Sequence[R], table: Table[R]) -> set[int]:
    """Insert the first record of each key that is not there, and return the ids of the new rows."""
    insert = table.sql[f"insert_{table.name}"]
    return {row.id for row in await transaction.fetch(_Made, insert, tenant_id=tenant_id, items=first_of_each(items))}


async def read_stored(transaction: Transaction, tenant_id: str, items: Sequence[R], table: Table[R]) -> Stored[R]:
    """Read the rows of these records' keys; a statement of its own, whose snapshot holds what a winner committed.

    A row that holds a value which this program does not know is looked for by halves, so that it is left to a newer
    program and the others of its set are not.
    """
    asked = first_of_each(items)
    read = table.sql[f"read_{table.name}"]
    try:
        rows = await transaction.fetch(table.kind, read, tenant_id=tenant_id, items=asked)
    except ProgramTooOld:
        if len(asked) == 1:
            return {asked[0].key: None}
        half = len(asked) // 2
        stored = await read_stored(transaction, tenant_id, asked[:half], table)
        return stored | await read_stored(transaction, tenant_id, asked[half:], table)
    return {row.key: row for row in rows}


def keys_of(made: Collection[int], stored: Stored[R]) -> set[Key]:
    """Give the keys of the rows that were just made."""
    return {key for key, row in stored.items() if row is not None and row.id in made}


def first_of_each(items: Sequence[R]) -> list[R]:
    """Leave out items whose key an earlier one has; keep the order."""
    first: dict[Key, R] = {}
    for item in items:
        first.setdefault(item.key, item)
    return list(first.values())


def require_stored(items: Sequence[R], stored: Stored[R]) -> None:
    """Refuse to answer for a row that was neither inserted nor there: another unique key stood in its way."""
    for item in items:
        if item.key not in stored:
            raise BrokenInvariant(f"a {type(item).__name__} shares its id with one of another key")

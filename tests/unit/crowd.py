"""Many people in a group, put past the ports: a set of thousands in a fraction of a second; and workers that die."""

import hashlib
from collections.abc import Callable, Iterable
from typing import Any, TypeVar
from uuid import UUID

from clarion.adapters.stores.shared.store import Urgency
from clarion.adapters.stores.sqlite.core import Work
from clarion.testing.store import SqliteInMemory
from tests.integration.sqlite_look import connection_of
from tests.unit.pipeline_line import TENANT

T = TypeVar("T")

EVERYBODY = UUID("6f1c2c7e-0000-4000-8000-0000000000ee")

PERSON = "INSERT INTO person (tenant_id, recipient_id_hash, domain, person_id, profile) VALUES (?, ?, 'user', ?, x'')"
ADDRESS = """
INSERT INTO address_version (
  id, tenant_id, recipient_id_hash, channel, serial, key_hash, destination_index, ciphertext, correlation_id, created_at
) VALUES (?, ?, ?, 'email', 1, ?, ?, x'', 'c', 0)
"""
CONTACT = "INSERT INTO contact (tenant_id, recipient_id_hash, channel, address_id) VALUES (?, ?, 'email', ?)"
MEMBER = "INSERT INTO group_member (tenant_id, group_guid, recipient_id_hash) VALUES (?, ?, ?)"

ID_BEGINS = 1000


def hash_of(n: int) -> str:
    """The n-th person's; in no order."""
    return hashlib.sha256(str(n).encode()).hexdigest()[:32]


def gather(store: SqliteInMemory, numbers: Iterable[int], *, group: UUID = EVERYBODY) -> None:
    """Put people with a mail address into a group; every tenth has none."""
    people = [(n, hash_of(n)) for n in numbers]
    reached = [(ID_BEGINS + n, one) for n, one in people if n % 10]
    connection = connection_of(store)
    connection.executemany(PERSON, [(TENANT, one, f"c{n}") for n, one in people])
    connection.executemany(ADDRESS, [(n, TENANT, one, one, one) for n, one in reached])
    connection.executemany(CONTACT, [(TENANT, one, n) for n, one in reached])
    join(store, (n for n, _ in people), group=group)


def join(store: SqliteInMemory, numbers: Iterable[int], *, group: UUID = EVERYBODY) -> None:
    """Put people into a group."""
    connection_of(store).executemany(MEMBER, [(TENANT, str(group), hash_of(n)) for n in numbers])


def leave(store: SqliteInMemory, numbers: Iterable[int], *, group: UUID = EVERYBODY) -> None:
    """Take people out of a group."""
    sql = "DELETE FROM group_member WHERE tenant_id = ? AND group_guid = ? AND recipient_id_hash = ?"
    connection_of(store).executemany(sql, [(TENANT, str(group), hash_of(n)) for n in numbers])


class Killed(BaseException):
    """The process is gone: nothing of it runs any more, not even its handlers of errors."""


class _Statements:
    """A transaction whose every statement has a moment before it."""

    def __init__(self, transaction: Any, moment: Callable[[], None]) -> None:
        self._transaction, self._moment = transaction, moment

    def __getattr__(self, name: str) -> Any:
        if name in ("fetch", "execute", "rows", "table", "records"):
            self._moment()
        return getattr(self._transaction, name)


class Mortal(SqliteInMemory):
    """A store whose caller is killed before a statement, or after a transaction that is committed."""

    asked = 0
    killed_at: int | None = None

    def die_at(self, n: int | None) -> None:
        """Count moments from here."""
        self.asked, self.killed_at = 0, n

    async def read(self, work: Work[T]) -> T:
        """Ask, and die if it is time."""
        return await super().read(lambda one: work(_Statements(one, self.moment)))  # type: ignore[arg-type]

    async def write(self, work: Work[T], *, urgency: Urgency) -> T:
        """Do, and die in the middle or afterwards if it is time."""
        answer = await super().write(lambda one: work(_Statements(one, self.moment)), urgency=urgency)  # type: ignore[arg-type]
        self.moment()
        return answer

    def moment(self) -> None:
        """Let one more moment pass."""
        self.asked += 1
        if self.asked == self.killed_at:
            raise Killed


def rows_of(store: SqliteInMemory, sql: str) -> list[tuple[Any, ...]]:
    """Ask the database itself."""
    return connection_of(store).execute(sql).fetchall()

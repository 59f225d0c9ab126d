"""The memory store and the way around it."""

from datetime import datetime, timedelta

import msgspec

from clarion.domain.outgoing import DUE, LEASED, OutgoingMessage
from clarion.domain.support import SupportCase
from clarion.ports.catalog import AuditEntry
from clarion.testing.clock import ManualClock
from clarion.testing.contracts.harness import MOVED_AT, S
from clarion.testing.memory import MemoryStore
from clarion.testing.row import FlowCount, Key, QueueEntry


class MemoryHarness:
    """The memory store, whose tables are open to look into."""

    def __init__(self, tenant_id: str = "acme", clock: ManualClock | None = None) -> None:
        """Start with an empty store."""
        self.tenant_id = tenant_id
        self.clock = clock or ManualClock()
        self.store = MemoryStore(self.clock)

    async def now(self) -> datetime:
        """Read the clock."""
        return self.clock.now()

    async def elapse(self, by: timedelta) -> None:
        """Advance the clock."""
        self.clock.advance(by)

    async def overwrite(self, tenant_id: str, record: msgspec.Struct) -> None:
        """Replace the row in its dict."""
        rows = self.store.table(tenant_id, type(record))
        if _key(record) not in rows:
            raise KeyError(_key(record))
        rows[_key(record)] = record
        if isinstance(record, OutgoingMessage):
            entries = self.store.table(tenant_id, QueueEntry)
            due_at = MOVED_AT if record.status in DUE else None
            lease_until = MOVED_AT if record.status in LEASED else None
            entry = entries[record.pk, record.rk]
            entries[entry.key] = msgspec.structs.replace(entry, due_at=due_at, lease_until=lease_until)

    async def remove(self, tenant_id: str, record: msgspec.Struct) -> None:
        """Take the row out of its dict."""
        del self.store.table(tenant_id, type(record))[_key(record)]

    async def rows(self, tenant_id: str, kind: type[S]) -> list[S]:
        """Read the dict in the order of insertion."""
        if kind is FlowCount:
            return [row for row in self.store.flow_counts(tenant_id) if isinstance(row, kind)]
        return list(self.store.table(tenant_id, kind).values())


def _key(record: msgspec.Struct) -> Key:
    """Give the key that a row is kept under."""
    match record:
        case SupportCase():
            return (str(record.case_id),)
        case AuditEntry():
            return (str(record.seq),)
        case _:
            key: Key = getattr(record, "key", ())
            return key

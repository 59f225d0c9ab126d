"""The memory store as oracle: the same operations, put together by chance, come to the same on any other store.

What a store chooses by itself is left out of the comparison: ids, and instants where the engine has its own clock.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import Final

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clarion.domain.address import AddressVersion
from clarion.domain.guard import JobEntry
from clarion.domain.outgoing import DUE, LEASED, OutgoingMessage
from clarion.domain.support import SupportCase
from clarion.errors import InvalidInput
from clarion.ports.catalog import AuditEntry
from clarion.testing.clock import ManualClock
from clarion.testing.contracts.harness import MOVED_AT, RECORDS, S, StoreHarness, by_key
from clarion.testing.contracts.holding import CLAIMED
from clarion.testing.contracts.operation import LATER, OPERATIONS, Operation
from clarion.testing.factories import (
    address_version,
    automation_scheduler,
    messaging_job,
    notification_job,
    notification_scheduler,
)
from clarion.testing.memory import FlowCount, Key, MemoryStore, QueueEntry

_TENANTS: Final = count(1)
"""Every example has a tenant of its own, so that the store behind a test need not be emptied between examples."""

_STORE_TIMES: Final = ("due_at", "first_seen_at", "last_seen_at")


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


class OracleContract:
    """Whatever is done in whatever order, the store answers and holds what the memory store does."""

    # Few and always the same examples: the suite runs over several stores at every commit. A method that is inherited
    # runs on several classes, and the harness outlives an example on purpose: each example has its own tenant.
    @settings(
        max_examples=80,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.differing_executors, HealthCheck.function_scoped_fixture],
    )
    @given(operations=st.lists(OPERATIONS, min_size=8, max_size=30))
    async def test_any_operations_come_to_the_same_as_on_the_memory_store(
        self, harness: StoreHarness, operations: list[Operation]
    ) -> None:
        """Every answer, and every row at the end."""
        tenant_id = f"{harness.tenant_id}-{next(_TENANTS)}"
        oracle = MemoryHarness(tenant_id, harness.clock)
        for each in (oracle, harness):
            await _prepare(each, tenant_id)
        own_time = harness.clock is None
        for operation in operations:
            expected = await _answers(oracle, tenant_id, operation, own_time=own_time)
            assert await _answers(harness, tenant_id, operation, own_time=own_time) == expected, operation
        assert await _rows(harness, tenant_id, own_time=own_time) == await _rows(oracle, tenant_id, own_time=own_time)


async def _prepare(harness: StoreHarness, tenant_id: str) -> None:
    """Give a tenant an occurrence, and what outgoing rows stand on: a scheduler row that is claimed is among it."""
    store = harness.store
    await store.ensure_automation_schedulers(tenant_id, [automation_scheduler(1)])
    versions = [address_version(1), address_version(1, serial=2), address_version(2)]
    await store.ensure_address_versions(tenant_id, versions)
    await store.ensure_messaging_jobs(tenant_id, [messaging_job(1)])
    entry = JobEntry(job=notification_job(1), scheduler=notification_scheduler(1))
    await store.ensure_notification_jobs(tenant_id, [entry])
    (scheduler,) = await store.ensure_notification_schedulers(tenant_id, [notification_scheduler(1)])
    await harness.overwrite(tenant_id, msgspec.structs.replace(scheduler.record, **CLAIMED))


async def _answers(harness: StoreHarness, tenant_id: str, operation: Operation, *, own_time: bool) -> object:
    """Run an operation and give what it came to, comparably."""
    try:
        answers = await operation.run(harness, tenant_id)
    except InvalidInput as error:
        return error.code, error.field
    names = await _address_names(harness, tenant_id)
    return [
        (one.outcome, one.differing, one.case_id, _comparable(one.record, names=names, own_time=own_time))
        for one in answers
    ]


async def _rows(harness: StoreHarness, tenant_id: str, *, own_time: bool) -> Mapping[str, Sequence[object]]:
    """Read everything that a tenant has, comparably."""
    names = await _address_names(harness, tenant_id)
    rows: dict[str, Sequence[object]] = {}
    for kind in RECORDS:
        stored = by_key(await harness.rows(tenant_id, kind))
        rows[kind.__name__] = [_comparable(row, names=names, own_time=own_time) for row in stored]
    return rows


async def _address_names(harness: StoreHarness, tenant_id: str) -> Mapping[str, str]:
    """Name each address version by its key instead of its id."""
    return {str(row.id): "/".join(row.key) for row in await harness.rows(tenant_id, AddressVersion)}


def _comparable(row: msgspec.Struct, *, names: Mapping[str, str], own_time: bool) -> Mapping[str, object]:
    """Give a row's values without what its store chose."""
    values = {name: getattr(row, name) for name in row.__struct_fields__ if name != "id"}
    if "address_id" in values:
        values["address_id"] = names[str(values["address_id"])]
    if isinstance(row, SupportCase):
        details = msgspec.json.decode(row.details)
        for name, shown in details["differing"].items():
            if name == "address_id":
                details["differing"][name] = {side: names[number] for side, number in shown.items()}
        values["details"] = details
    for name in _STORE_TIMES if own_time else ():
        if isinstance(at := values.get(name), datetime) and at not in (LATER, MOVED_AT):
            values[name] = "by the store's clock"
    return values


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

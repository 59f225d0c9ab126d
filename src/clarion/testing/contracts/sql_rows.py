"""The way around an SQL store: rows read and overwritten by SQL made from the records' own fields.

It shares no code with the stores, so that a column which a store writes and reads wrongly in the same way still shows.
For any store whose tables have the names of docs/reference/schema.md; a harness derives from `SqlRows`.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache
from types import UnionType
from typing import Any, Protocol, get_args, get_type_hints
from uuid import UUID

import msgspec

from clarion.domain.entity_event import EntityHistory
from clarion.domain.fingerprint import Fingerprint
from clarion.domain.guard import IdempotencyGuard
from clarion.domain.outgoing import DUE, LEASED, OutgoingMessage
from clarion.domain.planning import ThresholdState
from clarion.domain.recipient import RecipientJob
from clarion.domain.support import SupportCase
from clarion.ports.catalog import AuditEntry
from clarion.testing.contracts.harness import MOVED_AT, S
from clarion.testing.row import (
    DeliveryAttempt,
    FlowCount,
    InboxCount,
    InboxState,
    InInbox,
    PlannedSetting,
    PlanSerial,
    QueueEntry,
    RepairRow,
    SourceDay,
    SourceRow,
    Transition,
    WebhookEvent,
)

Row = Mapping[str, object]

EPOCH_AT = datetime(1970, 1, 1, tzinfo=UTC)

# Rows whose fields are columns of more than one table.
QUEUE_ENTRIES = """
SELECT o.*, f.lane, f.route, f.broadcast, f.account AS pinned
FROM outgoing_message o JOIN flow f ON f.id = o.flow_id AND f.tenant_id = o.tenant_id
WHERE o.tenant_id = $1 ORDER BY o.id
"""
FLOW_COUNTS = """
SELECT f.lane, f.route, f.broadcast, f.account AS pinned, c.status, c.reason_class, c.n
FROM flow_count c JOIN flow f ON f.id = c.flow_id AND f.tenant_id = c.tenant_id
WHERE f.tenant_id = $1 ORDER BY f.id, c.status, c.reason_class
"""
JOINED: Mapping[type[msgspec.Struct], str] = {QueueEntry: QUEUE_ENTRIES, FlowCount: FLOW_COUNTS}

# By what a row is found and ordered, where that is not its id.
IDENTITY: Mapping[type[msgspec.Struct], tuple[str, ...]] = {
    SupportCase: ("case_id",),
    IdempotencyGuard: ("operation", "key_hash"),
    Transition: ("outgoing_id", "version"),
    DeliveryAttempt: ("outgoing_id", "attempt"),
    WebhookEvent: ("account", "event_id"),
    AuditEntry: ("seq",),
    InboxState: ("user_message_id",),
    InboxCount: ("recipient_id_hash",),
    RecipientJob: ("recipient_id_hash", "job_key"),
    SourceRow: ("source_type", "source"),
    SourceDay: ("source_type", "source", "name"),
    PlannedSetting: ("guid",),
    RepairRow: ("source_type",),
    PlanSerial: ("source_type", "source"),
    ThresholdState: ("setting", "source_type", "source", "metric", "scope"),
    EntityHistory: ("entity_guid", "kind", "subject", "cause"),
}

# Tables that are not named as the record is.
TABLES: Mapping[type[msgspec.Struct], str] = {
    AuditEntry: "audit_log",
    InInbox: "user_message",
    SourceRow: "source_record",
    PlannedSetting: "reminder_setting",
    RepairRow: "repair",
    PlanSerial: "source_plan",
}


class Database(Protocol):
    """A connection of the test's own, and how its engine spells values."""

    async def fetch(self, sql: str, parameters: Sequence[object]) -> list[Row]:
        """Run one statement with parameters $1, $2, … and commit it."""
        ...

    def written(self, value: object) -> object:
        """Give a plain value as the driver takes it."""
        ...


class SqlRows:
    """The three verbs of a store harness, over a database."""

    def __init__(self, database: Database) -> None:
        """Read and write over a connection that is not the store's, or over the store's where there is no other."""
        self._database = database

    async def overwrite(self, tenant_id: str, record: msgspec.Struct) -> None:
        """Give the stored row with this record's key all of the record's values."""
        values = {name: getattr(record, name) for name in record.__struct_fields__ if name != "id"}
        if isinstance(record, OutgoingMessage):
            values["due_at"] = MOVED_AT if record.status in DUE else None
            values["lease_until"] = MOVED_AT if record.status in LEASED else None
        where, parameters = self._where(tenant_id, record)
        changes = ", ".join(f"{name} = ${number}" for number, name in enumerate(values, len(parameters) + 1))
        parameters += [self._plain(value) for value in values.values()]
        # Names come from our own records; values are parameters.
        sql = f"UPDATE {_table(type(record))} SET {changes} WHERE {where} RETURNING 1 AS done"  # noqa: S608
        assert len(await self._database.fetch(sql, parameters)) == 1

    async def remove(self, tenant_id: str, record: msgspec.Struct) -> None:
        """Delete the stored row with this record's key."""
        where, parameters = self._where(tenant_id, record)
        sql = f"DELETE FROM {_table(type(record))} WHERE {where} RETURNING 1 AS done"  # noqa: S608  as above
        assert len(await self._database.fetch(sql, parameters)) == 1

    async def rows(self, tenant_id: str, kind: type[S]) -> list[S]:
        """Read all of a tenant's rows of one record type, by id or by key."""
        sql = JOINED.get(kind)
        if sql is None:
            names, order = ", ".join(kind.__struct_fields__), ", ".join(_identity(kind))
            sql = f"SELECT {names} FROM {_table(kind)} WHERE tenant_id = $1 ORDER BY {order}"  # noqa: S608
        return [_read(kind, row) for row in await self._database.fetch(sql, [tenant_id])]

    def _where(self, tenant_id: str, record: msgspec.Struct) -> tuple[str, list[object]]:
        """Find the one row of a record by what no test changes."""
        names = _identity(type(record))
        values = [getattr(record, name) for name in names]
        assert None not in values, "the record was never stored"
        where = " AND ".join(f"{name} = ${number}" for number, name in enumerate(("tenant_id", *names), 1))
        return where, [tenant_id, *(self._plain(value) for value in values)]

    def _plain(self, value: object) -> object:
        if isinstance(value, Fingerprint):
            return value.text
        return self._database.written(str(value) if isinstance(value, str) else value)


def _identity(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    return IDENTITY.get(kind, ("id",))


def _table(kind: type[msgspec.Struct]) -> str:
    return TABLES.get(kind) or re.sub("(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def _read(kind: type[S], row: Row) -> S:
    hints = _hints(kind)
    return kind(**{name: _value(hints[name], row[name]) for name in kind.__struct_fields__})


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    """Give the types of a record's fields, which take longer to find out than a row takes to read."""
    return get_type_hints(kind)


def _value(hint: Any, value: Any) -> object:  # noqa: ANN401  any type of a field, any value of a column
    """Read a column by the type of its field."""
    if value is None:
        return None
    if isinstance(hint, UnionType):
        (hint,) = (arg for arg in get_args(hint) if arg is not type(None))
    if hint is Fingerprint:
        return Fingerprint.stored(value)
    if hint is datetime and isinstance(value, int):
        return EPOCH_AT + timedelta(microseconds=value)
    if hint is date and isinstance(value, str):
        return date.fromisoformat(value)
    if hint is UUID:
        return UUID(str(value))
    return value if type(value) is hint else hint(value)

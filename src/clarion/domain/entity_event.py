"""Events: what happened to a thing, once each, and the lines of its history. Pure.

An event is accepted once, and handled by every post-processor that is registered. Its guid is its caller's, or derives
from its caller's key, or from the version of the source that it tells of.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, ClassVar, Final
from uuid import UUID

import msgspec

from clarion.domain import derived_id, key
from clarion.domain.machine import Cause, Machine, by
from clarion.domain.part import END
from clarion.domain.source import SourceChange, SourceRecord
from clarion.errors import InvalidInput

EVENT_DATA_BYTES_MAX: Final = 16 * 1024
"""As JSON, sealed in the event's row. Whoever has more to tell stores it as a source and names that."""


EventType = Annotated[str, msgspec.Meta(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*" + END)]
"""The kind of an event, as the table of mappings and paths write it."""


class EventStatus(StrEnum):
    """How far the handling of an event has come."""

    READY = "Ready"
    PROCESSING = "Processing"
    DONE = "Done"
    FAILED = "Failed"


ENTITY_EVENT: Final = Machine(
    name="EntityEvent",
    initial=frozenset({EventStatus.READY}),
    table={
        EventStatus.READY: {EventStatus.PROCESSING: by(Cause.CLAIM)},
        EventStatus.PROCESSING: {
            EventStatus.DONE: by(Cause.RECORD),
            EventStatus.READY: by(Cause.RECORD, Cause.RESCUE, note="a retry, or the lease ran out"),
            EventStatus.FAILED: by(Cause.RECORD, Cause.RESCUE, note="a permanent error, or every worker was lost"),
        },
        EventStatus.DONE: {},
        EventStatus.FAILED: {EventStatus.READY: by(Cause.AUDITED, note="a person has it handled again")},
    },
)


class EventData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an event tells beside its type, as templates merge it in, and what they read of its entity.

    `occurred_at` is as its teller gave it, in UTC; who gave none is not held to the time at which it was told first.
    """

    data: Mapping[str, object] = {}
    entity: Mapping[str, object] = {}
    occurred_at: datetime | None = None


class EntityEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened to an entity; field names are column names. `data` is sealed.

    `source_type` and `source` name the source that it tells of, where it tells of one.
    """

    GIVEN: ClassVar[tuple[str, ...]] = (
        *("event_type", "entity_type", "entity_guid", "source_type", "source", "business_unit", "data_hash"),
    )

    partition_key: str
    row_key: str
    event_guid: UUID
    event_type: str
    entity_type: str
    entity_guid: UUID
    occurred_at: datetime
    source_type: str | None = None
    source: str | None = None
    source_version: int | None = None
    business_unit: UUID | None = None
    data: bytes | None = None
    data_hash: str
    actor: str | None = None
    status: EventStatus = EventStatus.READY
    version: int = 1
    due_at: datetime | None = None
    lease_until: datetime | None = None
    retry_count: int = 0
    rescue_count: int = 0
    reason: str | None = None
    metrics: str | None = None
    correlation_id: str
    traceparent: str | None = None
    id: int | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What is unique within the tenant: an event is one event, whatever it says of itself the second time."""
        return (str(self.event_guid),)


def change_event(
    tenant_id: str, source: SourceRecord, change: SourceChange, *, at: datetime, actor: str, correlation_id: str
) -> EntityEvent:
    """Make the event that tells of one change of a source: `{source_type}.created`, `.changed` or `.removed`."""
    guid = derived_id.source_event(
        tenant_id=tenant_id, source_type=source.source_type, source=source.source, row_version=source.row_version
    )
    return EntityEvent(
        partition_key=key.entity_event_pk(entity_type=source.source_type, entity_guid=source.entity_guid),
        row_key=key.entity_event_rk(occurred_at=at, event_guid=guid),
        event_guid=guid,
        event_type=f"{source.source_type}.{change}",
        entity_type=source.source_type,
        entity_guid=source.entity_guid,
        occurred_at=at,
        source_type=source.source_type,
        source=source.source,
        source_version=source.row_version,
        business_unit=source.business_unit,
        data_hash="",
        actor=actor,
        correlation_id=correlation_id,
    )


def rescued(event: EntityEvent, *, rescues_max: int) -> tuple[EventStatus, str | None]:
    """Rule an event whose worker was lost: ready again or, past the bound, failed; and why, if it failed (I-23)."""
    rescues = event.rescue_count + 1
    to, reason = EventStatus.READY, None
    if rescues > rescues_max:
        to, reason = EventStatus.FAILED, f"rescued {rescues} times: every worker that took it was lost"
    ENTITY_EVENT.require(from_=event.status, to=to)
    return to, reason


class HistoryKind(StrEnum):
    """What a line of an entity's history tells of."""

    EVENT = "event"
    PLANNED = "planned"
    MOVED = "moved"
    DEACTIVATED = "deactivated"
    CONFLICT = "conflict"
    HANDED_OVER = "handed_over"
    SKIPPED = "skipped"
    HELD = "held"
    RELEASED = "released"
    FAILED = "failed"


class EntityHistory(msgspec.Struct, frozen=True, kw_only=True):
    """A line of an entity's story. Its key is deterministic: the replay of what wrote it writes it again, no other one.

    `subject` is what it is about (an occurrence's key, an event's guid), `cause` what brought it about (an event's
    guid, a version of a setting, a worker's claim).
    """

    entity_guid: UUID
    kind: HistoryKind
    subject: str
    cause: str
    at: datetime
    text: str
    correlation_id: str

    @property
    def key(self) -> tuple[str, ...]:
        """What is unique within the tenant."""
        return (str(self.entity_guid), self.row_key)

    @property
    def row_key(self) -> str:
        """Name the line among those of its entity."""
        return f"{self.kind}:{self.subject}:{self.cause}"


class EventMapping(msgspec.Struct, frozen=True, kw_only=True):
    """What an event type leads to at once: a notification type, or (None) explicitly none."""

    event_type: str
    notification_type: str | None
    changed_by: str = ""
    changed_at: datetime | None = None


def check_type(text: str, *, field: str) -> str:
    """Refuse what is no kind of event."""
    try:
        return msgspec.convert(text, EventType)
    except msgspec.ValidationError:
        raise InvalidInput(
            "it is no type of an event",
            field=field,
            hint="use 1 to 100 of A-Z, a-z, 0-9, '.', '-' and '_', starting with a letter or digit, such as "
            "invoice.paid",
        ) from None


EVENT_LEASE: Final = timedelta(minutes=5)
"""A plugin that answers nothing takes three questions of ten seconds, and an event may be asked of several."""

EVENT_WAITS: Final = tuple(timedelta(seconds=seconds) for seconds in (10, 60, 300, 900, 3600))
"""After the first failure, the second and so on. Most of what passes does so within seconds, and people wait for what
an event leads to; what has not passed within an hour and a half is for a person to look at."""


def wait_after_event_failure(retry_count: int) -> timedelta | None:
    """Say how long an event waits that failed so often before; None where it fails for good."""
    return EVENT_WAITS[retry_count] if retry_count < len(EVENT_WAITS) else None


def handled_line(event: EntityEvent, text: str, *, at: datetime) -> EntityHistory:
    """Write the line of an event in its entity's story; handled again it is the same line."""
    return EntityHistory(
        entity_guid=event.entity_guid,
        kind=HistoryKind.EVENT,
        subject=str(event.event_guid),
        cause="handled",
        at=at,
        text=text,
        correlation_id=event.correlation_id,
    )

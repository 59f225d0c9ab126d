"""The shapes of the HTTP API about events: what happened to a thing, and what event types lead to.

Beside `client.wire`, whose rules hold here too. Plain values: nothing here reads or writes anything.
"""

from typing import Annotated
from uuid import UUID

import msgspec

from clarion.client.wire import PLAIN, At, Entity, PageQuery, Reason
from clarion.client.wire_sources import SourceName
from clarion.domain.entity_event import EventStatus, EventType
from clarion.domain.source import SourceType

EventName = Annotated[
    EventType,
    msgspec.Meta(description="the kind of the event, as the table of mappings has it", examples=["invoice.paid"]),
]


class EventSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The source that an event tells of."""

    type: SourceType
    id: SourceName


class EventRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Something that happened, once."""

    type: EventName
    id: (
        Annotated[
            UUID,
            msgspec.Meta(
                description="your own id of the event, by which it is the same event however often it is told; without "
                "one, the Idempotency-Key names it"
            ),
        ]
        | None
    ) = None
    entity: Annotated[Entity, msgspec.Meta(description="what it happened to; without it, its source")] | None = None
    source: Annotated[EventSource, msgspec.Meta(description="whose reminders are planned anew by it")] | None = None
    data: Annotated[dict[str, object], msgspec.Meta(description="what the templates merge in")] = {}
    occurred_at: Annotated[At, msgspec.Meta(description="when it happened; without it, now")] | None = None
    business_unit: Annotated[UUID, msgspec.Meta(description="on whose behalf its notification is sent")] | None = None


class EventAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The event is stored and will be handled."""

    event_id: UUID
    entity: Annotated[UUID, msgspec.Meta(description="under which its history opens")]
    repeated: Annotated[bool, msgspec.Meta(description="this very event was told before: nothing new")]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """An event, and how far its handling has come."""

    event_id: UUID
    type: str
    entity: Entity
    source: EventSource | None
    source_version: Annotated[int | None, msgspec.Meta(description="of a stored source whose change it tells of")]
    business_unit: UUID | None
    occurred_at: At
    status: Annotated[EventStatus, msgspec.Meta(description="how far its handling has come")]
    reason: Annotated[str | None, msgspec.Meta(description="why it failed, or waits to be tried again")]
    retries: int
    due_at: Annotated[At | None, msgspec.Meta(description="when it is tried again")]
    result: Annotated[dict[str, object] | None, msgspec.Meta(description="what its handling came to, counted")]
    actor: str | None
    correlation_id: str
    data: Annotated[
        dict[str, object] | None,
        msgspec.Meta(description="null for a key whose role may neither tell nor reveal"),
    ]


class EventPage(msgspec.Struct, frozen=True, kw_only=True):
    """Events, the newest first."""

    items: tuple[Event, ...]
    next_cursor: str | None


class EventQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which page of the events, and of which of them."""

    entity: (
        Annotated[str, msgspec.Meta(min_length=1, max_length=240, description="TYPE:GUID: what happened to it")] | None
    ) = None
    status: Annotated[EventStatus, msgspec.Meta(description="only those whose handling has come so far")] | None = None


class EventRetryRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why an event that failed is to be handled again."""

    reason: Reason


class EventRetried(msgspec.Struct, frozen=True, kw_only=True):
    """The event will be handled again."""

    event_id: UUID


class MappingRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an event type leads to at once."""

    notification_type: (
        Annotated[
            str,
            msgspec.Meta(min_length=1, max_length=200, pattern=PLAIN, description="a published notification type"),
        ]
        | None
    )


class EventMapping(msgspec.Struct, frozen=True, kw_only=True):
    """What an event type leads to at once."""

    event_type: str
    notification_type: Annotated[str | None, msgspec.Meta(description="null: explicitly to none")]
    changed_by: str
    changed_at: At | None


class MappingPage(msgspec.Struct, frozen=True, kw_only=True):
    """The table of mappings, by event type."""

    items: tuple[EventMapping, ...]
    next_cursor: str | None

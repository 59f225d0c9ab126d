"""Examples of what is asked and answered about sources and events, which stand in the description."""

from datetime import UTC, date, datetime
from typing import Final
from uuid import UUID

from clarion.client import wire, wire_events, wire_sources
from clarion.domain.entity_event import EventStatus

_AT: Final = datetime(2026, 3, 2, 8, 30, tzinfo=UTC)
_INVOICE: Final = UUID("6f1c2c7e-1111-4000-8000-000000000001")
_EVENT: Final = UUID("5e6d0d3c-7777-5d1e-9c1a-0d6a3b1f2a10")
_REQUEST: Final = "7a9c2b9e-4b7d-4a0c-9f37-2f0f4f6f1d11"

SOURCE_REQUEST: Final = wire_sources.SourceRequest(
    fields={"number": "2026-0815", "amount": "120.00 EUR", "paid": False},
    dates={"due_on": "2026-12-01"},
    metrics={"open": 120.0},
)
SOURCES_REQUEST: Final = wire_sources.SourcesRequest(
    sources=(
        wire_sources.SourceItem(
            id="2026-0815",
            fields={"number": "2026-0815", "amount": "120.00 EUR", "paid": False},
            dates={"due_on": "2026-12-01"},
        ),
        wire_sources.SourceItem(id="2026-0816", dates={"due_on": "2026-12-15"}, metrics={"open": 80.0}),
    )
)
SOURCE_STORED: Final = wire_sources.SourceStored(id="2026-0815", version=3, changed=True, event_id=_EVENT)
SOURCES_STORED: Final = wire_sources.SourcesStored(
    changed=1,
    items=(SOURCE_STORED, wire_sources.SourceStored(id="2026-0816", version=1, changed=False, event_id=None)),
)
SOURCE: Final = wire_sources.Source(
    type="invoice",
    id="2026-0815",
    entity=_INVOICE,
    business_unit=None,
    version=3,
    changed_at=_AT,
    fields={"number": "2026-0815", "amount": "120.00 EUR", "paid": False},
    dates={"due_on": date(2026, 12, 1)},
    metrics={"open": 120.0},
)
SOURCE_PAGE: Final = wire_sources.SourcePage(items=(SOURCE,), next_cursor=None)

EVENT_REQUEST: Final = wire_events.EventRequest(
    type="invoice.paid",
    id=_EVENT,
    entity=wire.Entity(type="invoice", guid=_INVOICE),
    data={"name": "Robin"},
)
EVENT_ANSWER: Final = wire_events.EventAnswer(event_id=_EVENT, entity=_INVOICE, repeated=False)
EVENT: Final = wire_events.Event(
    event_id=_EVENT,
    type="invoice.paid",
    entity=wire.Entity(type="invoice", guid=_INVOICE),
    source=wire_events.EventSource(type="invoice", id="2026-0815"),
    source_version=None,
    business_unit=None,
    occurred_at=_AT,
    status=EventStatus.DONE,
    reason=None,
    retries=0,
    due_at=None,
    result={"notified": 1},
    actor="billing",
    correlation_id=_REQUEST,
    data={"name": "Robin"},
)
EVENT_PAGE: Final = wire_events.EventPage(items=(EVENT,), next_cursor=None)
EVENT_RETRY: Final = wire_events.EventRetryRequest(reason="the template is published now")
EVENT_RETRIED: Final = wire_events.EventRetried(event_id=_EVENT)
MAPPING_REQUEST: Final = wire_events.MappingRequest(notification_type="welcome")
MAPPING: Final = wire_events.EventMapping(
    event_type="member.joined", notification_type="welcome", changed_by="office", changed_at=_AT
)
MAPPING_PAGE: Final = wire_events.MappingPage(items=(MAPPING,), next_cursor=None)

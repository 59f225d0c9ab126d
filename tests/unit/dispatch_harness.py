"""A dispatcher over SQLite in memory with one tenant made, and the requests that its tests vary."""

from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import msgspec

from clarion.adapters.blobs import open_blobs
from clarion.dispatch import DeliveryDispatcher
from clarion.dispatch.request import (
    CampaignContent,
    ContentRequest,
    Destination,
    Direct,
    JobRequest,
    Occurrence,
    Trace,
)
from clarion.domain.address import AddressVersion
from clarion.domain.ensured import Ensured
from clarion.domain.identity import Channel, Identity
from clarion.domain.notification import NotificationJob
from clarion.domain.occurrence import DateTrigger, Reminder, ReportRun
from clarion.domain.recipient import Target
from clarion.ports.blobs import Blobs
from clarion.sealing.keyring import Keyring
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from clarion.testing.vault import SeededVault

SOURCE_AT = datetime(2026, 3, 1, 8, 30, tzinfo=UTC)
ENTITY = UUID("6f1c2c7e-0000-4000-8000-000000000001")
UNIT = UUID("6f1c2c7e-0000-4000-8000-000000000002")
EMPLOYEE = UUID("6f1c2c7e-0000-4000-8000-000000000003")
DRAFT = UUID("6f1c2c7e-0000-4000-8000-000000000004")
TRACE = Trace(correlation_id="c-1", traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")


class DispatchHarness:
    """A dispatcher with everything it stands on, one tenant made."""

    def __init__(self) -> None:
        self.store = SqliteInMemory(ManualClock())
        self.blobs: Blobs = open_blobs("memory://")
        self.vault = SeededVault()
        self.keyring = Keyring(self.store, self.vault)
        self.dispatcher = DeliveryDispatcher(store=self.store, blobs=self.blobs, keyring=self.keyring)

    async def job(self, **changes: Any) -> Ensured[NotificationJob]:
        (answer,) = await self.dispatcher.ensure_notification_job("school", [direct(**changes)])
        return answer

    async def address(self, destination: str = "sam@example.com", **changes: Any) -> Ensured[AddressVersion]:
        given = Destination(identity=Identity.user("7"), channel=Channel.EMAIL, destination=destination, trace=TRACE)
        given = msgspec.structs.replace(given, **changes)
        (answer,) = await self.dispatcher.ensure_address_versions("school", [given])
        return answer


def direct(**changes: Any) -> JobRequest:
    request = JobRequest(
        origin=Direct(operation="send", idempotency_key="order-1"),
        event_type="welcome",
        source_at=SOURCE_AT,
        to=(Target(identity=Identity.user("7")),),
        data={"name": "Sam"},
        trace=TRACE,
    )
    return msgspec.structs.replace(request, **changes)


def reminder(**changes: Any) -> Occurrence:
    what = Reminder(
        setting="first-aid",
        source_type="certificate",
        source="c-9",
        trigger_key="expiry",
        trigger=DateTrigger(target_date=date(2026, 6, 1), offset_days=30),
        primary_entity=ENTITY,
        business_unit=UNIT,
        notification_type="certificate-expiring",
    )
    return msgspec.structs.replace(Occurrence(what=what, scheduled_at=SOURCE_AT, trace=TRACE), **changes)


def report(**changes: Any) -> Occurrence:
    what = ReportRun(subscription=ENTITY, period_start_at=SOURCE_AT, notification_type="weekly-report")
    return Occurrence(what=msgspec.structs.replace(what, **changes), scheduled_at=SOURCE_AT, trace=TRACE)


def campaign(content: bytes, **changes: Any) -> ContentRequest:
    request = ContentRequest(of=CampaignContent(draft=DRAFT), content=content, source_at=SOURCE_AT, trace=TRACE)
    return msgspec.structs.replace(request, **changes)

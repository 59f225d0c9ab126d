"""The store of what automation is told: sources, events, their mappings, reminder settings and report subscriptions.

Every method is one transaction, set-based and bounded. A change to a source and the event that tells of it are one
transaction; so are a change to a setting and the note that its sources are to be planned anew.
"""

from collections.abc import Collection, Sequence
from datetime import date, datetime, timedelta
from typing import Protocol
from uuid import UUID

import msgspec

from clarion.domain.automation import AutomationScheduler
from clarion.domain.ensured import Ensured
from clarion.domain.entity_event import EntityEvent, EventMapping, EventStatus
from clarion.domain.reminder import ReminderSetting, SettingRecord
from clarion.domain.report import ReportSubscription
from clarion.domain.source import SourceRecord


class SourceAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What putting or removing one source came to; one that was so already changed nothing and made no event."""

    source: str
    row_version: int
    changed: bool
    event_guid: UUID | None = None


class EventClaim(msgspec.Struct, frozen=True, kw_only=True):
    """An event taken under a lease; its version is the token of the claim."""

    tenant_id: str
    event: EntityEvent


class EventEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How the handling of a claimed event ended; Ready means again, after `delay`."""

    tenant_id: str
    event_id: int
    version: int
    to: EventStatus
    delay: timedelta = timedelta()
    reason: str | None = None
    metrics: str | None = None


class SettingClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A setting whose sources are to be planned anew, from behind `cursor`, under a lease."""

    tenant_id: str
    record: SettingRecord
    cursor: str
    token: int


class RepairClaim(msgspec.Struct, frozen=True, kw_only=True):
    """One provider's reconciliation in one tenant, under a lease: from where on, and how far this round goes."""

    tenant_id: str
    source_type: str
    watermark_at: datetime
    round_at: datetime
    cursor: str | None
    token: int


class SourceScan(msgspec.Struct, frozen=True, kw_only=True):
    """What a scan of stored sources asks for: those changed since, and those with a date in the window.

    Without the one and the other it is all of them. `after` is the cursor of the page before.
    """

    source_type: str
    changed_since: datetime | None = None
    due_from: date | None = None
    due_until: date | None = None
    units: tuple[UUID, ...] | None = None
    after: str = ""
    limit: int


class SourcePage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a scan; it may hold less than the limit, or nothing, and only one without a cursor is the last."""

    records: Sequence[SourceRecord]
    cursor: str | None = None


class SubscriptionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A report subscription as it is stored."""

    subscription: ReportSubscription
    version: int
    changed_by: str
    changed_at: datetime


class SubscriptionClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription whose next run is to be planned, under a lease."""

    tenant_id: str
    record: SubscriptionRecord
    token: int


class RecordStore(Protocol):
    """Sources as applications put them in."""

    async def put_sources(
        self, tenant_id: str, sources: Sequence[SourceRecord], *, actor: str, correlation_id: str
    ) -> list[SourceAnswer]:
        """Store sources as they are given, each change with its event; the store counts row versions.

        The event's guid is uuid5(event, tenant, type, id, row version). What is so already writes nothing. One with
        `active` False is a removal; of one that was never there the answer's version is 0. A source keeps the entity
        that it was stored with first. Of one that is given twice the last word counts.
        """
        ...

    async def find_sources(self, tenant_id: str, source_type: str, sources: Collection[str]) -> dict[str, SourceRecord]:
        """Return these sources, by id; the unknown are left out, those that were removed are not."""
        ...

    async def list_sources(
        self, tenant_id: str, source_type: str, *, after: str = "", limit: int
    ) -> Sequence[SourceRecord]:
        """Return the sources of a type that are there, by id."""
        ...

    async def scan_sources(self, tenant_id: str, scan: SourceScan) -> SourcePage:
        """Return a page of active sources within the bounds of a scan.

        First those that changed, by when, and then those with a date in the window, by that; a source may come more
        than once. What changes after the first page is left to the next scan; whatever changed before it is found,
        also in a transaction that was still under way: the first page waits for those.
        """
        ...


class EventStore(Protocol):
    """What happened to things, and how far it was handled."""

    async def ensure_events(self, tenant_id: str, events: Sequence[EntityEvent]) -> list[Ensured[EntityEvent]]:
        """Store events unless they are there; each waits to be handled. One guid for two events is a conflict."""
        ...

    async def claim_events(self, *, limit: int, lease: timedelta) -> list[EventClaim]:
        """Take events that wait to be handled, the oldest first; tenants take turns."""
        ...

    async def finish_events(self, ends: Sequence[EventEnd]) -> set[int]:
        """Move claimed events on where the claim still stands; one that fails opens its support case."""
        ...

    async def rescue_events(self, *, limit: int, rescues_max: int) -> int:
        """Return expired claims of events to Ready; past the bound to Failed with a support case."""
        ...

    async def retry_event(self, tenant_id: str, event_guid: UUID, *, actor: str, reason: str) -> bool:
        """Have a failed event handled again on a person's word; audited; False where it has not failed."""
        ...

    async def find_event(self, tenant_id: str, event_guid: UUID) -> EntityEvent | None:
        """Return an event, or None."""
        ...

    async def list_events(
        self,
        tenant_id: str,
        *,
        entity: tuple[str, UUID] | None = None,
        status: EventStatus | None = None,
        after: tuple[datetime, int] | None = None,
        limit: int,
    ) -> Sequence[EntityEvent]:
        """Return events, the newest first, of one entity or of all, behind a place."""
        ...


class ReminderStore(Protocol):
    """What events lead to, reminder settings, and how far each was planned and repaired."""

    async def put_mapping(self, tenant_id: str, mapping: EventMapping, *, actor: str) -> bool:
        """Say what an event type leads to; audited; False where it is so already."""
        ...

    async def remove_mapping(self, tenant_id: str, event_type: str, *, actor: str) -> bool:
        """Take a mapping away; audited; False where there is none."""
        ...

    async def find_mappings(self, tenant_id: str, event_types: Collection[str]) -> dict[str, EventMapping]:
        """Return the mappings of these event types; the unmapped are left out."""
        ...

    async def list_mappings(self, tenant_id: str, *, after: str = "", limit: int) -> Sequence[EventMapping]:
        """Return a tenant's mappings by event type."""
        ...

    async def put_reminder(
        self, tenant_id: str, setting: ReminderSetting, *, actor: str, expected: int | None = None
    ) -> bool:
        """Store a reminder setting, and note that its sources are to be planned anew; audited; False if so already.

        Raises Conflict where another version than `expected` is stored: the change was made of what is no longer so.
        It keeps its type of source: InvalidInput where that is another one, whose occurrences nobody would take back.
        """
        ...

    async def find_reminder(self, tenant_id: str, guid: UUID) -> SettingRecord | None:
        """Return a reminder setting, or None."""
        ...

    async def find_reminders(self, tenant_id: str, source_type: str) -> Sequence[SettingRecord]:
        """Return all settings about a type of source, the inactive too; there are few."""
        ...

    async def list_reminders(self, tenant_id: str, *, after: UUID | None = None, limit: int) -> Sequence[SettingRecord]:
        """Return a tenant's reminder settings by guid."""
        ...

    async def claim_settings(self, *, limit: int, lease: timedelta) -> list[SettingClaim]:
        """Take settings whose sources are to be planned anew."""
        ...

    async def finish_setting(self, claim: SettingClaim, *, cursor: str | None) -> bool:
        """Note how far the planning of a setting has come, None at its end; False where the setting changed since."""
        ...

    async def replan_other_editions(self, tzdata_version: str, *, limit: int) -> int:
        """Have settings planned anew that another edition of the time zone database planned; return how many."""
        ...

    async def claim_repairs(
        self,
        source_types: Collection[str] | None,
        *,
        besides: Collection[str] = (),
        every: timedelta,
        limit: int,
        lease: timedelta,
    ) -> list[RepairClaim]:
        """Take reconciliations that are due, of tenants with settings about these types of source.

        None stands for every type that there are settings about, without those of `besides`.
        """
        ...

    async def finish_repair(self, claim: RepairClaim, *, cursor: str | None, watermark_at: datetime) -> bool:
        """Note how far a round has come; only at its end (no cursor) does the watermark move."""
        ...


class SubscriptionStore(Protocol):
    """Report subscriptions, and those of them whose next run is still to be planned."""

    async def put_subscription(
        self, tenant_id: str, subscription: ReportSubscription, *, actor: str, expected: int | None = None
    ) -> bool:
        """Store a report subscription, and note that its next run is to be planned; audited; False if so already.

        Raises Conflict where another version than `expected` is stored, as of a reminder setting.
        """
        ...

    async def find_subscription(self, tenant_id: str, guid: UUID) -> SubscriptionRecord | None:
        """Return a report subscription, or None."""
        ...

    async def list_subscriptions(
        self, tenant_id: str, *, after: UUID | None = None, limit: int
    ) -> Sequence[SubscriptionRecord]:
        """Return a tenant's report subscriptions by guid."""
        ...

    async def run_subscription(
        self, tenant_id: str, row: AutomationScheduler, *, actor: str
    ) -> Ensured[AutomationScheduler]:
        """Have a run by hand (`report_run.manual_row`) wait for its claim, once for its guid; audited."""
        ...

    async def claim_subscriptions(self, *, limit: int, lease: timedelta) -> list[SubscriptionClaim]:
        """Take subscriptions whose next run is to be planned, or to be looked after again."""
        ...

    async def finish_subscription(self, claim: SubscriptionClaim, *, look_again: timedelta | None) -> bool:
        """Note that a subscription is planned, and when to look after it again, None for never.

        False where it was changed or claimed since: then it is planned again.
        """
        ...


class SourceStore(RecordStore, EventStore, ReminderStore, SubscriptionStore, Protocol):
    """What automation is told, and what of it is still to be worked on."""

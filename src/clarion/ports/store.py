"""A store: one engine, or two, that answers every port of storage. Adapters make one; bootstrap opens it by URL."""

from datetime import datetime, timedelta
from typing import Protocol

import msgspec

from clarion.ports.automation import AutomationStore
from clarion.ports.catalog import CatalogStore
from clarion.ports.ensure import EnsureStore
from clarion.ports.facts import FactStore
from clarion.ports.group import GroupStore
from clarion.ports.inbox import InboxStore
from clarion.ports.insights import InsightStore
from clarion.ports.people import PeopleStore
from clarion.ports.queue import QueueStore
from clarion.ports.reporting import ReportFacts
from clarion.ports.setting import SettingStore
from clarion.ports.snapshot import PastingStore, SnapshotStore
from clarion.ports.source import EventStore, RecordStore, ReminderStore, SubscriptionStore
from clarion.ports.suppression import SuppressionStore
from clarion.ports.track import TrackStore


class Store(
    EnsureStore,
    QueueStore,
    TrackStore,
    FactStore,
    CatalogStore,
    PeopleStore,
    InboxStore,
    GroupStore,
    SettingStore,
    SuppressionStore,
    AutomationStore,
    RecordStore,
    EventStore,
    ReminderStore,
    InsightStore,
    SnapshotStore,
    ReportFacts,
    SubscriptionStore,
    Protocol,
):
    """Everything that the rooms ask of storage."""

    async def close(self) -> None:
        """Let go of connections and threads; a closed store is not used again."""
        ...


class CopyStore(Store, PastingStore, Protocol):
    """A store that holds nothing yet, and that the copy of a tenant can be put into."""


class ClockReading(msgspec.Struct, frozen=True, kw_only=True):
    """What time it is, by the machine that asks and by the store.

    `mark_at` is the highest time that the store remembers, where it takes its time from the machines that use it.
    """

    machine_at: datetime
    store_at: datetime
    mark_at: datetime | None = None

    @property
    def ahead(self) -> timedelta:
        """By how much the store's time is ahead of the machine's; negative where it is behind."""
        return self.store_at - self.machine_at


class Migrated(msgspec.Struct, frozen=True, kw_only=True):
    """What bringing a schema up to date found and did; a revision is None where there is no schema."""

    from_revision: str | None
    to_revision: str | None
    steps: tuple[str, ...]

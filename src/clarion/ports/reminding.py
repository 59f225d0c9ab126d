"""The five contracts by which a program teaches Clarion about sources of its own, each answered for one source type.

A plugin is an entry point of `clarion.reminders`: a call without arguments that gives a `TriggerProvider`. Each of the
other four is asked where the object has it. Sources that an application puts in by API, program or CSV are served
through the same contracts by a provider of ours.

None of them sends, renders or decides a key. What a provider raises, or does not answer in time, is a failure of that
event or occurrence, which is tried again; nobody else's waits for it.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Final, Protocol, runtime_checkable
from uuid import UUID

import msgspec

from clarion.domain.audience import Addressee
from clarion.domain.entity_event import EntityEvent
from clarion.domain.identity import Channel
from clarion.domain.recipient import Target
from clarion.domain.reminder import ReminderSetting
from clarion.domain.source import SourceFacts
from clarion.ports.source import SourceScan

BATCH_MAX: Final = 1000
"""Sources that one page of a scan may hold, some megabytes with their content."""

WINDOW_DAYS_MAX: Final = 366
"""How far ahead a scan may look. What falls due later is found by the scans of later days."""

OVERLAP_MIN: Final = timedelta(minutes=1)
"""A watermark lags at least so far behind: longer than the transactions of most applications take to commit."""


class ScanBounds(msgspec.Struct, frozen=True, kw_only=True):
    """How far one reconciliation may look, so that it never reads a whole domain.

    A scan returns active sources only: those changed since the watermark less the `overlap`, which is at least as long
    as the longest transaction that changes a source, and those with a date from today to `window_days` on. `units` are
    the business units that it is for, None for all of the tenant.
    """

    every: timedelta = timedelta(hours=6)
    overlap: timedelta = timedelta(minutes=15)
    window_days: int = 30
    units: tuple[UUID, ...] | None = None
    batch_size: int = 500


class ScanPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a scan; `cursor` is what the next one begins behind, None after the last."""

    facts: Sequence[SourceFacts]
    cursor: str | None


@runtime_checkable
class TriggerProvider(Protocol):
    """Tells what sources of one type there are. It never sees recipients, channels or templates."""

    source_type: str
    bounds: ScanBounds

    async def load(self, tenant_id: str, sources: Collection[str]) -> Mapping[str, SourceFacts]:
        """Return these sources as they are now, by id; those that are not there are left out."""
        ...

    async def scan(self, tenant_id: str, scan: SourceScan) -> ScanPage:
        """Return a page of active sources within the bounds of a scan, in a fixed order."""
        ...


@runtime_checkable
class LongRunner(Protocol):
    """Declares that what a provider asks may be away for days, such as a system that is loaded at night.

    Where the reminder setting approves it, an occurrence that failed often is tried again daily instead of being held.
    """

    long_runner: bool


@runtime_checkable
class InvalidationProvider(Protocol):
    """Tells which sources an event is about, so that their occurrences are planned anew.

    It is asked about the events of `event_types`, whichever source they name.
    """

    event_types: Collection[str]

    async def touched(self, tenant_id: str, event: EntityEvent, data: Mapping[str, object]) -> Sequence[str]:
        """Return the ids of up to 1,000 sources that this event changes.

        Without this contract that is the one that it names.
        """
        ...


class Immediate(msgspec.Struct, frozen=True, kw_only=True):
    """A notification to be made at once. Without recipients, the settings of its type say whom."""

    notification_type: str
    data: Mapping[str, object] = {}
    to: tuple[Target, ...] = ()
    addressees: tuple[Addressee, ...] | None = None


@runtime_checkable
class ImmediateProvider(Protocol):
    """Tells what is to be said at once about an event, beside what the table of mappings says."""

    async def immediate(
        self, tenant_id: str, event: EntityEvent, data: Mapping[str, object], facts: SourceFacts | None
    ) -> Immediate | None:
        """Return the notification that this event asks for, or None."""
        ...


@runtime_checkable
class RecipientProvider(Protocol):
    """Tells whom a reminder is for, asked when it is due."""

    async def recipients(self, tenant_id: str, facts: SourceFacts, setting: ReminderSetting) -> Sequence[Target] | None:
        """Return up to 1,000 recipients; none for nobody; None to leave it to the setting."""
        ...


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """How a reminder goes out: by these channels of its type, none for all of them, with data of its own."""

    channels: tuple[Channel, ...] = ()
    data: Mapping[str, object] = {}


@runtime_checkable
class DeliveryPolicy(Protocol):
    """Tells how a reminder goes out, asked when it is due."""

    async def delivery(self, tenant_id: str, facts: SourceFacts, setting: ReminderSetting) -> Delivery:
        """Return the channels and further data."""
        ...

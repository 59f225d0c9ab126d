"""What the store contract asks of a store under test, besides the store itself.

A store has no method that puts a row into a state which only a worker or a person brings about, and none that shows
all rows; a harness does both by a way around the store, for tests only.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol, TypeVar

import msgspec

from clarion.domain.address import AddressVersion
from clarion.domain.automation import AutomationJob, AutomationScheduler
from clarion.domain.entity_event import EntityEvent, EntityHistory
from clarion.domain.guard import IdempotencyGuard
from clarion.domain.inbox import UserMessage
from clarion.domain.messaging import MessagingJob
from clarion.domain.notification import NotificationJob, NotificationScheduler
from clarion.domain.outgoing import OutgoingMessage
from clarion.domain.person import PersonVersion
from clarion.domain.planning import ThresholdState
from clarion.domain.support import SupportCase
from clarion.ports.store import Store
from clarion.testing.clock import ManualClock
from clarion.testing.row import FlowCount, InboxCount, InboxState, InInbox, PlanSerial, QueueEntry

S = TypeVar("S", bound=msgspec.Struct)

RECORDS: Final[tuple[type[msgspec.Struct], ...]] = (
    AutomationScheduler,
    AutomationJob,
    EntityEvent,
    PlanSerial,
    ThresholdState,
    EntityHistory,
    NotificationJob,
    NotificationScheduler,
    MessagingJob,
    AddressVersion,
    PersonVersion,
    UserMessage,
    InInbox,
    InboxState,
    InboxCount,
    OutgoingMessage,
    QueueEntry,
    FlowCount,
    IdempotencyGuard,
    SupportCase,
)
"""Everything that an ensure or a plan can write, tenants and their keys apart."""


MOVED_AT: Final = datetime(2026, 4, 5, 6, 7, 8, tzinfo=UTC)
"""When an outgoing message that was overwritten is due, or its lease ends."""


class StoreHarness(Protocol):
    """A store under test and the way around it."""

    @property
    def store(self) -> Store:
        """The store under test."""
        ...

    @property
    def tenant_id(self) -> str:
        """A tenant that holds nothing yet; names that start with it and a dash are the test's too."""
        ...

    @property
    def clock(self) -> ManualClock | None:
        """The clock that the store takes its time from, or None where the engine has its own."""
        ...

    async def now(self) -> datetime:
        """Tell what time it is for the store."""
        ...

    async def elapse(self, by: timedelta) -> None:
        """Let time pass for the store, or move all that is stored into the past where its clock cannot be set."""
        ...

    async def overwrite(self, tenant_id: str, record: msgspec.Struct) -> None:
        """Give the stored row with this record's key all of the record's values; it must be there.

        An outgoing message does not hold its due time and its lease: it is then due at, or leased until, `MOVED_AT` if
        its state has the one or the other.
        """
        ...

    async def remove(self, tenant_id: str, record: msgspec.Struct) -> None:
        """Delete the stored row with this record's key; it must be there."""
        ...

    async def rows(self, tenant_id: str, kind: type[S]) -> list[S]:
        """Read all of a tenant's rows of one record type, always in the same order."""
        ...


Rows = Mapping[str, list[msgspec.Struct]]


async def everything(harness: StoreHarness, tenant_id: str | None = None) -> Rows:
    """Read all rows of a tenant, to be compared with what is there later."""
    tenant = harness.tenant_id if tenant_id is None else tenant_id
    return {kind.__name__: by_key(await harness.rows(tenant, kind)) for kind in RECORDS}


def by_key(rows: list[S]) -> list[S]:
    """Bring rows into an order that is the same in every store."""
    return sorted(rows, key=lambda row: repr(row.case_id if isinstance(row, SupportCase) else row.key))  # type: ignore[attr-defined]  # every other record has one


def with_row(rows: Rows, row: msgspec.Struct) -> Rows:
    """Replace the one row of its kind."""
    return {**rows, type(row).__name__: [row]}


def without_cases(rows: Rows) -> Rows:
    """Leave the support cases out: all that a conflict may change, but for a hold."""
    return {name: kept for name, kept in rows.items() if name != SupportCase.__name__}

"""The read side: what people and support tools ask about records. Nothing here changes anything."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol
from uuid import UUID

import msgspec

from clarion.domain.address import AddressVersion
from clarion.domain.identity import Channel
from clarion.domain.notification import NotificationJob, NotificationStatus
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.result import Standing
from clarion.domain.support import SupportCase, SupportStatus
from clarion.domain.timeline import JobTimeline
from clarion.domain.worker import Worker

PAGE_MAX: Final = 200
"""A page that a person reads and a response that stays small."""

WORKERS_MAX: Final = 500
"""More processes than one database serves."""


class JobLine(msgspec.Struct, frozen=True, kw_only=True):
    """One notification in a list; `recipient` is the frozen set of one that has a single recipient."""

    guid: UUID
    row_key: str
    event_type: str
    source_at: datetime
    created_at: datetime
    recipient: str | None = None


class JobOfRecipient(msgspec.Struct, frozen=True, kw_only=True):
    """One notification in the list of what one recipient got.

    `recipients` is how many were decided about, if `is_decided`; `work` is the state of the job's work.
    """

    guid: UUID
    row_key: str
    messaging_job: str | None = None
    job_key: str
    event_type: str
    source_at: datetime
    created_at: datetime
    work: NotificationStatus | None
    is_decided: bool
    recipients: int


class MessageCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many rows one recipient has of a notification: lines in the inbox, and outgoing ones in each state."""

    inbox: int
    outgoing: Mapping[OutgoingStatus, int]


class JobSet(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a job is for, as it was frozen: the set, or the manifest of a large one."""

    guid: UUID
    recipients: str


class UncertainLine(msgspec.Struct, frozen=True, kw_only=True):
    """A message of which nobody knows whether it arrived."""

    id: int
    message_id: UUID
    channel: Channel
    account: str | None
    version: int
    reason: str | None
    since_at: datetime


class Gauge(msgspec.Struct, frozen=True, kw_only=True):
    """How much work waits, and for how long the oldest of it has."""

    stages_waiting: int
    oldest_stage_seconds: float
    outgoing_waiting: int
    oldest_outgoing_seconds: float
    sending: int
    uncertain: int
    occurrences_due: int
    oldest_occurrence_seconds: float
    occurrences_held: int
    occurrences_failed: int
    open_support_cases: int


class BroadcastTotals(msgspec.Struct, frozen=True, kw_only=True):
    """How many rows of a broadcast stand in each state, and for which of the reasons that are told apart."""

    counts: Mapping[tuple[OutgoingStatus, str], int]

    @property
    def by_status(self) -> Mapping[OutgoingStatus, int]:
        """How many stand in each state."""
        found: dict[OutgoingStatus, int] = {}
        for (status, _), messages in self.counts.items():
            found[status] = found.get(status, 0) + messages
        return found

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(self.counts.values())


class RouteAge(msgspec.Struct, frozen=True, kw_only=True):
    """A route on which messages are due, and for how long the oldest of them has waited."""

    route: str
    oldest_seconds: float


class InsightStore(Protocol):
    """Questions about what is stored."""

    async def list_tenants(self, *, after: str = "", limit: int = 50) -> Sequence[str]:
        """List the tenants in the order of their ids, behind `after`."""
        ...

    async def find_job(self, tenant_id: str, guid: UUID) -> NotificationJob | None:
        """Return a job by its guid, or by that of the messaging job whose content it tells of; or None."""
        ...

    async def find_job_timeline(
        self, tenant_id: str, guid: UUID, *, messages: Collection[UUID] | None = None
    ) -> JobTimeline | None:
        """Return everything about a job by its guid, or by that of its messaging job; or None.

        Of its rows only those of `messages` where these are named, a set of them at most.
        """
        ...

    async def find_job_of_message(self, tenant_id: str, message_id: UUID) -> UUID | None:
        """Return the guid of the job that a message belongs to, or None."""
        ...

    async def list_jobs(
        self, tenant_id: str, partition_key: str, *, after: str = "", limit: int = 50
    ) -> Sequence[JobLine]:
        """List a partition's jobs in the order of their row keys (newest first for direct ones), behind `after`."""
        ...

    async def list_latest_jobs(
        self, tenant_id: str, *, after: tuple[datetime, UUID] | None = None, limit: int = 50
    ) -> Sequence[JobLine]:
        """List a tenant's jobs, the newest first and those of one moment by guid downwards, behind a time and guid."""
        ...

    async def list_jobs_of_recipient(
        self, tenant_id: str, recipient_id_hash: str, *, partition_key: str, after: str = "", limit: int = 50
    ) -> Sequence[JobOfRecipient]:
        """List the jobs in whose frozen sets a recipient is, the newest first, behind the job key `after`.

        With them come the jobs of a partition: those of a single named recipient, who is not decided on before the job
        is made. What is in both is listed once.
        """
        ...

    async def count_messages(self, tenant_id: str, message_ids: Collection[UUID]) -> dict[UUID, MessageCounts]:
        """Count the rows of some messages, by the messages' ids; those that have none are left out."""
        ...

    async def find_sets(self, tenant_id: str, guids: Collection[UUID]) -> Sequence[JobSet]:
        """Return the frozen sets of some jobs; those that are unknown or not decided are left out."""
        ...

    async def find_standings(self, tenant_id: str, guids: Collection[UUID]) -> dict[UUID, Standing]:
        """Count what decides the results of some jobs, by their guids; the unknown are left out."""
        ...

    async def count_broadcast(self, tenant_id: str, broadcast: str) -> BroadcastTotals:
        """Add up the rows of a broadcast by state: at every read what its rows themselves come to (I-41)."""
        ...

    async def find_payloads(self, tenant_id: str, guids: Collection[UUID]) -> dict[UUID, bytes]:
        """Return what was asked for by these jobs, sealed as it is stored; the unknown and the erased are left out."""
        ...

    async def find_addresses(self, tenant_id: str, ids: Collection[int]) -> Sequence[AddressVersion]:
        """Return these address versions of the tenant, sealed as they are stored; the unknown are left out."""
        ...

    async def list_uncertain(self, tenant_id: str, *, after: int = 0, limit: int = 50) -> Sequence[UncertainLine]:
        """List rows in `Uncertain` in the order of their ids, behind `after`."""
        ...

    async def list_support_cases(
        self, tenant_id: str, *, status: SupportStatus | None = None, after: UUID | None = None, limit: int = 50
    ) -> Sequence[SupportCase]:
        """List a tenant's cases in the order of their ids, starting behind `after`."""
        ...

    async def find_support_case(self, tenant_id: str, case_id: UUID) -> SupportCase | None:
        """Return one case, or None."""
        ...

    async def measure(self) -> Gauge:
        """Measure the work of all tenants, cheaply enough to be asked every few seconds."""
        ...

    async def measure_routes(self) -> Sequence[RouteAge]:
        """Say of each route on which messages of any tenant are due how long the oldest has waited, by route."""
        ...

    async def list_workers(self) -> Sequence[Worker]:
        """Return the last heartbeat of every process that works or was lost lately, those heard of last first."""
        ...

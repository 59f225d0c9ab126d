"""The memory store: every port method in plain dicts, as the readable specification and the oracle of the others.

A method runs without giving way to anybody, so it is one transaction by nature. Rows live by tenant, record type and
key; nothing is sealed or opened here, and nothing survives the process.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import count
from typing import Protocol, TypeVar
from uuid import UUID

import msgspec

from clarion.domain import key
from clarion.domain.address import AddressVersion
from clarion.domain.automation import AutomationJob, AutomationScheduler, settled
from clarion.domain.comparison import Given, differing
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.fingerprint import Fingerprint
from clarion.domain.guard import IdempotencyGuard, JobEntry
from clarion.domain.identity import Lane
from clarion.domain.inbox import UserMessage
from clarion.domain.messaging import MessagingJob
from clarion.domain.notification import NotificationJob, NotificationScheduler, NotificationStatus
from clarion.domain.outgoing import OutgoingBatch, OutgoingItem, OutgoingMessage
from clarion.domain.support import Keyed, SupportCase, SupportStatus, conflict_case
from clarion.errors import InvalidInput
from clarion.ports.clock import Clock
from clarion.ports.ensure import ITEMS_MAX, WrappedKeys, hold_lost, unknown_address, unknown_parent


class _Record(Given, Keyed, Protocol):
    """Any record that is kept by its key."""

    @property
    def correlation_id(self) -> str:
        """What ties the record to the request that made it."""
        ...


R = TypeVar("R", bound=_Record)
T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
Key = tuple[str, ...]


class QueueEntry(msgspec.Struct, frozen=True, kw_only=True):
    """How an outgoing row waits to be claimed: what its insert also stores and no ensure compares."""

    pk: str
    rk: str
    lane: Lane
    route: str
    source: str
    order_key: str | None
    due_at: datetime | None
    expires_at: datetime | None
    traceparent: str | None

    @property
    def key(self) -> Key:
        """The row that waits."""
        return (self.pk, self.rk)


class MemoryStore:
    """All records of all tenants, in dicts."""

    def __init__(self, clock: Clock) -> None:
        """Start empty."""
        self._clock = clock
        self._ids = count(1)
        self._keys: dict[str, WrappedKeys] = {}
        self._rows: dict[tuple[str, type], dict[Key, object]] = {}

    async def close(self) -> None:
        """Forget nothing: there is nothing to let go of."""

    async def ensure_tenant(self, tenant_id: str, keys: WrappedKeys) -> WrappedKeys:
        """Make the tenant with these keys unless it exists; return the keys that it has."""
        return dict(self._keys.setdefault(tenant_id, dict(keys)))

    async def find_tenant_keys(self, tenant_id: str) -> WrappedKeys | None:
        """Return the tenant's wrapped keys, or None where there is no such tenant."""
        return self._keys.get(tenant_id)

    async def ensure_automation_schedulers(
        self, tenant_id: str, items: Sequence[AutomationScheduler]
    ) -> list[Ensured[AutomationScheduler]]:
        """Insert, or settle with the row that is there."""
        return [self._ensure_occurrence(tenant_id, item) for item in _bounded(items)]

    async def ensure_automation_jobs(
        self, tenant_id: str, items: Sequence[AutomationJob]
    ) -> list[Ensured[AutomationJob]]:
        """Insert the traces that are missing."""
        return [self._ensure(tenant_id, item) for item in _bounded(items)]

    async def ensure_notification_jobs(
        self, tenant_id: str, items: Sequence[JobEntry]
    ) -> list[Ensured[NotificationJob]]:
        """Insert guards, jobs and scheduler rows that are missing, together or not at all."""
        return [self._ensure_job(tenant_id, item) for item in _bounded(items)]

    async def ensure_notification_schedulers(
        self, tenant_id: str, items: Sequence[NotificationScheduler]
    ) -> list[Ensured[NotificationScheduler]]:
        """Insert the pending rows that are missing."""
        return [self._ensure_scheduler(tenant_id, item) for item in _bounded(items)]

    async def ensure_messaging_jobs(self, tenant_id: str, items: Sequence[MessagingJob]) -> list[Ensured[MessagingJob]]:
        """Insert the jobs that are missing."""
        return [self._ensure(tenant_id, item) for item in _bounded(items)]

    async def ensure_address_versions(
        self, tenant_id: str, items: Sequence[AddressVersion]
    ) -> list[Ensured[AddressVersion]]:
        """Insert the versions that are missing."""
        return [self._ensure(tenant_id, item) for item in _bounded(items)]

    async def ensure_user_messages(self, tenant_id: str, items: Sequence[UserMessage]) -> list[Ensured[UserMessage]]:
        """Insert the inbox rows that are missing."""
        return [self._ensure(tenant_id, item) for item in _bounded(items)]

    async def ensure_outgoing_messages(self, tenant_id: str, batch: OutgoingBatch) -> list[Ensured[OutgoingMessage]]:
        """Insert the rows that are missing, all of one parent and all or none."""
        if not _bounded(batch.items):
            return []
        parent = self._parent(tenant_id, batch)
        addresses = {address.id: address for address in self.table(tenant_id, AddressVersion).values()}
        unknown = [item.address_id for item in batch.items if item.address_id not in addresses]
        rows = [
            (item, _outgoing(batch, item, parent=parent, address=addresses[item.address_id]))
            for item in batch.items
            if item.address_id in addresses
        ]
        stored = self.table(tenant_id, OutgoingMessage)
        complete = not unknown and all(row.key in stored for _, row in rows)
        if not complete and batch.hold and not self._holds(tenant_id, batch.hold):
            raise hold_lost()
        if unknown:
            raise unknown_address(unknown[0])
        return [self._ensure_outgoing(tenant_id, batch, item, row, parent.traceparent) for item, row in rows]

    async def open_support_cases(self, tenant_id: str, cases: Sequence[SupportCase]) -> None:
        """Open these cases, or see them once more."""
        for case in _bounded(cases):
            self._open_case(tenant_id, case)

    async def list_support_cases(
        self, tenant_id: str, *, status: SupportStatus | None = None, after: UUID | None = None, limit: int = 50
    ) -> Sequence[SupportCase]:
        """List a tenant's cases in the order of their ids, starting behind `after`."""
        cases = sorted(self.table(tenant_id, SupportCase).values(), key=lambda case: str(case.case_id))
        wanted = [case for case in cases if status in (None, case.status) and str(case.case_id) > str(after or "")]
        return wanted[:limit]

    def table(self, tenant_id: str, kind: type[T]) -> dict[Key, T]:
        """Give the rows of one tenant and record type by key; a test may look into it and write to it."""
        rows: dict[Key, T] = self._rows.setdefault((tenant_id, kind), {})  # type: ignore[assignment]  # by construction
        return rows

    def _ensure(self, tenant_id: str, given: R) -> Ensured[R]:
        """Find by key, compare, create if missing: the heart of every contract."""
        found = self.table(tenant_id, type(given)).get(given.key)
        if found is None:
            return self._create(tenant_id, given)
        fields = differing(given, found)
        if fields is None:
            return Ensured(outcome=Outcome.NEWER, record=found)
        if fields:
            return self._conflict(tenant_id, given, found, fields)
        return Ensured(outcome=Outcome.FOUND, record=found)

    def _ensure_occurrence(self, tenant_id: str, given: AutomationScheduler) -> Ensured[AutomationScheduler]:
        """Insert, or do with the row that is there what its state allows."""
        rows = self.table(tenant_id, AutomationScheduler)
        found = rows.get(given.key)
        if found is None:
            return self._create(tenant_id, given)
        outcome, row = settled(given, found)
        if outcome is Outcome.CONFLICT:
            return self._conflict(tenant_id, given, found, differing(given, found) or ())
        rows[given.key] = row
        return Ensured(outcome=outcome, record=row)

    def _ensure_job(self, tenant_id: str, given: JobEntry) -> Ensured[NotificationJob]:
        """Let the guard decide coordinates and payload, then ensure the job; with it go its guard and scheduler row."""
        guards = self.table(tenant_id, IdempotencyGuard)
        if given.guard is not None:
            guard = guards.get(given.guard.key, given.guard)
            fields = differing(given.guard, guard)
            given = given.at(guard)
            if guard.retired_at is not None:
                return Ensured(outcome=Outcome.GONE, record=given.job)
            if fields is None:
                return Ensured(outcome=Outcome.NEWER, record=given.job)
            if fields:
                return self._other_payload(tenant_id, given.job, fields)
        job = self._ensure(tenant_id, given.job)
        if job.proceeds and given.guard is not None:
            guards.setdefault(given.guard.key, _as_stored(given.guard))
        if job.proceeds and given.scheduler is not None:
            self._ensure_scheduler(tenant_id, given.scheduler)
        return job

    def _other_payload(self, tenant_id: str, given: NotificationJob, fields: Sequence[str]) -> Ensured[NotificationJob]:
        """Answer a key that was used with another payload, naming the fields of the job it made, if that is left."""
        found = self.table(tenant_id, NotificationJob).get(given.key, given)
        return self._conflict(tenant_id, given, found, differing(given, found) or fields)

    def _ensure_scheduler(self, tenant_id: str, given: NotificationScheduler) -> Ensured[NotificationScheduler]:
        """Insert a pending row that is due at once unless it says when."""
        due_at = given.due_at or self._clock.now()
        return self._ensure(tenant_id, msgspec.structs.replace(given, due_at=due_at))

    def _ensure_outgoing(
        self, tenant_id: str, batch: OutgoingBatch, item: OutgoingItem, given: OutgoingMessage, traceparent: str | None
    ) -> Ensured[OutgoingMessage]:
        """Insert a row into its queue unless it is there."""
        answer = self._ensure(tenant_id, given)
        if answer.outcome is Outcome.CREATED:
            entry = QueueEntry(
                pk=given.pk,
                rk=given.rk,
                lane=batch.lane,
                route=item.route,
                source=batch.source,
                order_key=item.order_key,
                due_at=item.due_at or self._clock.now(),
                expires_at=item.expires_at,
                traceparent=traceparent,
            )
            self.table(tenant_id, QueueEntry)[entry.key] = entry
        return answer

    def _parent(self, tenant_id: str, batch: OutgoingBatch) -> NotificationJob | MessagingJob:
        """Return the job that the rows of a batch derive from."""
        parent: NotificationJob | MessagingJob | None
        if batch.messaging_job is None:
            parent = self.table(tenant_id, NotificationJob).get((batch.pk,))
        else:
            parent = self.table(tenant_id, MessagingJob).get((batch.pk,))
        if parent is None:
            raise unknown_parent(batch.pk)
        return parent

    def _holds(self, tenant_id: str, hold: tuple[int, int]) -> bool:
        """Tell whether a scheduler row is still claimed under this version."""
        return any(
            (row.id, row.version) == hold and row.status is NotificationStatus.PROCESSING
            for row in self.table(tenant_id, NotificationScheduler).values()
        )

    def _create(self, tenant_id: str, given: R) -> Ensured[R]:
        """Store a row under the next id."""
        stored = _as_stored(given)  # type: ignore[type-var]  # every record is a Struct, which a protocol cannot say
        row = msgspec.structs.replace(stored, id=next(self._ids))  # type: ignore[type-var]  # the same
        self.table(tenant_id, type(given))[given.key] = row
        return Ensured(outcome=Outcome.CREATED, record=row)

    def _conflict(self, tenant_id: str, given: R, found: R, fields: Sequence[str]) -> Ensured[R]:
        """Open the support case of a conflict, or see it once more, and change nothing else."""
        case = conflict_case(
            tenant_id=tenant_id, given=given, found=found, fields=fields, correlation_id=given.correlation_id
        )
        self._open_case(tenant_id, case)
        return Ensured(outcome=Outcome.CONFLICT, record=found, differing=tuple(fields), case_id=case.case_id)

    def _open_case(self, tenant_id: str, case: SupportCase) -> None:
        """Keep a case once for its cause, counting how often it was seen."""
        now = self._clock.now()
        cases = self.table(tenant_id, SupportCase)
        known = cases.get((str(case.case_id),))
        cases[(str(case.case_id),)] = msgspec.structs.replace(
            case,
            seen_count=known.seen_count + 1 if known else 1,
            first_seen_at=known.first_seen_at if known else now,
            last_seen_at=now,
        )


def _bounded(items: Sequence[T]) -> Sequence[T]:
    """Refuse a set that would keep others waiting for too long."""
    if len(items) > ITEMS_MAX:
        raise InvalidInput(
            f"a set has {len(items)} items, {ITEMS_MAX} is the most", field="items", hint="ensure them in several sets"
        )
    return items


def _as_stored(given: S) -> S:
    """Keep of each fingerprint the one hash that a row carries."""
    values = ((name, getattr(given, name)) for name in given.__struct_fields__)
    hashes = {name: Fingerprint.stored(value.text) for name, value in values if isinstance(value, Fingerprint)}
    return msgspec.structs.replace(given, **hashes)


def _outgoing(
    batch: OutgoingBatch, item: OutgoingItem, *, parent: NotificationJob | MessagingJob, address: AddressVersion
) -> OutgoingMessage:
    """Make the row of one item from its parent and its address version."""
    return OutgoingMessage(
        bucket=parent.bucket,
        pk=batch.pk,
        rk=key.outgoing_rk(recipient_key_hash=address.key_hash, channel=address.channel, attempt_no=item.attempt_no),
        message_id=item.message_id,
        address_id=item.address_id,
        channel=address.channel,
        attempt_no=item.attempt_no,
        correlation_id=parent.correlation_id,
    )

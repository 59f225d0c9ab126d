"""The synchronous core: every method of the ports, one transaction each, and nothing of asyncio.

What happens inside a transaction is in `ensure/` and `insights`; the connection is in `session`. All methods are called
in one thread, that of the runner; `store` is the asynchronous surface of this.
"""

from collections.abc import Sequence
from typing import TypeVar
from uuid import UUID

from clarion.adapters.stores.sqlite import insights
from clarion.adapters.stores.sqlite.ensure import job, outgoing, record, tenant
from clarion.adapters.stores.sqlite.session import Session
from clarion.domain.address import AddressVersion
from clarion.domain.automation import AutomationJob, AutomationScheduler
from clarion.domain.ensured import Ensured
from clarion.domain.guard import JobEntry
from clarion.domain.inbox import UserMessage
from clarion.domain.messaging import MessagingJob
from clarion.domain.notification import NotificationJob, NotificationScheduler
from clarion.domain.outgoing import OutgoingBatch, OutgoingMessage
from clarion.domain.support import SupportCase, SupportStatus
from clarion.errors import InvalidInput
from clarion.ports.ensure import ITEMS_MAX, WrappedKeys

T = TypeVar("T")


class SqliteCore:
    """All records of all tenants, in one SQLite database."""

    def __init__(self, session: Session) -> None:
        """Serve the database of a session, which is opened by `open`."""
        self._session = session

    def open(self) -> None:
        """Open the connection, in the thread that will use it."""
        self._session.open()

    def close(self) -> None:
        """Close the connection, in the thread that opened it."""
        self._session.close()

    def ensure_tenant(self, tenant_id: str, keys: WrappedKeys) -> WrappedKeys:
        """Make the tenant with these keys unless it exists; return the keys that it has."""
        with self._session.transaction() as transaction:
            return tenant.ensure_tenant(transaction, tenant_id, keys)

    def find_tenant_keys(self, tenant_id: str) -> WrappedKeys | None:
        """Return the tenant's wrapped keys, or None where there is no such tenant."""
        with self._session.reading() as transaction:
            return tenant.find_tenant_keys(transaction, tenant_id)

    def ensure_automation_schedulers(
        self, tenant_id: str, items: Sequence[AutomationScheduler]
    ) -> list[Ensured[AutomationScheduler]]:
        """Insert, or settle with the row that is there."""
        if not _bounded(items):
            return []
        with self._session.transaction() as transaction:
            return record.ensure_automation_schedulers(transaction, tenant_id, items)

    def ensure_automation_jobs(self, tenant_id: str, items: Sequence[AutomationJob]) -> list[Ensured[AutomationJob]]:
        """Insert the traces that are missing."""
        return self._ensure(tenant_id, items, table=record.AUTOMATION_JOBS)

    def ensure_notification_jobs(self, tenant_id: str, items: Sequence[JobEntry]) -> list[Ensured[NotificationJob]]:
        """Insert guards, jobs and scheduler rows that are missing, together or not at all."""
        if not _bounded(items):
            return []
        with self._session.transaction() as transaction:
            return job.ensure_notification_jobs(transaction, tenant_id, items)

    def ensure_notification_schedulers(
        self, tenant_id: str, items: Sequence[NotificationScheduler]
    ) -> list[Ensured[NotificationScheduler]]:
        """Insert the pending rows that are missing."""
        return self._ensure(tenant_id, items, table=record.NOTIFICATION_SCHEDULERS)

    def ensure_messaging_jobs(self, tenant_id: str, items: Sequence[MessagingJob]) -> list[Ensured[MessagingJob]]:
        """Insert the jobs that are missing."""
        return self._ensure(tenant_id, items, table=record.MESSAGING_JOBS)

    def ensure_address_versions(self, tenant_id: str, items: Sequence[AddressVersion]) -> list[Ensured[AddressVersion]]:
        """Insert the versions that are missing."""
        return self._ensure(tenant_id, items, table=record.ADDRESS_VERSIONS)

    def ensure_user_messages(self, tenant_id: str, items: Sequence[UserMessage]) -> list[Ensured[UserMessage]]:
        """Insert the inbox rows that are missing."""
        return self._ensure(tenant_id, items, table=record.USER_MESSAGES)

    def ensure_outgoing_messages(self, tenant_id: str, batch: OutgoingBatch) -> list[Ensured[OutgoingMessage]]:
        """Insert the rows that are missing, all of one parent and all or none."""
        if not _bounded(batch.items):
            return []
        with self._session.transaction() as transaction:
            return outgoing.ensure_outgoing_messages(transaction, tenant_id, batch)

    def open_support_cases(self, tenant_id: str, cases: Sequence[SupportCase]) -> None:
        """Open these cases, or see them once more."""
        if _bounded(cases):
            with self._session.transaction() as transaction:
                record.write_cases(transaction, tenant_id, cases)

    def list_support_cases(
        self, tenant_id: str, *, status: SupportStatus | None, after: UUID | None, limit: int
    ) -> list[SupportCase]:
        """List a tenant's cases in the order of their ids, starting behind `after`."""
        with self._session.reading() as transaction:
            return insights.list_support_cases(transaction, tenant_id, status=status, after=after, limit=limit)

    def _ensure(
        self, tenant_id: str, items: Sequence[record.R], *, table: record.Table[record.R]
    ) -> list[Ensured[record.R]]:
        """Ensure records of a kind that stands by itself."""
        if not _bounded(items):
            return []
        with self._session.transaction() as transaction:
            return record.ensure(transaction, tenant_id, items, table=table)


def _bounded(items: Sequence[T]) -> Sequence[T]:
    """Refuse a set that would keep others waiting for too long."""
    if len(items) > ITEMS_MAX:
        raise InvalidInput(
            f"a set has {len(items)} items, {ITEMS_MAX} is the most", field="items", hint="ensure them in several sets"
        )
    return items

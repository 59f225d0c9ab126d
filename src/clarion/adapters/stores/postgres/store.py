"""The store's surface: every method of the ports, one transaction each.

What happens inside a transaction is in `ensure/` and `insights`; connections and repetition are in `session`.
"""

from collections.abc import Sequence
from typing import TypeVar
from uuid import UUID

from clarion.adapters.stores.postgres import insights
from clarion.adapters.stores.postgres.ensure import job, outgoing, record, tenant
from clarion.adapters.stores.postgres.session import Session
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


class PostgresStore:
    """All records of all tenants, in one PostgreSQL database."""

    def __init__(self, session: Session) -> None:
        """Serve the database of an open session."""
        self._session = session

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()

    async def ensure_tenant(self, tenant_id: str, keys: WrappedKeys) -> WrappedKeys:
        """Make the tenant with these keys unless it exists; return the keys that it has."""
        return await self._session.transact(lambda c: tenant.ensure_tenant(c, tenant_id, keys))

    async def find_tenant_keys(self, tenant_id: str) -> WrappedKeys | None:
        """Return the tenant's wrapped keys, or None where there is no such tenant."""
        return await self._session.read(lambda c: tenant.find_tenant_keys(c, tenant_id))

    async def ensure_automation_schedulers(
        self, tenant_id: str, items: Sequence[AutomationScheduler]
    ) -> list[Ensured[AutomationScheduler]]:
        """Insert, or settle with the row that is there."""
        if not _bounded(items):
            return []
        return await self._session.transact(lambda c: record.ensure_automation_schedulers(c, tenant_id, items))

    async def ensure_automation_jobs(
        self, tenant_id: str, items: Sequence[AutomationJob]
    ) -> list[Ensured[AutomationJob]]:
        """Insert the traces that are missing."""
        return await self._ensure(tenant_id, items, table=record.AUTOMATION_JOBS)

    async def ensure_notification_jobs(
        self, tenant_id: str, items: Sequence[JobEntry]
    ) -> list[Ensured[NotificationJob]]:
        """Insert guards, jobs and scheduler rows that are missing, together or not at all."""
        if not _bounded(items):
            return []
        return await self._session.transact(lambda c: job.ensure_notification_jobs(c, tenant_id, items))

    async def ensure_notification_schedulers(
        self, tenant_id: str, items: Sequence[NotificationScheduler]
    ) -> list[Ensured[NotificationScheduler]]:
        """Insert the pending rows that are missing."""
        return await self._ensure(tenant_id, items, table=record.NOTIFICATION_SCHEDULERS)

    async def ensure_messaging_jobs(self, tenant_id: str, items: Sequence[MessagingJob]) -> list[Ensured[MessagingJob]]:
        """Insert the jobs that are missing."""
        return await self._ensure(tenant_id, items, table=record.MESSAGING_JOBS)

    async def ensure_address_versions(
        self, tenant_id: str, items: Sequence[AddressVersion]
    ) -> list[Ensured[AddressVersion]]:
        """Insert the versions that are missing."""
        return await self._ensure(tenant_id, items, table=record.ADDRESS_VERSIONS)

    async def ensure_user_messages(self, tenant_id: str, items: Sequence[UserMessage]) -> list[Ensured[UserMessage]]:
        """Insert the inbox rows that are missing."""
        return await self._ensure(tenant_id, items, table=record.USER_MESSAGES)

    async def ensure_outgoing_messages(self, tenant_id: str, batch: OutgoingBatch) -> list[Ensured[OutgoingMessage]]:
        """Insert the rows that are missing, all of one parent and all or none."""
        if not _bounded(batch.items):
            return []
        return await self._session.transact(lambda c: outgoing.ensure_outgoing_messages(c, tenant_id, batch))

    async def open_support_cases(self, tenant_id: str, cases: Sequence[SupportCase]) -> None:
        """Open these cases, or see them once more."""
        if _bounded(cases):
            await self._session.transact(lambda c: record.write_cases(c, tenant_id, cases))

    async def list_support_cases(
        self, tenant_id: str, *, status: SupportStatus | None = None, after: UUID | None = None, limit: int = 50
    ) -> Sequence[SupportCase]:
        """List a tenant's cases in the order of their ids, starting behind `after`."""
        return await self._session.read(
            lambda c: insights.list_support_cases(c, tenant_id, status=status, after=after, limit=limit)
        )

    async def _ensure(
        self, tenant_id: str, items: Sequence[record.R], *, table: record.Table[record.R]
    ) -> list[Ensured[record.R]]:
        """Ensure records of a kind that stands by itself."""
        if not _bounded(items):
            return []
        return await self._session.transact(lambda c: record.ensure(c, tenant_id, items, table=table))


def _bounded(items: Sequence[T]) -> Sequence[T]:
    """Refuse a set that would keep others waiting for too long."""
    if len(items) > ITEMS_MAX:
        raise InvalidInput(
            f"a set has {len(items)} items, {ITEMS_MAX} is the most", field="items", hint="ensure them in several sets"
        )
    return items

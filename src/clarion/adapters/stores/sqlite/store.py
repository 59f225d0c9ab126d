"""The store's surface: every method of the ports, handed to the synchronous core by way of a runner."""

from collections.abc import Sequence
from uuid import UUID

from clarion.adapters.stores.sqlite.core import SqliteCore
from clarion.adapters.stores.sqlite.runner import Runner
from clarion.domain.address import AddressVersion
from clarion.domain.automation import AutomationJob, AutomationScheduler
from clarion.domain.ensured import Ensured
from clarion.domain.guard import JobEntry
from clarion.domain.inbox import UserMessage
from clarion.domain.messaging import MessagingJob
from clarion.domain.notification import NotificationJob, NotificationScheduler
from clarion.domain.outgoing import OutgoingBatch, OutgoingMessage
from clarion.domain.support import SupportCase, SupportStatus
from clarion.ports.ensure import WrappedKeys


class SqliteStore:
    """All records of all tenants, in one SQLite database."""

    def __init__(self, core: SqliteCore, *, runner: Runner) -> None:
        """Serve a core in the thread of a runner, which is this store's from now on."""
        self._core = core
        self._runner = runner

    async def open(self) -> None:
        """Open the database, or raise and leave nothing open."""
        try:
            await self._runner.run(self._core.open)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Close the connection and end the runner, after what was asked for before."""
        try:
            await self._runner.run(self._core.close)
        finally:
            await self._runner.close()

    async def ensure_tenant(self, tenant_id: str, keys: WrappedKeys) -> WrappedKeys:
        """Make the tenant with these keys unless it exists; return the keys that it has."""
        return await self._runner.run(lambda: self._core.ensure_tenant(tenant_id, keys))

    async def find_tenant_keys(self, tenant_id: str) -> WrappedKeys | None:
        """Return the tenant's wrapped keys, or None where there is no such tenant."""
        return await self._runner.run(lambda: self._core.find_tenant_keys(tenant_id))

    async def ensure_automation_schedulers(
        self, tenant_id: str, items: Sequence[AutomationScheduler]
    ) -> list[Ensured[AutomationScheduler]]:
        """Insert, or settle with the row that is there."""
        return await self._runner.run(lambda: self._core.ensure_automation_schedulers(tenant_id, items))

    async def ensure_automation_jobs(
        self, tenant_id: str, items: Sequence[AutomationJob]
    ) -> list[Ensured[AutomationJob]]:
        """Insert the traces that are missing."""
        return await self._runner.run(lambda: self._core.ensure_automation_jobs(tenant_id, items))

    async def ensure_notification_jobs(
        self, tenant_id: str, items: Sequence[JobEntry]
    ) -> list[Ensured[NotificationJob]]:
        """Insert guards, jobs and scheduler rows that are missing, together or not at all."""
        return await self._runner.run(lambda: self._core.ensure_notification_jobs(tenant_id, items))

    async def ensure_notification_schedulers(
        self, tenant_id: str, items: Sequence[NotificationScheduler]
    ) -> list[Ensured[NotificationScheduler]]:
        """Insert the pending rows that are missing."""
        return await self._runner.run(lambda: self._core.ensure_notification_schedulers(tenant_id, items))

    async def ensure_messaging_jobs(self, tenant_id: str, items: Sequence[MessagingJob]) -> list[Ensured[MessagingJob]]:
        """Insert the jobs that are missing."""
        return await self._runner.run(lambda: self._core.ensure_messaging_jobs(tenant_id, items))

    async def ensure_address_versions(
        self, tenant_id: str, items: Sequence[AddressVersion]
    ) -> list[Ensured[AddressVersion]]:
        """Insert the versions that are missing."""
        return await self._runner.run(lambda: self._core.ensure_address_versions(tenant_id, items))

    async def ensure_user_messages(self, tenant_id: str, items: Sequence[UserMessage]) -> list[Ensured[UserMessage]]:
        """Insert the inbox rows that are missing."""
        return await self._runner.run(lambda: self._core.ensure_user_messages(tenant_id, items))

    async def ensure_outgoing_messages(self, tenant_id: str, batch: OutgoingBatch) -> list[Ensured[OutgoingMessage]]:
        """Insert the rows that are missing, all of one parent and all or none."""
        return await self._runner.run(lambda: self._core.ensure_outgoing_messages(tenant_id, batch))

    async def open_support_cases(self, tenant_id: str, cases: Sequence[SupportCase]) -> None:
        """Open these cases, or see them once more."""
        return await self._runner.run(lambda: self._core.open_support_cases(tenant_id, cases))

    async def list_support_cases(
        self, tenant_id: str, *, status: SupportStatus | None = None, after: UUID | None = None, limit: int = 50
    ) -> Sequence[SupportCase]:
        """List a tenant's cases in the order of their ids, starting behind `after`."""
        return await self._runner.run(
            lambda: self._core.list_support_cases(tenant_id, status=status, after=after, limit=limit)
        )

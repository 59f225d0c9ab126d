"""Mending: acts of people on notifications that are under way, each with a line in the audit log.

The queue makes the change and writes actor and reason on the row's own timeline in the same transaction; the line in
the tenant's log follows it.
"""

from uuid import UUID

from clarion.ports.catalog import CatalogStore
from clarion.ports.queue import QueueStore


class Mending:
    """What support does by hand."""

    def __init__(self, *, queue: QueueStore, catalog: CatalogStore) -> None:
        """Change rows here, and write down there who did."""
        self._queue = queue
        self._catalog = catalog

    async def retry(self, tenant_id: str, outgoing_id: int, *, version: int, actor: str, reason: str) -> bool:
        """Send a failed or doubtful message again; False where it has moved on since the person looked."""
        moved = await self._queue.retry_outgoing(tenant_id, outgoing_id, version=version, actor=actor, reason=reason)
        if moved:
            await self._catalog.append_audit(
                tenant_id, actor=actor, act="retry", subject=f"outgoing {outgoing_id}", reason=reason
            )
        return moved

    async def cancel(self, tenant_id: str, job_guid: UUID, *, actor: str) -> bool:
        """Send nothing more of a job; False where nothing is left to cancel."""
        canceled = await self._queue.cancel_job(tenant_id, job_guid, actor=actor)
        if canceled:
            await self._catalog.append_audit(tenant_id, actor=actor, act="cancel", subject=f"job {job_guid}")
        return canceled

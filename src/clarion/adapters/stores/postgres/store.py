"""The store's surface: every method of the ports, one transaction each.

What happens inside a transaction is in the modules that are called here; connections and repetition are in `session`. A
method of one statement needs no transaction around it.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar
from uuid import UUID

from clarion.adapters.stores.postgres import job
from clarion.adapters.stores.postgres.outgoing import insert_messages
from clarion.adapters.stores.postgres.queue import accept, claim
from clarion.adapters.stores.postgres.queue import stage as stage_
from clarion.adapters.stores.postgres.session import Session, Transaction
from clarion.adapters.stores.shared import receipts, snapshot, usage
from clarion.adapters.stores.shared.outgoing import ensure_outgoing_messages
from clarion.adapters.stores.shared.queue import stage
from clarion.adapters.stores.shared.queue.claim import rule_picked
from clarion.adapters.stores.shared.store import SharedStore, Urgency, Work
from clarion.domain.claim import (
    CallResult,
    ClaimedMessage,
    Discovery,
    FlowQuota,
    LowMark,
    StageClaim,
    StageResult,
)
from clarion.domain.ensured import Ensured
from clarion.domain.guard import JobEntry
from clarion.domain.identity import Lane
from clarion.domain.notification import NotificationJob, Stage
from clarion.domain.outgoing import OutgoingItem, OutgoingMessage
from clarion.domain.quota import Usage
from clarion.errors import StoreUnreachable
from clarion.ports.catalog import Used
from clarion.ports.ensure import bounded
from clarion.ports.snapshot import TableCopy
from clarion.ports.track import ProviderEvent

T = TypeVar("T")


class PostgresStore(SharedStore):
    """All records of all tenants, in one PostgreSQL database."""

    def __init__(self, session: Session) -> None:
        """Serve the database of an open session."""
        self._session = session

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()

    async def run(self, work: Work[T], urgency: Urgency | None) -> T:
        """Run a shared work on a connection; here no transaction waits for one that is more urgent."""
        how = self._session.read if urgency is None else self._session.transact
        return await how(lambda connection: work(Transaction(connection)))

    async def _single(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run a work of one statement, which is a transaction by itself."""
        return await self._session.single(lambda connection: work(Transaction(connection)))

    async def copy_tenant(self, tenant_id: str, *, until: datetime, rows_max: int) -> Mapping[str, TableCopy]:
        """Return a tenant's tables as they are at one moment."""
        return await self._session.snapshot(
            lambda c: snapshot.copy_tenant(Transaction(c), tenant_id, until=until, rows_max=rows_max)
        )

    async def ensure_outgoing_messages(
        self, tenant_id: str, items: Sequence[OutgoingItem]
    ) -> list[Ensured[OutgoingMessage]]:
        """Insert the rows that are missing."""
        if not bounded(items):
            return []
        return await self._session.transact(
            lambda c: ensure_outgoing_messages(Transaction(c), tenant_id, items, insert=partial(insert_messages, c))
        )

    async def ensure_notification_jobs(
        self, tenant_id: str, items: Sequence[JobEntry], /
    ) -> list[Ensured[NotificationJob]]:
        """Insert a set that is new by one statement; else insert what is missing and compare the rest."""
        if not bounded(items):
            return []
        made = await self._single(lambda t: job.insert_new_jobs(t, tenant_id, items))
        return await super().ensure_notification_jobs(tenant_id, items) if made is None else made

    async def claim_stage(
        self, stage: Stage, *, lanes: Sequence[Lane], limit: int, lease: timedelta, without: Collection[str] = ()
    ) -> list[StageClaim]:
        """Take due pending jobs of a stage."""
        return await self._session.single(
            lambda c: stage_.claim_stage(Transaction(c), stage, lanes=lanes, limit=limit, lease=lease, without=without)
        )

    async def finish_stage(self, results: Sequence[StageResult]) -> set[int]:
        """Move claimed rows on where the claim still stands."""
        if stage.is_one_statement(results):
            return await self._single(lambda t: stage.finish_stage(t, results))
        return await super().finish_stage(results)

    async def discover_flows(self, *, routes: Collection[str], lows: Mapping[int, LowMark]) -> Discovery:
        """Find the flows of these routes that have a row due behind their low mark."""
        return await self._single(lambda t: claim.discover_flows(t, routes=routes, lows=lows))

    async def claim_outgoing(
        self, quotas: Sequence[FlowQuota], *, token: UUID, lease: timedelta, actor: str
    ) -> list[ClaimedMessage]:
        """Take due rows, at most each flow's quota; where the reply is lost, look once for what was taken (F-24)."""
        if not quotas:
            return []
        try:
            picked = await self._single(lambda t: claim.claim_plain(t, quotas, token=token, lease=lease, actor=actor))
            if all(one.is_plain for one in picked):
                return [one.message for one in picked]
            return await self.run(lambda t: rule_picked(t, picked, lease=lease, actor=actor), Urgency.CLAIM)
        except StoreUnreachable:
            return await self._session.read(
                lambda c: claim.find_claimed(Transaction(c), quotas, token=token, lease=lease)
            )

    async def record_outgoing(self, results: Sequence[CallResult], *, actor: str) -> None:
        """Record what came back: plain acceptances by one statement, and then all that is left."""
        accepted = accept.plain(bounded(results))
        done = await self._single(lambda t: accept.accept_outgoing(t, accepted, actor=actor)) if accepted else set()
        if left := [one for one in results if one.id not in done]:
            await super().record_outgoing(left, actor=actor)

    async def keep_events(self, tenant_id: str, events: Sequence[ProviderEvent]) -> int:
        """Store events that are new."""
        return await self._single(lambda t: receipts.keep_events(t, tenant_id, events))

    async def count_usage(self, uses: Sequence[Used]) -> list[Usage]:
        """Add what was used, and return what all processes have counted."""
        return await self._single(lambda t: usage.count_usage(t, uses))

"""The store's surface: every method of the ports, one transaction each.

What happens inside a transaction is in the modules that are called here; connections and repetition are in `session`. A
method of one statement needs no transaction around it.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import TypeVar
from uuid import UUID

from clarion.adapters.stores.postgres import outgoing, track
from clarion.adapters.stores.postgres.queue import cancel, claim, uncertain
from clarion.adapters.stores.postgres.queue import record as recording
from clarion.adapters.stores.postgres.queue import stage as stage_
from clarion.adapters.stores.postgres.session import Session, Transaction
from clarion.adapters.stores.shared.store import SharedStore, Urgency, Work
from clarion.domain.claim import (
    CallResult,
    ClaimedMessage,
    Discovery,
    FlowQuota,
    Gate,
    LowMark,
    Recorded,
    Settlement,
    StageClaim,
    StageResult,
    UncertainSend,
)
from clarion.domain.ensured import Ensured
from clarion.domain.identity import Lane
from clarion.domain.notification import Stage
from clarion.domain.outgoing import OutgoingItem, OutgoingMessage
from clarion.errors import StoreUnreachable
from clarion.ports.ensure import bounded
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

    async def ensure_outgoing_messages(
        self, tenant_id: str, items: Sequence[OutgoingItem]
    ) -> list[Ensured[OutgoingMessage]]:
        """Insert the rows that are missing."""
        if not bounded(items):
            return []
        return await self._session.transact(lambda c: outgoing.ensure_outgoing_messages(c, tenant_id, items))

    async def claim_stage(
        self, stage: Stage, *, lanes: Sequence[Lane], limit: int, lease: timedelta
    ) -> list[StageClaim]:
        """Take due pending jobs of a stage."""
        return await self._session.single(lambda c: stage_.claim_stage(c, stage, lanes=lanes, limit=limit, lease=lease))

    async def finish_stage(self, results: Sequence[StageResult]) -> set[int]:
        """Move claimed rows on where the claim still stands."""
        if not bounded(results):
            return set()
        run = self._session.single if stage_.is_one_statement(results) else self._session.transact
        return await run(lambda c: stage_.finish_stage(c, results))

    async def freeze_recipients(self, frozen: Mapping[int, str]) -> dict[int, str]:
        """Store each job's recipient set unless one is stored already."""
        return await self._session.transact(lambda c: stage_.freeze_recipients(c, frozen)) if frozen else {}

    async def rescue_stages(self, *, limit: int, rescues_max: int) -> int:
        """Return expired claims to Ready, or past the bound to Failed."""
        return await self._session.transact(lambda c: stage_.rescue_stages(c, limit=limit, rescues_max=rescues_max))

    async def discover_flows(self, *, routes: Collection[str], lows: Mapping[int, LowMark]) -> Discovery:
        """Find the flows of these routes that have a row due behind their low mark."""
        return await self._session.read(lambda c: claim.discover_flows(c, routes=routes, lows=lows))

    async def claim_outgoing(
        self, quotas: Sequence[FlowQuota], *, token: UUID, lease: timedelta, actor: str
    ) -> list[ClaimedMessage]:
        """Take due rows, at most each flow's quota; where the reply is lost, look once for what was taken (F-24)."""
        if not quotas:
            return []
        try:
            return await self._session.single(
                lambda c: claim.claim_outgoing(c, quotas, token=token, lease=lease, actor=actor)
            )
        except StoreUnreachable:
            return await self._session.read(lambda c: claim.find_claimed(c, quotas, token=token, lease=lease))

    async def record_outgoing(self, results: Sequence[CallResult], *, actor: str) -> list[Recorded]:
        """Record what came back, by id and claim token, merged by rank."""
        if not bounded(results):
            return []
        accepted, others = recording.shared_out(results)
        done: dict[int, Recorded] = {}
        if accepted:
            sent = await self._session.single(lambda c: recording.accept_outgoing(c, accepted, actor=actor))
            if len(sent) == len(results):
                return sent
            done = {one.id: one for one in sent}
            others = [result for result in results if result.id not in done]
        left = await self._session.transact(lambda c: recording.record_outgoing(c, others, actor=actor))
        answers = iter(left)
        return [done[result.id] if result.id in done else next(answers) for result in results]

    async def rescue_outgoing(self, *, limit: int) -> int:
        """Turn `Sending` rows whose lease ran out into `Uncertain`."""
        return await self._session.transact(lambda c: uncertain.rescue_outgoing(c, limit=limit))

    async def find_uncertain(self, *, accounts: Collection[str], limit: int) -> list[UncertainSend]:
        """Return rows in `Uncertain` that wait for a decision."""
        return await self._session.read(lambda c: uncertain.find_uncertain(c, accounts=accounts, limit=limit))

    async def settle_uncertain(self, settlements: Sequence[Settlement], *, actor: str) -> set[int]:
        """Replay uncertain sends or let them rest, by version."""
        if not bounded(settlements):
            return set()
        return await self._session.transact(lambda c: uncertain.settle_uncertain(c, settlements, actor=actor))

    async def set_gate(self, tenant_id: str, broadcast: str, gate: Gate, *, actor: str) -> bool:
        """Open, pause or cancel a broadcast."""
        return await self._session.transact(lambda c: cancel.set_gate(c, tenant_id, broadcast, gate, actor=actor))

    async def sweep_canceled(self, *, limit: int) -> int:
        """End waiting rows that were called off."""
        return await self._session.transact(lambda c: cancel.sweep_canceled(c, limit=limit))

    async def cancel_job(self, tenant_id: str, job_guid: UUID, *, actor: str) -> bool:
        """Cancel a direct job."""
        return await self._session.transact(lambda c: cancel.cancel_job(c, tenant_id, job_guid, actor=actor))

    async def retry_job(self, tenant_id: str, job_guid: UUID, *, actor: str, reason: str) -> bool:
        """Return a failed job to `Ready` on a person's word."""
        return await self._session.transact(
            lambda c: stage_.retry_job(c, tenant_id, job_guid, actor=actor, reason=reason)
        )

    async def retry_outgoing(self, tenant_id: str, outgoing_id: int, *, version: int, actor: str, reason: str) -> bool:
        """Return a failed or uncertain row to `RetryReady` on a person's word."""
        return await self._session.transact(
            lambda c: uncertain.retry_outgoing(c, tenant_id, outgoing_id, version=version, actor=actor, reason=reason)
        )

    async def keep_events(self, tenant_id: str, events: Sequence[ProviderEvent]) -> int:
        """Store events that are new."""
        return await self._session.single(lambda c: track.keep_events(c, tenant_id, bounded(events))) if events else 0

    async def apply_events(self, *, limit: int, actor: str) -> int:
        """Merge kept events into their rows by rank."""
        return await self._session.transact(lambda c: track.apply_events(c, limit=limit, actor=actor))

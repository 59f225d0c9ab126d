"""The memory store's surface: every method of the ports, each answered by a function over the tables."""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import TypeVar
from uuid import UUID

from clarion.domain import act
from clarion.domain.address import AddressVersion
from clarion.domain.automation import AutomationJob, AutomationScheduler
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
from clarion.domain.guard import IdempotencyGuard, JobEntry
from clarion.domain.identity import Lane
from clarion.domain.inbox import UserMessage
from clarion.domain.messaging import MessagingJob
from clarion.domain.notification import NotificationJob, NotificationScheduler, Stage
from clarion.domain.outgoing import OutgoingItem, OutgoingMessage
from clarion.domain.recipient import RecipientFacts
from clarion.domain.support import SupportCase, SupportStatus
from clarion.domain.timeline import JobTimeline
from clarion.ports.catalog import ApiKey, AuditEntry, Person
from clarion.ports.clock import Clock
from clarion.ports.ensure import NO_HOLDS, Holds, WrappedKeys, bounded
from clarion.ports.facts import TemplateRow
from clarion.ports.insights import PAGE_MAX, Gauge, JobLine, UncertainLine
from clarion.ports.track import ProviderEvent
from clarion.testing.memory import catalog, claiming, ensuring, insights, recording, settling, stages, tracking
from clarion.testing.memory.record import FlowCount, Key
from clarion.testing.memory.tables import Tables

T = TypeVar("T")


class MemoryStore:
    """All records of all tenants, in dicts."""

    def __init__(self, clock: Clock) -> None:
        """Start empty."""
        self._tables = Tables(clock)

    async def close(self) -> None:
        """Forget nothing: there is nothing to let go of."""

    def table(self, tenant_id: str, kind: type[T]) -> dict[Key, T]:
        """Give the rows of one tenant and record type by key; a test may look into it and write to it."""
        return self._tables.of(tenant_id, kind)

    def flow_counts(self, tenant_id: str) -> list[FlowCount]:
        """Give a tenant's counters, which are computed, not kept by key."""
        return self._tables.flow_counts(tenant_id)

    async def ensure_tenant(self, tenant_id: str, keys: WrappedKeys, *, actor: str | None = None) -> WrappedKeys:
        """Make the tenant with these keys unless it exists, audited if by an actor; return the keys that it has."""
        if tenant_id not in self._tables.keys and actor is not None:
            catalog.append_audit(self._tables, tenant_id, act.create(tenant_id, actor=actor))
        return dict(self._tables.keys.setdefault(tenant_id, dict(keys)))

    async def find_tenant_keys(self, tenant_id: str) -> WrappedKeys | None:
        """Return the tenant's wrapped keys, or None where there is no such tenant."""
        return self._tables.keys.get(tenant_id)

    async def ensure_automation_schedulers(
        self, tenant_id: str, items: Sequence[AutomationScheduler]
    ) -> list[Ensured[AutomationScheduler]]:
        """Insert, or settle with the row that is there."""
        return [ensuring.ensure_occurrence(self._tables, tenant_id, item) for item in bounded(items)]

    async def ensure_automation_jobs(
        self, tenant_id: str, items: Sequence[AutomationJob]
    ) -> list[Ensured[AutomationJob]]:
        """Insert the traces that are missing."""
        return [ensuring.ensure(self._tables, tenant_id, item) for item in bounded(items)]

    async def ensure_notification_jobs(
        self, tenant_id: str, items: Sequence[JobEntry]
    ) -> list[Ensured[NotificationJob]]:
        """Insert guards, jobs and scheduler rows that are missing, together or not at all."""
        return [ensuring.ensure_job(self._tables, tenant_id, item) for item in bounded(items)]

    async def ensure_notification_schedulers(
        self, tenant_id: str, items: Sequence[NotificationScheduler]
    ) -> list[Ensured[NotificationScheduler]]:
        """Insert the pending rows that are missing."""
        return [ensuring.ensure_scheduler(self._tables, tenant_id, item) for item in bounded(items)]

    async def ensure_messaging_jobs(self, tenant_id: str, items: Sequence[MessagingJob]) -> list[Ensured[MessagingJob]]:
        """Insert the jobs that are missing."""
        return [ensuring.ensure(self._tables, tenant_id, item) for item in bounded(items)]

    async def ensure_address_versions(
        self, tenant_id: str, items: Sequence[AddressVersion]
    ) -> list[Ensured[AddressVersion]]:
        """Insert the versions that are missing."""
        return [ensuring.ensure(self._tables, tenant_id, item) for item in bounded(items)]

    async def find_guard(self, tenant_id: str, key: tuple[str, str]) -> IdempotencyGuard | None:
        """Return the guard of an operation and a key's hash."""
        return self._tables.of(tenant_id, IdempotencyGuard).get(key)

    async def ensure_user_messages(
        self, tenant_id: str, items: Sequence[UserMessage], *, holds: Holds = NO_HOLDS
    ) -> list[Ensured[UserMessage]]:
        """Insert the inbox rows that are missing and whose hold stands."""
        return [
            ensuring.ensure_inbox(self._tables, tenant_id, item, hold=holds.get(item.key)) for item in bounded(items)
        ]

    async def ensure_outgoing_messages(
        self, tenant_id: str, items: Sequence[OutgoingItem]
    ) -> list[Ensured[OutgoingMessage]]:
        """Insert the rows that are missing and whose hold stands."""
        return ensuring.ensure_outgoing(self._tables, tenant_id, bounded(items))

    async def open_support_cases(self, tenant_id: str, cases: Sequence[SupportCase]) -> None:
        """Open these cases, or see them once more."""
        self._tables.open_cases(tenant_id, bounded(cases))

    async def claim_stage(
        self, stage: Stage, *, lanes: Sequence[Lane], limit: int, lease: timedelta
    ) -> list[StageClaim]:
        """Take due pending jobs of a stage."""
        return stages.claim_stage(self._tables, stage, lanes=lanes, limit=limit, lease=lease)

    async def finish_stage(self, results: Sequence[StageResult]) -> set[int]:
        """Move claimed rows on where the claim still stands."""
        return stages.finish_stage(self._tables, results)

    async def freeze_recipients(self, frozen: Mapping[int, str]) -> dict[int, str]:
        """Store each job's recipient set unless one is stored already."""
        return stages.freeze_recipients(self._tables, frozen)

    async def rescue_stages(self, *, limit: int, rescues_max: int) -> int:
        """Return expired claims to Ready, or past the bound to Failed."""
        return stages.rescue_stages(self._tables, limit=limit, rescues_max=rescues_max)

    async def discover_flows(self, *, routes: Collection[str], lows: Mapping[int, LowMark]) -> Discovery:
        """Find the flows of these routes that have a row due behind their low mark."""
        return claiming.discover_flows(self._tables, routes=routes, lows=lows)

    async def claim_outgoing(
        self, quotas: Sequence[FlowQuota], *, token: UUID, lease: timedelta, actor: str
    ) -> list[ClaimedMessage]:
        """Take due rows, at most each flow's quota."""
        return claiming.claim_outgoing(self._tables, quotas, token=token, lease=lease, actor=actor)

    async def record_outgoing(self, results: Sequence[CallResult], *, actor: str) -> list[Recorded]:
        """Record what came back, by id and claim token, merged by rank."""
        return recording.record_outgoing(self._tables, results, actor=actor)

    async def rescue_outgoing(self, *, limit: int) -> int:
        """Turn rows whose lease ran out into uncertain sends."""
        return settling.rescue_outgoing(self._tables, limit=limit)

    async def find_uncertain(self, *, accounts: Collection[str], limit: int) -> list[UncertainSend]:
        """Return rows in `Uncertain` that wait for a decision."""
        return settling.find_uncertain(self._tables, accounts=accounts, limit=limit)

    async def settle_uncertain(self, settlements: Sequence[Settlement], *, actor: str) -> set[int]:
        """Replay uncertain sends or let them rest, by version."""
        return settling.settle_uncertain(self._tables, settlements, actor=actor)

    async def set_gate(self, tenant_id: str, broadcast: str, gate: Gate, *, actor: str) -> bool:
        """Open, pause or cancel a broadcast."""
        return settling.set_gate(self._tables, tenant_id, broadcast, gate, actor=actor)

    async def sweep_canceled(self, *, limit: int) -> int:
        """End waiting rows that were called off."""
        return settling.sweep_canceled(self._tables, limit=limit)

    async def cancel_job(self, tenant_id: str, job_guid: UUID, *, actor: str) -> bool:
        """Cancel a direct job."""
        return settling.cancel_job(self._tables, tenant_id, job_guid, actor=actor)

    async def retry_job(self, tenant_id: str, job_guid: UUID, *, actor: str, reason: str) -> bool:
        """Return a failed job to `Ready` on a person's word."""
        return stages.retry_job(self._tables, tenant_id, job_guid, actor=actor, reason=reason)

    async def retry_outgoing(self, tenant_id: str, outgoing_id: int, *, version: int, actor: str, reason: str) -> bool:
        """Return a failed or uncertain row to `RetryReady` on a person's word."""
        return settling.retry_outgoing(
            self._tables, tenant_id, outgoing_id, version=version, actor=actor, reason=reason
        )

    async def keep_events(self, tenant_id: str, events: Sequence[ProviderEvent]) -> int:
        """Store events that are new."""
        return tracking.keep_events(self._tables, tenant_id, events)

    async def apply_events(self, *, limit: int, actor: str) -> int:
        """Merge kept events into their rows by rank."""
        return tracking.apply_events(self._tables, limit=limit, actor=actor)

    async def find_recipients(self, tenant_id: str, hashes: Collection[str]) -> dict[str, RecipientFacts]:
        """Return the people behind these recipient hashes, by hash."""
        return catalog.find_recipients(self._tables, tenant_id, hashes)

    async def find_members(self, tenant_id: str, groups: Collection[UUID]) -> dict[UUID, tuple[str, ...]]:
        """Return the recipient hashes of each group's members."""
        return catalog.find_members(self._tables, tenant_id, groups)

    async def find_disabled_types(self, types: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return those of these types that their tenant has switched off."""
        return catalog.find_disabled_types(self._tables, types)

    async def find_templates(
        self, wanted: Sequence[tuple[str, str, int | None]]
    ) -> dict[tuple[str, str, int | None], TemplateRow]:
        """Return templates by tenant, key and version."""
        return catalog.find_templates(self._tables, wanted)

    async def publish_template(
        self, tenant_id: str, *, template_key: str, content_hash: str, bundle: str, actor: str
    ) -> Ensured[TemplateRow]:
        """Store a new version unless the latest one has this content."""
        return catalog.publish_template(
            self._tables, tenant_id, template_key=template_key, content_hash=content_hash, bundle=bundle, actor=actor
        )

    async def list_templates(self, tenant_id: str) -> Sequence[TemplateRow]:
        """Return the latest version of every template."""
        return catalog.list_templates(self._tables, tenant_id)

    async def put_people(self, tenant_id: str, people: Sequence[Person]) -> None:
        """Insert or replace people and their contacts."""
        catalog.put_people(self._tables, tenant_id, bounded(people))

    async def put_group(self, tenant_id: str, *, guid: UUID, name: str, members: Sequence[str]) -> None:
        """Insert or replace a group."""
        catalog.put_group(self._tables, tenant_id, guid=guid, name=name, members=members)

    async def set_type_enabled(self, tenant_id: str, event_type: str, *, enabled: bool, actor: str) -> bool:
        """Switch a notification type on or off."""
        return catalog.set_type_enabled(self._tables, tenant_id, event_type, enabled=enabled, actor=actor)

    async def put_api_key(self, key: ApiKey, *, actor: str) -> bool:
        """Store a new key."""
        return catalog.put_api_key(self._tables, key, actor=actor)

    async def find_api_key(self, key_id: str) -> ApiKey | None:
        """Return a key by its public id."""
        return catalog.find_api_key(self._tables, key_id)

    async def list_api_keys(self, tenant_id: str) -> Sequence[ApiKey]:
        """Return a tenant's keys in the order of creation."""
        return catalog.list_api_keys(self._tables, tenant_id)

    async def revoke_api_key(self, tenant_id: str, key_id: str, *, actor: str) -> bool:
        """Revoke a key from now on."""
        return catalog.revoke_api_key(self._tables, tenant_id, key_id, actor=actor)

    async def resolve_support_case(self, tenant_id: str, case_id: UUID, *, actor: str, resolution: str) -> bool:
        """Resolve an open case."""
        return catalog.resolve_support_case(self._tables, tenant_id, case_id, actor=actor, resolution=resolution)

    async def list_audit(self, tenant_id: str, *, after: int = 0, limit: int = 50) -> Sequence[AuditEntry]:
        """Return entries in order, starting behind `after`."""
        return catalog.list_audit(self._tables, tenant_id, after=after, limit=_page(limit))

    async def list_tenants(self, *, after: str = "", limit: int = 50) -> Sequence[str]:
        """List the tenants in the order of their ids."""
        return [tenant_id for tenant_id in sorted(self._tables.keys) if tenant_id > after][: _page(limit)]

    async def find_job_timeline(self, tenant_id: str, guid: UUID) -> JobTimeline | None:
        """Return everything about a job by its guid."""
        return insights.find_job_timeline(self._tables, tenant_id, guid)

    async def find_job_of_message(self, tenant_id: str, message_id: UUID) -> UUID | None:
        """Return the guid of the job that a message belongs to."""
        return insights.find_job_of_message(self._tables, tenant_id, message_id)

    async def list_jobs(
        self, tenant_id: str, partition_key: str, *, after: str = "", limit: int = 50
    ) -> Sequence[JobLine]:
        """List a partition's jobs in the order of their row keys."""
        return insights.list_jobs(self._tables, tenant_id, partition_key, after=after, limit=_page(limit))

    async def list_uncertain(self, tenant_id: str, *, after: int = 0, limit: int = 50) -> Sequence[UncertainLine]:
        """List rows in `Uncertain` in the order of their ids."""
        return insights.list_uncertain(self._tables, tenant_id, after=after, limit=_page(limit))

    async def list_support_cases(
        self, tenant_id: str, *, status: SupportStatus | None = None, after: UUID | None = None, limit: int = 50
    ) -> Sequence[SupportCase]:
        """List a tenant's cases in the order of their ids."""
        return insights.list_support_cases(self._tables, tenant_id, status=status, after=after, limit=_page(limit))

    async def find_support_case(self, tenant_id: str, case_id: UUID) -> SupportCase | None:
        """Return one case."""
        return self._tables.of(tenant_id, SupportCase).get((str(case_id),))

    async def measure(self) -> Gauge:
        """Measure the work of all tenants."""
        return insights.measure(self._tables)


def _page(limit: int) -> int:
    """Keep a page to what a person reads."""
    return min(limit, PAGE_MAX)

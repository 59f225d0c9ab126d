"""The read side: lists, pages and gauges, one statement each. Reads only; what happened to one job is in `timeline`."""

from collections import Counter, defaultdict
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import msgspec

from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Argument, Transaction, first
from clarion.domain.address import AddressVersion
from clarion.domain.identity import Lane
from clarion.domain.notification import NotificationStatus, Stage
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.recipient import COUNTED_BY, MANIFEST_BEGINS, how_many
from clarion.domain.result import Standing
from clarion.domain.skip import SkipRule, rule_of
from clarion.domain.support import SupportCase, SupportStatus
from clarion.ports.insights import PAGE_MAX, Gauge, JobLine, RouteAge, UncertainLine

_SQL: Final = Statements("insights.sql")

_END_AT: Final = datetime(9999, 12, 31, tzinfo=UTC)
"""Behind all times that anything happens at."""

COUNTED_MAX: Final = 100_000
"""A gauge that stands here says "very many"; counting on would cost more than anybody gains by it."""


class _Tenant(msgspec.Struct, frozen=True):
    tenant_id: str


class _Job(msgspec.Struct, frozen=True):
    guid: UUID


class _Payload(msgspec.Struct, frozen=True):
    guid: UUID
    payload: bytes


class _Standing(msgspec.Struct, frozen=True, kw_only=True):
    guid: UUID
    work: NotificationStatus | None
    manifest: str | None
    recipients: int
    addressed: int
    inbox: int


class _Messages(msgspec.Struct, frozen=True, kw_only=True):
    guid: UUID
    status: OutgoingStatus
    reason_class: str
    messages: int


class _Measured(msgspec.Struct, frozen=True):
    now: datetime
    stages_waiting: int
    oldest_stage_due_at: datetime | None
    outgoing_waiting: int
    oldest_outgoing_due_at: datetime | None
    sending: int
    uncertain: int
    occurrences_due: int
    oldest_occurrence_due_at: datetime | None
    occurrences_held: int
    occurrences_failed: int
    open_support_cases: int


class _Route(msgspec.Struct, frozen=True):
    route: str
    oldest_due_at: datetime
    now: datetime


async def list_tenants(transaction: Transaction, *, after: str = "", limit: int = 50) -> list[str]:
    """List the tenants in the order of their ids, behind `after`."""
    rows = await transaction.fetch(_Tenant, _SQL["list_tenants"], after=after, limit=_page(limit))
    return [row.tenant_id for row in rows]


async def find_job_of_message(transaction: Transaction, tenant_id: str, message_id: UUID) -> UUID | None:
    """Return the guid of the job that a message belongs to, or None."""
    rows = await transaction.fetch(_Job, _SQL["find_job_of_message"], tenant_id=tenant_id, message_id=message_id)
    return rows[0].guid if rows else None


async def list_jobs(
    transaction: Transaction, tenant_id: str, partition_key: str, *, after: str = "", limit: int = 50
) -> list[JobLine]:
    """List a partition's jobs in the order of their row keys, behind `after`."""
    place = {"tenant_id": tenant_id, "partition_key": partition_key, "after": after}
    return await transaction.fetch(JobLine, _SQL["list_jobs"], limit=_page(limit), **place)


async def list_latest_jobs(
    transaction: Transaction, tenant_id: str, *, after: tuple[datetime, UUID] | None = None, limit: int = 50
) -> list[JobLine]:
    """List a tenant's jobs, the newest first, behind `after`."""
    at, guid = after or (_END_AT, UUID(int=0))
    return await transaction.fetch(
        JobLine, _SQL["list_latest_jobs"], tenant_id=tenant_id, at=at, guid=guid, limit=_page(limit)
    )


async def find_standings(transaction: Transaction, tenant_id: str, guids: Collection[UUID]) -> dict[UUID, Standing]:
    """Count what decides the results of some jobs: two statements, however many messages they have."""
    jobs = sorted(set(guids))
    if not jobs:
        return {}
    found = await transaction.fetch(
        _Standing,
        _SQL["find_standings"],
        tenant_id=tenant_id,
        jobs=jobs,
        counted_by=COUNTED_BY,
        manifest_begins=MANIFEST_BEGINS,
    )
    outgoing: defaultdict[UUID, Counter[OutgoingStatus]] = defaultdict(Counter)
    opted_out: Counter[UUID] = Counter()
    for row in await transaction.fetch(_Messages, _SQL["count_messages_of_jobs"], tenant_id=tenant_id, jobs=jobs):
        outgoing[row.guid][row.status] += row.messages
        if rule_of(row.status, row.reason_class) is SkipRule.PREFERENCE:
            opted_out[row.guid] += row.messages
    return {
        row.guid: Standing(
            work=row.work,
            recipients=how_many(row.manifest) if row.manifest else row.recipients,
            addressed=row.addressed,
            inbox=row.inbox,
            outgoing=dict(outgoing[row.guid]),
            opted_out=opted_out[row.guid],
        )
        for row in found
    }


async def find_payloads(transaction: Transaction, tenant_id: str, guids: Collection[UUID]) -> dict[UUID, bytes]:
    """Return what was asked for by these jobs, sealed as it is stored."""
    jobs = sorted(set(guids))
    if not jobs:
        return {}
    found = await transaction.fetch(_Payload, _SQL["find_payloads"], tenant_id=tenant_id, jobs=jobs)
    return {row.guid: row.payload for row in found}


async def find_addresses(transaction: Transaction, tenant_id: str, ids: Collection[int]) -> list[AddressVersion]:
    """Return these address versions of the tenant, sealed as they are stored."""
    wanted = sorted(set(ids))
    if not wanted:
        return []
    return await transaction.fetch(AddressVersion, _SQL["find_addresses"], tenant_id=tenant_id, addresses=wanted)


async def list_uncertain(
    transaction: Transaction, tenant_id: str, *, after: int = 0, limit: int = 50
) -> list[UncertainLine]:
    """List rows in `Uncertain` in the order of their ids, behind `after`."""
    return await transaction.fetch(
        UncertainLine, _SQL["list_uncertain"], tenant_id=tenant_id, after=after, limit=_page(limit)
    )


async def list_support_cases(
    transaction: Transaction,
    tenant_id: str,
    *,
    status: SupportStatus | None = None,
    after: UUID | None = None,
    limit: int = 50,
) -> list[SupportCase]:
    """List a tenant's cases in the order of their ids, starting behind `after`."""
    page: dict[str, Argument] = {"tenant_id": tenant_id, "after": after or UUID(int=0), "limit": _page(limit)}
    if status is None:
        return await transaction.fetch(SupportCase, _SQL["list_support_cases"], **page)
    return await transaction.fetch(SupportCase, _SQL["list_support_cases_by_status"], status=status, **page)


async def find_support_case(transaction: Transaction, tenant_id: str, case_id: UUID) -> SupportCase | None:
    """Return one case, or None."""
    return first(await transaction.fetch(SupportCase, _SQL["find_support_case"], tenant_id=tenant_id, case_id=case_id))


async def measure(transaction: Transaction) -> Gauge:
    """Measure the work of all tenants; numbers end at `COUNTED_MAX`."""
    (found,) = await transaction.fetch(
        _Measured, _SQL["measure"], stages=list(Stage), lanes=list(Lane), counted_max=COUNTED_MAX
    )
    return Gauge(
        stages_waiting=found.stages_waiting,
        oldest_stage_seconds=_seconds(found.oldest_stage_due_at, found.now),
        outgoing_waiting=found.outgoing_waiting,
        oldest_outgoing_seconds=_seconds(found.oldest_outgoing_due_at, found.now),
        sending=found.sending,
        uncertain=found.uncertain,
        occurrences_due=found.occurrences_due,
        oldest_occurrence_seconds=_seconds(found.oldest_occurrence_due_at, found.now),
        occurrences_held=found.occurrences_held,
        occurrences_failed=found.occurrences_failed,
        open_support_cases=found.open_support_cases,
    )


async def measure_routes(transaction: Transaction) -> list[RouteAge]:
    """Say of each route on which messages are due how long the oldest has waited, by route."""
    rows = await transaction.fetch(_Route, _SQL["measure_routes"])
    return [RouteAge(route=row.route, oldest_seconds=_seconds(row.oldest_due_at, row.now)) for row in rows]


def _seconds(due_at: datetime | None, now: datetime) -> float:
    """Give the seconds for which something that is due has waited."""
    return 0.0 if due_at is None else (now - due_at).total_seconds()


def _page(limit: int) -> int:
    """Keep a page to what a person reads."""
    return min(limit, PAGE_MAX)

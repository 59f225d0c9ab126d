"""The read side: lists, pages and gauges, one statement each. The story of a job is in `story`. Writes nothing."""

from typing import Final
from uuid import UUID

from clarion.adapters.stores.query import load
from clarion.adapters.stores.sqlite import codec
from clarion.adapters.stores.sqlite.session import Transaction
from clarion.domain.identity import Lane
from clarion.domain.notification import Stage
from clarion.domain.support import SupportCase, SupportStatus
from clarion.ports.insights import PAGE_MAX, DoubtLine, Gauge, JobLine

_SQL: Final = load(__package__, "insights.sql")


def list_tenants(transaction: Transaction, *, after: str = "", limit: int = 50) -> list[str]:
    """List the tenants in the order of their ids, behind `after`."""
    return [row[0] for row in transaction.rows(_SQL["list_tenants"], after=after, limit=_page(limit))]


def find_job_of_message(transaction: Transaction, tenant_id: str, message_id: UUID) -> UUID | None:
    """Return the guid of the job that a message belongs to, or None."""
    rows = transaction.rows(_SQL["find_job_of_message"], tenant_id=tenant_id, message_id=str(message_id))
    return UUID(rows[0][0]) if rows else None


def list_jobs(
    transaction: Transaction, tenant_id: str, partition_key: str, *, after: str = "", limit: int = 50
) -> list[JobLine]:
    """List a partition's jobs in the order of their row keys, behind `after`."""
    return transaction.records(
        JobLine,
        _SQL["list_jobs"],
        tenant_id=tenant_id,
        partition_key=partition_key,
        after=after,
        limit=_page(limit),
    )


def list_doubts(transaction: Transaction, tenant_id: str, *, after: int = 0, limit: int = 50) -> list[DoubtLine]:
    """List rows in `Uncertain` in the order of their ids, behind `after`."""
    return transaction.records(DoubtLine, _SQL["list_doubts"], tenant_id=tenant_id, after=after, limit=_page(limit))


def list_support_cases(
    transaction: Transaction,
    tenant_id: str,
    *,
    status: SupportStatus | None = None,
    after: UUID | None = None,
    limit: int = 50,
) -> list[SupportCase]:
    """List a tenant's cases in the order of their ids, starting behind `after`."""
    page: dict[str, str | int] = {
        "tenant_id": tenant_id,
        "after": "" if after is None else str(after),
        "limit": _page(limit),
    }
    if status is None:
        return transaction.records(SupportCase, _SQL["list_support_cases"], **page)
    return transaction.records(SupportCase, _SQL["list_support_cases_by_status"], status=status.value, **page)


def find_support_case(transaction: Transaction, tenant_id: str, case_id: UUID) -> SupportCase | None:
    """Return one case, or None."""
    found = transaction.records(SupportCase, _SQL["find_support_case"], tenant_id=tenant_id, case_id=str(case_id))
    return found[0] if found else None


def measure(transaction: Transaction) -> Gauge:
    """Measure the work of all tenants."""
    ((stages, oldest_stage, outgoing, oldest_outgoing, sending, uncertain, cases),) = transaction.rows(
        _SQL["measure"], stages=codec.as_json(list(Stage)), lanes=codec.as_json(list(Lane))
    )
    return Gauge(
        stages_waiting=stages,
        oldest_stage_seconds=_age(transaction, oldest_stage),
        outgoing_waiting=outgoing,
        oldest_outgoing_seconds=_age(transaction, oldest_outgoing),
        sending=sending,
        uncertain=uncertain,
        open_support_cases=cases,
    )


def _age(transaction: Transaction, due_at: int | None) -> float:
    """Give the seconds for which something that is due has waited."""
    return 0.0 if due_at is None else (transaction.now - due_at) / 1_000_000


def _page(limit: int) -> int:
    """Keep a page to what a person reads."""
    return min(limit, PAGE_MAX)

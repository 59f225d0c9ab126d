"""Ensuring notification jobs: guard, job and scheduler row, in one transaction.

The guards are read first, since they decide where a job lies, and written last, for the jobs that proceed: this
transaction is the only one that writes, so nobody can make a guard in between. Writes `idempotency_guard`,
`notification_job`, `notification_scheduler` and `support_case`.
"""

from collections.abc import Sequence
from typing import Final

from clarion.adapters.stores import answer
from clarion.adapters.stores.answer import Key
from clarion.adapters.stores.query import load
from clarion.adapters.stores.sqlite import codec
from clarion.adapters.stores.sqlite.ensure import record
from clarion.adapters.stores.sqlite.session import Transaction
from clarion.domain.ensured import Ensured
from clarion.domain.guard import IdempotencyGuard, JobEntry
from clarion.domain.notification import NotificationJob

_SQL: Final = load(__package__, "notification.sql")


def ensure_notification_jobs(
    transaction: Transaction, tenant_id: str, items: Sequence[JobEntry]
) -> list[Ensured[NotificationJob]]:
    """Insert guards, jobs and scheduler rows that are absent, and compare the jobs that are there."""
    passages = answer.pass_guards(items, guards=_read_guards(transaction, tenant_id, items))
    passed = [passage for passage in passages if passage.answer is None]
    created, stored = _ensure_jobs(transaction, tenant_id, passed)
    verdicts = answer.judge_jobs(tenant_id, passages, stored=stored, created=created)
    proceeding = [
        passage.entry for passage, verdict in zip(passages, verdicts.answers, strict=True) if verdict.proceeds
    ]
    if guards := [entry.guard for entry in proceeding if entry.guard is not None]:
        transaction.rows(_SQL["insert_idempotency_guards"], tenant_id=tenant_id, items=codec.parameter(guards))
    if schedulers := [entry.scheduler for entry in proceeding if entry.scheduler is not None]:
        record.insert_absent(transaction, tenant_id, schedulers, table=record.NOTIFICATION_SCHEDULERS)
    record.write_cases(transaction, tenant_id, verdicts.cases)
    return verdicts.answers


def find_guard(transaction: Transaction, tenant_id: str, key: tuple[str, str]) -> IdempotencyGuard | None:
    """Return the guard of an operation and a key's hash."""
    operation, key_hash = key
    given = codec.as_json([{"operation": operation, "key_hash": key_hash}])
    found = transaction.records(IdempotencyGuard, _SQL["read_idempotency_guards"], tenant_id=tenant_id, items=given)
    return found[0] if found else None


def _read_guards(transaction: Transaction, tenant_id: str, items: Sequence[JobEntry]) -> dict[Key, IdempotencyGuard]:
    """Give the guard of each key that is asked for: the one that is stored, else the first of the set."""
    first = {item.guard.key: item.guard for item in reversed(items) if item.guard is not None}
    if not first:
        return {}
    given = codec.parameter(first.values())
    stored = transaction.records(IdempotencyGuard, _SQL["read_idempotency_guards"], tenant_id=tenant_id, items=given)
    return first | {guard.key: guard for guard in stored}


def _ensure_jobs(
    transaction: Transaction, tenant_id: str, passed: Sequence[answer.Passage]
) -> tuple[set[Key], dict[Key, NotificationJob]]:
    """Insert the jobs that are absent and may be made; a key that was used with another payload makes none."""
    wanted = [passage.entry.job for passage in passed if not passage.differs]
    compared = [passage.entry.job for passage in passed if passage.differs]
    created: set[Key] = set()
    stored: dict[Key, NotificationJob] = {}
    if wanted:
        created, stored = record.insert_and_read(transaction, tenant_id, wanted, table=record.NOTIFICATION_JOBS)
    if compared:
        stored |= record.read_stored(transaction, tenant_id, compared, table=record.NOTIFICATION_JOBS)
    return created, stored

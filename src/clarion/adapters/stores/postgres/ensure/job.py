"""Ensuring notification jobs: guard, job and scheduler row, in one transaction and in this order.

The guard comes first because its unique key decides a race: whoever comes second waits for the first one's commit,
reads where its job stands and goes on at those coordinates. Writes `idempotency_guard`, `notification_job`,
`notification_scheduler` and `support_case`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from clarion.adapters.stores import answer
from clarion.adapters.stores.answer import Key
from clarion.adapters.stores.postgres import codec
from clarion.adapters.stores.postgres.ensure import record
from clarion.adapters.stores.query import load
from clarion.domain.ensured import Ensured
from clarion.domain.guard import IdempotencyGuard, JobEntry
from clarion.domain.notification import NotificationJob

if TYPE_CHECKING:
    from clarion.adapters.stores.postgres.session import Connection

_SQL: Final = load(__package__, "notification.sql")
_read_guard: Final = codec.reader(IdempotencyGuard)


async def ensure_notification_jobs(
    connection: "Connection", tenant_id: str, items: Sequence[JobEntry]
) -> list[Ensured[NotificationJob]]:
    """Insert guards, jobs and scheduler rows that are absent, and compare the jobs that are there."""
    made = await _insert_guards(connection, tenant_id, items)
    guards = await _read_guards(connection, tenant_id, items)
    passages = answer.pass_guards(items, guards=guards)
    created, stored = await _insert_jobs(connection, tenant_id, passages)
    verdicts = answer.judge_jobs(tenant_id, passages, stored=stored, created=created)
    judged = zip(passages, verdicts.answers, strict=True)
    proceeding = [passage.entry for passage, verdict in judged if verdict.proceeds]
    schedulers = [entry.scheduler for entry in proceeding if entry.scheduler is not None]
    if schedulers:
        await record.insert_absent(connection, tenant_id, schedulers, table=record.NOTIFICATION_SCHEDULERS)
    unused = made - {entry.guard.key for entry in proceeding if entry.guard is not None}
    if unused:
        rows = ({"operation": operation, "key_hash": key_hash} for operation, key_hash in unused)
        await connection.execute(_SQL["delete_idempotency_guards"].sql, tenant_id, codec.as_json(rows))
    await record.write_cases(connection, tenant_id, verdicts.cases)
    return verdicts.answers


async def find_guard(connection: "Connection", tenant_id: str, key: tuple[str, str]) -> IdempotencyGuard | None:
    """Return the guard of an operation and a key's hash."""
    operation, key_hash = key
    given = codec.as_json([{"operation": operation, "key_hash": key_hash}])
    row = await connection.fetchrow(_SQL["read_idempotency_guards"].sql, tenant_id, given)
    return None if row is None else _read_guard(row)


async def _insert_guards(connection: "Connection", tenant_id: str, items: Sequence[JobEntry]) -> set[Key]:
    """Insert the first guard of each key that is absent, and return the keys that were."""
    first = {item.guard.key: item.guard for item in reversed(items) if item.guard is not None}
    if not first:
        return set()
    query = _SQL["insert_idempotency_guards"]
    made = await connection.fetch(query.sql, tenant_id, codec.parameter(first.values()))
    return {tuple(row) for row in made}


async def _read_guards(
    connection: "Connection", tenant_id: str, items: Sequence[JobEntry]
) -> dict[Key, IdempotencyGuard]:
    """Read the guards of these entries as they are stored, whoever made them."""
    one_of_each = {item.guard.key: item.guard for item in items if item.guard is not None}
    if not one_of_each:
        return {}
    query = _SQL["read_idempotency_guards"]
    rows = await connection.fetch(query.sql, tenant_id, codec.parameter(one_of_each.values()))
    return {guard.key: guard for guard in map(_read_guard, rows)}


async def _insert_jobs(
    connection: "Connection", tenant_id: str, passages: Sequence[answer.Passage]
) -> tuple[set[Key], dict[Key, NotificationJob]]:
    """Insert the jobs whose guards let them, and read these and those that are only compared."""
    asked = [passage for passage in passages if passage.answer is None]
    wanted = [passage.entry.job for passage in asked if not passage.differs]
    created: set[Key] = set()
    stored: dict[Key, NotificationJob] = {}
    if wanted:
        created = await record.insert_absent(connection, tenant_id, wanted, table=record.NOTIFICATION_JOBS)
    if asked:
        jobs = [passage.entry.job for passage in asked]
        stored = await record.read_stored(connection, tenant_id, jobs, table=record.NOTIFICATION_JOBS)
    record.require_stored(wanted, stored)
    return created, stored

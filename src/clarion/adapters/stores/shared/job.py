"""Notification jobs: guard, job and scheduler row, in one transaction and in this order.

The guard comes first because its unique key decides a race: whoever comes second waits for the first one's commit,
reads where its job stands and goes on at those coordinates. Writes `idempotency_guard`, `notification_job`,
`notification_scheduler` and `support_case`.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from clarion.adapters.stores.shared import answer
from clarion.adapters.stores.shared.answer import Key
from clarion.adapters.stores.shared.ensure import (
    Stored,
    Table,
    ensure,
    first_of_each,
    insert_absent,
    keys_of,
    read_stored,
    require_stored,
)
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.support import write_cases
from clarion.adapters.stores.shared.transaction import Transaction, first
from clarion.domain.ensured import Ensured
from clarion.domain.fingerprint import Fingerprint
from clarion.domain.guard import IdempotencyGuard, JobEntry
from clarion.domain.notification import ArtifactType, NotificationJob, NotificationScheduler
from clarion.domain.part import is_guid
from clarion.ports.ensure import unknown_artifact

_SQL: Final = Statements("job.sql")
_JOBS: Final = Table(NotificationJob, _SQL, "notification_jobs")
_SCHEDULERS: Final = Table(NotificationScheduler, _SQL, "notification_schedulers")


class _Artifact(msgspec.Struct, frozen=True):
    """What a scheduler row can be pending for."""

    artifact_type: ArtifactType
    artifact_pk: str
    artifact_rk: str


class MadeJob(msgspec.Struct, frozen=True):
    """A job that was just inserted."""

    id: int
    row_key: str


class _GuardKey(msgspec.Struct, frozen=True):
    operation: str
    key_hash: str


async def ensure_notification_jobs(
    transaction: Transaction, tenant_id: str, items: Sequence[JobEntry]
) -> list[Ensured[NotificationJob]]:
    """Insert guards, jobs and scheduler rows that are absent, and compare the jobs that are there."""
    made, guards = await _insert_guards(transaction, tenant_id, items)
    passages = answer.pass_guards(items, guards=guards)
    created, stored = await _insert_jobs(transaction, tenant_id, passages)
    verdicts = answer.judge_jobs(tenant_id, passages, stored=stored, created=created)
    judged = zip(passages, verdicts.answers, strict=True)
    proceeding = [passage.entry for passage, verdict in judged if verdict.proceeds]
    if schedulers := [entry.scheduler for entry in proceeding if entry.scheduler is not None]:
        await insert_absent(transaction, tenant_id, schedulers, _SCHEDULERS)
    unused = made - {entry.guard.key for entry in proceeding if entry.guard is not None}
    for operation in sorted({operation for operation, _ in unused}):
        hashes = sorted(key_hash for of, key_hash in unused if of == operation)
        await transaction.execute(
            _SQL["delete_idempotency_guards"], tenant_id=tenant_id, operation=operation, key_hashes=hashes
        )
    await write_cases(transaction, tenant_id, verdicts.cases)
    return verdicts.answers


async def ensure_notification_schedulers(
    transaction: Transaction, tenant_id: str, items: Sequence[NotificationScheduler]
) -> list[Ensured[NotificationScheduler]]:
    """Insert the pending rows that are missing, of jobs that are there."""
    await _require_artifacts(transaction, tenant_id, items)
    return await ensure(transaction, tenant_id, items, _SCHEDULERS)


async def _require_artifacts(transaction: Transaction, tenant_id: str, items: Sequence[NotificationScheduler]) -> None:
    """Refuse a set with a row whose job is not there: no worker would ever find anything to do for it."""
    keys = {(item.artifact_type, item.artifact_pk, item.artifact_rk): item for item in items}
    jobs = [(pk, rk) for kind, pk, rk in keys if kind is ArtifactType.NOTIFICATION_JOB]
    guids = [pk for kind, pk, rk in keys if kind is ArtifactType.MESSAGING_JOB and pk == rk and is_guid(pk)]
    rows = await transaction.fetch(
        _Artifact, _SQL["read_artifacts"], tenant_id=tenant_id, notification_jobs=jobs, messaging_jobs=guids
    )
    found = {(row.artifact_type, row.artifact_pk, row.artifact_rk) for row in rows}
    for key, item in keys.items():
        if key not in found:
            raise unknown_artifact(item.artifact_rk)


async def find_guard(transaction: Transaction, tenant_id: str, key: tuple[str, str]) -> IdempotencyGuard | None:
    """Return the guard of an operation and a key's hash."""
    read = _SQL["read_idempotency_guards"]
    return first(await transaction.fetch(IdempotencyGuard, read, tenant_id=tenant_id, keys=[key]))


async def _insert_guards(
    transaction: Transaction, tenant_id: str, items: Sequence[JobEntry]
) -> tuple[set[Key], dict[Key, IdempotencyGuard]]:
    """Insert the first guard of each key that is absent; return the keys that were, and all guards as stored."""
    guards = {item.guard.key: item.guard for item in reversed(items) if item.guard is not None}
    if not guards:
        return set(), {}
    given = list(guards.values())
    rows = await transaction.fetch(_GuardKey, _SQL["insert_idempotency_guards"], tenant_id=tenant_id, guards=given)
    made: set[Key] = {(row.operation, row.key_hash) for row in rows}
    if len(made) == len(guards):
        return made, dict(guards)  # nobody was there before: what is stored is what was given
    stored = await transaction.fetch(IdempotencyGuard, _SQL["read_idempotency_guards"], tenant_id=tenant_id, keys=given)
    return made, {guard.key: guard for guard in stored}


async def _insert_jobs(
    transaction: Transaction, tenant_id: str, passages: Sequence[answer.Passage]
) -> tuple[set[Key], Stored[NotificationJob]]:
    """Insert the jobs whose guards let them; return the keys of the new ones, and all jobs that are to be compared."""
    asked = [passage.entry.job for passage in passages if passage.answer is None]
    wanted = [passage.entry.job for passage in passages if passage.answer is None and not passage.differs]
    if not asked:
        return set(), {}
    insert, given = _SQL["insert_notification_jobs"], first_of_each(wanted)
    rows = await transaction.fetch(MadeJob, insert, tenant_id=tenant_id, items=given) if given else []
    if len(rows) == len(given) and len(wanted) == len(asked):  # all are new: what is stored is what was given
        ids = {row.row_key: row.id for row in rows}
        stored: Stored[NotificationJob] = {job.key: as_stored(job, ids[job.row_key]) for job in given}
    else:
        stored = await read_stored(transaction, tenant_id, asked, _JOBS)
        require_stored(wanted, stored)
    return keys_of({row.id for row in rows}, stored), stored


def as_stored(job: NotificationJob, id_: int) -> NotificationJob:
    """Give a job that was just made as a read would: with its id, and the one hash that its row keeps."""
    return msgspec.structs.replace(job, id=id_, payload_hash=Fingerprint.stored(job.payload_hash.text))

"""Occurrences of automations and their traces.

Writes `automation_scheduler`, `automation_job`, `support_case` and, of what no plan has made, `entity_history`.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from clarion.adapters.stores.shared import answer
from clarion.adapters.stores.shared.ensure import Table, ensure, insert_absent, insert_and_read, read_stored
from clarion.adapters.stores.shared.entity_history import write_lines
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.support import write_cases
from clarion.adapters.stores.shared.transaction import Overtaken, Transaction
from clarion.domain.automation import AutomationJob, AutomationScheduler
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.entity_event import HistoryKind
from clarion.domain.occurrence_line import occurrence_line

_SQL: Final = Statements("automation.sql")
_SCHEDULERS: Final = Table(AutomationScheduler, _SQL, "automation_schedulers")
_JOBS: Final = Table(AutomationJob, _SQL, "automation_jobs")


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """An occurrence that is asked for by something else than a plan: because of what, and in which words."""

    row: AutomationScheduler
    cause: str
    text: str


class _Locked(msgspec.Struct, frozen=True):
    scheduler_key: str
    version: int


async def ensure_automation_jobs(
    transaction: Transaction, tenant_id: str, items: Sequence[AutomationJob]
) -> list[Ensured[AutomationJob]]:
    """Insert the traces that are missing."""
    return await ensure(transaction, tenant_id, items, _JOBS)


async def ensure_automation_schedulers(
    transaction: Transaction, tenant_id: str, items: Sequence[AutomationScheduler]
) -> list[Ensured[AutomationScheduler]]:
    """Insert the occurrences that are absent; wake, move or hold back those that are there, as `settled` decides."""
    created, stored = await insert_and_read(transaction, tenant_id, items, _SCHEDULERS)
    verdicts = answer.settle(tenant_id, items, stored=stored, created=created)
    if moved := sorted(verdicts.changed, key=lambda row: row.scheduler_key):
        changed = {row.scheduler_key for row in moved}
        locked = await transaction.fetch(_Locked, _SQL["lock_automation_schedulers"], tenant_id=tenant_id, rows=moved)
        read = {(key, row.version) for (key,), row in stored.items() if row is not None and key in changed}
        if {(row.scheduler_key, row.version) for row in locked} != read:
            raise Overtaken  # the read took no lock, because a repeat must write nothing; a worker came between
        await transaction.execute(_SQL["move_automation_schedulers"], rows=moved)
    await write_cases(transaction, tenant_id, verdicts.cases)
    return verdicts.answers


async def ensure_asked(
    transaction: Transaction, tenant_id: str, asked: Sequence[Asked], *, at: datetime
) -> list[Ensured[AutomationScheduler]]:
    """Ensure occurrences, and tell of each that is new or woken, or in conflict, in the history of its entity."""
    answers = await ensure_automation_schedulers(transaction, tenant_id, [one.row for one in asked])
    kinds = {
        Outcome.CREATED: HistoryKind.PLANNED,
        Outcome.REACTIVATED: HistoryKind.PLANNED,
        Outcome.CONFLICT: HistoryKind.CONFLICT,
    }
    lines = [
        (tenant_id, occurrence_line(one.row, kinds[answer.outcome], cause=one.cause, at=at, text=one.text))
        for one, answer in zip(asked, answers, strict=True)
        if answer.outcome in kinds
    ]
    await write_lines(transaction, lines)
    return answers


async def insert_absent_occurrences(
    transaction: Transaction, tenant_id: str, items: Sequence[AutomationScheduler]
) -> dict[str, AutomationScheduler]:
    """Insert occurrences, and return by their keys those that were absent."""
    if not items:
        return {}
    made = await insert_absent(transaction, tenant_id, items, _SCHEDULERS)
    stored = await read_stored(transaction, tenant_id, items, _SCHEDULERS)
    return {key: row for (key,), row in stored.items() if row is not None and row.id in made}

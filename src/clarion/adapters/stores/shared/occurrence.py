"""Occurrences under their locks: read by their keys, and written as a rule left them. Writes `automation_scheduler`.

Used by whatever moves occurrences: plans, workers and people. How one comes to be is in `automation`.
"""

from collections.abc import Collection, Sequence
from typing import Final

from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain.automation import AutomationScheduler
from clarion.errors import ProgramTooOld

_SQL: Final = Statements("occurrence.sql")

Place = tuple[str, str]
"""A tenant and the key of one of its occurrences."""


class _Locked(AutomationScheduler, frozen=True, kw_only=True):
    """An occurrence and whose it is."""

    tenant_id: str


async def lock_occurrences(
    transaction: Transaction, places: Collection[Place]
) -> dict[Place, AutomationScheduler | None]:
    """Lock these occurrences and read them; None stands for one that only a newer program can read.

    What is not there is left out. As in `ensure.read_stored`, an unreadable one is looked for by halves.
    """
    ordered = sorted(set(places))
    if not ordered:
        return {}
    try:
        rows = await transaction.fetch(_Locked, _SQL["lock_occurrences"], keys=ordered)
    except ProgramTooOld:
        if len(ordered) == 1:
            return {ordered[0]: None}
        half = len(ordered) // 2
        return await lock_occurrences(transaction, ordered[:half]) | await lock_occurrences(transaction, ordered[half:])
    return {(row.tenant_id, row.scheduler_key): _plain(row) for row in rows}


async def find_occurrence(transaction: Transaction, tenant_id: str, scheduler_key: str) -> AutomationScheduler | None:
    """Return an occurrence, or None."""
    found = await read_occurrences(transaction, tenant_id, [scheduler_key])
    return found.get(scheduler_key)


async def read_occurrences(
    transaction: Transaction, tenant_id: str, keys: Collection[str]
) -> dict[str, AutomationScheduler]:
    """Return these occurrences by their keys; what is not there is left out."""
    if not keys:
        return {}
    rows = await transaction.fetch(
        AutomationScheduler, _SQL["read_occurrences"], tenant_id=tenant_id, keys=sorted(set(keys))
    )
    return {row.scheduler_key: row for row in rows}


async def write_occurrences(transaction: Transaction, rows: Sequence[AutomationScheduler]) -> None:
    """Write locked rows as they are now."""
    if rows:
        await transaction.execute(_SQL["write_occurrences"], rows=sorted(rows, key=lambda row: row.id or 0))


def _plain(row: _Locked) -> AutomationScheduler:
    return AutomationScheduler(**{name: getattr(row, name) for name in AutomationScheduler.__struct_fields__})

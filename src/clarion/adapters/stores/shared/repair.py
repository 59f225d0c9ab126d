"""Reconciliations: which are due, and how far each has come. Writes `repair`.

What a round reads is in `source` or with a plugin; when a scan knows every change from before it is said in `source`.
"""

from collections import Counter
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

import msgspec

from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.ports.ensure import ITEMS_MAX
from clarion.ports.source import RepairClaim

_SQL: Final = Statements("repair.sql")

WALK_MAX: Final = 500
"""Types of source that are looked up at once; an installation has some dozens."""


class _Type(msgspec.Struct, frozen=True):
    source_type: str


class _Due(msgspec.Struct, frozen=True):
    due_at: datetime
    tenant_id: str
    source_type: str


async def ensure_repair(transaction: Transaction, tenant_id: str, source_type: str) -> None:
    """Have a type of source reconciled from now on, unless it is already."""
    await transaction.execute(_SQL["insert_repair"], tenant_id=tenant_id, source_type=source_type)


async def claim_repairs(
    transaction: Transaction,
    source_types: Collection[str] | None,
    *,
    besides: Collection[str] = (),
    every: timedelta,
    limit: int,
    lease: timedelta,
) -> list[RepairClaim]:
    """Take reconciliations that are due, of each type those that have been due longest; None stands for every type."""
    types = await _all_types(transaction) if source_types is None else sorted(set(source_types))
    asked = [one for one in types if one not in besides]
    left = min(limit, ITEMS_MAX)
    claims: list[RepairClaim] = []
    while left and asked:
        part = -(-left // len(asked))  # of each type, so that few rows are looked at however many types there are
        due = await transaction.fetch(_Due, _SQL["lock_due_repairs"], types=asked, part=part)
        first = sorted(due, key=lambda one: (one.due_at, one.tenant_id, one.source_type))[:left]
        if not first:
            break
        keys = [(one.tenant_id, one.source_type) for one in first]
        taken = await transaction.fetch(RepairClaim, _SQL["take_repairs"], keys=keys, every=every, lease=lease)
        claims += sorted(taken, key=lambda one: keys.index((one.tenant_id, one.source_type)))
        left -= len(first)
        found = Counter(one.source_type for one in due)
        asked = [one for one in asked if found[one] == part]
    return claims


async def finish_repair(
    transaction: Transaction, claim: RepairClaim, *, cursor: str | None, watermark_at: datetime
) -> bool:
    """Note how far a round has come; only at its end (no cursor) does the watermark move."""
    done = await transaction.execute(
        _SQL["finish_repair"],
        tenant_id=claim.tenant_id,
        source_type=claim.source_type,
        token=claim.token,
        cursor=cursor,
        watermark_at=watermark_at,
    )
    return done > 0


async def _all_types(transaction: Transaction) -> list[str]:
    """Name every type of source that is reconciled in any tenant."""
    found: list[str] = []
    while True:
        after = found[-1] if found else ""
        page = await transaction.fetch(_Type, _SQL["walk_repaired_types"], after=after, most=WALK_MAX)
        found += [one.source_type for one in page]
        if len(page) < WALK_MAX:
            return found

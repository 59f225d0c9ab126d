"""What is due: claimed under a lease, finished by version, rescued when its worker is gone.

Writes `automation_scheduler`, `entity_history` and `support_case`. What a claimed row may become is in
`domain.occurrence_move`, how long it waits for a retry in `domain.due`.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec
import structlog

from clarion.adapters.stores.shared.automation import Asked, ensure_asked
from clarion.adapters.stores.shared.entity_history import write_lines
from clarion.adapters.stores.shared.facts import now as read_now
from clarion.adapters.stores.shared.occurrence import Place, lock_occurrences, write_occurrences
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.support import write_cases_of_tenants
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain import trouble
from clarion.domain.automation import AUTOMATION_SCHEDULER, AutomationScheduler, AutomationStatus
from clarion.domain.due import wait_after_lost_worker
from clarion.domain.entity_event import EntityHistory, HistoryKind
from clarion.domain.occurrence_line import due_in_words
from clarion.domain.occurrence_move import finished
from clarion.domain.support import SupportCase
from clarion.errors import ProgramTooOld
from clarion.ports.automation import DueClaim, DueEnd
from clarion.ports.ensure import ITEMS_MAX, bounded

log = structlog.get_logger("clarion.stores")

_SQL: Final = Statements("due.sql")

LOST: Final = "every worker that took it was lost"
"""Why an occurrence is on hold whose workers died over it, or took longer than their lease."""


class _Picked(msgspec.Struct, frozen=True):
    id: int
    tenant_id: str
    correlation_id: str


class _Tenant(msgspec.Struct, frozen=True):
    standing: str
    tenant_id: str


class _Taken(msgspec.Struct, frozen=True):
    id: int


class _Claimed(AutomationScheduler, frozen=True, kw_only=True):
    """A claimed occurrence and whose it is."""

    tenant_id: str


class _Lost(msgspec.Struct, frozen=True, kw_only=True):
    """Of a row whose worker is gone what its rescue needs: no column that only a newer program may know."""

    id: int
    tenant_id: str
    scheduler_key: str
    version: int
    retry_count: int
    primary_entity: str
    correlation_id: str
    now_at: datetime


async def claim_due(transaction: Transaction, *, limit: int, lease: timedelta) -> list[DueClaim]:
    """Take what is due, the oldest first; where more is due than that, tenants take turns."""
    AUTOMATION_SCHEDULER.require(from_=AutomationStatus.PENDING, to=AutomationStatus.PROCESSING)
    limit = min(limit, ITEMS_MAX)
    picked = await transaction.fetch(_Picked, _SQL["lock_oldest_due"], limit=limit)
    if len(picked) == limit:
        picked = await _in_turns(transaction, picked, limit=limit)
    if not picked:
        return []
    rows = [(one.id, lease) for one in sorted(picked, key=lambda one: one.id)]
    taken = {row.id for row in await transaction.fetch(_Taken, _SQL["take_due"], rows=rows)}
    found = await _readable(transaction, [one for one in picked if one.id in taken])
    return [DueClaim(tenant_id=row.tenant_id, row=_plain(row)) for row in sorted(found, key=_order)]


async def _in_turns(transaction: Transaction, oldest: list[_Picked], *, limit: int) -> list[_Picked]:
    """Give every tenant that has something due its part of the limit, and what is left of it to the oldest."""
    tenants = await transaction.fetch(_Tenant, _SQL["find_tenants_with_due"], limit=limit)
    if len(tenants) < 2:
        return oldest
    part = max(1, limit // len(tenants))
    found = await transaction.fetch(_Picked, _SQL["lock_due_of_tenants"], tenants=tenants, part=part)
    picked = {one.id: one for one in [*found, *oldest]}
    return list(picked.values())[:limit]


async def _readable(transaction: Transaction, taken: Sequence[_Picked]) -> list[_Claimed]:
    """Read claimed rows; one that only a newer program can read stays claimed, and holds up no other."""
    if not taken:
        return []
    try:
        return await transaction.fetch(_Claimed, _SQL["read_taken"], ids=[one.id for one in taken])
    except ProgramTooOld:
        if len(taken) == 1:
            log.exception(
                "a due occurrence cannot be read and stays claimed",
                tenant_id=taken[0].tenant_id,
                correlation_id=taken[0].correlation_id,
            )
            return []
        half = len(taken) // 2
        return [*await _readable(transaction, taken[:half]), *await _readable(transaction, taken[half:])]


async def finish_due(transaction: Transaction, ends: Sequence[DueEnd]) -> set[Place]:
    """Move claimed rows on where the claim still stands, and ensure what follows them."""
    first = {(end.tenant_id, end.scheduler_key): end for end in reversed(bounded(ends))}
    if not first:
        return set()
    now = await read_now(transaction)
    moved: dict[Place, AutomationScheduler] = {}
    for place, row in (await lock_occurrences(transaction, first)).items():
        after = None if row is None else _after(row, first[place], now=now)
        if after is not None:
            moved[place] = after
    await write_occurrences(transaction, list(moved.values()))
    following: defaultdict[str, list[Asked]] = defaultdict(list)
    for place in sorted(moved):
        end = first[place]
        if end.next is not None:
            asked = Asked(row=end.next, cause=f"claim {end.version}", text=due_in_words(end.next))
            following[place[0]].append(asked)
    for tenant_id, some in following.items():
        await ensure_asked(transaction, tenant_id, some, at=now)
    lines = [(place[0], line) for place in moved if (line := first[place].line) is not None]
    await write_lines(transaction, lines)
    await write_cases_of_tenants(transaction, [case for place, row in moved.items() for case in _case(place[0], row)])
    return set(moved)


def _after(row: AutomationScheduler, end: DueEnd, *, now: datetime) -> AutomationScheduler | None:
    """Say what an end makes of a locked row."""
    return finished(
        row,
        version=end.version,
        to=end.to,
        reason=end.reason,
        failure_reason=end.failure_reason,
        retry_at=None if end.delay is None else now + end.delay,
        is_retry=end.is_retry,
        hold=end.hold,
        dispatch_result=end.dispatch_result,
        trace_blob=end.trace_blob,
    )


def _case(tenant_id: str, row: AutomationScheduler) -> list[tuple[str, SupportCase]]:
    """Give the case of a row that a person should look at; the others need none."""
    if not row.on_support_hold and row.status is not AutomationStatus.FAILED:
        return []
    reason = row.failure_reason or ""
    make = trouble.held_occurrence if row.on_support_hold else trouble.failed_occurrence
    return [(tenant_id, make(tenant_id, row.scheduler_key, reason=reason, correlation_id=row.correlation_id))]


async def rescue_due(transaction: Transaction, *, limit: int) -> int:
    """Return expired claims to Pending, one more retry; what loses every worker waits on hold, with its case (I-23)."""
    AUTOMATION_SCHEDULER.require(from_=AutomationStatus.PROCESSING, to=AutomationStatus.PENDING)
    lost = await transaction.fetch(_Lost, _SQL["lock_lost_occurrences"], limit=min(limit, ITEMS_MAX))
    if not lost:
        return 0
    waits = {one.id: wait_after_lost_worker(one.retry_count) for one in lost}
    rows = [
        (row_id, wait or timedelta(), wait is None, LOST if wait is None else "its worker was lost")
        for row_id, wait in sorted(waits.items())
    ]
    await transaction.execute(_SQL["rescue_occurrences"], rows=rows)
    await write_lines(transaction, [(one.tenant_id, _rescued(one, waits[one.id])) for one in lost])
    held = [one for one in lost if waits[one.id] is None]
    cases = [
        (
            one.tenant_id,
            trouble.held_occurrence(one.tenant_id, one.scheduler_key, reason=LOST, correlation_id=one.correlation_id),
        )
        for one in held
    ]
    await write_cases_of_tenants(transaction, cases)
    return len(lost)


def _rescued(one: _Lost, wait: timedelta | None) -> EntityHistory:
    """Tell what became of an occurrence whose worker was lost, as of the claim that was lost."""
    held = wait is None
    return EntityHistory(
        entity_guid=UUID(one.primary_entity),
        kind=HistoryKind.HELD if held else HistoryKind.MOVED,
        subject=one.scheduler_key,
        cause=f"claim {one.version}",
        at=one.now_at,
        text=f"on hold: {LOST}" if held else "its worker was lost: it is tried again",
        correlation_id=one.correlation_id,
    )


def _order(row: AutomationScheduler) -> tuple[datetime, int]:
    return (row.due_at, row.id or 0)


def _plain(row: _Claimed) -> AutomationScheduler:
    return AutomationScheduler(**{name: getattr(row, name) for name in AutomationScheduler.__struct_fields__})

"""What people see of occurrences and do with them: lists by standing, hold, release, run now, deactivate; all audited.

Writes `automation_scheduler`, `entity_history`, `support_case` and, through `audit`, `audit_log`. What each verb makes
of a row is in `domain.occurrence_move`.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Final

from clarion.adapters.stores.shared.audit import append_audit
from clarion.adapters.stores.shared.entity_history import write_lines
from clarion.adapters.stores.shared.facts import now as read_now
from clarion.adapters.stores.shared.occurrence import Place, lock_occurrences, write_occurrences
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.support import resolve_case
from clarion.adapters.stores.shared.transaction import Transaction, Value
from clarion.domain import act, occurrence_move, trouble
from clarion.domain.act import Act
from clarion.domain.automation import AutomationScheduler, AutomationType
from clarion.domain.entity_event import HistoryKind
from clarion.domain.occurrence_line import occurrence_line
from clarion.ports.automation import Standing
from clarion.ports.insights import PAGE_MAX

_SQL: Final = Statements("occurrence_list.sql")

_STORED: Final = {
    Standing.WAITING: "pending",
    Standing.DUE: "pending",
    Standing.HELD: "held",
    Standing.FAILED: "failed",
    Standing.PROCESSING: "processing",
    Standing.ENDED: "ended",
}
"""The column `standing` knows no time: what is due is pending, and its time has come."""

_BEGINNING: Final = (datetime.min.replace(tzinfo=UTC), 0)
_END: Final = datetime.max.replace(tzinfo=UTC)
_LAST_ID: Final = 2**63 - 1

_Rule = Callable[[AutomationScheduler], AutomationScheduler | None]


async def list_occurrences(
    transaction: Transaction,
    tenant_id: str,
    *,
    standing: Standing,
    until: datetime | None = None,
    automation_type: AutomationType | None = None,
    after: tuple[datetime, int] | None = None,
    limit: int,
) -> list[AutomationScheduler]:
    """Return occurrences by when they are due, behind a place."""
    begin, end = after or _BEGINNING, until or _END
    if standing in (Standing.WAITING, Standing.DUE):
        now = await read_now(transaction)
        if standing is Standing.WAITING:
            begin = max(begin, (now, _LAST_ID))
        else:
            end = min(end, now)
    named: dict[str, Value] = {
        "tenant_id": tenant_id,
        "standing": _STORED[standing],
        "after_at": begin[0],
        "after_id": begin[1],
        "until": end,
        "limit": min(limit, PAGE_MAX),
    }
    if automation_type is None:
        return await transaction.fetch(AutomationScheduler, _SQL["list_occurrences"], **named)
    return await transaction.fetch(
        AutomationScheduler, _SQL["list_occurrences_of_type"], automation_type=automation_type, **named
    )


async def hold_occurrence(
    transaction: Transaction, tenant_id: str, scheduler_key: str, *, actor: str, reason: str
) -> bool:
    """Put a pending occurrence on hold; audited."""
    done = act.on_occurrence("hold", scheduler_key, reason=reason, actor=actor)
    rule = partial(occurrence_move.held, actor=actor)
    return await _do(transaction, (tenant_id, scheduler_key), done, HistoryKind.HELD, rule)


async def release_occurrence(
    transaction: Transaction, tenant_id: str, scheduler_key: str, *, actor: str, reason: str
) -> bool:
    """Let an occurrence that is on hold go on; audited."""
    done = act.on_occurrence("release", scheduler_key, reason=reason, actor=actor)
    return await _do(transaction, (tenant_id, scheduler_key), done, HistoryKind.RELEASED, occurrence_move.released)


async def run_occurrence_now(
    transaction: Transaction, tenant_id: str, scheduler_key: str, *, actor: str, reason: str
) -> bool:
    """Make a pending occurrence due now; audited."""
    done = act.on_occurrence("run now", scheduler_key, reason=reason, actor=actor)
    rule = partial(occurrence_move.run_now, now=await read_now(transaction))
    return await _do(transaction, (tenant_id, scheduler_key), done, HistoryKind.MOVED, rule)


async def deactivate_occurrence(
    transaction: Transaction, tenant_id: str, scheduler_key: str, *, actor: str, reason: str
) -> bool:
    """Cancel a pending occurrence on a person's word; audited."""
    done = act.on_occurrence("deactivate", scheduler_key, reason=reason, actor=actor)
    return await _do(transaction, (tenant_id, scheduler_key), done, HistoryKind.DEACTIVATED, occurrence_move.canceled)


async def _do(transaction: Transaction, place: Place, done: Act, kind: HistoryKind, rule: _Rule) -> bool:
    """Do what a person asks for to one row, where its rule allows it; what ends its hold resolves its case."""
    tenant_id, key = place
    row = (await lock_occurrences(transaction, [place])).get(place)
    after = None if row is None else rule(row)
    if after is None:
        return False
    await write_occurrences(transaction, [after])
    line = occurrence_line(
        after,
        kind,
        cause=f"{done.act}:{after.version}",
        at=await read_now(transaction),
        text=f"{done.act} by {done.actor}: {done.reason}",
    )
    await write_lines(transaction, [(tenant_id, line)])
    if row is not None and row.on_support_hold and not after.on_support_hold:
        # Before the audit log, as when a person resolves the case by itself: two at once wait in the same order.
        case_id = trouble.hold_case_id(tenant_id, key)
        await resolve_case(transaction, tenant_id, case_id, actor=done.actor, resolution=done.reason or done.act)
    await append_audit(transaction, tenant_id, done)
    return True

"""What becomes of an occurrence's row: deactivated by a plan, moved on by its worker, or by a person's word. Pure.

Stores lock a row, ask here, and write what comes back. A move that the row does not allow is None. What an ensure makes
of a row is in `automation`; how long it waits for a retry in `due`.
"""

from datetime import datetime

import msgspec

from clarion.domain.automation import AUTOMATION_SCHEDULER, AutomationScheduler, AutomationStatus, CanceledBy
from clarion.domain.planning import Deactivation, EndReason

Moved = AutomationScheduler | None

_PENDING = AutomationStatus.PENDING


def deactivated(row: AutomationScheduler, given: Deactivation) -> Moved:
    """Deactivate a pending row that is as its plan read it; what is on hold waits for a person (I-21)."""
    if row.status is not _PENDING or row.on_support_hold or row.version != given.version:
        return None
    return _moved(row, to=AutomationStatus.DEACTIVATED, end_reason=given.reason.value, next_retry_at=None)


def finished(
    row: AutomationScheduler,
    *,
    version: int,
    to: AutomationStatus,
    reason: EndReason | None = None,
    failure_reason: str | None = None,
    retry_at: datetime | None = None,
    is_retry: bool = True,
    hold: bool = False,
    dispatch_result: str | None = None,
    trace_blob: str | None = None,
) -> Moved:
    """Move a claimed row on, where the claim still stands. What it does not say is kept.

    Pending is one more retry, unless nothing failed: its turn has not come, or its work goes on in another step.
    """
    AUTOMATION_SCHEDULER.require(from_=AutomationStatus.PROCESSING, to=to)
    if row.status is not AutomationStatus.PROCESSING or row.version != version:
        return None
    again = to is _PENDING
    return _moved(
        row,
        to=to,
        lease_until=None,
        retry_count=row.retry_count + (again and is_retry),
        next_retry_at=retry_at if again and not hold else None,
        on_support_hold=again and hold,
        canceled_by=CanceledBy.SYSTEM if to is AutomationStatus.CANCELED else None,
        end_reason=None if reason is None else reason.value,
        failure_reason=failure_reason or row.failure_reason,
        dispatch_result=dispatch_result or row.dispatch_result,
        trace_blob=trace_blob or row.trace_blob,
    )


def held(row: AutomationScheduler, *, actor: str) -> Moved:
    """Put a pending row on hold."""
    if row.status is not _PENDING or row.on_support_hold:
        return None
    return _moved(row, to=_PENDING, on_support_hold=True, failure_reason=f"held by {actor}")


def released(row: AutomationScheduler) -> Moved:
    """Let a row that is on hold go on when it is due; what failed before is forgiven, and why it was held is over."""
    if not row.on_support_hold:
        return None
    return _moved(row, to=_PENDING, on_support_hold=False, retry_count=0, next_retry_at=None, failure_reason=None)


def run_now(row: AutomationScheduler, *, now: datetime) -> Moved:
    """Make a pending row due now, on hold or not. Its plan may still move what it was planned for, but not this."""
    if row.status is not _PENDING:
        return None
    forgiven = {"on_support_hold": False, "retry_count": 0, "next_retry_at": None, "failure_reason": None}
    return _moved(row, to=_PENDING, run_now_at=now, **forgiven)


def canceled(row: AutomationScheduler) -> Moved:
    """Cancel a pending row on a person's word, which no ensure takes back (I-07)."""
    if row.status is not _PENDING:
        return None
    return _moved(
        row,
        to=AutomationStatus.CANCELED,
        canceled_by=CanceledBy.PERSON,
        on_support_hold=False,
        next_retry_at=None,
        end_reason=EndReason.DEACTIVATED_BY_HAND.value,
    )


def _moved(row: AutomationScheduler, *, to: AutomationStatus, **changes: object) -> AutomationScheduler:
    """Write the move: another state only where the state table has it, and always another version."""
    if to is not row.status:
        AUTOMATION_SCHEDULER.require(from_=row.status, to=to)
    return msgspec.structs.replace(row, status=to, version=row.version + 1, **changes)

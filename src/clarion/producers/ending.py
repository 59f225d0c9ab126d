"""How a claimed occurrence ends: what is written into its row, and its line in the entity's history. Pure."""

from datetime import datetime, timedelta
from uuid import UUID

from clarion.domain.automation import AutomationScheduler, AutomationStatus
from clarion.domain.due import FAILURE_CHARS_MAX, DispatchResult, DueOutcome, skipped, wait_after_failure
from clarion.domain.entity_event import EntityHistory, HistoryKind
from clarion.domain.planning import EndReason
from clarion.ports.automation import DueClaim, DueEnd


def completed(
    claim: DueClaim,
    result: DispatchResult,
    *,
    now: datetime,
    following: AutomationScheduler | None = None,
    stored: str | None = None,
    trace_blob: str | None = None,
) -> DueEnd:
    """End an occurrence whose delivery work is queued, or that is for nobody; `stored` is its result where given."""
    if result.outcome is DueOutcome.SKIPPED:
        kind, text = HistoryKind.SKIPPED, f"nobody was told: {result.reason}"
    else:
        kind, text = (
            HistoryKind.HANDED_OVER,
            f"handed over as {result.notification_type or claim.row.notification_type}",
        )
    return DueEnd(
        tenant_id=claim.tenant_id,
        scheduler_key=claim.row.scheduler_key,
        version=claim.row.version,
        to=AutomationStatus.COMPLETED,
        reason=result.reason,
        dispatch_result=stored or result.text,
        trace_blob=trace_blob,
        next=following,
        line=_line(claim, kind, text, now=now),
    )


def not_told(
    claim: DueClaim, reason: EndReason, *, now: datetime, following: AutomationScheduler | None = None
) -> DueEnd:
    """Complete an occurrence that is for nobody."""
    return completed(claim, skipped(reason), now=now, following=following)


def deactivated(
    claim: DueClaim, reason: EndReason, *, now: datetime, following: AutomationScheduler | None = None
) -> DueEnd:
    """End an occurrence that is no longer asked for."""
    return DueEnd(
        tenant_id=claim.tenant_id,
        scheduler_key=claim.row.scheduler_key,
        version=claim.row.version,
        to=AutomationStatus.DEACTIVATED,
        reason=reason,
        dispatch_result=skipped(reason).text,
        next=following,
        line=_line(claim, HistoryKind.DEACTIVATED, f"no longer asked for: {reason}", now=now),
    )


def held(claim: DueClaim, why: str, *, now: datetime) -> DueEnd:
    """Put an occurrence on hold for a person; its support case says why."""
    return DueEnd(
        tenant_id=claim.tenant_id,
        scheduler_key=claim.row.scheduler_key,
        version=claim.row.version,
        to=AutomationStatus.PENDING,
        failure_reason=_cut(why),
        hold=True,
        line=_line(claim, HistoryKind.HELD, f"on hold: {why}", now=now),
    )


def failed(claim: DueClaim, why: str, *, now: datetime, following: AutomationScheduler | None = None) -> DueEnd:
    """End an occurrence that will never be handed over as it is; its support case says why, and its chain goes on."""
    return DueEnd(
        tenant_id=claim.tenant_id,
        scheduler_key=claim.row.scheduler_key,
        version=claim.row.version,
        to=AutomationStatus.FAILED,
        failure_reason=_cut(why),
        next=following,
        line=_line(claim, HistoryKind.FAILED, f"failed: {why}", now=now),
    )


def again(claim: DueClaim, why: str, *, now: datetime, is_long_runner: bool = False) -> DueEnd:
    """Have an occurrence tried again after what may pass, or put it on hold where it has not passed for long."""
    delay = wait_after_failure(claim.row.retry_count, is_long_runner=is_long_runner)
    return held(claim, why, now=now) if delay is None else put_off(claim, delay, why)


def put_off(claim: DueClaim, delay: timedelta, why: str, *, is_retry: bool = True) -> DueEnd:
    """Give an occurrence back for a while; no retry is counted where nothing failed."""
    return DueEnd(
        tenant_id=claim.tenant_id,
        scheduler_key=claim.row.scheduler_key,
        version=claim.row.version,
        to=AutomationStatus.PENDING,
        failure_reason=_cut(why),
        delay=delay,
        is_retry=is_retry,
    )


def _line(claim: DueClaim, kind: HistoryKind, text: str, *, now: datetime) -> EntityHistory:
    return EntityHistory(
        entity_guid=UUID(claim.row.primary_entity),
        kind=kind,
        subject=claim.row.scheduler_key,
        cause=f"claim {claim.row.version}",
        at=now,
        text=_cut(text),
        correlation_id=claim.row.correlation_id,
    )


def _cut(text: str) -> str:
    return text if len(text) <= FAILURE_CHARS_MAX else f"{text[: FAILURE_CHARS_MAX - 1]}…"

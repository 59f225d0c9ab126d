"""Occurrences of reminders and reports: lists of them, one with all that is known of it, and what people do with one.

What people do is audited with its reason. What became of a notification that an occurrence led to is told by its
timeline, not here.
"""

from typing import Final, TypeVar

from clarion.client import wire_automation
from clarion.client.wire_automation import Act
from clarion.domain.automation import AutomationScheduler, AutomationStatus
from clarion.domain.due import DispatchResult, DueOutcome, read_result
from clarion.domain.ensured import Outcome
from clarion.domain.part import KEY_MAX
from clarion.domain.planning import EndReason
from clarion.errors import Conflict
from clarion.operations import page
from clarion.operations.rerun import next_rerun, rerun
from clarion.operations.shape import as_wire
from clarion.operations.wake import DUE, Wake
from clarion.ports.store import Store
from clarion.sealing.traces import Traces

L = TypeVar("L", bound=wire_automation.OccurrenceLine)

STATUS_IN_WORDS: Final = {
    AutomationStatus.PENDING: "waits",
    AutomationStatus.PROCESSING: "is with a worker",
    AutomationStatus.COMPLETED: "was handed over, or found that nobody was to be told",
    AutomationStatus.FAILED: "failed for good",
    AutomationStatus.DEACTIVATED: "was deactivated",
    AutomationStatus.CANCELED: "was deactivated by hand",
}


class Automation:
    """The occurrences of a tenant."""

    def __init__(self, store: Store, *, traces: Traces, wake: Wake) -> None:
        """Work on this store, show these traces, and wake workers."""
        self._traces = traces
        self._wake = wake
        self._store = store

    async def list(self, tenant_id: str, query: wire_automation.AutomationQuery) -> wire_automation.OccurrencePage:
        """List occurrences that stand in one way, by when they are due."""
        filters = {"type": query.type, "until": query.until_at}
        asked = [f"{name}={value}" for name, value in filters.items() if value is not None]
        name = " ".join(["automation", query.standing, *asked])
        found = await self._store.list_occurrences(
            tenant_id,
            standing=query.standing,
            until=query.until_at,
            automation_type=query.type,
            after=page.read_moment_and_id(name, query.cursor),
            limit=query.limit + 1,
        )
        rows, following = page.cut(name, found, query.limit, lambda row: page.moment(row.due_at, row.id))
        items = tuple(_as(row, wire_automation.OccurrenceLine) for row in rows)
        return wire_automation.OccurrencePage(items=items, next_cursor=following)

    async def find(self, tenant_id: str, key: str, *, whole: bool = False) -> wire_automation.Occurrence | None:
        """Show an occurrence with all that is known of it; its trace's content only where `whole`."""
        row = None if len(key) > KEY_MAX else await self._store.find_occurrence(tenant_id, key)
        if row is None:
            return None
        result = read_result(row.dispatch_result) or DispatchResult(outcome=DueOutcome.SKIPPED)
        return _as(
            row,
            wire_automation.Occurrence,
            entity=row.primary_entity,
            business_unit=row.business_unit,
            threshold=row.threshold_value,
            policy=row.firing_policy,
            outcome=None if row.dispatch_result is None else result.outcome,
            messaging_job_id=result.messaging_job,
            template_version=result.template_version,
            inbox_only=result.inbox_only,
            named=result.named,
            named_by=result.named_by,
            next_rerun=await self._next_rerun(tenant_id, row),
            timeline=None if result.job is None else f"/v1/messages/{result.job}/timeline",
            trace=row.trace_blob,
            diagnostics=await self._diagnostics(tenant_id, row.trace_blob) if whole else None,
        )

    async def act(
        self, tenant_id: str, key: str, act: Act, *, actor: str, reason: str
    ) -> wire_automation.Occurrence | None:
        """Do something with an occurrence, and show it; raises Conflict where it stands so that nothing can be done."""
        does = {
            Act.HOLD: self._store.hold_occurrence,
            Act.RELEASE: self._store.release_occurrence,
            Act.RUN: self._store.run_occurrence_now,
            Act.DEACTIVATE: self._store.deactivate_occurrence,
        }[act]
        if len(key) > KEY_MAX:
            return None
        done = await does(tenant_id, key, actor=actor, reason=reason)
        if done and act in (Act.RELEASE, Act.RUN):
            self._wake(DUE)
        shown = await self.find(tenant_id, key)
        if shown is not None and not done:
            state = "is on hold" if shown.on_hold else STATUS_IN_WORDS[shown.status]
            raise Conflict(f"it {state}, so there is nothing to {act}", hint="look at it again before you do more")
        return shown

    async def rerun(
        self, tenant_id: str, key: str, *, number: int, actor: str, reason: str
    ) -> wire_automation.Occurrence | None:
        """Have a completed occurrence run again as this re-run of it, and show that one."""
        ensured = await rerun(self._store, tenant_id, key, n=number, actor=actor, reason=reason)
        if ensured is None:
            return None
        if ensured.outcome is Outcome.CREATED:
            self._wake(DUE)
        return await self.find(tenant_id, ensured.record.scheduler_key)

    async def _diagnostics(self, tenant_id: str, path: str | None) -> wire_automation.Diagnostics | None:
        """Open a trace."""
        trace = None if path is None else await self._traces.find(tenant_id, path)
        return None if trace is None else as_wire(trace, wire_automation.Diagnostics)

    async def _next_rerun(self, tenant_id: str, row: AutomationScheduler) -> int | None:
        """Say which number its next re-run has; only of one that is over, because it costs a look for each re-run."""
        if row.status is not AutomationStatus.COMPLETED:
            return None
        return await next_rerun(self._store, tenant_id, row.scheduler_key)


def _as(row: AutomationScheduler, shape: type[L], **more: object) -> L:
    """Give an occurrence in its wire form."""
    result = read_result(row.dispatch_result)
    ended = row.end_reason or (result.reason if result is not None else None)
    return as_wire(
        row,
        shape,
        key=row.scheduler_key,
        type=row.automation_type,
        trigger=row.trigger_type,
        planned_at=row.scheduled_at,
        zone=row.tz_id,
        on_hold=row.on_support_hold,
        reason=EndReason(ended) if ended in set(EndReason) else None,
        failure=row.failure_reason,
        job_id=None if result is None else result.job,
        **more,
    )

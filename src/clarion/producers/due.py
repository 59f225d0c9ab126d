"""Due: claims occurrences that have fallen due, has them handed over, and writes how each of them ended.

An occurrence that is completed has its delivery work queued; whether that arrives is the pipeline's. Occurrences about
sources of one type are handed over together, apart from all others and beside the next steps: a provider that answers
nothing keeps nobody else waiting. A worker that is lost leaves its claims to their lease, and whoever takes them next
comes to the same job by the same key.
"""

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Mapping, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from clarion.dispatch import DeliveryDispatcher
from clarion.dispatch.occurrence import stored_occurrence
from clarion.domain.automation import AutomationScheduler, AutomationType
from clarion.domain.due import DUE_LEASE, SKIPPING, DispatchResult, DueOutcome, read_result
from clarion.domain.planning import EndReason
from clarion.domain.report_run import following_row
from clarion.errors import ClarionError
from clarion.ports.automation import AutomationStore, DueClaim, DueEnd
from clarion.ports.clock import Clock
from clarion.ports.facts import FactStore
from clarion.ports.reporting import Handed, NotHanded, ReportRuns
from clarion.ports.source import SourceStore
from clarion.producers.ending import completed, deactivated, failed, not_told, put_off
from clarion.producers.hand_over import Reminders, ended_by
from clarion.producers.tracing import Looks, traced
from clarion.sealing.traces import Traces

BATCH: Final = 100
"""Claimed at once: statements are shared, and a worker that dies leaves little behind."""

CLAIMS_MAX: Final = 1000
"""Held at once. A source and its recipients take up to 400 kB, and hardly any takes that much."""

PATIENCE: Final = 0.05
"""Seconds that a step waits for what is under way: an ordinary batch takes about as long."""

REPORTS_MAX: Final = 2
"""Reports that are written at once: each is held in memory until it is stored."""

BEGIN_SHARE: Final = 3
"""A report is begun within one part in so many of its claim's lease, so that it ends within it."""


class Due:
    """The worker of due occurrences."""

    def __init__(
        self,
        *,
        store: AutomationStore,
        sources: SourceStore,
        facts: FactStore,
        reminders: Reminders,
        reports: ReportRuns,
        dispatcher: DeliveryDispatcher,
        traces: Traces,
        clock: Clock,
        lease: timedelta = DUE_LEASE,
    ) -> None:
        """Claim from this store, hand over by these, and keep traces of what goes wrong."""
        self._store = store
        self._sources = sources
        self._facts = facts
        self._reminders = reminders
        self._reports = reports
        self._dispatcher = dispatcher
        self._traces = traces
        self._clock = clock
        self._lease = lease
        self._tasks: dict[asyncio.Task[None], int] = {}
        self._writing = asyncio.Semaphore(REPORTS_MAX)
        self._stopping = False

    def stop(self) -> None:
        """Claim nothing more; what is under way comes to its end."""
        self._stopping = True

    @property
    def idle(self) -> bool:
        """Whether nothing is under way."""
        return not self._tasks

    async def step(self) -> int:
        """Take what is due and begin to hand it over; return how many occurrences are at work or just were."""
        before = sum(self._tasks.values())
        room = min(BATCH, CLAIMS_MAX - before)
        claims = [] if self._stopping or room <= 0 else await self._store.claim_due(limit=room, lease=self._lease)
        for (tenant_id, source_type, is_report), mine in _grouped(claims).items():
            if is_report:
                for claim in mine:
                    self._begin(self._run(claim, claimed=self._clock.monotonic()), count=1)
            else:
                self._begin(self._hand_over(tenant_id, source_type, mine), count=len(mine))
        if self._tasks:
            await asyncio.wait([*self._tasks], timeout=PATIENCE)
        for task in [task for task in self._tasks if task.done()]:
            del self._tasks[task]
            task.result()
        return len(claims) + before

    def _begin(self, work: Coroutine[None, None, None], *, count: int) -> None:
        self._tasks[asyncio.get_running_loop().create_task(work)] = count

    async def _hand_over(self, tenant_id: str, source_type: str, claims: Sequence[DueClaim]) -> None:
        """Hand reminders over; where something is wrong with all of them, such as their tenant's keys, all wait."""
        looks = Looks()
        try:
            ends = await self._reminders.hand_over(tenant_id, source_type, claims, looks)
        except ClarionError as error:
            now = await self._facts.now()
            for claim in claims:
                looks.note_error(claim, error)
            ends = [ended_by(claim, error, now=now) for claim in claims]
        await self._finish(ends, looks)

    async def _run(self, claim: DueClaim, *, claimed: float) -> None:
        """Hand one run of a report over, when it has its turn."""
        looks = Looks()
        async with self._writing:
            waited = timedelta(seconds=self._clock.monotonic() - claimed)
            if waited > self._lease / BEGIN_SHARE:
                end = put_off(claim, timedelta(), "waits its turn: other reports take long", is_retry=False)
            else:
                end = await self._report(claim, looks)
        await self._finish([end], looks)

    async def _finish(self, ends: Sequence[DueEnd], looks: Looks) -> None:
        await self._store.finish_due(await traced(ends, looks, traces=self._traces, clock=self._clock))

    async def _report(self, claim: DueClaim, looks: Looks) -> DueEnd:
        now = await self._facts.now()
        following: AutomationScheduler | None = None
        try:
            record = await self._sources.find_subscription(claim.tenant_id, UUID(claim.row.setting))
            looks.note(claim, setting_version=None if record is None else record.version)
            if record is not None:  # known before anything can fail, so that a run that fails ends no chain
                following = following_row(record.subscription, claim.row, handed_until=None, now=now)
            await self._dispatcher.ensure_automation_job(claim.tenant_id, [stored_occurrence(claim.row)])
            if record is None:
                return deactivated(claim, EndReason.SUBSCRIPTION_INACTIVE, now=now)
            found = await self._reports.run(claim, record, now=now)
        except ClarionError as error:
            looks.note_error(claim, error)
            return ended_by(claim, error, now=now, following=following)
        except ValueError as error:
            looks.note_error(claim, error)
            return failed(claim, f"it cannot be read: {error}", now=now, following=following)
        match found:
            case Handed(dispatch_result=text, trace_blob=trace_blob):
                result = read_result(text) or DispatchResult(outcome=DueOutcome.HANDED_OVER)
                return completed(claim, result, stored=text, trace_blob=trace_blob, following=found.next, now=now)
            case NotHanded(reason=reason):
                end = not_told if reason in SKIPPING else deactivated
                return end(claim, reason, following=found.next, now=now)


def _grouped(claims: Sequence[DueClaim]) -> Mapping[tuple[str, str, bool], Sequence[DueClaim]]:
    """Put claims together that are asked about together."""
    groups: dict[tuple[str, str, bool], list[DueClaim]] = defaultdict(list)
    for claim in claims:
        is_report = claim.row.automation_type is AutomationType.REPORT_SUBSCRIPTION
        groups[claim.tenant_id, claim.row.source_type, is_report].append(claim)
    return groups

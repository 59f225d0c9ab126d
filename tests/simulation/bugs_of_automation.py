"""Bugs of automation, for the simulation to find: in how occurrences are planned, claimed, handed over and repaired.

A bug of the store stands behind the watch; one of a process stands in front of it, so that it is found by what people
are told and not by what the store was asked for.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import count

import msgspec

from clarion.domain.audience import Audience
from clarion.domain.automation import AutomationScheduler
from clarion.domain.ensured import Ensured
from clarion.domain.guard import JobEntry
from clarion.domain.key import FiringPolicy
from clarion.domain.notification import NotificationJob
from clarion.domain.planning import AppliedPlan, SourcePlan
from clarion.domain.reminder import SettingRecord
from clarion.ports.automation import DueClaim
from clarion.ports.source import RepairClaim
from clarion.ports.store import Store
from tests.simulation.bugs import Planted


class Caller:
    """A process with a bug: what is not overridden is the real one's."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.numbers = count(2)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


class OtherPlans(Caller):
    """Has something else carried out than was planned."""

    async def apply_plans(self, tenant_id: str, plans: Sequence[SourcePlan]) -> list[AppliedPlan]:
        return await self._store.apply_plans(tenant_id, [self.changed(plan) for plan in plans])

    def changed(self, plan: SourcePlan) -> SourcePlan:
        return msgspec.structs.replace(plan, ensure=tuple(self.ensured(row, plan) for row in plan.ensure))

    def ensured(self, row: AutomationScheduler, plan: SourcePlan) -> AutomationScheduler:
        return row


class DeactivatesOnly(OtherPlans):
    """Deactivates what is no longer wanted, and forgets what is wanted instead."""

    def changed(self, plan: SourcePlan) -> SourcePlan:
        return msgspec.structs.replace(plan, ensure=()) if plan.deactivate else plan


class KeysByChance(OtherPlans):
    """Makes a key of its own for every occurrence that it ensures."""

    def ensured(self, row: AutomationScheduler, plan: SourcePlan) -> AutomationScheduler:
        return msgspec.structs.replace(row, scheduler_key=f"{row.scheduler_key}:{next(self.numbers)}")


class NeverRepairs(Caller):
    """Reconciles nothing, so that what no event told is never planned."""

    async def claim_repairs(self, *_: object, **__: object) -> list[RepairClaim]:
        return []


class RepairsUnderOtherKeys(OtherPlans):
    """Repairs under another key than events ensure under."""

    def ensured(self, row: AutomationScheduler, plan: SourcePlan) -> AutomationScheduler:
        if not plan.cause.startswith("repair "):
            return row
        return msgspec.structs.replace(row, scheduler_key=row.scheduler_key.replace("reminder:", "reminder:repaired:"))


class ThresholdsStandStill(OtherPlans):
    """Never says of a threshold that it is met, or not any more."""

    def changed(self, plan: SourcePlan) -> SourcePlan:
        return msgspec.structs.replace(plan, states=())


class EveryPlanIsAnEdge(OtherPlans):
    """Takes a threshold that is met for one that has just come to be met, at every plan."""

    def changed(self, plan: SourcePlan) -> SourcePlan:
        met = {state.edge_no: next(self.numbers) for state in plan.states if state.met}
        ensure = [self._moved(row, met) for row in plan.ensure]
        states = [msgspec.structs.replace(one, edge_no=met.get(one.edge_no, one.edge_no)) for one in plan.states]
        return msgspec.structs.replace(plan, ensure=tuple(ensure), states=tuple(states))

    def _moved(self, row: AutomationScheduler, met: Mapping[int, int]) -> AutomationScheduler:
        if row.firing_policy != FiringPolicy.FALSE_TO_TRUE:
            return row
        head, _, edge = row.scheduler_key.rpartition(":")
        return msgspec.structs.replace(row, scheduler_key=f"{head}:{met.get(int(edge), int(edge))}")


class PlansByHalf(Planted):
    """Commits after the deactivation and dies before it ensures."""

    async def apply_plans(self, tenant_id: str, plans: Sequence[SourcePlan]) -> list[AppliedPlan]:
        halves = [msgspec.structs.replace(plan, ensure=(), states=()) if plan.deactivate else plan for plan in plans]
        return await self.real.apply_plans(tenant_id, halves)


class TakesBackACancel(Planted):
    """Makes anew what a person has taken back."""

    async def apply_plans(self, tenant_id: str, plans: Sequence[SourcePlan]) -> list[AppliedPlan]:
        self.sql("UPDATE automation_scheduler SET canceled_by = 'system' WHERE canceled_by = 'person'")
        return await self.real.apply_plans(tenant_id, plans)


class BeforeDueClaim(Planted):
    """Does something to the occurrences before every claim."""

    text = ""

    async def claim_due(self, *, limit: int, lease: timedelta) -> list[DueClaim]:
        self.sql(self.text)
        return await self.real.claim_due(limit=limit, lease=lease)


class HoldsAreForgotten(BeforeDueClaim):
    """Takes what is on hold."""

    text = "UPDATE automation_scheduler SET on_support_hold = 0 WHERE on_support_hold = 1 RETURNING id"


class DueAtOnce(BeforeDueClaim):
    """Takes what is due an hour later."""

    text = (
        "UPDATE automation_scheduler SET scheduled_at = scheduled_at - 3600000000"
        " WHERE status = 'Pending' AND local_time IS NOT NULL AND version = 1 RETURNING id"
    )


class TakesWhatIsHeld(BeforeDueClaim):
    """Takes over what another worker is at work on."""

    text = (
        "UPDATE automation_scheduler SET status = 'Pending', lease_until = NULL"
        " WHERE status = 'Processing' RETURNING id"
    )


class SettingsAreReadOnce(Caller):
    """Hands over by what settings said when the process first read them."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._known: dict[str, Sequence[SettingRecord]] = {}

    async def find_reminders(self, tenant_id: str, source_type: str) -> Sequence[SettingRecord]:
        if source_type not in self._known:
            self._known[source_type] = await self._store.find_reminders(tenant_id, source_type)
        return self._known[source_type]


class NobodyIsThere(Caller):
    """Finds nobody whom a reminder could be for."""

    async def find_audiences(
        self, tenant_id: str, audiences: Sequence[Audience], *, limit: int
    ) -> Sequence[Sequence[object]]:
        return [[] for _ in audiences]


class HandsOverAnew(Caller):
    """Makes the job of a reminder under a key of its own each time."""

    async def ensure_notification_jobs(
        self, tenant_id: str, items: Sequence[JobEntry]
    ) -> list[Ensured[NotificationJob]]:
        return await self._store.ensure_notification_jobs(tenant_id, [self._anew(item) for item in items])

    def _anew(self, item: JobEntry) -> JobEntry:
        if item.scheduler is None or not item.job.row_key.startswith("reminder:"):
            return item
        row_key = f"{item.job.row_key}:{next(self.numbers)}"
        return msgspec.structs.replace(
            item,
            job=msgspec.structs.replace(item.job, row_key=row_key),
            scheduler=msgspec.structs.replace(item.scheduler, artifact_rk=row_key),
        )

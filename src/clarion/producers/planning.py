"""Planning: has the occurrences of sources planned by the pure rule, and carried out.

Whoever plans comes here: an event, a changed setting, a repair. First the number of the source's last plan is read, and
then everything that a plan goes by, so that whoever planned meanwhile by something newer is noticed: the store then
takes nothing, and the plan is made again. Reads sources, settings, zones and what is pending; writes plans. It neither
sends nor renders, and it looks at the sources that it is given.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from clarion.dispatch.gathering import Gathering
from clarion.domain.automation import AutomationScheduler
from clarion.domain.decision import zone_in
from clarion.domain.ensured import Outcome
from clarion.domain.plan import keys_of, plan
from clarion.domain.planning import AppliedPlan, PlanCounts, SourcePlan, SourceStanding
from clarion.domain.source import SourceFacts
from clarion.domain.wanted import Situation
from clarion.errors import CallerError, Superseded
from clarion.ports.automation import AutomationStore
from clarion.ports.facts import FactStore
from clarion.ports.source import ReminderStore

SET_MAX: Final = 100
"""Sources planned in one transaction: with ten occurrences each it writes a thousand rows."""

ROUNDS_MAX: Final = 5
"""How often a plan that was overtaken is made again. A source that changes faster is left to its later events."""


class Known(Protocol):
    """What planning may ask of sources: those that it is given, and no others."""

    async def load(self, tenant_id: str, source_type: str, sources: Collection[str]) -> Mapping[str, SourceFacts]:
        """Return these sources as they are now, by id."""
        ...


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A source that is to be planned; `cause` names why in its entity's history."""

    source: str
    cause: str
    correlation_id: str


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """What planning a source came to, and the source as it was then; `refused` where it cannot be planned at all."""

    facts: SourceFacts | None = None
    counts: PlanCounts = PlanCounts()
    refused: CallerError | None = None


class Planning:
    """The one way by which occurrences of reminders are planned."""

    def __init__(
        self, *, automation: AutomationStore, settings: ReminderStore, facts: FactStore, sources: Known
    ) -> None:
        """Plan with this store, by these settings, zones and sources."""
        self._automation = automation
        self._settings = settings
        self._facts = facts
        self._sources = sources
        self._singles: Gathering[tuple[str, str], Ask, Planned] = Gathering(self._plan_set)

    async def plan(self, tenant_id: str, source_type: str, ask: Ask) -> Planned:
        """Plan one source, together with others of its type that are asked for at the same time."""
        return await self._singles.ask((tenant_id, source_type), ask)

    async def plan_all(self, tenant_id: str, source_type: str, asks: Sequence[Ask]) -> list[Planned]:
        """Plan sources, and answer in their order."""
        answers: list[Planned] = []
        for start in range(0, len(asks), SET_MAX):
            answers += await self._plan_some(tenant_id, source_type, asks[start : start + SET_MAX])
        return answers

    async def _plan_set(self, key: tuple[str, str], asks: Sequence[Ask]) -> Sequence[Planned]:
        return await self.plan_all(*key, asks)

    async def _plan_some(self, tenant_id: str, source_type: str, asks: Sequence[Ask]) -> list[Planned]:
        """Plan a set until nobody has overtaken it; of a source that is asked for twice the first cause is told."""
        waiting = {ask.source: ask for ask in reversed(asks)}
        found: dict[str, Planned] = {}
        for _ in range(ROUNDS_MAX):
            found |= await self._round(tenant_id, source_type, waiting)
            waiting = {source: ask for source, ask in waiting.items() if source not in found}
            if not waiting:
                return [found[ask.source] for ask in asks]
        raise Superseded("others planned its sources again and again meanwhile", hint="it is planned again by itself")

    async def _round(self, tenant_id: str, source_type: str, asks: Mapping[str, Ask]) -> dict[str, Planned]:
        """Plan once; whoever is overtaken is left out of the answer."""
        before = await self._automation.find_standings_of_sources(tenant_id, source_type, asks)
        situations = await self._situations(tenant_id, source_type, asks)
        answers: dict[str, Planned] = {}
        keys: set[str] = set()
        for source, situation in situations.items():
            try:
                keys |= keys_of(situation, before[source].states if source in before else ())
            except CallerError as error:  # such as an id that no key can be made of
                answers[source] = Planned(facts=situation.facts, refused=error)
        rows = await self._automation.find_standings_of_sources(tenant_id, source_type, asks, keys=keys)
        plans: dict[str, SourcePlan] = {}
        for source, situation in situations.items():
            if source in answers:
                continue
            new = SourceStanding(source_type=source_type, source=source)
            standing = rows.get(source, new)
            if standing.serial != before.get(source, new).serial:
                continue
            plans[source] = plan(
                situation, standing, cause=asks[source].cause, correlation_id=asks[source].correlation_id
            )
        for source, applied in (await self._applied(tenant_id, plans)).items():
            if not applied.overtaken:
                known = rows[source].open_rows if source in rows else ()
                counts = _counts(plans[source], applied, known)
                answers[source] = Planned(facts=situations[source].facts, counts=counts)
        return answers

    async def _situations(self, tenant_id: str, source_type: str, sources: Mapping[str, Ask]) -> dict[str, Situation]:
        """Read all that plans of these sources go by."""
        facts = await self._sources.load(tenant_id, source_type, sources)
        settings = [record.setting for record in await self._settings.find_reminders(tenant_id, source_type)]
        units = {one.business_unit for one in facts.values() if one.business_unit is not None}
        forms = await self._facts.find_local_forms(tenant_id, units)
        now = await self._facts.now()
        return {
            source: Situation(
                source_type=source_type,
                source=source,
                facts=facts.get(source),
                settings=settings,
                tz_id=zone_in(forms, facts[source].business_unit if source in facts else None),
                now=now,
            )
            for source in sources
        }

    async def _applied(self, tenant_id: str, plans: Mapping[str, SourcePlan]) -> dict[str, AppliedPlan]:
        """Carry plans out; one that changes nothing is not worth a transaction."""
        full = {source: one for source, one in plans.items() if not one.is_empty}
        applied = await self._automation.apply_plans(tenant_id, list(full.values())) if full else []
        return dict.fromkeys(plans, AppliedPlan()) | dict(zip(full, applied, strict=True))


def _counts(plan: SourcePlan, applied: AppliedPlan, known: Sequence[AutomationScheduler]) -> PlanCounts:
    """Count what carrying a plan out came to; what was made anew under its key is ensured, and not deactivated too."""
    versions = {row.scheduler_key: row.version for row in known}
    ensured = unchanged = conflicts = 0
    for one in applied.ensured:
        is_as_it_was = one.record.version == versions.get(one.record.scheduler_key)
        match one.outcome:
            case Outcome.CONFLICT:
                conflicts += 1
            case Outcome.CREATED | Outcome.REACTIVATED | Outcome.FOUND if not is_as_it_was:
                ensured += 1
            case _:
                unchanged += 1
    wanted = {row.scheduler_key for row in plan.ensure}
    return PlanCounts(
        ensured=ensured,
        deactivated=len(set(applied.deactivated) - wanted),
        unchanged=unchanged + plan.unchanged,
        conflicts=conflicts,
    )

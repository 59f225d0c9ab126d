"""What happened to occurrences: counted, so that a run in which nothing could go wrong proves nothing.

Also takes down which sources workers have looked at, which the truth needs for the edges of thresholds.
"""

from collections.abc import Iterator, Sequence
from typing import cast

from clarion.domain.automation import AutomationStatus
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.entity_event import EventStatus
from clarion.domain.key import FiringPolicy
from clarion.domain.planning import AppliedPlan, SourcePlan
from clarion.ports.automation import DueEnd
from clarion.ports.source import EventClaim, EventEnd
from clarion.testing.simulation.entitled import Window
from clarion.testing.simulation.loop import PROCESS
from clarion.testing.simulation.reminding import Look
from clarion.testing.simulation.scene import Change, OccurrenceRow
from clarion.testing.simulation.verdict import Evidence, Violation

SECOND_EDGE = f":{FiringPolicy.FALSE_TO_TRUE.value}:all:2"
"""How the key of an occurrence ends whose threshold has come to be met a second time."""


def hear(name: str, args: Sequence[object], answer: object, *, seconds: float, evidence: Evidence) -> None:
    """Take down what workers have looked at, and count what came too late or again; also where nothing changed."""
    met = evidence.coverage.met
    match name:
        case "claim_events":
            for claim in cast(list[EventClaim], answer):
                evidence.scene.event_claims[claim.event.id or 0, claim.event.version] = seconds
                evidence.scene.events[claim.event.id or 0] = (claim.event.source_type or "", claim.event.source or "")
        case "finish_events":
            _look(cast(Sequence[EventEnd], args[0]), cast(set[int], answer), seconds, evidence)
        case "finish_due":
            ends = cast(Sequence[DueEnd], args[0])
            for end in ends:
                evidence.scene.due_claims.get((end.scheduler_key, PROCESS.get()), {}).pop(end.version, None)
            if len(ends) > len(cast(set[tuple[str, str]], answer)):
                met("I-17: occurrence finished too late")
        case "apply_plans" if any(one.overtaken for one in cast(list[AppliedPlan], answer)):
            met("automation: plan overtaken")
        case "ensure_events" if any(one.outcome is Outcome.FOUND for one in cast(list[Ensured[object]], answer)):
            met("automation: event told again")
        case _:
            pass


def _look(ends: Sequence[EventEnd], moved: set[int], seconds: float, evidence: Evidence) -> None:
    """Note that a worker has planned a source, at some time between its claim and now."""
    reminding, scene = evidence.truth.reminding, evidence.scene
    for end in ends:
        if reminding is not None and end.to is EventStatus.DONE and end.event_id in moved:
            window = Window(scene.event_claims[end.event_id, end.version], seconds)
            reminding.looks.append(Look(*scene.events[end.event_id], window))


def what_is_met(change: Change, evidence: Evidence) -> Iterator[Violation]:
    """Count what happened to occurrences; nothing here is wrong."""
    for old, new in change.occurrences:
        for name in _names(old, new, change.deed.method):
            evidence.coverage.met(name)
        if new.state is AutomationStatus.COMPLETED and _was_handed_over_before(new.key, change, evidence):
            evidence.coverage.met("automation: handed over by a worker that was lost, and finished by another claim")
    match change.deed.method:
        case "apply_plans" if change.occurrences:
            for plan in cast(Sequence[SourcePlan], change.deed.given["plans"]):
                if plan.cause.startswith("repair "):
                    evidence.coverage.met("automation: reconciliation found something")
                if plan.deactivate and plan.ensure:
                    evidence.coverage.met("automation: deactivated and ensured in one")
        case "put_reminder" if any(_is_under_way(row, change) for row in evidence.scene.occurrences.values()):
            evidence.coverage.met("automation: setting changed under a due occurrence")
        case _:
            pass
    return iter(())


def _names(old: OccurrenceRow | None, new: OccurrenceRow, method: str) -> Iterator[str]:
    if old is None:
        if new.key.endswith(SECOND_EDGE):
            yield "automation: threshold fell and rose again"
        return
    if old.status != new.status:
        yield f"edge: occurrence {old.status} → {new.status}"
    if method == "rescue_due":
        yield "automation: lease of an occurrence ended"
    if new.end_reason == "SourceNoLongerValid" and new.state is AutomationStatus.DEACTIVATED:
        yield f"automation: source went away, found by {method}"
    if new.on_hold and not old.on_hold:
        yield f"automation: on hold by {method}"
    if old.on_hold and not new.on_hold:
        yield f"automation: let go by {method}"
    if method == "apply_plans" and old.status == new.status and old.scheduled_at != new.scheduled_at:
        yield "automation: another send time"


def _was_handed_over_before(key: str, change: Change, evidence: Evidence) -> bool:
    """Tell whether the job of an occurrence was made under an earlier claim than the one that finishes it."""
    reminding = evidence.truth.reminding
    done = None if reminding is None else reminding.handed.get(key)
    claimed = evidence.scene.due_claims.get((key, change.deed.process), {})
    return done is not None and bool(claimed) and done.claimed_at < max(claimed.values())[0]


def _is_under_way(row: OccurrenceRow, change: Change) -> bool:
    """Tell whether a setting that was put has an occurrence that is due or claimed."""
    setting = getattr(change.deed.given["setting"], "guid", None)
    is_due = row.state is AutomationStatus.PENDING and row.due_at <= change.at
    return row.setting == str(setting) and (is_due or row.state is AutomationStatus.PROCESSING)

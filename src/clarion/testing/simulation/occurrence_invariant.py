"""What must hold for occurrences that fall due after every commit, each by its number in docs/reference/invariants.md.

As in `invariant`: a check gets what the commit changed and the scene as it is now, and yields what is wrong. What a
reminder that is handed over is of, and whether there may be one, is asked of `reminding`.
"""

from collections.abc import Iterator, Sequence
from typing import Final, cast

from clarion.domain.automation import AutomationStatus
from clarion.domain.planning import AppliedPlan, SourcePlan
from clarion.ports.automation import DueClaim, DueEnd
from clarion.testing.simulation import occurrence_coverage
from clarion.testing.simulation.entitled import Window
from clarion.testing.simulation.notes import Send
from clarion.testing.simulation.reminding import Reminded
from clarion.testing.simulation.scene import Change
from clarion.testing.simulation.verdict import TOLERANCE, Check, Evidence, Violation, lease_violation

OF_REMINDERS: Final = "reminder:"
"""How the row key of the job of a reminder begins."""

PENDING: Final = AutomationStatus.PENDING
PROCESSING: Final = AutomationStatus.PROCESSING
COMPLETED: Final = AutomationStatus.COMPLETED
FAILED: Final = AutomationStatus.FAILED
DEACTIVATED: Final = AutomationStatus.DEACTIVATED
CANCELED: Final = AutomationStatus.CANCELED

MOVES: Final = {
    "claim_due": {(PENDING, PROCESSING)},
    "finish_due": {
        (PROCESSING, COMPLETED),
        (PROCESSING, DEACTIVATED),
        (PROCESSING, PENDING),
        (DEACTIVATED, PENDING),  # what follows in a chain
        (PENDING, PENDING),
    },
    "rescue_due": {(PROCESSING, PENDING)},
    "apply_plans": {(PENDING, PENDING), (PENDING, DEACTIVATED), (DEACTIVATED, PENDING)},
    "hold_occurrence": {(PENDING, PENDING)},
    "release_occurrence": {(PENDING, PENDING)},
    "run_occurrence_now": {(PENDING, PENDING)},
    "deactivate_occurrence": {(PENDING, CANCELED)},
}
"""Who may move an occurrence, and how. Nothing fails for good in a run, and what is canceled is canceled by people."""


def note(change: Change, evidence: Evidence) -> None:
    """Take down which reminders were handed over, as what, and what was claimed when."""
    reminding, scene, deed = evidence.truth.reminding, evidence.scene, change.deed
    if reminding is None:
        return
    if deed.method == "claim_due":
        for claim in cast(list[DueClaim], deed.answer):
            mine = scene.due_claims.setdefault((claim.row.scheduler_key, deed.process), {})
            mine[claim.row.version] = (change.seconds, change.store_seconds)
    for old, job in change.jobs:
        if old is not None or not job.row_key.startswith(OF_REMINDERS):
            continue
        claims = scene.due_claims.get((job.row_key, deed.process), {})
        since, store_since = min(claims.values(), default=(change.seconds, change.store_seconds))
        window = Window(since, change.seconds)
        occasion = reminding.may(job.row_key, window, store_now=change.store_seconds)
        if isinstance(occasion, str):
            continue  # `reminders_are_asked_for` says so
        plan = reminding.plan_of(occasion, window)
        reminding.handed[job.row_key] = Reminded(occasion, plan, job.guid, since, change.seconds)
        scene.reminders[job.row_key] = plan.number
        evidence.truth.plans[plan.number] = plan
        send = Send(plan, "", at=since, store_at=store_since, store_not_before=None)
        send.promised(at=change.seconds, store_at=change.store_seconds)
        evidence.truth.notes.sends.append(send)


def reminders_are_asked_for(change: Change, evidence: Evidence) -> Iterator[Violation]:
    """I-01, I-16: a reminder is handed over under the key of what asks for it, in its time, by who has claimed it."""
    reminding, deed = evidence.truth.reminding, change.deed
    for old, job in change.jobs:
        if reminding is None or old is not None or not job.row_key.startswith(OF_REMINDERS):
            continue
        claims = evidence.scene.due_claims.get((job.row_key, deed.process))
        if not claims:
            yield Violation("I-08", f"{deed} handed {job.row_key} over and had not claimed it")
            continue
        since, _ = min(claims.values())  # a worker may still be at an earlier claim, which has ended long ago
        found = reminding.may(job.row_key, Window(since, change.seconds), store_now=change.store_seconds)
        if isinstance(found, str):
            yield Violation("I-01", f"{deed} handed {job.row_key} over, and {found}")


def occurrences_move_by_the_table(change: Change, _: Evidence) -> Iterator[Violation]:
    """I-18, I-21: an occurrence moves as its mover may, and each move has the next version."""
    for old, new in change.occurrences:
        if old is None:
            if (new.state, new.version) != (PENDING, 1):
                yield Violation("I-18", f"{change.deed}: {new.key} began as {new.status} at version {new.version}")
            continue
        if new.version != old.version + 1:
            yield Violation("I-18", f"{change.deed}: {new.key} went from version {old.version} to {new.version}")
        if (old.state, new.state) not in MOVES.get(change.deed.method, ()):
            yield Violation("I-18", f"{change.deed} moved {new.key} from {old.status} to {new.status}")
        if old.input_hash != new.input_hash and change.deed.method != "apply_plans":
            yield Violation("I-04", f"{change.deed} made another occurrence of {new.key}")


def occurrences_are_claimed_when_due(change: Change, _: Evidence) -> Iterator[Violation]:
    """I-19: a claim takes what is due and on nobody's hold, for its lease; a rescue comes after the lease."""
    for old, new in change.occurrences:
        if old is None:
            continue
        if change.deed.method == "claim_due":
            if old.due_at > change.at + TOLERANCE or old.on_hold:
                yield Violation("I-19", f"{change.deed} took {new.key}, which is not due or on hold")
            yield from lease_violation(change, new.key, new.lease_until)
        if change.deed.method == "rescue_due" and (old.lease_until or 0) > change.at + TOLERANCE:
            yield Violation("I-19", f"{change.deed} took {new.key} over before its lease ended")


def occurrences_are_finished_by_their_holder(change: Change, evidence: Evidence) -> Iterator[Violation]:
    """I-17, I-28: an end counts for the claim that it was given for, and a completed one has its job."""
    if change.deed.method != "finish_due":
        return
    ends = {end.scheduler_key: end for end in cast(Sequence[DueEnd], change.deed.given["ends"])}
    jobs = {job.row_key for job in evidence.scene.jobs.values()}
    for old, new in change.occurrences:
        end = ends.get(new.key)
        if old is None or old.state is not PROCESSING:
            continue  # what follows in a chain
        if end is None or end.version != old.version:
            yield Violation("I-17", f"{change.deed} moved {new.key}, which another claim holds")
        if new.state is COMPLETED and new.end_reason is None and new.key not in jobs:
            yield Violation("I-28", f"{change.deed} completed {new.key}, and it has no job")
        if new.on_hold and old.retry_count < HELD_AFTER and "planned for another" not in (new.failure_reason or ""):
            yield Violation("I-23", f"{change.deed} put {new.key} on hold after {old.retry_count} retries")


HELD_AFTER: Final = 3
"""Retries after which one more failure puts an occurrence on hold."""


def plans_are_carried_out_whole(change: Change, evidence: Evidence) -> Iterator[Violation]:
    """What a plan deactivates, ensures and says of thresholds is all there, or nothing of it is."""
    if change.deed.method != "apply_plans":
        return
    plans = cast(Sequence[SourcePlan], change.deed.given["plans"])
    for plan, applied in zip(plans, cast(list[AppliedPlan], change.deed.answer), strict=True):
        if applied.overtaken:
            mine = [
                row for _, row in change.occurrences if (row.source_type, row.source) == (plan.source_type, plan.source)
            ]
            if mine and sum((one.source_type, one.source) == (plan.source_type, plan.source) for one in plans) == 1:
                yield Violation("plan", f"{change.deed}: an overtaken plan of {plan.source} was carried out")
            continue
        yield from _is_whole(plan, change, evidence)


def _is_whole(plan: SourcePlan, change: Change, evidence: Evidence) -> Iterator[Violation]:
    scene = evidence.scene
    ensured = {row.scheduler_key for row in plan.ensure}
    before = {row.key: old for old, row in change.occurrences}
    for key in ensured - scene.occurrences.keys():
        yield Violation("plan", f"{change.deed}: {key} is not there, which its plan ensures")
    for one in plan.ensure:
        row, old = scene.occurrences.get(one.scheduler_key), before.get(one.scheduler_key)
        if row is not None and row.state is DEACTIVATED and old is None:
            yield Violation("plan", f"{change.deed}: {row.key} was left {row.status}, which its plan ensures")
    for end in plan.deactivate:
        row = scene.occurrences.get(end.scheduler_key)
        if row is not None and row.version == end.version and row.state is PENDING:
            yield Violation("plan", f"{change.deed}: {row.key} is pending still, which its plan deactivates")
    for state in plan.states:
        if scene.thresholds.get(state.key) != (int(state.met), state.edge_no):
            yield Violation("plan", f"{change.deed}: the threshold {state.key} did not move with its plan")


CHECKS: Final[tuple[Check, ...]] = (
    reminders_are_asked_for,
    occurrences_move_by_the_table,
    occurrences_are_claimed_when_due,
    occurrences_are_finished_by_their_holder,
    plans_are_carried_out_whole,
    occurrence_coverage.what_is_met,
)

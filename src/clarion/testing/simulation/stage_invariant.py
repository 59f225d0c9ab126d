"""What must hold for jobs and their stages after every commit, each by its number in docs/reference/invariants.md.

As in `invariant`: a check gets what the commit changed and the scene as it is now, and yields what is wrong.
"""

from collections.abc import Iterator, Sequence
from typing import Final, cast

from clarion.domain import recipient
from clarion.domain.claim import StageResult
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.identity import Channel
from clarion.domain.notification import NOTIFICATION_SCHEDULER, RESCUES_MAX, NotificationStatus
from clarion.domain.recipient import Manifest
from clarion.testing.simulation.scene import Change, JobRow, SchedulerRow
from clarion.testing.simulation.verdict import TOLERANCE, Check, Evidence, Violation, lease_violation

CODE: Final = "code"
"""The type of one-time codes."""


def ensured_again_writes_nothing(change: Change, evidence: Evidence) -> Iterator[Violation]:
    """I-03, I-04: what is found is not written; another payload changes nothing and opens one case."""
    deed = change.deed
    if not deed.method.startswith("ensure_") or not isinstance(deed.answer, list):
        return
    answers = cast(list[Ensured[object]], deed.answer)
    outcomes = {answer.outcome for answer in answers}
    if outcomes == {Outcome.FOUND}:
        yield Violation("I-03", f"{deed} found everything and wrote something")
    if outcomes == {Outcome.CONFLICT}:
        evidence.coverage.met("I-04: other payload under a used key")
        if change.jobs or change.schedulers or change.outgoing:
            yield Violation("I-04", f"{deed} was answered with a conflict and changed rows")
        for answer in answers:
            if evidence.scene.cases.get(str(answer.case_id)) != "Conflict":
                yield Violation("I-04", f"{deed} was answered with a conflict and no support case is open")


def recipients_stay_frozen(change: Change, evidence: Evidence) -> Iterator[Violation]:
    """I-06: a job's recipient set is stored once and never changes, nor does anything that was given."""
    for old, new in change.jobs:
        if old is not None and _as_given(old) != _as_given(new):
            yield Violation("I-04", f"{change.deed} changed what job {new.guid} was given")
        if old is not None and old.recipients not in (None, new.recipients):
            yield Violation("I-06", f"{change.deed} changed the frozen recipients of job {new.guid}")
        if new.recipients is not None and (old is None or old.recipients is None):
            frozen = recipient.read(new.recipients)
            if isinstance(frozen, Manifest):
                evidence.coverage.met("I-06: set in pages")
                continue
            people = [one.recipient_id_hash for one in frozen]
            if not evidence.scene.edited_at.keys().isdisjoint(people):
                evidence.coverage.met("I-06: generated after an address edit")


def _as_given(job: JobRow) -> JobRow:
    """Leave out what is not as its caller gave it."""
    return job._replace(recipients=None, has_data=0)


def codes_are_erased_when_over(change: Change, evidence: Evidence) -> Iterator[Violation]:
    """X-23: data goes with a one-time code alone, and not while a call may still need it."""
    for old, new in change.jobs:
        if old is None or old.has_data == new.has_data:
            continue
        evidence.coverage.met("X-23: code erased")
        if new.event_type != CODE or new.has_data:
            yield Violation("X-23", f"{change.deed} changed whether job {new.guid} ({new.event_type}) has data")
        elif why := needs_data(new, evidence, at=change.at):
            yield Violation("X-23", f"{change.deed} erased the data of job {new.guid}: {why}")


def needs_data(job: JobRow, evidence: Evidence, *, at: int) -> str | None:
    """Say why a call may still need the data of a job, by the store's clock."""
    scheduler = evidence.scene.scheduler_of(job)
    if scheduler is None or scheduler.status in ("Ready", "Processing"):
        return "it is worked on"
    for row in evidence.scene.rows_of(job):
        if row.status in ("Created", "RetryReady", "Sending"):
            return f"row {row.id} is {row.status}"
        if row.status == "Uncertain" and (row.expires_at is None or row.expires_at > at):
            return f"row {row.id} is Uncertain and has time left"
    return None


def stages_move_by_the_table(change: Change, evidence: Evidence) -> Iterator[Violation]:
    """I-07, I-18, I-21: states move along the table only, versions never back, a canceled one not at all."""
    for old, new in change.schedulers:
        if old is None:
            continue
        if new.version < old.version:
            yield Violation("I-18", f"the version of scheduler row {new.id} went from {old.version} to {new.version}")
        if old.state is NotificationStatus.CANCELED:
            yield Violation("I-07", f"{change.deed} changed the canceled scheduler row {new.id}")
        if old.status == new.status:
            continue
        evidence.coverage.met(f"edge: {old.status} → {new.status}")
        if not NOTIFICATION_SCHEDULER.may(from_=old.state, to=new.state):
            yield Violation("I-18", f"{change.deed} moved scheduler row {new.id} from {old.status} to {new.status}")


def stages_are_claimed_when_due(change: Change, _: Evidence) -> Iterator[Violation]:
    """I-18, I-19: a claim takes what is due, under a new version, for its lease."""
    for old, new in change.schedulers:
        if old is None or new.state is not NotificationStatus.PROCESSING or old.status == new.status:
            continue
        if change.deed.method != "claim_stage" or old.due_at is None or old.due_at > change.at + TOLERANCE:
            yield Violation("I-19", f"{change.deed} claimed scheduler row {new.id}, which was not due")
        if new.version <= old.version:
            yield Violation("I-18", f"scheduler row {new.id} was claimed under the same version {new.version}")
        yield from lease_violation(change, f"scheduler row {new.id}", new.lease_until)


def stages_are_rescued_after_the_lease(change: Change, evidence: Evidence) -> Iterator[Violation]:
    """I-19, I-23: a claim is taken over after its lease only, and not for ever: then it fails with a case."""
    for old, new in change.schedulers:
        if new.rescue_count > RESCUES_MAX + 1:
            yield Violation("I-23", f"scheduler row {new.id} was rescued {new.rescue_count} times")
        if old is None or change.deed.method != "rescue_stages":
            continue
        evidence.coverage.met("I-19: stage rescued")
        if old.lease_until is None or old.lease_until > change.at + TOLERANCE:
            yield Violation("I-19", f"{change.deed} took scheduler row {new.id} over before its lease ended")
        if new.state is NotificationStatus.FAILED:
            evidence.coverage.met("I-23: rescued too often")
            if new.rescue_count <= RESCUES_MAX or not evidence.scene.cases:
                yield Violation("I-23", f"scheduler row {new.id} failed after {new.rescue_count} rescues, without case")
            if new.correlation_id not in evidence.poison and not evidence.stormy:
                yield Violation("F-13", f"scheduler row {new.id} failed of the poison of others")


def stages_are_finished_by_their_holder(change: Change, _: Evidence) -> Iterator[Violation]:
    """I-17: a stage is finished under the version of its claim; a result that comes too late changes nothing."""
    if change.deed.method != "finish_stage":
        return
    results = {one.scheduler_id: one for one in cast(Sequence[StageResult], change.deed.given["results"])}
    moved = cast(set[int], change.deed.answer)
    if {new.id for _, new in change.schedulers} != moved:
        yield Violation("I-17", f"{change.deed} says that it moved {sorted(moved)} and moved others")
    for old, new in change.schedulers:
        if not _held(old, results.get(new.id)):
            yield Violation("I-17", f"{change.deed} moved scheduler row {new.id} without holding it")


def done_means_that_rows_exist(change: Change, evidence: Evidence) -> Iterator[Violation]:
    """I-28: a scheduler row is Done only when every row of its frozen set is there."""
    for old, new in change.schedulers:
        if new.state is not NotificationStatus.DONE or (old is not None and old.status == new.status):
            continue
        job = next(job for job in evidence.scene.jobs.values() if job.row_key == new.artifact_rk)
        for missing in _missing_rows(job, evidence):
            yield Violation("I-28", f"scheduler row {new.id} is Done and {missing} was not made")
        if new.rescue_count and evidence.scene.rows_of(job):
            evidence.coverage.met("I-28: job finished with rows of an earlier worker")


CHECKS: Final[tuple[Check, ...]] = (
    ensured_again_writes_nothing,
    recipients_stay_frozen,
    codes_are_erased_when_over,
    stages_move_by_the_table,
    stages_are_claimed_when_due,
    stages_are_rescued_after_the_lease,
    stages_are_finished_by_their_holder,
    done_means_that_rows_exist,
)


def _held(old: SchedulerRow | None, result: StageResult | None) -> bool:
    """Tell whether a result was given by the one who held the row."""
    if old is None or result is None:
        return False
    return old.state is NotificationStatus.PROCESSING and old.version == result.version


def _missing_rows(job: JobRow, evidence: Evidence) -> Iterator[str]:
    """Name what the frozen set of a job asks for and the database does not have."""
    made = {(row.recipient_id_hash, row.channel) for row in evidence.scene.rows_of(job)}
    frozen = recipient.read(job.recipients or "[]")
    for one in () if isinstance(frozen, Manifest) else frozen:  # who must have what in pages, `truth` knows
        for decision in one.decisions:
            if decision.skipped is not None:
                continue
            if decision.channel is Channel.INBOX:
                if evidence.scene.inbox[job.tenant_id, job.row_key, one.recipient_id_hash] != 1:
                    yield f"the inbox row of {one.recipient_id_hash[:8]}"
            elif (one.recipient_id_hash, decision.channel) not in made:
                yield f"the {decision.channel} row of {one.recipient_id_hash[:8]}"

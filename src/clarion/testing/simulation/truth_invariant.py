"""What a job or a message shows after a commit, held against the truth: nothing ends without a cause.

The truth knows what was asked for and what providers did; here it is asked whenever a row moves. As in `invariant`, a
check gets what the commit changed and yields what is wrong.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final
from uuid import UUID

from clarion.domain.call import Unknown
from clarion.domain.identity import Channel
from clarion.domain.notification import NotificationStatus, Stage
from clarion.domain.outgoing import RANK, OutgoingStatus
from clarion.testing.simulation import excuse
from clarion.testing.simulation.entitled import Message, Window
from clarion.testing.simulation.option import JobPlan
from clarion.testing.simulation.scene import Change, Claim, JobRow, OutgoingRow
from clarion.testing.simulation.verdict import Check, Evidence, Violation


def jobs_end_for_a_cause(change: Change, evidence: Evidence) -> Iterator[Violation]:
    """I-25: a job is skipped where its type was off, canceled where somebody canceled it, and fails of poison only."""
    for old, new in change.schedulers:
        job = next((one for one in evidence.scene.jobs.values() if one.row_key == new.artifact_rk), None)
        if job is None or (old is not None and old.status == new.status):
            continue
        number = evidence.scene.number_of(job)
        plan = None if number is None else evidence.truth.plans[number]
        wrong: str | None = None
        match new.state:
            case NotificationStatus.SKIPPED if plan is not None:
                since = evidence.scene.staged_at.get((new.id, change.deed.process), 0.0)
                if new.at_stage is Stage.GENERATE:
                    evidence.coverage.met("people: nobody to send it to")
                wrong = evidence.truth.skipped(plan, new.at_stage, Window(since, change.seconds))
            case NotificationStatus.CANCELED:
                wrong = evidence.truth.canceled(UUID(job.guid))
            case NotificationStatus.FAILED if change.deed.method != "rescue_stages":
                wrong = "every job of a run can be made"
            case _:
                pass
        if wrong:
            yield Violation("I-25", f"{change.deed}: job {job.guid} is {new.status}, and {wrong}")


def messages_end_for_a_cause(change: Change, evidence: Evidence) -> Iterator[Violation]:
    """I-11, I-12, I-25: a message shows what became of it, and nothing else."""
    for old, new in change.outgoing:
        if old is None or old.status == new.status:
            continue
        wrong = shown_wrongly(new, evidence, store_now=change.store_seconds)
        if wrong:
            yield Violation("I-25", f"{change.deed}: row {new.id} is {new.status}, and {wrong}")


def messages_are_claimed_in_time(change: Change, evidence: Evidence) -> Iterator[Violation]:
    """I-16: a message is claimed when it was asked for, before its time is over, and if its type was not off."""
    for old, new in change.outgoing:
        if old is not None and old.status != new.status and new.state is OutgoingStatus.SENDING:
            plan = evidence.plan_of(new)
            if plan is None:
                continue
            if wrong := evidence.truth.called(plan, now=change.seconds, store_now=change.store_seconds):
                yield Violation("I-16", f"{change.deed}: row {new.id} is claimed, and {wrong}")


def nobody_is_claimed_who_opted_out(change: Change, evidence: Evidence) -> Iterator[Violation]:
    """I-34: whoever surely refused a message before the claim of it began is not called with it."""
    for old, new in change.outgoing:
        if old is None or old.status == new.status or new.state is not OutgoingStatus.SENDING:
            continue
        plan, message = evidence.plan_of(new), evidence.message_of(new)
        if plan is None or message is None:
            continue
        if wrong := evidence.truth.refused_before(plan, message, now=change.seconds):
            yield Violation("I-34", f"{change.deed}: row {new.id} is claimed, and {wrong}")


def done_jobs_have_the_messages_of_those_who_should_get_them(change: Change, evidence: Evidence) -> Iterator[Violation]:
    """I-25: a job that is done has a message for everybody who must get it, and for nobody who may not."""
    for old, new in change.schedulers:
        if new.state is not NotificationStatus.DONE or (old is not None and old.status == new.status):
            continue
        job = next((one for one in evidence.scene.jobs.values() if one.row_key == new.artifact_rk), None)
        number = None if job is None else evidence.scene.number_of(job)
        if job is None or number is None:
            continue
        plan, window = evidence.truth.plans[number], Window(*evidence.scene.frozen[job.id])
        made = made_of(job, evidence)
        _count(plan, made, window, evidence)
        if wrong := evidence.truth.made(plan, made, window):
            yield Violation("I-25", f"{change.deed}: job {job.guid} is done, and {wrong}")
        listed = {evidence.directory.whose(hashed) for job_id, hashed in evidence.scene.listed if job_id == job.id}
        if wrong := evidence.truth.listed(plan, listed, window):
            yield Violation("history", f"{change.deed}: job {job.guid} is done, and {wrong}")


def _count(plan: JobPlan, made: Collection[Message | None], window: Window, evidence: Evidence) -> None:
    """Count what a set of recipients has in it that could have gone wrong."""
    entitled = evidence.truth.entitled
    expected = entitled.expected(plan, window)
    messages = [one for one in made if one is not None]
    places = {(one.to, one.channel) for one in messages}
    for name, is_so in (
        ("people: named by a setting", plan.by_setting and bool(messages)),
        ("people: changed while it was decided", expected.must != expected.may),
        ("people: left out because of an opt-out", bool(expected.refused)),
        ("people: two addresses of one person", len(places) < len(messages)),
        ("people: refused in vain", any(entitled.is_refused_in_vain(plan, one, window) for one in messages)),
    ):
        if is_so:
            evidence.coverage.met(name)


def made_of(job: JobRow, evidence: Evidence) -> Counter[Message | None]:
    """Count the messages that there are of a job."""
    made = Counter(evidence.message_of(row) for row in evidence.scene.rows_of(job))
    for tenant_id, row_key, hashed in evidence.scene.inbox.elements():
        if (tenant_id, row_key) == (job.tenant_id, job.row_key):
            who = evidence.directory.whose(hashed)
            made[None if who is None else Message(who, Channel.INBOX, None)] += 1
    return made


def unknown_outcomes_are_unknown(change: Change, evidence: Evidence) -> Iterator[Violation]:
    """I-12: that an outcome is unknown is written down only where its reply was really lost."""
    if change.deed.method != "record_outgoing":
        return
    for claim in evidence.scene.claims.values():
        is_new = claim.recorded_at == change.seconds and isinstance(claim.recorded, Unknown)
        if is_new and (wrong := excuse.of_unknown(claim)):
            yield Violation("I-12", f"{change.deed}: the outcome of row {claim.row_id} is unknown, and {wrong}")


def slots_are_never_exceeded(change: Change, evidence: Evidence) -> Iterator[Violation]:
    """I-14: a pump holds no more claims than it has call slots, so that a kill leaves no more of them uncertain."""
    if change.deed.method != "claim_outgoing":
        return
    claimed = [claim for claim in evidence.scene.claims.values() if claim.at == change.seconds]
    for task in {claim.task for claim in claimed}:
        held = sum(_is_held(claim) for claim in evidence.scene.claims.values() if claim.task is task)
        if held == evidence.truth.slots:
            evidence.coverage.met("I-14: all slots taken")
        if held > evidence.truth.slots:
            yield Violation("I-14", f"{change.deed} holds {held} claims with {evidence.truth.slots} call slots")


CHECKS: Final[tuple[Check, ...]] = (
    jobs_end_for_a_cause,
    messages_end_for_a_cause,
    messages_are_claimed_in_time,
    nobody_is_claimed_who_opted_out,
    done_jobs_have_the_messages_of_those_who_should_get_them,
    unknown_outcomes_are_unknown,
    slots_are_never_exceeded,
)


def life_of(row: OutgoingRow, evidence: Evidence) -> Window:
    """Return the time in which a row can have become what it is."""
    return Window(evidence.scene.made_at[row.id], evidence.scene.moved_at.get(row.id, float("inf")))


def _is_held(claim: Claim) -> bool:
    return claim.recorded is None and not excuse.is_unheard(claim)


def shown_wrongly(row: OutgoingRow, evidence: Evidence, *, store_now: float) -> str | None:
    """Say why a message cannot have become then what it shows; None where it can."""
    truth, plan, job = evidence.truth, evidence.plan_of(row), evidence.scene.job_of(row)
    claims = evidence.scene.claims_of(row)
    if plan is None or job is None:
        return None
    match row.state:
        case OutgoingStatus.CANCELED:
            return truth.canceled(UUID(job.guid), plan) or truth.denied(claims)
        case OutgoingStatus.EXPIRED:
            return truth.expired(plan, store_now=store_now) or truth.denied(claims)
        case OutgoingStatus.FAILED_FINAL:
            return truth.failed(claims) or truth.denied(claims)
        case OutgoingStatus.UNCERTAIN:
            return truth.uncertain(claims)
        case OutgoingStatus.SUPPRESSED:
            return truth.suppressed(plan, evidence.message_of(row), life_of(row, evidence)) or truth.denied(claims)
        case OutgoingStatus.NOT_SUPPORTED:
            return "no message of a run may become that"
        case status if status in RANK:
            return truth.evident(row.name, status)
        case _:
            return None

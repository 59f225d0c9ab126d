"""What must hold at the end of a run, after the weather has healed: nothing lost, nothing twice, nothing invented.

`lost` is what was promised and is neither accepted by a provider, nor ended for a cause that the truth knows, nor shown
as uncertain where nobody can know. The audit log is judged in `audited`.
"""

from collections.abc import Iterator
from itertools import pairwise
from uuid import UUID

import msgspec

from clarion.domain.attempt import AttemptStatus
from clarion.domain.call import Accepted
from clarion.domain.identity import Channel
from clarion.domain.notification import NotificationStatus
from clarion.domain.outgoing import FINAL, OPEN, RANK, OutgoingStatus
from clarion.testing.simulation import ordering
from clarion.testing.simulation.client import Clients, Promise
from clarion.testing.simulation.entitled import Window
from clarion.testing.simulation.ledger import Fate
from clarion.testing.simulation.reminding import Occasion
from clarion.testing.simulation.scene import Books, JobRow, OutgoingRow, ReceiptRow, Scene
from clarion.testing.simulation.stage_invariant import CODE, needs_data
from clarion.testing.simulation.truth_invariant import life_of, made_of, shown_wrongly
from clarion.testing.simulation.verdict import Evidence, Violation

UNFINISHED = (NotificationStatus.READY, NotificationStatus.PROCESSING)


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """What a run came to."""

    promised: int = 0
    rows: int = 0
    calls: int = 0
    delivered: int = 0
    lost: int = 0
    duplicate: int = 0
    phantom: int = 0
    uncertain: int = 0


def is_open(evidence: Evidence, books: Books) -> bool:
    """Tell whether there is work that the platform still has to do by itself."""
    scene = evidence.scene
    waiting = any(row.state in OPEN or row.settle_at is not None for row in scene.outgoing.values())
    unfinished = any(row.state in UNFINISHED for row in scene.schedulers.values())
    kept = any(_keeps_code(job, evidence) for job in scene.jobs.values())
    return waiting or unfinished or kept or any(one.applied_at is None for one, _ in _known_receipts(books, evidence))


def tally(clients: Clients, evidence: Evidence) -> Tally:
    """Count what was lost, delivered twice and invented, against the ledger."""
    scene, ledger, reminding = evidence.scene, evidence.ledger, evidence.truth.reminding
    rows = list(scene.outgoing.values())
    return Tally(
        promised=len(clients.promises),
        rows=len(rows),
        calls=len(ledger.calls),
        delivered=sum(ledger.accepted(row.name) for row in rows),
        lost=sum(_lost(promise, evidence) for promise in clients.promises.values())
        + len(reminding.lost if reminding else ()),
        duplicate=sum(max(0, ledger.deliveries(row.name) - scene.allowed(row)) for row in rows),
        phantom=sum(row.state in RANK and not ledger.accepted(row.name) for row in rows),
        uncertain=sum(row.state is OutgoingStatus.UNCERTAIN for row in rows),
    )


def judge(
    clients: Clients, evidence: Evidence, books: Books, *, now: float, store_now: float, calm: bool
) -> Iterator[Violation]:
    """Yield what is wrong at the end."""
    scene = evidence.scene
    yield from _attempts(books, evidence)
    yield from _receipts(books, evidence)
    yield from ordering.judge(evidence)
    for one in scene.schedulers.values():
        if one.state in UNFINISHED:
            yield Violation("I-25", f"job {one.id} still is {one.stage} {one.status} after the bound")
        elif one.reason is None and one.state is not NotificationStatus.CANCELED:
            yield Violation("I-25", f"job {one.id} ended as {one.status} without a reason")
    for row in scene.outgoing.values():
        yield from _row(row, evidence, calm=calm)
    for job in scene.jobs.values():
        if _keeps_code(job, evidence):
            yield Violation("X-23", f"the data of the one-time code {job.guid} is there after the bound")
    yield from _lost_reminders(evidence, now=now, store_now=store_now)
    for promise in clients.promises.values():
        if _job(promise, scene) is None:
            yield Violation("I-24", f"the promised job {promise.job_id} is not there")


def _lost_reminders(evidence: Evidence, *, now: float, store_now: float) -> Iterator[Violation]:
    """I-25: of what is asked for and was due somebody was reminded."""
    reminding = evidence.truth.reminding
    if reminding is not None:
        due = list(reminding.due(now=now, store_now=store_now))
        if any(came for _, came in due):
            evidence.coverage.met("automation: reminder that had to come")
        reminding.lost = [one for one, came in due if not came and _reaches(one, evidence)]
        for lost in reminding.lost:
            yield Violation("I-25", f"nobody was reminded of {lost.key}, which was asked for and due")


def _reaches(one: Occasion, evidence: Evidence) -> bool:
    """Tell whether a reminder surely has somebody to go to, so that it cannot have been left out."""
    reminding, ever = evidence.truth.reminding, Window(0.0, float("inf"))
    return reminding is not None and not evidence.truth.entitled.nobody(reminding.plan_of(one, ever), ever)


def _keeps_code(job: JobRow, evidence: Evidence) -> bool:
    """Tell whether the data of a one-time code is there though no call can need it, whatever the time is."""
    return job.event_type == CODE and bool(job.has_data) and needs_data(job, evidence, at=0) is None


def _row(row: OutgoingRow, evidence: Evidence, *, calm: bool) -> Iterator[Violation]:
    """Check one row against its history and the ledger."""
    if row.state in OPEN or row.settle_at is not None:
        yield Violation("I-25", f"row {row.id} still is {row.status} after the bound")
    elif row.state in FINAL and row.state not in RANK and row.reason is None:
        yield Violation("I-25", f"row {row.id} ended as {row.status} without a reason")
    yield from _settled(row, evidence)
    lines = evidence.scene.history.get(row.id, [])
    came = [(line.from_status, line.to_status) for line in lines]
    if came and (came[0][0] != "Created" or came[-1][1] != row.status):
        yield Violation("I-42", f"the history of row {row.id} does not lead from Created to {row.status}")
    if any(before[1] != after[0] for before, after in pairwise(came)):
        yield Violation("I-42", f"the history of row {row.id} has a gap: {came}")
    if calm and row.state is OutgoingStatus.UNCERTAIN:
        yield Violation("I-12", f"row {row.id} is Uncertain in a run without faults")
    if calm:
        evidence.coverage.met("I-12: run without faults")


def _settled(row: OutgoingRow, evidence: Evidence) -> Iterator[Violation]:
    """I-10, I-25: what was accepted shows that; what could be replayed is not left uncertain."""
    scene, claims = evidence.scene, evidence.scene.claims_of(row)
    if row.state not in RANK and any(isinstance(claim.recorded, Accepted) for claim in claims):
        yield Violation("I-25", f"row {row.id} is {row.status}, and its provider has accepted it")
    plan, job = evidence.plan_of(row), scene.job_of(row)
    if row.state is not OutgoingStatus.UNCERTAIN or plan is None or job is None:
        return
    left_at, message = scene.store_moved_at[row.id], evidence.message_of(row)
    if evidence.truth.suppressed(plan, message, life_of(row, evidence)) is None:
        return
    if wrong := evidence.truth.left_uncertain(plan, UUID(job.guid), Channel(row.channel), claims, store_now=left_at):
        yield Violation("I-10", f"row {row.id} is left uncertain: {wrong}")


def _attempts(books: Books, evidence: Evidence) -> Iterator[Violation]:
    """I-11, I-17: every call left its attempt, and no more of them are taken for accepted than were."""
    known = {(one.outgoing_id, one.attempt) for one in books.attempts}
    for row in evidence.scene.outgoing.values():
        calls = evidence.ledger.of(row.name)
        for call in calls:
            if (row.id, call.attempt) not in known:
                yield Violation("I-17", f"call {call.attempt} of row {row.id} left no attempt")
        accepted = sum(one.outgoing_id == row.id and one.status == AttemptStatus.ACCEPTED for one in books.attempts)
        if accepted > sum(call.fate in (Fate.ACCEPTED, Fate.REPEATED) for call in calls):
            yield Violation("I-11", f"row {row.id} has {accepted} attempts that are taken for accepted")


def _receipts(books: Books, evidence: Evidence) -> Iterator[Violation]:
    """I-30, I-31, I-32: what a door took is kept, and its row shows at least what it says, as soon as it is known."""
    kept = {receipt.event_id for receipt in books.receipts}
    for sent in evidence.ledger.receipts:
        shown = evidence.scene.row_named(sent.row)
        if sent.taken_at is not None and sent.event_id not in kept:
            yield Violation("I-30", f"receipt {sent.event_id} was taken with a 2xx and is not kept")
        if shown is None:
            continue
        visible = evidence.truth.visible(sent, evidence.scene.claims_of(shown))
        if visible and RANK.get(shown.state, 0) < RANK[sent.status]:
            yield Violation("I-31", f"row {shown.id} shows {shown.status} after a receipt of {sent.status}")
    for receipt, row in _known_receipts(books, evidence):
        if receipt.applied_at is None:
            yield Violation("I-32", f"receipt {receipt.event_id} of row {row.id} was never applied")


def _known_receipts(books: Books, evidence: Evidence) -> Iterator[tuple[ReceiptRow, OutgoingRow]]:
    """Pair receipts with their rows, by our id or by the provider's, where that is known."""
    rows = {(row.message_id, row.channel, row.key_hash): row for row in evidence.scene.outgoing.values()}
    ids = {one.provider_message_id: one.outgoing_id for one in books.attempts if one.provider_message_id is not None}
    for receipt in books.receipts:
        row = rows.get((receipt.message_id or "", receipt.account, receipt.recipient_key_hash or ""))
        if row is None and receipt.provider_message_id in ids:
            row = evidence.scene.outgoing[ids[receipt.provider_message_id]]
        if row is not None:
            yield receipt, row


def _lost(promise: Promise, evidence: Evidence) -> int:
    """Count the messages of a promised job that are nowhere."""
    job, plan = _job(promise, evidence.scene), promise.plan
    scheduler = None if job is None else evidence.scene.scheduler_of(job)
    if job is None or scheduler is None or scheduler.state in UNFINISHED:
        return 1
    if scheduler.state is NotificationStatus.SKIPPED:
        return int(evidence.truth.skipped(plan, scheduler.at_stage, Window(0.0, float("inf"))) is not None)
    missing = 0
    if scheduler.state is NotificationStatus.DONE:
        expected = evidence.truth.entitled.expected(plan, Window(*evidence.scene.frozen[job.id]))
        missing = len(expected.must - made_of(job, evidence).keys())
    return missing + sum(not _accounted(row, evidence) for row in evidence.scene.rows_of(job))


def _accounted(row: OutgoingRow, evidence: Evidence) -> bool:
    """Tell whether a message is accepted, or ended or uncertain as it may be."""
    if evidence.ledger.accepted(row.name):
        return True
    ended = row.state is OutgoingStatus.UNCERTAIN or (row.state in FINAL and row.state not in RANK)
    return ended and shown_wrongly(row, evidence, store_now=evidence.scene.store_moved_at[row.id]) is None


def _job(promise: Promise, scene: Scene) -> JobRow | None:
    return next((job for job in scene.jobs.values() if job.guid == str(promise.job_id)), None)

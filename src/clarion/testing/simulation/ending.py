"""What must hold at the end of a run, after the weather has healed: nothing lost, nothing twice, nothing invented.

`lost` is what was promised and is neither accepted by a provider, nor ended with a reason, nor shown as uncertain.
"""

from collections.abc import Iterator
from itertools import pairwise

import msgspec

from clarion.domain import recipient
from clarion.domain.attempt import AttemptStatus
from clarion.domain.notification import NotificationStatus
from clarion.domain.outgoing import FINAL, OPEN, RANK, OutgoingStatus
from clarion.testing.simulation.client import Clients, Promise, expected
from clarion.testing.simulation.ledger import Fate
from clarion.testing.simulation.scene import Books, JobRow, OutgoingRow, ReceiptRow, Scene
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
    return waiting or unfinished or any(one.applied_at is None for one, _ in _known_receipts(books, evidence))


def tally(clients: Clients, evidence: Evidence) -> Tally:
    """Count what was lost, delivered twice and invented, against the ledger."""
    scene, ledger = evidence.scene, evidence.ledger
    rows = list(scene.outgoing.values())
    return Tally(
        promised=len(clients.promises),
        rows=len(rows),
        calls=len(ledger.calls),
        delivered=sum(ledger.accepted(row.name) for row in rows),
        lost=sum(_lost(promise, evidence) for promise in clients.promises.values()),
        duplicate=sum(max(0, ledger.deliveries(row.name) - scene.allowed(row)) for row in rows),
        phantom=sum(row.state in RANK and not ledger.accepted(row.name) for row in rows),
        uncertain=sum(row.state is OutgoingStatus.UNCERTAIN for row in rows),
    )


def judge(clients: Clients, evidence: Evidence, books: Books, *, calm: bool) -> Iterator[Violation]:
    """Yield what is wrong at the end."""
    scene = evidence.scene
    yield from _attempts(books, evidence)
    yield from _receipts(books, evidence)
    for one in scene.schedulers.values():
        if one.state in UNFINISHED:
            yield Violation("I-25", f"job {one.id} still is {one.stage} {one.status} after the bound")
        elif one.reason is None and one.state is not NotificationStatus.CANCELED:
            yield Violation("I-25", f"job {one.id} ended as {one.status} without a reason")
    for row in scene.outgoing.values():
        yield from _row(row, evidence, calm=calm)
    for promise in clients.promises.values():
        yield from _promise(promise, evidence)


def _row(row: OutgoingRow, evidence: Evidence, *, calm: bool) -> Iterator[Violation]:
    """Check one row against its history and the ledger."""
    if row.state in OPEN or row.settle_at is not None:
        yield Violation("I-25", f"row {row.id} still is {row.status} after the bound")
    elif row.state is OutgoingStatus.FAILED_FINAL and not evidence.ledger.refused(row.name):
        # Every message of a run can be made and called, so only a provider's refusal is a reason to give one up.
        yield Violation("F-55", f"row {row.id} failed and no provider refused it: {row.reason}")
    elif row.state in FINAL and row.state not in RANK and row.reason is None:
        yield Violation("I-25", f"row {row.id} ended as {row.status} without a reason")
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
    """I-31, I-32: a receipt whose row is known was applied, and the row shows at least what it says."""
    for receipt, row in _known_receipts(books, evidence):
        if receipt.applied_at is None:
            yield Violation("I-32", f"receipt {receipt.event_id} of row {row.id} was never applied")
        elif RANK.get(row.state, 0) < RANK[OutgoingStatus(receipt.status)]:
            yield Violation("I-31", f"row {row.id} shows {row.status} after a receipt of {receipt.status}")


def _known_receipts(books: Books, evidence: Evidence) -> Iterator[tuple[ReceiptRow, OutgoingRow]]:
    """Pair receipts with their rows, by our id or by the provider's, where that is known."""
    rows = {(row.message_id, row.channel): row for row in evidence.scene.outgoing.values()}
    ids = {one.provider_message_id: one.outgoing_id for one in books.attempts if one.provider_message_id is not None}
    for receipt in books.receipts:
        row = rows.get((receipt.message_id or "", receipt.account))  # an account is called after its channel
        if row is None and receipt.provider_message_id in ids:
            row = evidence.scene.outgoing[ids[receipt.provider_message_id]]
        if row is not None:
            yield receipt, row


def _promise(promise: Promise, evidence: Evidence) -> Iterator[Violation]:
    """Check that a promised job reached, or decided about, everybody it was for."""
    job = _job(promise, evidence.scene)
    if job is None:
        yield Violation("I-24", f"the promised job {promise.job_id} is not there")
        return
    scheduler = evidence.scene.scheduler_of(job)
    if scheduler is not None and scheduler.state is NotificationStatus.DONE:
        frozen = len(recipient.decode(job.recipients or "[]"))
        if frozen != expected(promise.plan):
            yield Violation("I-25", f"job {job.guid} was made for {frozen} recipients, not {expected(promise.plan)}")


def _lost(promise: Promise, evidence: Evidence) -> int:
    """Count the messages of a promised job that are nowhere."""
    job = _job(promise, evidence.scene)
    scheduler = None if job is None else evidence.scene.scheduler_of(job)
    if job is None or scheduler is None or scheduler.state in UNFINISHED:
        return expected(promise.plan)
    return sum(not _accounted(row, evidence) for row in evidence.scene.rows_of(job))


def _accounted(row: OutgoingRow, evidence: Evidence) -> bool:
    """Tell whether a message is accepted, ended with a reason, or shown as uncertain."""
    if evidence.ledger.accepted(row.name) or row.state is OutgoingStatus.UNCERTAIN:
        return True
    return row.state in FINAL and row.state not in RANK


def _job(promise: Promise, scene: Scene) -> JobRow | None:
    return next((job for job in scene.jobs.values() if job.guid == str(promise.job_id)), None)

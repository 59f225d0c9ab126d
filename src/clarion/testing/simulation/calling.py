"""What must hold when a provider is called, each by its number in docs/reference/invariants.md.

`begins` is asked when the adapter is entered, `leaves` when the bytes leave: between the two a process may have stood
still. Looks at the scene and the ledger; changes only the notes on claims.
"""

import asyncio
from collections.abc import Iterator

from clarion.domain.call import Call
from clarion.domain.outgoing import UncertainPolicy
from clarion.testing.simulation import excuse, ordering
from clarion.testing.simulation.ledger import LedgerCall
from clarion.testing.simulation.loop import Process
from clarion.testing.simulation.scene import Claim, OutgoingRow
from clarion.testing.simulation.verdict import Evidence, Violation


def begins(
    process: Process | None, call: Call, claim: Claim | None, *, now: float, evidence: Evidence
) -> Iterator[Violation]:
    """I-08, I-14, I-15: a call has a claim of its own process, follows it at once, and carries the row's own key."""
    row = evidence.scene.row_of(call)
    if row is None:
        yield Violation("I-08", f"{process} calls for a message that has no row")
        return
    evidence.coverage.met("I-08: call")
    if call.idempotency_key != row.key:
        yield Violation("I-15", f"the call for row {row.id} carries the key {call.idempotency_key}, not {row.key}")
    if claim is None:
        yield Violation("I-08", f"{process} calls for row {row.id} without a claim of its own")
        return
    claim.called = True
    claim.begun_at, claim.call_task = now, asyncio.current_task()
    if claim.returned_at != now and not excuse.was_held_up(claim, since=claim.returned_at or 0.0):
        yield Violation("I-14", f"{process} waited {now - (claim.returned_at or 0):.3f} s between claim and call")


def leaves(call: LedgerCall, claim: Claim | None, *, now: float, evidence: Evidence) -> Iterator[Violation]:
    """I-09, I-10, I-15: bytes leave only where nobody can get the message twice, and they are the right bytes."""
    row = evidence.scene.row_named(call.row)
    if row is None:
        return
    if claim is not None:
        yield from _is_right(row, call, claim, evidence)
    earlier = evidence.ledger.of(call.row)
    if earlier:
        evidence.coverage.met("I-15: same bytes again")
        job = evidence.scene.job_of(row)
        if job is not None and evidence.scene.published_at.get(job.event_type, -1.0) > earlier[0].at:
            evidence.coverage.met("I-15: same bytes after a new template")
    for one in earlier:
        if (one.key, one.content, one.destination) != (call.key, call.content, call.destination):
            yield Violation("I-15", f"row {row.id} is sent again with another key, content or destination")
    yield from _is_allowed(row, call, earlier, now=now, evidence=evidence)


def delivered(call: LedgerCall, evidence: Evidence) -> Iterator[Violation]:
    """I-09: a recipient gets a message once, and once more for each retry or replay that somebody decided."""
    row = evidence.scene.row_named(call.row)
    if row is None:
        return
    got = evidence.ledger.deliveries(call.row)
    if got > evidence.scene.allowed(row):
        yield Violation("I-09", f"row {row.id} was delivered {got} times, {evidence.scene.allowed(row)} are allowed")
    if got > 1 and row.policy is UncertainPolicy.PREFER_DUPLICATE and not evidence.scene.audited[row.id]:
        evidence.coverage.met("I-09: second delivery of a type that prefers it")


def _is_allowed(
    row: OutgoingRow, call: LedgerCall, earlier: list[LedgerCall], *, now: float, evidence: Evidence
) -> Iterator[Violation]:
    """I-10: after an outcome that is not proven refused, a call needs a promise of the provider or of a person."""
    open_ends = [one for one in earlier if not one.proven_refused]
    if not open_ends:
        return
    window = evidence.replay(call.account).dedupe_window
    if window is not None and window.total_seconds() >= 900 and now < open_ends[0].at + window.total_seconds():
        evidence.coverage.met("I-09: call repeated within the window")
        return
    if evidence.scene.answered_for[row.id] < evidence.scene.allowed(row) - 1:
        evidence.scene.answered_for[row.id] += 1
        return
    fates = ", ".join(one.fate for one in open_ends)
    yield Violation("I-10", f"row {row.id} is called again after calls that were {fates}")


def _is_right(row: OutgoingRow, call: LedgerCall, claim: Claim, evidence: Evidence) -> Iterator[Violation]:
    """Hold a call against what was asked for: where it goes, what it says, and that it keeps its place."""
    truth, plan = evidence.truth, evidence.plan_of(row)
    if plan is None:
        return
    claim.call = call
    window = evidence.window_of(row)
    if wrong := truth.destination(plan, call, window):
        yield Violation("destination", f"row {row.id}: {wrong}")
    if wrong := truth.content(plan, call):
        yield Violation("content", f"row {row.id}: {wrong}")
    addressee = truth.addressee(plan, call, window)
    job = evidence.scene.job_of(row)
    for other in [] if job is None else evidence.scene.rows_of(job):
        calls = evidence.ledger.of(other.name) if other.channel == row.channel and other.id != row.id else []
        if calls and calls[0].destination == call.destination:
            yield Violation("destination", f"rows {row.id} and {other.id} of one notification go to one destination")
    claim.order = ordering.place(plan, addressee, call)
    yield from ordering.in_flight(row, claim, evidence)


def claim_for(process: Process | None, call: Call, evidence: Evidence) -> Claim | None:
    """Find the claim that a call belongs to: this process's own, handed to it, without a call so far."""
    row = evidence.scene.row_of(call)
    if row is None:
        return None
    for claim in reversed(evidence.scene.claims.values()):
        mine = claim.row_id == row.id and claim.process is process
        if mine and claim.returned_at is not None and not claim.called:
            return claim
    return None

"""Order: messages to one recipient on one channel and in one lane leave in the order in which they were accepted.

What is promised (docs/explanation/claiming.md): of such messages one at a time is in flight; and one that is due, or
at most a minute from its retry, goes before those that were made after it. The bulk lane has no order. A message whose
call may have arrived waits for its replay and holds up nobody.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from clarion.domain.call import Accepted, Deferred, Misconfigured, NotCalled
from clarion.domain.identity import Lane
from clarion.testing.simulation.directory import Addressee
from clarion.testing.simulation.excuse import LEASE_SECONDS
from clarion.testing.simulation.ledger import LedgerCall
from clarion.testing.simulation.option import JobPlan
from clarion.testing.simulation.scene import Claim, OutgoingRow
from clarion.testing.simulation.truth import lane_of, was_once_unknown
from clarion.testing.simulation.verdict import Evidence, Violation

SOON: Final = 60.0
"""Seconds before its retry from which on a message holds up those behind it."""


def place(plan: JobPlan, addressee: Addressee | None, call: LedgerCall) -> tuple[object, ...] | None:
    """Say among which messages a call keeps its place; None in the bulk lane."""
    lane = lane_of(plan)
    return None if lane is Lane.BULK or addressee is None else (addressee, call.row.channel, lane)


def in_flight(row: OutgoingRow, claim: Claim, evidence: Evidence) -> Iterator[Violation]:
    """Check that no other message of its place was in flight when a message was claimed."""
    for other in evidence.scene.claims.values():
        if claim.order is None or other.order != claim.order or other.row_id == claim.row_id or other.at > claim.at:
            continue
        evidence.coverage.met("order: two messages for one recipient")
        if other.token == claim.token and (_is_pinned(other, evidence) or _is_pinned(claim, evidence)):
            continue  # one statement claimed both, and a replay neither waits for others nor holds them up
        if _closed_at(other, evidence) > claim.at:
            yield Violation("order", f"row {row.id} was claimed while row {other.row_id} was in flight before it")


def judge(evidence: Evidence) -> Iterator[Violation]:
    """Check at the end that nobody was overtaken."""
    scene = evidence.scene
    places: dict[tuple[object, ...], dict[int, list[Claim]]] = {}
    for claim in scene.claims.values():
        if claim.order is not None:
            places.setdefault(claim.order, {}).setdefault(claim.row_id, [])
    for rows in places.values():
        for row_id in rows:
            rows[row_id] = scene.claims_of(scene.outgoing[row_id])
        for later, claims in rows.items():
            for earlier, others in rows.items():
                if earlier < later and not _is_gated(scene.outgoing[earlier], evidence):
                    yield from _overtaken(earlier, others, later, claims, evidence)


def _overtaken(
    earlier: int, others: Sequence[Claim], later: int, claims: Sequence[Claim], evidence: Evidence
) -> Iterator[Violation]:
    """Check that the later one of two messages was never claimed while the earlier one was due, or soon due again."""
    for claim in claims:
        before = [one for one in others if one.at <= claim.at]
        after = [one for one in others if one.at > claim.at]
        made_at = evidence.scene.store_made_at[earlier]
        if after and made_at <= claim.store_at and _waits(before, until_next=after[0].store_at - claim.store_at):
            if any(claim.at < at <= after[0].at for at in _retried_at(earlier, evidence)):
                continue  # it had ended, and a person had it sent again
            yield Violation(
                "order", f"row {later} was claimed at {claim.at:.3f} s, before row {earlier}, which was due"
            )


def _waits(before: Sequence[Claim], *, until_next: float) -> bool:
    """Tell whether a message with these claims behind it was due, or would be within a minute."""
    if not before:
        return True  # it was due from when it was made
    if any(map(was_once_unknown, before)):
        return False  # a late reply may have told since, but not before the others went on
    if not isinstance(before[-1].recorded, Deferred | Misconfigured | NotCalled):
        return False
    return until_next <= SOON


def _is_pinned(claim: Claim, evidence: Evidence) -> bool:
    """Tell whether a claim was for a replay: an earlier call of the message may have arrived."""
    claims = evidence.scene.claims_of(evidence.scene.outgoing[claim.row_id])
    return any(was_once_unknown(one) for one in claims if one.at < claim.at)


def _is_gated(row: OutgoingRow, evidence: Evidence) -> bool:
    """Tell whether a message stands behind a gate; while that is closed it holds up nobody."""
    plan = evidence.plan_of(row)
    return plan is not None and plan.broadcast


def _retried_at(row_id: int, evidence: Evidence) -> Iterator[float]:
    """Say when a person had a message sent again."""
    return (act.asked_at for act in evidence.truth.notes.of("retry", f"outgoing {row_id}"))


def _closed_at(claim: Claim, evidence: Evidence) -> float:
    """Say from when on a message may be in flight no longer.

    Its claim was recorded or rescued, a receipt came, or a late reply to an earlier claim told that it was accepted.
    """
    row = evidence.scene.outgoing[claim.row_id]
    receipts = [one.offered_at for one in evidence.ledger.receipts_of(row.name)]
    accepted = [one.recorded_at for one in evidence.scene.claims_of(row) if isinstance(one.recorded, Accepted)]
    late = [at for at in accepted if at is not None and at >= claim.at]
    ends = [claim.recorded_at, claim.rescued_at, *receipts, *late]
    return min((end for end in ends if end is not None), default=claim.at + 2 * LEASE_SECONDS)

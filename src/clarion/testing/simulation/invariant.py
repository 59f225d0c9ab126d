"""What must hold for outgoing rows after every commit, each by its number in docs/reference/invariants.md.

A check gets what the commit changed and the scene as it is now, and yields what is wrong. Nothing here reads the
database or stops a run. Jobs and their stages are judged in `stage_invariant`, calls in `calling`, the end in `ending`.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final, cast

from clarion.domain.claim import CallResult, Settlement
from clarion.domain.outgoing import DUE, OUTGOING_MESSAGE, RANK, OutgoingStatus, UncertainPolicy
from clarion.testing.simulation import excuse
from clarion.testing.simulation.scene import Change, OutgoingRow, TransitionRow
from clarion.testing.simulation.verdict import TOLERANCE, Check, Evidence, Violation, lease_violation


def one_row_for_a_recipient(change: Change, evidence: Evidence) -> Iterator[Violation]:
    """I-06: a recipient has one row at each destination, and whom a row is for never changes."""
    for old, new in change.outgoing:
        if old is None:
            same = [
                row.id
                for row in evidence.scene.outgoing.values()
                if (row.pk, row.recipient_id_hash, row.channel, row.destination_index)
                == (new.pk, new.recipient_id_hash, new.channel, new.destination_index)
            ]
            if len(same) > 1:
                yield Violation("I-06", f"{change.deed} made a second row for one recipient: {same}")
        elif (old.pk, old.rk, old.message_id, old.key_hash) != (new.pk, new.rk, new.message_id, new.key_hash):
            yield Violation("I-06", f"{change.deed} changed whom row {new.id} is for")


def canceled_stays_canceled(change: Change, evidence: Evidence) -> Iterator[Violation]:
    """I-07, I-16: after a person's cancel no row is made and none is claimed."""
    for old, new in change.outgoing:
        if not evidence.scene.is_canceled(new):
            continue
        if old is None:
            yield Violation("I-07", f"{change.deed} made row {new.id} of a canceled job")
        elif new.state is OutgoingStatus.SENDING and old.status != new.status:
            yield Violation("I-16", f"{change.deed} claimed row {new.id} of a job that was canceled before")


def claims_take_what_may_be_sent(change: Change, _: Evidence) -> Iterator[Violation]:
    """I-16, I-17, I-19: a claim takes what is due, not expired, not canceled and not another's, for its lease."""
    claiming = change.deed.method == "claim_outgoing"
    for old, new in change.outgoing:
        if old is None:
            continue
        if new.state is OutgoingStatus.SENDING and old.status != new.status:
            if not claiming:
                yield Violation("I-17", f"{change.deed} moved row {new.id} to Sending without a claim")
            yield from _claimed(old, new, change)
        elif claiming and old.state is OutgoingStatus.SENDING:
            yield Violation("I-19", f"{change.deed} touched row {new.id}, which another claim holds")


def moves_are_in_the_table(change: Change, evidence: Evidence) -> Iterator[Violation]:
    """I-18: states move along the table only, and evidence needs an attempt."""
    for old, new in change.outgoing:
        if old is None and new.state not in OUTGOING_MESSAGE.initial:
            yield Violation("I-18", f"row {new.id} began as {new.status}")
        if new.state in RANK and new.attempts < 1:
            yield Violation("I-18", f"row {new.id} shows {new.status} without any attempt")
    for line in change.transitions:
        evidence.coverage.met(f"edge: {line.from_status} → {line.to_status}")
        if not OUTGOING_MESSAGE.may(from_=OutgoingStatus(line.from_status), to=OutgoingStatus(line.to_status)):
            yield Violation("I-18", f"{change.deed} moved row {line.outgoing_id} {line.from_status} → {line.to_status}")


def every_move_leaves_one_line(change: Change, _: Evidence) -> Iterator[Violation]:
    """I-18, I-42: a row's lines of a commit lead from its old state and version to the new ones, each with an actor."""
    lines: dict[int, list[TransitionRow]] = {}
    for line in change.transitions:
        lines.setdefault(line.outgoing_id, []).append(line)
    for old, new in change.outgoing:
        mine = lines.pop(new.id, [])
        status, version = (new.status, new.version) if old is None else (old.status, old.version)
        for line in mine:
            version += 1
            if (line.version, line.from_status) != (version, status) or not line.actor:
                yield Violation("I-42", f"{change.deed} wrote a line for row {new.id} that does not follow: {line}")
            status = line.to_status
        if (status, version) != (new.status, new.version):
            yield Violation("I-42", f"{change.deed} moved row {new.id} to {new.status} without a line for it")
    for row_id in lines:
        yield Violation("I-42", f"{change.deed} wrote a line for row {row_id}, which did not change")


def success_is_never_invented(change: Change, evidence: Evidence) -> Iterator[Violation]:
    """I-11: a row that shows a success was accepted by the provider."""
    for old, new in change.outgoing:
        shows = new.state in RANK and (old is None or old.status != new.status)
        if shows and not evidence.ledger.accepted(new.name):
            yield Violation("I-11", f"{change.deed}: row {new.id} shows {new.status} and nobody accepted it")


def results_count_for_their_own_claim(change: Change, _: Evidence) -> Iterator[Violation]:
    """I-17: a result moves a row under its own token; under an older one an acceptance is evidence and no more."""
    if change.deed.method != "record_outgoing":
        return
    results = cast(Sequence[CallResult], change.deed.given["results"])
    tokens = {(one.id, str(one.claim_token)) for one in results}
    for old, new in change.outgoing:
        if old is None:
            yield Violation("I-17", f"{change.deed} made row {new.id}")
        elif old.status != new.status and new.state not in RANK and (new.id, old.claim_token) not in tokens:
            # The next row of an order key may become due by it, and that is no move.
            yield Violation("I-17", f"{change.deed} moved row {new.id} to {new.status} with another claim's result")


def rescues_come_after_the_lease(change: Change, evidence: Evidence) -> Iterator[Violation]:
    """I-12, I-19, I-22: a row becomes uncertain by its own unknown outcome, or after a lease that had cause to end."""
    for old, new in change.outgoing:
        if old is None or new.state is not OutgoingStatus.UNCERTAIN or old.status == new.status:
            continue
        match change.deed.method:
            case "rescue_outgoing":
                evidence.coverage.met("I-19: claim rescued")
                if old.lease_until is None or old.lease_until > change.at + TOLERANCE:
                    yield Violation("I-19", f"{change.deed} took row {new.id} over before its lease ended")
                yield from _had_a_reason(old, change, evidence)
            case "record_outgoing":
                evidence.coverage.met("I-12: uncertain by an unknown outcome")
            case "claim_outgoing" | "cancel_job" | "sweep_canceled" if old.first_unknown_at is not None:
                evidence.coverage.met("I-13: given up and still uncertain")
            case _:
                yield Violation("I-12", f"{change.deed} made row {new.id} Uncertain")


def uncertain_sends_are_settled_by_the_rule(change: Change, evidence: Evidence) -> Iterator[Violation]:
    """I-10, I-13: evidence, a provider's promise, policy (once) or a person settles an uncertain row."""
    for old, new in change.outgoing:
        if old is None or old.state is not OutgoingStatus.UNCERTAIN:
            continue
        match change.deed.method:
            case "settle_uncertain" if old.status == new.status:
                evidence.coverage.met("I-13: left uncertain")
            case "settle_uncertain" if new.state is OutgoingStatus.RETRY_READY:
                settlements = cast(Sequence[Settlement], change.deed.given["settlements"])
                settlement = next(one for one in settlements if one.id == new.id)
                yield from _may_be_replayed(old, settlement, change, evidence)
            case "apply_events" if new.state in RANK:
                evidence.coverage.met("I-33: receipt settles an uncertain send")
            case "record_outgoing" | "retry_outgoing" | "cancel_job":
                pass  # a late reply, which is judged above; a person; a mark that changes no state
            case _ if old.status != new.status:
                yield Violation("I-13", f"{change.deed} moved row {new.id} from Uncertain to {new.status}")
            case _:
                pass


def nothing_denies_what_may_have_arrived(change: Change, _: Evidence) -> Iterator[Violation]:
    """I-13: a row with a call of which nobody knows never shows that it was not sent."""
    for old, new in change.outgoing:
        denies = new.state in (OutgoingStatus.CANCELED, OutgoingStatus.EXPIRED, OutgoingStatus.FAILED_FINAL)
        if denies and old is not None and old.status != new.status and new.first_unknown_at is not None:
            yield Violation("I-13", f"{change.deed} made row {new.id} {new.status}, which may have arrived")


def receipts_only_raise(change: Change, evidence: Evidence) -> Iterator[Violation]:
    """I-17, I-33: a receipt can raise a row; it never makes it claimable and never touches its claim."""
    if change.deed.method != "apply_events":
        return
    raised = 0
    for old, new in change.outgoing:
        if old is None or (old.status != new.status and new.state not in RANK):
            yield Violation("I-33", f"{change.deed} moved row {new.id} to {new.status}")
        elif old.claim_token != new.claim_token or old.attempts != new.attempts:
            yield Violation("I-17", f"{change.deed} touched the claim of row {new.id}")
        raised += old is not None and old.status != new.status
    if isinstance(change.deed.answer, int) and change.deed.answer > raised:
        evidence.coverage.met("I-31: receipt that changed nothing")


CHECKS: Final[tuple[Check, ...]] = (
    one_row_for_a_recipient,
    canceled_stays_canceled,
    claims_take_what_may_be_sent,
    moves_are_in_the_table,
    every_move_leaves_one_line,
    success_is_never_invented,
    results_count_for_their_own_claim,
    rescues_come_after_the_lease,
    uncertain_sends_are_settled_by_the_rule,
    nothing_denies_what_may_have_arrived,
    receipts_only_raise,
)


def _claimed(old: OutgoingRow, new: OutgoingRow, change: Change) -> Iterator[Violation]:
    """Check one row that a claim took."""
    if new.cancel_at is not None:
        yield Violation("I-16", f"row {new.id} was claimed though it is canceled")
    if new.expires_at is not None and new.expires_at <= change.at:
        yield Violation("I-16", f"row {new.id} was claimed after it had expired")
    if old.state not in DUE or old.due_at is None or old.due_at > change.at + TOLERANCE:
        yield Violation("I-19", f"row {new.id} was claimed from {old.status} before it was due")
    yield from lease_violation(change, f"row {new.id}", new.lease_until)


def _had_a_reason(old: OutgoingRow, change: Change, evidence: Evidence) -> Iterator[Violation]:
    """I-12: an expired lease is the trace of something that went wrong in the process that held the claim."""
    claim = evidence.scene.claims.get((old.id, old.claim_token or ""))
    if claim is None:
        yield Violation("I-12", f"row {old.id} was Sending under a claim that nobody made")
    elif wrong := excuse.of_lease(claim, now=change.seconds):
        yield Violation("I-12", f"{change.deed}: row {old.id} became Uncertain: {wrong}")
    else:
        evidence.coverage.met("I-12: uncertain by an expired lease")


def _may_be_replayed(
    old: OutgoingRow, settlement: Settlement, change: Change, evidence: Evidence
) -> Iterator[Violation]:
    """I-10: a replay needs the provider's promise, or a policy that takes one duplicate into account."""
    if settlement.counts_as_duplicate:
        evidence.coverage.met("I-10: replay of a type that prefers a duplicate")
        if old.policy is not UncertainPolicy.PREFER_DUPLICATE or evidence.scene.duplicates[old.id] > 1:
            yield Violation("I-10", f"row {old.id} is replayed as a duplicate that its type does not prefer, or again")
        return
    evidence.coverage.met("I-10: replay within the window")
    unknown_for = timedelta(microseconds=change.at - (old.first_unknown_at or 0))
    if not evidence.replay(old.account or "").allows(unknown_for=unknown_for):
        yield Violation("I-10", f"row {old.id} is replayed though its provider makes no promise")

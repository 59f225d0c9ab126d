"""Every state machine against the law, pair by pair.

The law is written here as the domain's description writes it, in lines of text, and parsed: so it shares neither form
nor code with the tables, and a slip in the one is not repeated in the other.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clarion.domain.attempt import DELIVERY_ATTEMPT, AttemptStatus
from clarion.domain.automation import AUTOMATION_SCHEDULER, AutomationStatus, CanceledBy, reactivates
from clarion.domain.campaign import CAMPAIGN, CampaignStatus, recipient_code
from clarion.domain.machine import Cause, Machine
from clarion.domain.notification import NOTIFICATION_SCHEDULER, NotificationStatus, Stage
from clarion.domain.outgoing import (
    DUE,
    FINAL,
    LEASED,
    OPEN,
    OUTGOING_MESSAGE,
    RANK,
    OutgoingStatus,
    ReasonClass,
    merge,
)
from clarion.domain.support import SUPPORT_CASE, SupportStatus
from clarion.errors import BrokenInvariant, IllegalMove
from clarion.ports.track import ProviderEvent

LAW = """
AutomationScheduler    begins Pending
                       Pending → Processing · Deactivated · Canceled · Pending (ensure)
                       Processing → Completed · Deactivated · Canceled · Failed
                       Processing → Pending
                       Failed · Deactivated · Canceled → Pending (ensure)
                       final Completed
NotificationScheduler  begins Ready
                       Ready → Processing · Skipped · Canceled ; Processing → Done · Skipped · Failed · Canceled · Ready
                       Failed → Ready (audited) · Canceled (audited)
                       final Done · Skipped · Canceled · Failed
OutgoingMessage        begins Created
                       Created · RetryReady → Sending · Canceled · Expired · Suppressed · NotSupported · FailedFinal
                       Sending → SentToProvider · RetryReady · FailedFinal · Uncertain
                       Uncertain → RetryReady (replay, audited, late reply) · FailedFinal (audited, late reply)
                       Uncertain → Uncertain
                       RetryReady → Uncertain
                       FailedFinal → RetryReady (audited)
                       any but Created → evidence of higher rank
                       SentToProvider < Blocked < Delivered < Opened < Bounced < Complained
                       final FailedFinal · NotSupported · Suppressed · Expired · Canceled
                       final SentToProvider · Blocked · Delivered · Opened · Bounced · Complained
DeliveryAttempt        begins Accepted · Refused · Deferred · Misconfigured · Unknown
                       Unknown → Accepted (evidence) · Refused (late reply)
                       final Accepted · Refused · Deferred · Misconfigured
Campaign               begins Draft · Queued
                       Draft → AwaitingApproval · Queued ; AwaitingApproval → Queued · Draft
                       Queued → SyncingRecipients
                       SyncingRecipients → InstallingApp · Sending ; InstallingApp → Sending
                       Sending ⇄ Paused ; Sending → Sent
                       Queued · SyncingRecipients · InstallingApp · Sending → Failed
                       any not final → Canceling ; Canceling → Canceled
                       final Sent · Failed · Canceled
SupportCase            begins Open
                       Open → Resolved ; Resolved → Open (ensure)
"""

MARGIN = 23  # the law's own: names of records stand in it

# Six machines over six enums have no closer common type: a machine both takes and gives its states.
AnyMachine = Machine[Any]
STATES: dict[str, type[StrEnum]] = {
    "AutomationScheduler": AutomationStatus,
    "NotificationScheduler": NotificationStatus,
    "OutgoingMessage": OutgoingStatus,
    "DeliveryAttempt": AttemptStatus,
    "Campaign": CampaignStatus,
    "SupportCase": SupportStatus,
}
MACHINES = (AUTOMATION_SCHEDULER, NOTIFICATION_SCHEDULER, OUTGOING_MESSAGE, DELIVERY_ATTEMPT, CAMPAIGN, SUPPORT_CASE)
each_machine = pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)

# Causes that the law names beside a move; a table may not use them on any other.
NAMED_CAUSES = frozenset({Cause.ENSURE, Cause.REPLAY, Cause.LATE_REPLY, Cause.EVIDENCE, Cause.AUDITED})


class Law:
    """What the text says of one record."""

    def __init__(self, name: str) -> None:
        self.begins: set[str] = set()
        self.final: set[str] = set()
        self.rank: list[str] = []
        self.moves: dict[tuple[str, str], set[str]] = {}
        clauses = list(_clauses(name))
        for clause in clauses:
            word, _, rest = clause.partition(" ")
            if word == "begins":
                self.begins |= set(_names(rest))
            elif word == "final":
                self.final |= set(_names(rest))
            elif "<" in clause:
                self.rank = [part.strip() for part in clause.split("<")]
        self.named = {name for clause in clauses if not clause.startswith("any") for name in _names(clause)}
        for clause in clauses:
            self._read_move(clause)

    def _read_move(self, clause: str) -> None:
        if "⇄" in clause:
            one, other = (part.strip() for part in clause.split("⇄"))
            self._add(one, other, "")
            self._add(other, one, "")
        elif clause == "any not final → Canceling":
            for state in self.named - self.final - {"Canceling"}:
                self._add(state, "Canceling", "")
        elif clause == "any but Created → evidence of higher rank":
            for state in self.named - {"Created"}:
                above = self.rank.index(state) + 1 if state in self.rank else 0
                for to in self.rank[above:]:
                    self._add(state, to, "evidence")
        elif "→" in clause:
            left, right = clause.split("→")
            for from_ in _names(left):
                for target in right.split("·"):
                    found = re.fullmatch(r"\s*(\w+)\s*(?:\(([^)]*)\))?\s*", target)
                    assert found, target
                    self._add(from_, found[1], found[2] or "")

    def _add(self, from_: str, to: str, causes: str) -> None:
        self.moves.setdefault((from_, to), set()).update(cause.strip() for cause in causes.split(",") if cause)


def _clauses(name: str) -> Iterator[str]:
    """Give the clauses of one record: the lines from its name to the next name, parted at semicolons."""
    record = ""
    for line in LAW.strip().splitlines():
        head, text = line[:MARGIN].strip(), line[MARGIN:]
        record = head or record
        if record == name:
            yield from (clause.strip() for clause in text.split(";"))


def _names(text: str) -> list[str]:
    """Give the state names in a piece of the law; what stands in parentheses is none."""
    return [word for word in re.findall(r"\w+", re.sub(r"\([^)]*\)", "", text)) if word not in {"begins", "final"}]


@each_machine
def test_every_pair_of_states_is_legal_exactly_where_the_law_says_so(machine: AnyMachine) -> None:
    law = Law(machine.name)
    for from_ in STATES[machine.name]:
        for to in STATES[machine.name]:
            expected = (from_.value, to.value) in law.moves
            assert machine.may(from_=from_, to=to) is expected, f"{machine.name}: {from_} → {to}"
            if expected:
                machine.require(from_=from_, to=to)
            else:
                with pytest.raises(IllegalMove):
                    machine.require(from_=from_, to=to)


@each_machine
def test_the_states_are_those_that_the_law_names_and_each_has_its_line_in_the_table(machine: AnyMachine) -> None:
    assert {state.value for state in STATES[machine.name]} == Law(machine.name).named
    assert set(machine.table) == set(STATES[machine.name])


@each_machine
def test_the_causes_that_the_law_names_stand_beside_their_moves_and_nowhere_else(machine: AnyMachine) -> None:
    law = Law(machine.name)
    for from_, to, move in machine.moves():
        assert move.by, f"{machine.name}: {from_} → {to} has no cause"
        named = {cause.value for cause in move.by if cause in NAMED_CAUSES}
        assert named == law.moves[from_.value, to.value], f"{machine.name}: {from_} → {to}"


@each_machine
def test_every_state_can_be_reached_from_a_beginning(machine: AnyMachine) -> None:
    assert {state.value for state in machine.initial} == Law(machine.name).begins
    assert machine.reachable(machine.initial) == set(STATES[machine.name])


@each_machine
def test_a_final_state_is_left_only_by_evidence_or_by_an_audited_act(machine: AnyMachine) -> None:
    law = Law(machine.name)
    assert {state.value for state in machine.final} == law.final
    for (from_, to), causes in law.moves.items():
        if from_ in law.final:
            assert causes, f"{machine.name}: {from_} → {to}"
            assert causes <= {"evidence", "audited"}, f"{machine.name}: {from_} → {to}"


def test_a_notification_passes_two_stages_in_order() -> None:
    assert [stage.value for stage in Stage] == ["schedule", "generate"]


@pytest.mark.parametrize("status", AutomationStatus)
@pytest.mark.parametrize("canceled_by", [None, CanceledBy.SYSTEM, CanceledBy.PERSON])
def test_ensure_reactivates_what_the_system_gave_up_and_never_what_a_person_canceled(
    status: AutomationStatus, canceled_by: CanceledBy | None
) -> None:
    expected = status in {AutomationStatus.FAILED, AutomationStatus.DEACTIVATED} or (
        status is AutomationStatus.CANCELED and canceled_by is CanceledBy.SYSTEM
    )
    assert reactivates(status, canceled_by=canceled_by) is expected


def test_exactly_created_and_retry_ready_are_due_and_exactly_sending_is_leased() -> None:
    assert {status.value for status in DUE} == {"Created", "RetryReady"}
    assert {status.value for status in LEASED} == {"Sending"}


def test_an_outgoing_row_is_open_or_final_or_uncertain() -> None:
    assert {OutgoingStatus.UNCERTAIN} == set(OutgoingStatus) - OPEN - FINAL
    assert not OPEN & FINAL


evidence = st.sampled_from(sorted(RANK))
attempted = st.sampled_from(sorted(set(OutgoingStatus) - {OutgoingStatus.CREATED}))


def fold(current: OutgoingStatus, receipts: list[OutgoingStatus]) -> OutgoingStatus:
    for receipt in receipts:
        current = merge(current=current, evidence=receipt)
    return current


def test_rank_is_the_total_order_of_the_law() -> None:
    assert [status.value for status in sorted(RANK, key=RANK.__getitem__)] == Law("OutgoingMessage").rank
    assert len(set(RANK.values())) == len(RANK)


@given(current=attempted, receipts=st.lists(evidence, min_size=1), data=st.data())
def test_receipts_in_any_order_and_any_number_end_in_the_same_state(
    current: OutgoingStatus, receipts: list[OutgoingStatus], data: st.DataObject
) -> None:
    again = data.draw(st.lists(st.sampled_from(receipts)))
    shuffled = data.draw(st.permutations(receipts + again))
    assert fold(current, shuffled) == fold(current, receipts)


def test_all_orders_of_all_six_receipts_end_in_complained() -> None:
    ends = {fold(OutgoingStatus.SENDING, list(order)) for order in permutations(RANK)}
    assert ends == {OutgoingStatus.COMPLAINED}


@given(a=evidence, b=evidence, c=evidence)
def test_merge_is_commutative_associative_and_idempotent(
    a: OutgoingStatus, b: OutgoingStatus, c: OutgoingStatus
) -> None:
    assert merge(current=a, evidence=b) == merge(current=b, evidence=a)
    assert merge(current=merge(current=a, evidence=b), evidence=c) == merge(
        current=a, evidence=merge(current=b, evidence=c)
    )
    assert merge(current=a, evidence=a) == a


@given(current=attempted, receipt=evidence)
def test_merge_never_moves_down_in_rank_and_moves_only_along_the_table(
    current: OutgoingStatus, receipt: OutgoingStatus
) -> None:
    merged = merge(current=current, evidence=receipt)
    assert RANK[merged] == max(RANK.get(current, 0), RANK[receipt])
    assert merged == current or OUTGOING_MESSAGE.may(from_=current, to=merged)


@given(receipt=evidence)
def test_a_row_that_was_never_claimed_takes_no_evidence(receipt: OutgoingStatus) -> None:
    with pytest.raises(IllegalMove):
        merge(current=OutgoingStatus.CREATED, evidence=receipt)


@given(current=st.sampled_from(OutgoingStatus), other=st.sampled_from(sorted(set(OutgoingStatus) - set(RANK))))
def test_a_state_without_rank_is_no_evidence(current: OutgoingStatus, other: OutgoingStatus) -> None:
    with pytest.raises(BrokenInvariant, match=other):
        merge(current=current, evidence=other)
    with pytest.raises(BrokenInvariant, match=other):
        ProviderEvent(account="a", event_id="e", status=other, happened_at=datetime(2026, 1, 1, tzinfo=UTC), raw="{}")


CODES = """
Created, Sending → 0 · RetryReady → -1, or 429 when throttled · SentToProvider, Delivered, Opened → 201
FailedFinal → -2, or 404 when recipient-not-found · NotSupported → -3 · Bounced, Blocked, Complained → -2
Canceled, Expired, Suppressed, Uncertain → none
"""


def test_every_status_shows_the_code_that_the_law_gives_it_for_every_reason() -> None:
    law: dict[str, tuple[str, str, str]] = {}
    for clause in CODES.replace("\n", "·").strip("·").split("·"):
        statuses, meaning = clause.split("→")
        found = re.fullmatch(r"\s*(\S+?)(?:, or (\d+) when (\S+))?\s*", meaning)
        assert found, clause
        for status in statuses.split(","):
            law[status.strip()] = (found[1], found[2] or "", found[3] or "")
    assert set(law) == {status.value for status in OutgoingStatus}
    for status in OutgoingStatus:
        usual, special, when = law[status.value]
        for reason in (None, "mailbox full", *ReasonClass):
            expected = special if special and reason == when else usual
            code = recipient_code(status, reason)
            assert ("none" if code is None else str(int(code))) == expected, (status, reason)

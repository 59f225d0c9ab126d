"""A message's whole life by the rules alone, against the truth: what no ruling may say, whatever happens in any order.

I-07, I-09 to I-11, I-16, I-31 and decision 0024. The model knows of every call whether the provider took it; the rules
know only replies, reports and silence.
"""

from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from clarion.domain.attempt import Attempt
from clarion.domain.call import Accepted, CallOutcome, Deferred, Misconfigured, NotCalled, Refused, Unknown
from clarion.domain.claim import CallResult, Gate, Settlement
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.queue_row import Receipt, Ruling
from clarion.domain.ruling import (
    after_decision,
    after_lease,
    after_receipt,
    after_result,
    at_cancel,
    at_claim,
    at_retry,
    at_sweep,
    may_be_received,
)
from clarion.testing.factories import BUCKET, guid
from tests.unit.queue_rows import locked_row

WAITING = ("Created", "RetryReady")
SHOWN = ("SentToProvider", "Blocked", "Delivered", "Opened", "Bounced", "Complained")
DENIED = ("FailedFinal", "Canceled", "Expired")
"""What says that the recipient did not get it."""

TAKEN: tuple[CallOutcome, ...] = (Accepted(provider_message_id="p"), Accepted(), Unknown(reason="lost"))
NOT_TAKEN: tuple[CallOutcome, ...] = (
    Deferred(reason="busy"),
    Misconfigured(reason="key"),
    Refused(reason="no"),
    Unknown(reason="lost"),
    NotCalled(reason="not ready"),
    NotCalled(reason="cannot", leads_to=OutgoingStatus.FAILED_FINAL),
    NotCalled(reason="too late", leads_to=OutgoingStatus.UNCERTAIN),
)
REFUSED = ("Refused", "Deferred", "Misconfigured")


class Made(NamedTuple):
    """A claim that became a call, or might have: whether the provider took it."""

    number: int
    token: UUID
    taken: bool


class Message(RuleBasedStateMachine):
    """One row, its attempts as they are stored, and the truth about its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.row = locked_row(status=OutgoingStatus.CREATED, claim_token=None, attempts=0, version=1)
        self.stored: dict[int, Attempt] = {}
        self.calls: list[Made] = []
        self.answered: set[UUID] = set()
        self.may_repeat = False

    def write(self, ruling: Ruling, **fields: object) -> None:
        """Write a ruling as a store does."""
        if ruling.steps:
            fields |= {
                "status": ruling.to,
                "version": self.row.version + len(ruling.steps),
                "replay_authorised": ruling.is_authorised,
                "waits_for_decision": ruling.settles,
            }
        row = msgspec.structs.replace(self.row, **fields)
        self.row = msgspec.structs.replace(
            row,
            may_have_arrived=(row.may_have_arrived or ruling.pins) and not ruling.frees,
            attempts=row.attempts - ruling.is_taken_back,
            is_called_off=row.is_called_off or ruling.is_called_off,
        )
        self.stored.pop(ruling.dropped_attempt or 0, None)
        self.stored |= {one.attempt: one for one in ruling.attempts}

    @precondition(lambda self: self.row.status in WAITING)
    @rule(gate=st.sampled_from(Gate), is_behind=st.booleans(), taken=st.booleans())
    def claim(self, gate: Gate, is_behind: bool, taken: bool) -> None:
        ruling = at_claim(self.row, gate=gate, is_behind=is_behind)
        if ruling.to is not OutgoingStatus.SENDING:
            self.write(ruling)
            return
        assert gate is Gate.OPEN, "I-16: nothing leaves behind a closed gate"
        assert not self.row.is_called_off, "I-16: nothing leaves after a cancel"
        assert not self.row.is_out_of_time, "I-16: nothing leaves after its time"
        assert self.may_repeat or not any(one.taken for one in self.calls), "I-09, I-10: nobody allowed a second call"
        made = Made(self.row.attempts + 1, guid(len(self.calls) + 1, "claim"), taken)
        self.calls.append(made)
        self.write(ruling, attempts=made.number, claim_token=made.token)

    @precondition(lambda self: len(self.answered) < len(self.calls))
    @rule(back=st.integers(0, 2), how=st.integers(0, 20), final=st.booleans())
    def reply(self, back: int, how: int, final: bool) -> None:
        """The reply to a call, at once or late; each call has one."""
        waiting = [one for one in self.calls if one.token not in self.answered]
        made = waiting[-1 - back % len(waiting)]
        self.answered.add(made.token)
        outcomes = TAKEN if made.taken else NOT_TAKEN
        result = CallResult(
            id=1,
            bucket=BUCKET,
            claim_token=made.token,
            attempt=made.number,
            outcome=outcomes[how % len(outcomes)],
            final=final,
        )
        self.write(after_result(self.row, result, list(self.stored.values())))

    @precondition(lambda self: self.row.status == "Sending")
    @rule()
    def rescue(self) -> None:
        self.write(after_lease(self.row))

    @precondition(lambda self: self.row.waits_for_decision)
    @rule(replay=st.booleans(), twice=st.booleans())
    def decide(self, replay: bool, twice: bool) -> None:
        decided = Settlement(
            id=1,
            bucket=BUCKET,
            version=self.row.version,
            replay=replay,
            counts_as_duplicate=replay and twice,
            reason="so",
            delay=timedelta(),
        )
        self.may_repeat |= replay
        self.write(after_decision(self.row, decided))

    @precondition(lambda self: any(one.taken for one in self.calls) and may_be_received(self.row))
    @rule(shown=st.lists(st.sampled_from(SHOWN), min_size=1, max_size=2), named=st.booleans())
    def report(self, shown: list[str], named: bool) -> None:
        """Reports of a call that was taken."""
        number = next(one.number for one in self.calls if one.taken)
        events = [
            Receipt(
                account="main",
                event_id=f"e-{place}",
                status=OutgoingStatus(one),
                provider_message_id=f"p-{number}" if named else None,
            )
            for place, one in enumerate(shown)
        ]
        highest = max([self.row.status, *shown], key=lambda one: SHOWN.index(one) if one in SHOWN else -1)
        self.write(after_receipt(self.row, events, list(self.stored.values())))
        assert self.row.status == (highest if self.row.attempts else self.row.status), "I-31"

    @rule()
    def cancel(self) -> None:
        self.write(at_cancel(self.row))

    @precondition(lambda self: self.row.is_called_off)
    @rule()
    def sweep(self) -> None:
        self.write(at_sweep(self.row))

    @rule()
    def expire(self) -> None:
        self.row = msgspec.structs.replace(self.row, is_out_of_time=True)

    @rule()
    def retry(self) -> None:
        """A person's word, which may repeat what has arrived."""
        ruling = at_retry(self.row, version=self.row.version, reason="again")
        assert not (ruling.steps and self.row.is_called_off), "I-07: what was canceled is not brought back"
        self.may_repeat |= bool(ruling.steps)
        self.write(ruling)

    @invariant()
    def nothing_denies_what_has_arrived(self) -> None:
        assert not (self.row.status in DENIED and any(one.taken for one in self.calls)), self.row

    @invariant()
    def nothing_is_shown_that_did_not_happen(self) -> None:
        assert not (self.row.status in SHOWN and not any(one.taken for one in self.calls)), self.row

    @invariant()
    def what_was_taken_is_never_called_refused(self) -> None:
        refused = {one.claim_token for one in self.stored.values() if one.status in REFUSED}
        assert not refused & {one.token for one in self.calls if one.taken}

    @invariant()
    def the_mark_of_a_call_that_may_have_arrived_is_not_lost(self) -> None:
        """Where a row waits, every call that was taken is either told of or marked."""
        known = {one.claim_token for one in self.stored.values() if one.status == "Accepted"}
        silent = any(one.taken and one.token not in known for one in self.calls)
        assert not (self.row.status in WAITING and silent and not self.row.may_have_arrived), self.row


TestMessage = Message.TestCase
TestMessage.settings = settings(max_examples=300, stateful_step_count=25, deadline=None)

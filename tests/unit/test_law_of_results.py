"""What a result does to its row: the law, case by case, against the rule.

The law is written by hand from the design (docs/explanation/uncertain-sends.md, I-17, I-18, F-28 to F-37) and decision
0024. Each line of a table is one case. `earlier` says whether another call of the row may have arrived, `final` that
its attempts are used up; `due` that it waits for so long from now, `waits` that it waits for a decision, `counts`
what does: the attempt (`yes`), or one more claim without a call, of which too many end a row (`claim`); `cases` what a
person is told. A row that is no longer uncertain is `free`: any account may send it again.
"""

from datetime import timedelta
from itertools import product

import pytest

from clarion.domain.attempt import Attempt, AttemptStatus
from clarion.domain.call import Accepted, CallOutcome, Deferred, Misconfigured, NotCalled, Refused, Unknown
from clarion.domain.claim import CallResult
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.queue_row import Ruling
from clarion.domain.ruling import after_result
from clarion.testing.factories import BUCKET, guid
from tests.unit.law import Line, lines, matching, told_cases
from tests.unit.queue_rows import locked_row

OUTCOMES: dict[str, CallOutcome] = {
    "accepted": Accepted(provider_message_id="p-1"),
    "deferred": Deferred(reason="busy"),
    "throttled": Deferred(reason="too many", throttled=True),
    "misconfigured": Misconfigured(reason="bad password"),
    "refused": Refused(reason="no"),
    "nobody": Refused(reason="no such mailbox", recipient_not_found=True),
    "unknown": Unknown(reason="no reply"),
    "not called": NotCalled(reason="not ready"),
    "no time": NotCalled(reason="the merges before it took too long", counts=False),
    "defect": NotCalled(reason="other bytes", counts=False, is_defect=True),
    "never called": NotCalled(reason="cannot be merged", leads_to=OutgoingStatus.FAILED_FINAL),
    "too late": NotCalled(reason="the window is over", leads_to=OutgoingStatus.UNCERTAIN),
}
DELAY = timedelta(seconds=40)
OWN, OTHER = guid(1), guid(2)

# A row in flight, and the result of the very claim that holds it.
IN_FLIGHT = """
outcome        earlier  final | to              due    waits  attempt        counts  class      cases
accepted       *        *     | SentToProvider  -      -      Accepted       yes     -          -
deferred       *        no    | RetryReady      delay  -      Deferred       yes     -          -
deferred       no       yes   | FailedFinal     -      -      Deferred       yes     -          given up
deferred       yes      yes   | Uncertain       -      -      Deferred       yes     -          given up
throttled      *        no    | RetryReady      delay  -      Deferred       yes     throttled  -
throttled      no       yes   | FailedFinal     -      -      Deferred       yes     -          given up
throttled      yes      yes   | Uncertain       -      -      Deferred       yes     -          given up
misconfigured  *        no    | RetryReady      delay  -      Misconfigured  yes     -          faulty account
misconfigured  no       yes   | FailedFinal     -      -      Misconfigured  yes     -          faulty account, given up
misconfigured  yes      yes   | Uncertain       -      -      Misconfigured  yes     -          faulty account, given up
refused        no       *     | FailedFinal     -      -      Refused        yes     -          -
refused        yes      *     | Uncertain       -      -      Refused        yes     -          -
nobody         no       *     | FailedFinal     -      -      Refused        yes     not found  -
nobody         yes      *     | Uncertain       -      -      Refused        yes     not found  -
unknown        *        *     | Uncertain       -      yes    Unknown        yes     -          -
not called     *        *     | RetryReady      delay  -      -              claim   -          -
no time        *        *     | RetryReady      delay  -      -              no      -          -
defect         *        *     | RetryReady      delay  -      -              no      -          defect
never called   no       *     | FailedFinal     -      -      -              claim   -          never called
never called   yes      *     | Uncertain       -      -      -              claim   -          never called
too late       no       *     | RetryReady      delay  -      -              claim   -          -
too late       yes      *     | Uncertain       -      yes    -              claim   -          -
"""

# A row that was rescued to Uncertain, and the late reply of its own claim. `earlier`: another claim's call is unknown.
# What a reply proves refused was never taken: once no call of the row is unknown, it is free.
LATE = """
outcome        earlier  final | to              due    waits  attempt   counts  free  cases
accepted       *        *     | SentToProvider  -      -      Accepted  yes     -     -
deferred       no       no    | RetryReady      delay  -      Refused   yes     yes   -
deferred       yes      no    | RetryReady      delay  -      Refused   yes     -     -
deferred       no       yes   | FailedFinal     -      -      Refused   yes     yes   given up
deferred       yes      yes   | Uncertain       -      -      Refused   yes     -     given up
throttled      no       no    | RetryReady      delay  -      Refused   yes     yes   -
throttled      yes      no    | RetryReady      delay  -      Refused   yes     -     -
throttled      no       yes   | FailedFinal     -      -      Refused   yes     yes   given up
throttled      yes      yes   | Uncertain       -      -      Refused   yes     -     given up
misconfigured  no       no    | RetryReady      delay  -      Refused   yes     yes   faulty account
misconfigured  yes      no    | RetryReady      delay  -      Refused   yes     -     faulty account
misconfigured  no       yes   | FailedFinal     -      -      Refused   yes     yes   faulty account, given up
misconfigured  yes      yes   | Uncertain       -      -      Refused   yes     -     faulty account, given up
refused        no       *     | FailedFinal     -      -      Refused   yes     yes   -
refused        yes      *     | Uncertain       -      -      Refused   yes     -     -
nobody         no       *     | FailedFinal     -      -      Refused   yes     yes   -
nobody         yes      *     | Uncertain       -      -      Refused   yes     -     -
unknown        *        *     | -               -      -      Unknown   yes     -     -
not called     no       *     | RetryReady      delay  -      dropped   claim   yes   -
no time        no       *     | RetryReady      delay  -      dropped   no      yes   -
not called     yes      *     | RetryReady      delay  -      dropped   claim   -     -
no time        yes      *     | RetryReady      delay  -      dropped   no      -     -
defect         no       *     | RetryReady      delay  -      dropped   no      yes   defect
defect         yes      *     | RetryReady      delay  -      dropped   no      -     defect
never called   no       *     | FailedFinal     -      -      dropped   claim   yes   never called
never called   yes      *     | Uncertain       -      -      dropped   claim   -     never called
too late       no       *     | RetryReady      delay  -      dropped   claim   yes   -
too late       yes      *     | Uncertain       -      yes    dropped   claim   -     -
"""

# Where an acceptance leads a row that is elsewhere, whoever holds it now (I-17, I-18): it is evidence, and the row has
# an attempt. Nothing else moves such a row.
ACCEPTED_ELSEWHERE = """
status         | to
RetryReady     | SentToProvider
Sending        | SentToProvider
Uncertain      | SentToProvider
FailedFinal    | SentToProvider
NotSupported   | SentToProvider
Suppressed     | SentToProvider
Expired        | SentToProvider
Canceled       | SentToProvider
SentToProvider | -
Blocked        | -
Delivered      | -
Opened         | -
Bounced        | -
Complained     | -
"""

# What is written of the attempt of a call, by what is stored of it. Whatever was unknown and is not accepted is proven
# refused; what is known stays known; another claim's attempt is not touched.
ATTEMPT = """
stored              outcome       | written
Unknown             accepted      | Accepted
Unknown             deferred      | Refused
Unknown             misconfigured | Refused
Unknown             refused       | Refused
Unknown             unknown       | Unknown
Accepted            accepted      | Accepted
Accepted            deferred      | Accepted
Accepted            refused       | Accepted
Accepted            unknown       | Accepted
Refused             accepted      | Refused
Refused             unknown       | Refused
Deferred            unknown       | Deferred
another's Unknown   accepted      | -
another's Unknown   refused       | -
another's Unknown   unknown       | -
"""


def result(outcome: str, *, final: bool = False, attempt: int = 2) -> CallResult:
    return CallResult(
        id=1,
        bucket=BUCKET,
        claim_token=OWN,
        attempt=attempt,
        outcome=OUTCOMES[outcome],
        delay=DELAY,
        final=final,
        content_hash="k1:content",
        latency_ms=7,
    )


def stored(number: int, status: str, *, own: bool = False) -> Attempt:
    return Attempt(BUCKET, 1, number, OWN if own else OTHER, AttemptStatus(status))


def told(ruling: Ruling) -> dict[str, str]:
    """Write a ruling in the words of the tables."""
    (attempt,) = ruling.attempts or (None,)
    return {
        "to": ruling.to or "-",
        "due": {None: "-", DELAY: "delay"}.get(ruling.delay, "another time"),
        "waits": "yes" if ruling.settles else "-",
        "attempt": "dropped" if ruling.dropped_attempt == 2 else attempt.status if attempt is not None else "-",
        "counts": "yes" if not ruling.is_taken_back else "claim" if ruling.is_not_called else "no",
        "class": {"": "-", "recipient-not-found": "not found"}.get(ruling.reason_class, ruling.reason_class),
        "free": "yes" if ruling.frees else "-",
        "cases": told_cases(ruling),
    }


def agree(line: Line, ruling: Ruling) -> None:
    found = told(ruling)
    assert {name: word for name, word in line.items() if name in found} == {
        name: found[name] for name in line if name in found
    }


EVERY_CASE = [*product(OUTCOMES, ("no", "yes"), ("no", "yes"))]


@pytest.mark.parametrize("outcome, earlier, final", EVERY_CASE)
def test_the_result_of_a_row_in_flight_leads_where_the_law_says(outcome: str, earlier: str, final: str) -> None:
    row = locked_row(claim_token=OWN, attempts=2, may_have_arrived=earlier == "yes")
    ruling = after_result(row, result(outcome, final=final == "yes"))
    agree(matching(IN_FLIGHT, outcome=outcome, earlier=earlier, final=final), ruling)
    assert (ruling.pins, ruling.frees) == (outcome == "unknown", False)


@pytest.mark.parametrize("outcome, earlier, final", EVERY_CASE)
def test_the_late_reply_of_an_uncertain_rows_own_claim_settles_it(outcome: str, earlier: str, final: str) -> None:
    tried = [stored(1, "Unknown" if earlier == "yes" else "Refused"), stored(2, "Unknown", own=True)]
    row = locked_row(status=OutgoingStatus.UNCERTAIN, claim_token=OWN, attempts=2, may_have_arrived=True)
    ruling = after_result(row, result(outcome, final=final == "yes"), tried)
    agree(matching(LATE, outcome=outcome, earlier=earlier, final=final), ruling)


@pytest.mark.parametrize("line", lines(ACCEPTED_ELSEWHERE), ids=lambda line: line["status"])
@pytest.mark.parametrize("own", [True, False])
def test_an_acceptance_is_evidence_whoever_holds_the_row(line: Line, own: bool) -> None:
    """It stores provider id, attempt and latency too, where it is the claim's own."""
    if own and line["status"] in ("Sending", "Uncertain"):
        return  # the two tables above
    status = OutgoingStatus(line["status"])
    row = locked_row(status=status, claim_token=OWN if own else OTHER, attempts=2, may_have_arrived=True)
    ruling = after_result(row, result("accepted"), [stored(2, "Unknown", own=True)])
    assert (told(ruling)["to"], ruling.provider_message_id, ruling.delay) == (line["to"], "p-1", None)
    (attempt,) = ruling.attempts
    assert (attempt.status, attempt.provider_message_id, attempt.latency_ms) == (AttemptStatus.ACCEPTED, "p-1", 7)


@pytest.mark.parametrize("outcome", [name for name in OUTCOMES if name != "accepted"])
@pytest.mark.parametrize("status", [one for one in OutgoingStatus if one is not OutgoingStatus.CREATED])
def test_nothing_but_an_acceptance_moves_a_row_that_its_claim_has_lost(status: OutgoingStatus, outcome: str) -> None:
    """F-37: it only settles its own attempt."""
    row = locked_row(status=status, claim_token=OTHER, attempts=2, may_have_arrived=True)
    ruling = after_result(row, result(outcome, attempt=1, final=True), [stored(1, "Unknown", own=True)])
    assert told(ruling) | {"attempt": ""} == told(Ruling()) | {"attempt": ""}
    assert [one.status for one in ruling.attempts] == [AttemptStatus.UNKNOWN if outcome == "unknown" else "Refused"]


def test_no_result_moves_a_row_that_was_never_called() -> None:
    row = locked_row(status=OutgoingStatus.CREATED, claim_token=None, attempts=0)
    assert [after_result(row, result(outcome)).steps for outcome in OUTCOMES] == [()] * len(OUTCOMES)


@pytest.mark.parametrize("line", lines(ATTEMPT), ids=lambda line: f"{line['stored']}-{line['outcome']}")
def test_an_attempt_keeps_what_is_known_of_it(line: Line) -> None:
    words = line["stored"].split()
    attempt = stored(2, words[-1], own=len(words) == 1)
    row = locked_row(status=OutgoingStatus.DELIVERED, claim_token=OWN, attempts=2)
    assert told(after_result(row, result(line["outcome"]), [attempt]))["attempt"] == line["written"]


@pytest.mark.parametrize("accepted, written", [(False, AttemptStatus.ACCEPTED), (True, AttemptStatus.UNKNOWN)])
def test_a_call_that_a_receipt_has_shown_was_accepted_though_its_reply_was_lost(
    accepted: bool, written: AttemptStatus
) -> None:
    """Unless the receipt may have been about a call that is known to be accepted."""
    row = locked_row(status=OutgoingStatus.DELIVERED, claim_token=OWN, attempts=2)
    tried = [stored(1, "Accepted" if accepted else "Refused")]
    (attempt,) = after_result(row, result("unknown"), tried).attempts
    assert (attempt.attempt, attempt.status) == (2, written)


@pytest.mark.parametrize("outcome", ["not called", "never called", "too late"])
def test_a_claim_that_came_to_no_call_does_not_use_up_a_persons_word(outcome: str) -> None:
    """I-10: a replay that was authorised is still so at the next claim, if there is one."""
    row = locked_row(claim_token=OWN, attempts=2, replay_authorised=True)
    ruling = after_result(row, result(outcome))
    assert ruling.is_authorised is (ruling.to is OutgoingStatus.RETRY_READY)
    called = [after_result(row, result(one)).is_authorised for one in ("deferred", "refused", "unknown", "accepted")]
    assert called == [False] * 4

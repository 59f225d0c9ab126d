"""What becomes of a row at a claim, a cancel, a sweep, a decision and a person's retry: the law against the rules.

The law is written by hand from the design (docs/explanation/claiming.md, cancel.md and uncertain-sends.md; I-07, I-10,
I-16) and from decisions 0024 and 0054. `off` says that the row was called off, `late` that its time is over, `barred`
that its recipient is not to get it, `earlier` that a call of it may have arrived, `behind` that another row of its
order key must go first, `follows` that its own claim holds such a row.
"""

from datetime import timedelta
from itertools import product

import msgspec
import pytest

from clarion.domain.attempt import AttemptStatus
from clarion.domain.claim import Gate, Settlement
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.queue_row import LockedRow, Ruling, Step
from clarion.domain.ruling import (
    after_decision,
    after_lease,
    at_cancel,
    at_claim,
    at_claims,
    at_retry,
    at_sweep,
    lets_go,
)
from clarion.domain.suppression import Cause
from clarion.testing.factories import BUCKET, guid
from tests.unit.law import lines, matching, told_cases
from tests.unit.queue_rows import locked_row

YES_NO = ("yes", "no")

# A row that is due, when a worker comes for it. Nothing goes out behind a gate that is not open, nor after a cancel or
# its time, nor to whoever refused it (`barred`); a row to which several of these apply ends by the first of them. A row
# in line looks `again` whether it may go. `kept` is the class that its reason is counted under.
CLAIM = """
gate      off  late  barred  behind  follows  earlier | to          again  kept        says
Paused    *    *     *       *       *        *       | stays       -      -           -
Canceled  *    *     *       *       *        *       | stays       -      -           -
Open      yes  *     *       *       *        no      | Canceled    -      -           canceled before it was sent
Open      yes  *     *       *       *        yes     | Uncertain   -      -           canceled, and an earlier call may have arrived
Open      no   yes   *       *       *        no      | Expired     -      -           its time ran out before it was sent
Open      no   yes   *       *       *        yes     | Uncertain   -      -           its time ran out, and an earlier call may have arrived
Open      no   no    all     *       *        no      | Suppressed  -      -           the address bounced
Open      no   no    news    *       *        no      | Suppressed  -      preference  the recipient switched it off
Open      no   no    all     *       *        yes     | Uncertain   -      -           the address bounced, and an earlier call may have arrived
Open      no   no    news    *       *        yes     | Uncertain   -      -           the recipient switched it off, and an earlier call may have arrived
Open      no   no    no      yes     no       *       | stays       1 s    -           -
Open      no   no    no      yes     yes      *       | stays       60 s   -           -
Open      no   no    no      no      *        *       | Sending     -      -           -
"""  # noqa: E501  a table is read in lines

BARRED = {
    "no": [("offers", Cause.MANUAL), ("news:sms", Cause.PREFERENCE)],
    "all": [("news", Cause.PREFERENCE), ("*", Cause.BOUNCE)],
    "news": [("offers", Cause.MANUAL), ("news:email", Cause.PREFERENCE)],
}

# What stops a message of the category news, and one that is required and therefore has none.
REQUIRED = """
suppressed  category | to
*           news     | Suppressed
*           -        | Suppressed
news        news     | Suppressed
news        -        | Sending
news:email  news     | Suppressed
news:email  -        | Sending
"""

# Rows of one order key that one claim picks while another row of the key is in flight, in the order of their ids. Only
# a row that goes as soon as it may can be relied on by those behind it: not one of a broadcast, which may be paused,
# nor one that is pinned to an account after a call that may have arrived. Neither relies on another.
LINE = """
first      second     third     | looks again
plain      plain      plain     | 1, 60, 60
broadcast  plain      plain     | 1, 1, 60
pinned     plain      plain     | 1, 1, 60
plain      broadcast  pinned    | 1, 1, 1
plain      broadcast  plain     | 1, 1, 60
expired    plain      plain     | -, 1, 60
"""

# What becomes of a row that others wait for. They wait for it no more when it is not open, or when its retry is more
# than 60 seconds away.
RELEASE = """
status       to              due in | lets go
Sending      SentToProvider  -      | yes
Sending      FailedFinal     -      | yes
Sending      Uncertain       -      | yes
Sending      RetryReady      0      | no
Sending      RetryReady      60     | no
Sending      RetryReady      61     | yes
Created      Sending         -      | no
Created      Canceled        -      | yes
Created      Expired         -      | yes
RetryReady   Uncertain       -      | yes
RetryReady   stays           -      | no
Uncertain    RetryReady      0      | no
Uncertain    RetryReady      61     | no
Uncertain    SentToProvider  -      | no
FailedFinal  RetryReady      0      | no
"""

# A cancel of the row's job. What waits ends at once; what is with a provider, or may be, is marked, and ends if it
# comes back. What is final, and what was called off before, is left alone.
CANCEL = """
status          off  earlier | to         marked
Created         no   no      | Canceled   yes
RetryReady      no   no      | Canceled   yes
RetryReady      no   yes     | Uncertain  yes
Sending         no   *       | stays      yes
Uncertain       no   *       | stays      yes
Created         yes  *       | stays      -
RetryReady      yes  *       | stays      -
Sending         yes  *       | stays      -
Uncertain       yes  *       | stays      -
SentToProvider  *    *       | stays      -
Blocked         *    *       | stays      -
Delivered       *    *       | stays      -
Opened          *    *       | stays      -
Bounced         *    *       | stays      -
Complained      *    *       | stays      -
FailedFinal     *    *       | stays      -
NotSupported    *    *       | stays      -
Suppressed      *    *       | stays      -
Expired         *    *       | stays      -
Canceled        *    *       | stays      -
"""

# A person's retry of the version that the person saw. I-07: what was canceled is not brought back, and what is out of
# time would not be let out by the claim.
RETRY = """
status          off  late  version | to
FailedFinal     no   no    seen    | RetryReady
Uncertain       no   no    seen    | RetryReady
FailedFinal     no   no    older   | stays
Uncertain       no   no    older   | stays
FailedFinal     yes  *     *       | stays
Uncertain       yes  *     *       | stays
FailedFinal     no   yes   *       | stays
Uncertain       no   yes   *       | stays
Created         *    *     *       | stays
RetryReady      *    *     *       | stays
Sending         *    *     *       | stays
SentToProvider  *    *     *       | stays
Blocked         *    *     *       | stays
Delivered       *    *     *       | stays
Opened          *    *     *       | stays
Bounced         *    *     *       | stays
Complained      *    *     *       | stays
NotSupported    *    *     *       | stays
Suppressed      *    *     *       | stays
Expired         *    *     *       | stays
Canceled        *    *     *       | stays
"""

# What is decided about an uncertain row, by the version that was read. To leave it so is a move too, and a person is
# told. A replay that may arrive twice is authorised for one call, and counted.
DECISION = """
waits  version  replay  twice | to          due    authorised  counted  cases
yes    seen     no      no    | Uncertain   -      -           -        left uncertain
yes    seen     yes     no    | RetryReady  delay  -           -        -
yes    seen     yes     yes   | RetryReady  delay  yes         yes      -
no     *        *       *     | stays       -      -           -        -
yes    older    *       *     | stays       -      -           -        -
"""

DELAY = timedelta(seconds=40)


def row(**words: str) -> LockedRow:
    """Make a row out of a table's words."""
    fields = {
        "is_called_off": words.get("off") == "yes",
        "is_out_of_time": words.get("late") == "yes",
        "may_have_arrived": words.get("earlier") == "yes",
        "waits_for_decision": words.get("waits") == "yes",
        "status": OutgoingStatus(words["status"]),
    }
    return locked_row(version=5, **fields)


def moved(ruling: Ruling) -> str:
    return ruling.to or "stays"


def nothing_but(ruling: Ruling, *names: str) -> bool:
    """Tell whether a ruling says nothing besides these."""
    return all(
        getattr(ruling, name) == getattr(Ruling(), name) for name in Ruling.__struct_fields__ if name not in names
    )


def seconds(delay: timedelta | None) -> int | None:
    return None if delay is None else int(delay.total_seconds())


def mark(is_set: bool) -> str:
    return "yes" if is_set else "-"


@pytest.mark.parametrize("status", ["Created", "RetryReady"])
@pytest.mark.parametrize("gate", Gate)
def test_a_claim_sends_ends_or_leaves_a_due_row_as_the_law_says(status: str, gate: Gate) -> None:
    for called_off, out_of_time, behind, follows, earlier, barred in product(*[YES_NO] * 5, BARRED):
        if status == "Created" and earlier == "yes":
            continue  # one that was never called
        given = {"off": called_off, "late": out_of_time, "earlier": earlier}
        line = matching(CLAIM, gate=gate, behind=behind, follows=follows, barred=barred, **given)
        due = msgspec.structs.replace(row(status=status, **given), category="news")
        ruling = at_claim(
            due, gate=gate, is_behind=behind == "yes", suppressions=BARRED[barred], follows=follows == "yes"
        )
        looks_again = f"{seconds(ruling.delay)} s" if ruling.in_line else "-"
        assert (moved(ruling), looks_again, ruling.reason or "-") == (line["to"], line["again"], line["says"])
        assert (ruling.reason_class or "-") == line["kept"]
        assert nothing_but(ruling, "steps", "reason_class", *(("in_line", "delay") if ruling.in_line else ()))


@pytest.mark.parametrize("line", lines(REQUIRED), ids=lambda line: f"{line['suppressed']} {line['category']}")
def test_a_required_message_is_stopped_by_what_stops_everything_and_by_nothing_else(line: dict[str, str]) -> None:
    category = None if line["category"] == "-" else line["category"]
    due = locked_row(status=OutgoingStatus.CREATED, category=category, channel="email")
    ruling = at_claim(due, gate=Gate.OPEN, is_behind=False, suppressions=[(line["suppressed"], Cause.MANUAL)])
    assert moved(ruling) == line["to"]


KINDS: dict[str, dict[str, object]] = {
    "plain": {},
    "broadcast": {"has_broadcast": True},
    "pinned": {"may_have_arrived": True, "status": OutgoingStatus.RETRY_READY},
    "expired": {"is_out_of_time": True},
}


@pytest.mark.parametrize("line", lines(LINE), ids=lambda line: f"{line['first']}, {line['second']}, {line['third']}")
def test_of_each_line_that_a_claim_holds_the_first_row_looks_again_soon(line: dict[str, str]) -> None:
    def rows(order_key: str, *ids: int) -> list[LockedRow]:
        kinds = zip(ids, (line["first"], line["second"], line["third"]), strict=True)
        due = {"status": OutgoingStatus.CREATED, "order_key": order_key}
        return [locked_row(**{**due, **KINDS[kind], "id": id_, "flow_id": id_}) for id_, kind in kinds]

    mixed = [*rows("b", 4, 5, 6), *rows("a", 1, 2, 3)]
    ruled = at_claims(mixed[::-1], gates={}, behind={one.id for one in mixed})
    found = {row.id: str(seconds(ruling.delay)) if ruling.in_line else "-" for row, ruling in ruled}
    assert [found[id_] for id_ in range(1, 7)] == 2 * line["looks again"].split(", ")


def test_a_row_behind_a_gate_that_is_not_open_is_followed_by_nobody() -> None:
    first, second = (locked_row(id=n, flow_id=n, order_key="a", status=OutgoingStatus.CREATED) for n in (1, 2))
    (_, closed), (_, behind) = at_claims([first, second], gates={1: Gate.PAUSED}, behind={1, 2})
    assert (closed, seconds(behind.delay)) == (Ruling(), 1)


def test_a_row_that_the_same_claim_sends_is_followed_by_those_behind_it() -> None:
    """They are woken when it is closed, which is after the claim."""
    first, second = (locked_row(id=n, order_key="a", status=OutgoingStatus.CREATED) for n in (1, 2))
    (_, sent), (_, behind) = at_claims([first, second], gates={}, behind={2})
    assert (sent.to, seconds(behind.delay)) == (OutgoingStatus.SENDING, 60)


@pytest.mark.parametrize("line", lines(RELEASE), ids=lambda line: f"{line['status']} {line['to']} {line['due in']}")
def test_a_row_lets_go_of_those_behind_it_as_the_law_says(line: dict[str, str]) -> None:
    steps = () if line["to"] == "stays" else (Step(OutgoingStatus(line["to"])),)
    delay = None if line["due in"] == "-" else timedelta(seconds=int(line["due in"]))
    assert lets_go(row(status=line["status"]), Ruling(steps=steps, delay=delay)) is (line["lets go"] == "yes")


@pytest.mark.parametrize("authorised", [True, False])
def test_a_persons_word_is_for_the_call_that_is_made_now(authorised: bool) -> None:
    """I-10: the claim hands it to its call, and an end uses it up."""
    due = locked_row(status=OutgoingStatus.RETRY_READY, replay_authorised=authorised, may_have_arrived=True)
    assert at_claim(due, gate=Gate.OPEN, is_behind=False).is_authorised is authorised
    over = locked_row(status=OutgoingStatus.RETRY_READY, replay_authorised=True, is_called_off=True)
    assert at_claim(over, gate=Gate.OPEN, is_behind=False).is_authorised is False


@pytest.mark.parametrize("status", OutgoingStatus)
def test_a_cancel_ends_what_waits_and_marks_what_may_come_back(status: OutgoingStatus) -> None:
    for called_off, earlier in product(YES_NO, YES_NO):
        if status == "Created" and earlier == "yes":
            continue
        given = {"off": called_off, "earlier": earlier, "status": status}
        line = matching(CANCEL, **given)
        ruling = at_cancel(row(**given))
        assert (moved(ruling), mark(ruling.is_called_off)) == (line["to"], line["marked"])
        assert nothing_but(ruling, "steps", "is_called_off")


@pytest.mark.parametrize("status", OutgoingStatus)
@pytest.mark.parametrize("earlier", YES_NO)
def test_a_sweep_ends_what_waits_and_nothing_else(status: OutgoingStatus, earlier: str) -> None:
    ruling = at_sweep(row(status=status, earlier=earlier))
    waits = status in ("Created", "RetryReady")
    assert moved(ruling) == ("stays" if not waits else "Uncertain" if earlier == "yes" else "Canceled")
    assert nothing_but(ruling, "steps")


@pytest.mark.parametrize("status", OutgoingStatus)
def test_a_person_brings_back_what_failed_or_is_uncertain_and_nothing_else(status: OutgoingStatus) -> None:
    for called_off, out_of_time, version in product(YES_NO, YES_NO, ("seen", "older")):
        given = {"off": called_off, "late": out_of_time, "status": status}
        line = matching(RETRY, version=version, **given)
        ruling = at_retry(row(**given), version=5 if version == "seen" else 4, reason="mended")
        assert moved(ruling) == line["to"]
        back = line["to"] == "RetryReady"
        assert (ruling.delay, ruling.is_authorised, ruling.is_forgiven, ruling.reason) == (
            (timedelta(), True, True, "mended") if back else (None, False, False, None)
        )
        assert nothing_but(ruling, "steps", "delay", "is_authorised", "is_forgiven")


@pytest.mark.parametrize("waits, version, replay, twice", list(product(YES_NO, ("seen", "older"), YES_NO, YES_NO)))
def test_a_decision_is_about_the_row_as_it_was_read(waits: str, version: str, replay: str, twice: str) -> None:
    if replay == "no" and twice == "yes":
        return  # nobody asks for it
    line = matching(DECISION, waits=waits, version=version, replay=replay, twice=twice)
    decided = Settlement(
        id=1,
        bucket=BUCKET,
        version=5 if version == "seen" else 4,
        replay=replay == "yes",
        counts_as_duplicate=twice == "yes",
        reason="so",
        delay=DELAY,
    )
    ruling = after_decision(row(status="Uncertain", waits=waits), decided)
    assert {
        "to": moved(ruling),
        "due": "delay" if ruling.delay == DELAY else "-",
        "authorised": mark(ruling.is_authorised),
        "counted": mark(ruling.is_duplicate),
        "cases": told_cases(ruling),
    } == {name: word for name, word in line.items() if name in ("to", "due", "authorised", "counted", "cases")}
    assert (ruling.settles, ruling.frees, ruling.pins) == (False, False, False)
    assert ruling.reason == (None if line["to"] == "stays" else "so")


def test_a_row_whose_worker_said_nothing_is_uncertain_and_stays_with_its_account() -> None:
    """F-27, F-36: nobody knows whether it called, so an attempt of unknown outcome stands for it."""
    ruling = after_lease(locked_row(attempts=3, claim_token=guid(1)))
    assert (moved(ruling), ruling.settles, ruling.pins, ruling.delay) == ("Uncertain", True, True, None)
    (attempt,) = ruling.attempts
    assert (attempt.attempt, attempt.status, attempt.claim_token) == (3, AttemptStatus.UNKNOWN, guid(1))
    assert ruling.troubles == ()


@pytest.mark.parametrize("law", [CLAIM, CANCEL, RETRY, DECISION])
def test_no_line_of_a_law_stands_twice(law: str) -> None:
    read = [tuple(line.items()) for line in lines(law)]
    assert len(read) == len(set(read))

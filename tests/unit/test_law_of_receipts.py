"""What a provider's reports do to a row: the law against the rule.

The law is written by hand from the design (I-11, I-31 to I-33, F-38, F-39): which call a report is about as a table,
and the order of reports as properties, because the law speaks of any order.
"""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clarion.domain.attempt import Attempt, AttemptStatus
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.queue_row import LockedRow, Receipt, Ruling
from clarion.domain.ruling import after_receipt, may_be_received
from clarion.testing.factories import BUCKET, guid
from tests.unit.law import Line, lines
from tests.unit.queue_rows import locked_row

RANKS = ("SentToProvider", "Blocked", "Delivered", "Opened", "Bounced", "Complained")
"""Lowest first (I-18)."""

CALLED = [one for one in OutgoingStatus if one is not OutgoingStatus.CREATED]

# Which attempts reports prove accepted. Written are number, outcome and provider id; a report its provider id. A report
# is about a call that was accepted. If it may be about one that is known to be, it proves nothing new; two different
# provider ids are two calls. Otherwise it is the latest call of which nobody knows, or the one that is in flight now.
ATTEMPTS = """
status      stored                      reports | written
Uncertain   1 Unknown -                 -       | 1 Accepted -
Uncertain   1 Unknown -                 p1      | 1 Accepted p1
Uncertain   1 Unknown p0                p1      | 1 Accepted p0
Uncertain   1 Unknown -, 2 Unknown -    -       | 2 Accepted -
Uncertain   1 Unknown -, 2 Unknown -    p1, p1  | 2 Accepted p1
Uncertain   1 Unknown -, 2 Unknown -    p1, p2  | 2 Accepted p1, 1 Accepted p2
Uncertain   1 Unknown -, 2 Unknown -    p1, -   | 2 Accepted p1
Uncertain   1 Unknown -, 2 Refused -    p1      | 1 Accepted p1
Uncertain   1 Accepted p1, 2 Unknown -  p1      | nothing
Uncertain   1 Accepted p1, 2 Unknown -  -       | nothing
Uncertain   1 Accepted -, 2 Unknown -   p2      | nothing
Uncertain   1 Accepted p1, 2 Unknown -  p2      | 2 Accepted p2
RetryReady  1 Refused -                 p1      | nothing
RetryReady  1 Deferred -                -       | nothing
Sending     nothing                     p1      | 1 Accepted p1
Sending     1 Refused -                 p1      | 2 Accepted p1
Sending     1 Unknown -                 p1      | 2 Accepted p1
Sending     1 Accepted p1               p1      | nothing
Delivered   1 Accepted p1               p1      | nothing
"""


def reports(*shown: str, provider_ids: tuple[str | None, ...] = ()) -> list[Receipt]:
    ids = provider_ids or (None,) * len(shown)
    return [
        Receipt(account="main", event_id=f"e-{number}", status=OutgoingStatus(one), provider_message_id=provider_id)
        for number, (one, provider_id) in enumerate(zip(shown, ids, strict=True), start=1)
    ]


def after(row: LockedRow, *shown: str) -> str:
    return after_receipt(row, reports(*shown), []).to or row.status


@given(
    status=st.sampled_from(CALLED),
    shown=st.lists(st.sampled_from(RANKS), min_size=1, max_size=4),
    repeats=st.lists(st.integers(0, 3), max_size=3),
)
def test_reports_in_any_order_and_number_end_in_the_highest(
    status: OutgoingStatus, shown: list[str], repeats: list[int]
) -> None:
    """I-31, F-39: and never below where the row was."""
    row = locked_row(status=status, attempts=1)
    expected = max([status, *shown], key=lambda one: RANKS.index(one) if one in RANKS else -1)
    again = [*shown, *(shown[place % len(shown)] for place in repeats)]
    assert {after(row, *order) for order in permutations(shown)} == {expected}
    assert after(row, *again) == after(row, *again[::-1]) == expected


@given(status=st.sampled_from(CALLED), shown=st.lists(st.sampled_from(RANKS), min_size=1, max_size=5))
def test_every_step_is_up_in_rank_and_says_which_report_it_is_of(status: OutgoingStatus, shown: list[str]) -> None:
    ruling = after_receipt(locked_row(status=status, attempts=1), reports(*shown), [])
    way = [RANKS.index(one) if one in RANKS else -1 for one in (status, *(step.to for step in ruling.steps))]
    assert way == sorted(set(way))
    for step in ruling.steps:
        assert step.reason == f"receipt e-{shown.index(step.to) + 1} of main"


@given(status=st.sampled_from(CALLED), shown=st.lists(st.sampled_from(RANKS), min_size=1, max_size=3))
def test_a_report_never_brings_about_a_call(status: OutgoingStatus, shown: list[str]) -> None:
    """I-33: no due time, no authorised replay, no change of flow; and it is no trouble."""
    ruling = after_receipt(locked_row(status=status, attempts=1, may_have_arrived=True), reports(*shown), [])
    changed = ("steps", "provider_message_id", "attempts")
    rest = [name for name in Ruling.__struct_fields__ if name not in changed]
    assert [getattr(ruling, name) for name in rest] == [getattr(Ruling(), name) for name in rest]


@pytest.mark.parametrize("status", CALLED)
def test_a_row_that_was_never_called_was_never_received(status: OutgoingStatus) -> None:
    """I-11: one that was taken back before its call has no attempt left, and no report moves it."""
    assert after(locked_row(status=status, attempts=0), "Complained") == status


@pytest.mark.parametrize("status", OutgoingStatus)
def test_a_report_about_a_row_that_is_yet_to_be_called_waits_for_its_call(status: OutgoingStatus) -> None:
    """I-32: and one about a row that was called does not."""
    waits = status in ("Created", "RetryReady")
    assert may_be_received(locked_row(status=status, attempts=0)) is not waits
    assert may_be_received(locked_row(status=status, attempts=1)) is True


@pytest.mark.parametrize("line", lines(ATTEMPTS), ids=lambda line: "-".join(line.values()))
def test_a_report_settles_the_call_that_it_can_only_be_about(line: Line) -> None:
    tried = [
        Attempt(BUCKET, 1, int(number), guid(int(number)), AttemptStatus(status), None if told_id == "-" else told_id)
        for number, status, told_id in map(str.split, _items(line["stored"]))
    ]
    called = len(tried) + (line["status"] == "Sending")
    row = locked_row(status=OutgoingStatus(line["status"]), attempts=called, claim_token=guid(called))
    ids = tuple(None if one == "-" else one for one in line["reports"].split(", "))
    ruling = after_receipt(row, reports(*["Delivered"] * len(ids), provider_ids=ids), tried)
    written = [f"{one.attempt} {one.status} {one.provider_message_id or '-'}" for one in ruling.attempts]
    assert written == _items(line["written"])
    assert all(one.claim_token == guid(one.attempt) for one in ruling.attempts)
    assert ruling.provider_message_id == next((one for one in ids if one is not None), None)


def _items(words: str) -> list[str]:
    return [] if words == "nothing" else words.split(", ")

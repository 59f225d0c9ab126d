"""What came of a notification as a whole: the law against the rule.

The law is a table written by hand: the state of the work, the messages in their states, how many lines stand in
inboxes, and for how many of the recipients there is a message at all.
"""

import pytest

from clarion.domain.notification import NotificationStatus
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.result import Result, Standing, overall
from tests.unit.law import Line, lines

LAW = """
work        messages                     inbox  recipients | result
Ready       -                            0      0 of 0     | waiting
Processing  -                            0      0 of 0     | waiting
Processing  Delivered                    0      1 of 2     | waiting
-           -                            0      0 of 0     | waiting
-           Delivered                    0      1 of 1     | delivered
Done        Created                      0      1 of 1     | waiting
Done        Sending                      0      1 of 1     | waiting
Done        RetryReady                   0      1 of 1     | waiting
Done        Delivered, RetryReady        0      1 of 1     | waiting
Done        Uncertain, Created           0      2 of 2     | waiting
Failed      Created                      0      1 of 2     | waiting
Done        Uncertain                    0      1 of 1     | uncertain
Done        Uncertain, Delivered         1      2 of 2     | uncertain
Done        Uncertain, FailedFinal       0      2 of 2     | uncertain
Canceled    Uncertain                    0      1 of 1     | uncertain
Done        Delivered                    0      1 of 1     | delivered
Done        Opened                       0      1 of 1     | delivered
Done        Complained                   0      1 of 1     | delivered
Done        -                            1      1 of 1     | delivered
Done        Delivered, Opened            2      2 of 2     | delivered
Done        SentToProvider               0      1 of 1     | sent
Done        SentToProvider, Delivered    1      2 of 2     | sent
Done        Delivered, FailedFinal       0      2 of 2     | partly
Done        Delivered, Bounced           0      2 of 2     | partly
Done        SentToProvider, Blocked      0      2 of 2     | partly
Done        SentToProvider, Expired      0      2 of 2     | partly
Done        Delivered, NotSupported      0      2 of 2     | partly
Done        Delivered, Canceled          0      2 of 2     | partly
Done        Opened, Suppressed           0      2 of 2     | partly
Done        FailedFinal                  1      1 of 1     | partly
Done        Delivered                    0      1 of 2     | partly
Done        SentToProvider               0      1 of 2     | partly
Done        -                            1      1 of 3     | partly
Failed      Delivered                    0      1 of 2     | partly
Canceled    Delivered                    0      1 of 1     | partly
Failed      -                            0      0 of 0     | failed
Failed      Canceled                     0      1 of 1     | failed
Done        FailedFinal                  0      1 of 1     | failed
Done        Bounced                      0      1 of 1     | failed
Done        Blocked                      0      1 of 1     | failed
Done        Expired                      0      1 of 1     | failed
Done        NotSupported                 0      1 of 1     | failed
Done        FailedFinal, Canceled        0      2 of 3     | failed
Skipped     -                            0      0 of 0     | nobody
Canceled    -                            0      0 of 0     | nobody
Canceled    Canceled                     0      1 of 1     | nobody
Done        Canceled                     0      1 of 1     | nobody
Done        Suppressed                   0      1 of 1     | nobody
Done        -                            0      0 of 2     | nobody
Done        -                            0      0 of 0     | nobody
"""


@pytest.mark.parametrize("line", lines(LAW), ids=lambda line: " ".join(line.values()))
def test_the_rule_keeps_the_law(line: Line) -> None:
    states = [] if line["messages"] == "-" else line["messages"].split(", ")
    addressed, recipients = line["recipients"].split(" of ")
    standing = Standing(
        work=None if line["work"] == "-" else NotificationStatus(line["work"]),
        recipients=int(recipients),
        addressed=int(addressed),
        inbox=int(line["inbox"]),
        outgoing={OutgoingStatus(state): states.count(state) for state in states},
    )
    assert overall(standing) == line["result"]


def test_the_law_speaks_of_every_state_and_every_result() -> None:
    words = [line["messages"].split(", ") for line in lines(LAW)]
    assert {word for line in words for word in line} == {"-", *OutgoingStatus}
    assert {line["work"] for line in lines(LAW)} == {"-", *NotificationStatus}
    assert {line["result"] for line in lines(LAW)} == {*Result}


@pytest.mark.parametrize("work", [None, *NotificationStatus])
@pytest.mark.parametrize("state", OutgoingStatus)
def test_a_message_that_may_still_be_sent_or_is_uncertain_is_never_called_done(
    work: NotificationStatus | None, state: OutgoingStatus
) -> None:
    """Whatever else there is: somebody who reads of an end stops looking."""
    beside = {OutgoingStatus.DELIVERED: 3, OutgoingStatus.FAILED_FINAL: 1}
    result = overall(Standing(work=work, recipients=5, addressed=5, inbox=1, outgoing={**beside, state: 1}))
    is_open = state in ("Created", "RetryReady", "Sending") or work in ("Ready", "Processing")
    assert (result is Result.WAITING) == is_open
    assert (result is Result.UNCERTAIN) == (state == "Uncertain" and not is_open)

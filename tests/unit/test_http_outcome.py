"""What a reply over HTTP means, and what the lack of one does: statuses, forms of Retry-After, kinds of failure."""

from collections.abc import Sequence
from datetime import timedelta

import msgspec
import pytest

from clarion.adapters.providers.http import RETRY_AFTER_MAX, judge, judge_failure, read_retry_after
from clarion.domain.call import REASON_CHARS_MAX, Accepted, CallOutcome, Deferred, Misconfigured, Refused, Unknown

PAUSE = timedelta(seconds=7)


@pytest.mark.parametrize(
    "statuses, expected",
    [
        (range(100, 200), Unknown(reason="the provider replied {}")),
        (range(200, 300), Accepted()),
        (range(300, 400), Misconfigured(reason="the provider replied {}")),
        ([400, 402, *range(404, 410), *range(411, 429), *range(430, 500)], Refused(reason="the provider replied {}")),
        ([401, 403], Misconfigured(reason="the provider replied {}")),
        ([410], Refused(reason="the provider replied {}", recipient_not_found=True)),
        ([429], Deferred(reason="the provider replied {}", retry_after=PAUSE, throttled=True)),
        ([500, 501, 502, *range(504, 1000)], Unknown(reason="the provider replied {}")),
        ([503], Deferred(reason="the provider replied {}", retry_after=PAUSE)),
    ],
)
def test_every_status_has_its_outcome(statuses: Sequence[int], expected: CallOutcome) -> None:
    for status in statuses:
        reason = {} if isinstance(expected, Accepted) else {"reason": expected.reason.format(status)}
        assert judge(status, retry_after=PAUSE) == msgspec.structs.replace(expected, **reason)


def test_a_pause_that_was_not_asked_for_is_not_invented() -> None:
    assert judge(503, retry_after=None) == Deferred(reason="the provider replied 503")


@pytest.mark.parametrize(
    "causes, expected",
    [
        (["client error (Connect)", "tcp connect error", "refused"], Deferred(reason="no reply: refused")),
        (["client error (Connect)"], Deferred(reason="no reply: client error (Connect)")),
        (["client error (SendRequest)", "connection reset"], Unknown(reason="no reply: connection reset")),
        (["operation timed out"], Unknown(reason="no reply: operation timed out")),
        (["a Connect that is only mentioned"], Unknown(reason="no reply: a Connect that is only mentioned")),
    ],
)
def test_only_what_never_had_a_connection_is_known_not_to_have_arrived(
    causes: list[str], expected: CallOutcome
) -> None:
    assert judge_failure(causes) == expected


def test_a_long_cause_is_cut() -> None:
    outcome = judge_failure(["x" * 1000])
    assert isinstance(outcome, Unknown)
    assert len(outcome.reason) == REASON_CHARS_MAX


@pytest.mark.parametrize(
    "text, pause",
    [
        (None, None),
        ("0", None),
        ("30", timedelta(seconds=30)),
        ("Thu, 15 Jan 2026 12:01:00 GMT", timedelta(minutes=1)),
        ("Thu, 15 Jan 2026 11:00:00 GMT", None),
        ("99999999999999999999", None),
        ("9999999", RETRY_AFTER_MAX),
        ("-5", None),
        ("soon", None),
        ("", None),
    ],
)
def test_retry_after_is_read_in_both_forms(text: str | None, pause: timedelta | None) -> None:
    assert read_retry_after(text, date="Thu, 15 Jan 2026 12:00:00 GMT") == pause


def test_a_date_to_retry_after_needs_a_date_to_count_from() -> None:
    assert read_retry_after("Thu, 15 Jan 2026 12:01:00 GMT", date=None) is None
    assert read_retry_after("30", date=None) == timedelta(seconds=30)

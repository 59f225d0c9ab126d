"""What a reply of a mail server means, for those that no server is easily brought to give."""

import pytest

from clarion.adapters.providers.smtp import Phase, judge
from clarion.domain.call import CallOutcome, Deferred, Misconfigured, Refused, Unknown


@pytest.mark.parametrize(
    "phase, code, text, expected",
    [
        (Phase.SENDER, 552, "5.3.4 too big", Refused),
        (Phase.SENDER, 550, "5.7.1 sender denied", Misconfigured),
        (Phase.SENDER, 451, "later", Deferred),
        (Phase.CONTENT, 530, "log in first", Misconfigured),
        (Phase.DATA, 503, "no valid recipients", Refused),
        (Phase.CONTENT, -1, "", Unknown),
        (Phase.DATA, -1, "", Deferred),
        (Phase.CONTENT, 600, "", Unknown),
    ],
)
def test_replies_that_are_hard_to_provoke(phase: Phase, code: int, text: str, expected: type[CallOutcome]) -> None:
    assert isinstance(judge(phase, code, text), expected)


def test_a_reason_is_short_and_repeats_no_address() -> None:
    outcome = judge(Phase.RECIPIENT, 550, "<ann@example.com>: gone\nask ann@example.org " + "x" * 500)
    assert isinstance(outcome, Refused)
    assert len(outcome.reason) == 300
    assert "ann" not in outcome.reason
    assert "\n" not in outcome.reason

"""When an account fails, and when it is well again: the rule, by the outcomes of its calls."""

import pytest

from clarion.domain.call import Accepted, CallOutcome, Deferred, Misconfigured, NotCalled, Refused, Unknown
from clarion.domain.health import Health, after

DEAD = Deferred(reason="connecting: refused")


def fails(*story: tuple[float, CallOutcome], now: float) -> bool:
    """Tell whether an account fails after calls that ended at these times."""
    health = Health()
    for at, outcome in story:
        health = after(health, outcome, now=at)
    return health.is_failing(now=now)


@pytest.mark.parametrize("outcome", [DEAD, Unknown(reason="no reply"), Deferred(reason="421", throttled=True)])
def test_three_calls_in_a_row_that_came_to_nothing_over_half_a_minute_are_a_failing_account(
    outcome: CallOutcome,
) -> None:
    story = ((0, outcome), (2, outcome), (10, outcome))
    assert not fails(*story, now=29)
    assert fails(*story, now=30)


def test_a_hundred_failures_at_once_are_no_failing_account_yet() -> None:
    assert not fails(*[(0, DEAD)] * 100, now=29)


def test_two_failures_are_none_however_long_ago() -> None:
    assert not fails((0, DEAD), (2, DEAD), now=3600)


@pytest.mark.parametrize("outcome", [Accepted(), Refused(reason="no such user")])
def test_one_call_that_the_provider_decided_about_makes_an_account_well(outcome: CallOutcome) -> None:
    story = [(float(at), DEAD) for at in range(0, 100, 10)]
    assert fails(*story, now=100)
    assert not fails(*story, (100, outcome), now=100)
    assert not fails(*story, (100, outcome), (101, DEAD), (102, DEAD), (103, DEAD), now=130), "the count starts again"


def test_an_account_that_its_provider_blames_fails_at_once() -> None:
    assert fails((0, Misconfigured(reason="535 wrong password")), now=0)


def test_what_was_not_called_says_nothing_of_the_account() -> None:
    waiting = NotCalled(reason="the template is not in memory")
    assert not fails((0, waiting), (10, waiting), (20, waiting), now=60)
    assert fails((0, DEAD), (10, DEAD), (20, waiting), (30, DEAD), now=30)

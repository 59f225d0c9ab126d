"""The health of an account with a provider: whether what it is given comes to anything, by the outcomes of its calls.

One call that fails says little: servers restart, and a mail server may put one recipient off. An account is failing
when several calls in a row came to nothing over half a minute, or as soon as its provider says that the account itself
is at fault. It is well again with the first call that its provider decides about. Pure: the times are seconds of any
clock that does not go back.
"""

from typing import Final, assert_never

import msgspec

from clarion.domain.call import Accepted, CallOutcome, Deferred, Misconfigured, NotCalled, Refused, Unknown

FAILURES_MIN: Final = 3
"""In a row. A message that is alone has its third try ten seconds after its first."""

FAILING_AFTER: Final = 30.0
"""Seconds since the first of them: a server that is started again is back by then."""


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What the calls through one account came to since the last one that its provider decided about.

    `failing_since` is when the first of them ended; `at_fault` says that the provider blamed the account.
    """

    failures: int = 0
    failing_since: float | None = None
    at_fault: bool = False
    reason: str | None = None
    called: float | None = None

    def is_failing(self, *, now: float) -> bool:
        """Tell whether a person should look at the account."""
        if self.failing_since is None:
            return False
        return self.at_fault or (self.failures >= FAILURES_MIN and now - self.failing_since >= FAILING_AFTER)


def after(health: Health, outcome: CallOutcome, *, now: float) -> Health:
    """Say how an account stands after one more call."""
    match outcome:
        case Accepted() | Refused():  # a refusal is about the message: the provider answered
            return Health(called=now)
        case Deferred(reason=reason) | Unknown(reason=reason) | Misconfigured(reason=reason):
            return Health(
                failures=health.failures + 1,
                failing_since=now if health.failing_since is None else health.failing_since,
                at_fault=isinstance(outcome, Misconfigured),
                reason=reason,
                called=now,
            )
        case NotCalled():
            return health
        case _:
            assert_never(outcome)

"""When to try again: exponential, with jitter that derives from the key, so that a replayed run waits the same.

Pure: chance has no part in it.
"""

import hashlib
from datetime import timedelta
from typing import Final, assert_never

from clarion.domain.call import Accepted, CallOutcome, Deferred, Misconfigured, NotCalled, Refused, Unknown
from clarion.domain.claim import ClaimedMessage

ATTEMPTS_MAX: Final = 8
"""With the waits below the last attempt comes about an hour after the first: longer than most outages."""

ATTEMPTS_IN_DOUBT_MAX: Final = 20
"""Of a row whose workers are lost in the middle of its calls: perhaps it is the row that ends them."""

NOT_CALLED_MAX: Final = 10
"""A row that was claimed and not called this often will not be called the next time either."""

_WAITS: Final = tuple(timedelta(seconds=seconds) for seconds in (2, 8, 30, 120, 480, 1200, 2400))
"""After the first attempt, the second, and so on; any later one waits as long as the last."""


MISCONFIGURED_FOR: Final = timedelta(minutes=5)
"""A faulty account is asked again only after somebody had time to mend it."""

NOT_CALLED_FOR: Final = timedelta(milliseconds=200)
"""What was missing is fetched at the next step; what still is waits twice as long, and the tenth time is the end."""

_NOT_AT_ALL: Final = timedelta()


def delay_after(message: ClaimedMessage, outcome: CallOutcome) -> timedelta:
    """Return how long a row waits after a call that came to this."""
    match outcome:
        case Accepted() | Refused() | Unknown():
            return _NOT_AT_ALL
        case Deferred(retry_after=retry_after):
            key = f"{message.message_id}:{message.channel}:{message.key_hash}"
            return retry_delay(key=key, attempt=message.attempts, at_least=retry_after)
        case Misconfigured():
            return MISCONFIGURED_FOR
        case NotCalled():
            return NOT_CALLED_FOR * (1 << message.not_called)
        case _:
            assert_never(outcome)


def retry_delay(*, key: str, attempt: int, at_least: timedelta | None = None) -> timedelta:
    """Return how long to wait after an attempt: spread over the second half of its wait, never below what was asked."""
    wait = _WAITS[min(attempt, len(_WAITS)) - 1]
    spread = int.from_bytes(hashlib.sha256(f"{key}:{attempt}".encode()).digest()[:4], "big") / 2**32
    return max(wait * (0.5 + spread / 2), at_least or timedelta())

"""When to try again: exponential, with jitter that derives from the key, so that a replayed run waits the same."""

import hashlib
from datetime import timedelta
from typing import Final, assert_never

from clarion.domain.call import Accepted, CallOutcome, Deferred, Misconfigured, NotCalled, Refused, Unknown
from clarion.domain.claim import ClaimedMessage
from clarion.domain.outgoing import OutgoingStatus

ATTEMPTS_MAX: Final = 8
"""With the waits below the last attempt comes about an hour after the first: longer than most outages."""

ATTEMPTS_UNCERTAIN_MAX: Final = 20
"""Of a row whose workers were lost in the middle of its calls. By then it may well be the row that kills them."""

NOT_CALLED_MAX: Final = 10
"""A row whose call could not be put together this often will not be called the next time either."""

_WAITS: Final = tuple(timedelta(seconds=seconds) for seconds in (2, 8, 30, 120, 480, 1200, 2400))
"""After the first attempt, the second, and so on; any later one waits as long as the last."""


MISCONFIGURED_FOR: Final = timedelta(minutes=5)
"""A faulty account is asked again only after somebody had time to mend it."""

DEFECT_FOR: Final = timedelta(minutes=5)
"""So is a row that a defect of the program keeps from being called."""

THROTTLED_FOR: Final = timedelta(seconds=1)
"""An account that is asked too much is left alone for so long, if its provider names no time."""

THROTTLED_MAX: Final = timedelta(seconds=30)
"""And no longer than this whatever its provider says: a message that is put off for longer waits by itself."""

NOT_CALLED_FOR: Final = timedelta(milliseconds=200)
"""What was missing is fetched at the next step; a row that is not called then either waits twice as long each time."""

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
        case NotCalled(is_defect=True) | NotCalled(is_held=True):
            return DEFECT_FOR
        case NotCalled():
            return NOT_CALLED_FOR * (1 << min(message.not_called, NOT_CALLED_MAX - 1))
        case _:
            assert_never(outcome)


def rest_after(outcome: CallOutcome) -> timedelta | None:
    """Return how long the account is left alone after a call that came to this; None where it is not."""
    match outcome:
        case Misconfigured():
            return MISCONFIGURED_FOR
        case Deferred(throttled=True, retry_after=retry_after):
            return min(retry_after or THROTTLED_FOR, THROTTLED_MAX)
        case _:
            return None


def is_last(message: ClaimedMessage, outcome: CallOutcome) -> bool:
    """Tell whether a deferred message has had all its attempts.

    These are as many as its type allows. Where it does not say, it has more if some were lost with their workers.
    """
    usual = ATTEMPTS_MAX if message.unknown_for is None else ATTEMPTS_UNCERTAIN_MAX
    return isinstance(outcome, Deferred) and message.attempts >= (message.attempts_max or usual)


def not_called(message: ClaimedMessage, *, reason: str) -> NotCalled:
    """Take back the claim of a message whose call cannot be put together; the tenth time is its end."""
    is_last = message.not_called + 1 >= NOT_CALLED_MAX
    return NotCalled(reason=reason, leads_to=OutgoingStatus.FAILED_FINAL if is_last else OutgoingStatus.RETRY_READY)


def retry_delay(*, key: str, attempt: int, at_least: timedelta | None = None) -> timedelta:
    """Return how long to wait after an attempt: spread over the second half of its wait, never below what was asked."""
    wait = _WAITS[min(attempt, len(_WAITS)) - 1]
    spread = int.from_bytes(hashlib.sha256(f"{key}:{attempt}".encode()).digest()[:4], "big") / 2**32
    return max(wait * (0.5 + spread / 2), at_least or timedelta())

"""When to try again: exponential, with jitter that derives from the key, so that a replayed run waits the same.

Pure: chance has no part in it.
"""

import hashlib
from datetime import timedelta
from typing import Final

ATTEMPTS_MAX: Final = 8
"""With the waits below the last attempt comes about an hour after the first: longer than most outages."""

_WAITS: Final = tuple(timedelta(seconds=seconds) for seconds in (2, 8, 30, 120, 480, 1200, 2400))
"""After the first attempt, the second, and so on; any later one waits as long as the last."""


def retry_delay(*, key: str, attempt: int, at_least: timedelta | None = None) -> timedelta:
    """Return how long to wait after an attempt: spread over the second half of its wait, never below what was asked."""
    wait = _WAITS[min(attempt, len(_WAITS)) - 1]
    spread = int.from_bytes(hashlib.sha256(f"{key}:{attempt}".encode()).digest()[:4], "big") / 2**32
    return max(wait * (0.5 + spread / 2), at_least or timedelta())

"""Again on purpose: a deliberate re-run of an occurrence that is completed. Pure.

Each re-run is an occurrence of its own under the first key and a number, which its caller names: whoever asks twice for
the same number asks for one re-run. It is due at once, and is looked at like any other when it is handed over.
"""

from datetime import datetime
from typing import Final

from clarion.domain.automation import AutomationScheduler, AutomationStatus
from clarion.domain.key import retry_key
from clarion.domain.local_time import UTC_NAME
from clarion.domain.occurrence import Timing, occurrence_row
from clarion.domain.stored_occurrence import occurrence_of

RERUNS_MAX: Final = 1000
"""Of one occurrence: whoever needs more has another trouble."""


def key_before(first_key: str, n: int) -> str:
    """Name what must be completed before the n-th re-run: the one before it, or the first run."""
    return first_key if n == 1 else retry_key(scheduler_key=first_key, n=n - 1)


def rerun_row(
    first: AutomationScheduler | None, before: AutomationScheduler | None, *, n: int, now: datetime
) -> AutomationScheduler | None:
    """Make the row of the n-th re-run; None where there is nothing to run again, or it is not over yet."""
    if first is None or before is None or before.status is not AutomationStatus.COMPLETED:
        return None
    what, _ = occurrence_of(first)
    timing = Timing.at_once(now, first.tz_id or UTC_NAME)
    return occurrence_row(what, timing=timing, rerun=n, correlation_id=first.correlation_id)

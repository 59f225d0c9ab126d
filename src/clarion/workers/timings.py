"""The timings of a process's workers: leases, timeouts and how often they look without a wake-up.

The defaults are for production; a test that kills workers shortens them, so that what was left behind comes back soon.
"""

from datetime import timedelta
from typing import Final

import msgspec

from clarion.domain.call_times import CALL_TIMES, CallTimes
from clarion.domain.due import DUE_LEASE
from clarion.domain.entity_event import EVENT_LEASE
from clarion.domain.notification import STAGE_LEASE
from clarion.workers.loop import POLL


class Timings(msgspec.Struct, frozen=True, kw_only=True):
    """How long things may take; `CallTimes` refuses what would not fit together (I-20)."""

    calls: CallTimes = CALL_TIMES
    stage_lease: timedelta = STAGE_LEASE
    event_lease: timedelta = EVENT_LEASE
    due_lease: timedelta = DUE_LEASE
    poll: float = POLL


TIMINGS: Final = Timings()

"""How long the merges of a claim, a provider call, the record of its outcome and the lease over all may take. Pure."""

from datetime import timedelta
from typing import Final

import msgspec

from clarion.errors import InvalidInput

CALL_TIMEOUT: Final = timedelta(seconds=20)
"""Longer than any healthy provider takes; an answer after it is late, and comes as evidence."""

RECORD_TIME_MAX: Final = timedelta(seconds=20)
"""For writing an outcome down: the store may be busy for five seconds, and is asked again after an error."""

LEASE: Final = timedelta(seconds=60)
"""Longer than the merges of a claim, the call's timeout and the slowest record together (I-20)."""

LAST_PAUSE: Final = timedelta(milliseconds=10)
"""After closing the HTTP library's client, for its thread to let go of Python objects. Python aborts a process which
ends before that: 21 of 80 runs of a script that sends one notification and ends."""

MERGE_SHARE: Final = 4
"""A claim's merges have one part in so many of its lease (I-14)."""


class CallTimes(msgspec.Struct, frozen=True, kw_only=True):
    """How long a call, the record of its outcome and the lease over both may take; a quarter of it is for merging."""

    timeout: timedelta = CALL_TIMEOUT
    record_max: timedelta = RECORD_TIME_MAX
    lease: timedelta = LEASE

    def __post_init__(self) -> None:
        """Refuse a lease that could end while its call is still being made or recorded (I-20)."""
        shortest = (self.timeout + self.record_max) * MERGE_SHARE / (MERGE_SHARE - 1)
        if self.lease < shortest:
            raise InvalidInput(
                f"the lease of a call is {self.lease.total_seconds():g} s",
                field="lease",
                hint=f"make it at least {shortest.total_seconds():g} s: a quarter is for merging, and the rest for the "
                "call and its record",
            )

    @property
    def merge_max(self) -> timedelta:
        """How long after its claim was asked for a row may be merged."""
        return self.lease / MERGE_SHARE

    @property
    def begins_within(self) -> timedelta:
        """How long after its claim was asked for a call may begin, so that it is recorded before its lease ends."""
        return self.lease - self.timeout - self.record_max


CALL_TIMES: Final = CallTimes()

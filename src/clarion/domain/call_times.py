"""How long a provider call, the record of its outcome and the lease over both may take. Pure."""

from datetime import timedelta
from typing import Final

import msgspec

from clarion.errors import InvalidInput

CALL_TIMEOUT: Final = timedelta(seconds=20)
"""Longer than any healthy provider takes; an answer after it is late, and comes as evidence."""

RECORD_TIME_MAX: Final = timedelta(seconds=20)
"""For writing an outcome down: the store may be busy for five seconds, and is asked again after an error."""

LEASE: Final = timedelta(seconds=60)
"""Longer than the call's timeout and the slowest record together (I-20)."""


class CallTimes(msgspec.Struct, frozen=True, kw_only=True):
    """How long a call, the record of its outcome and the lease over both may take."""

    timeout: timedelta = CALL_TIMEOUT
    record_max: timedelta = RECORD_TIME_MAX
    lease: timedelta = LEASE

    def __post_init__(self) -> None:
        """Refuse a lease that could end while its call is still being made or recorded (I-20)."""
        if self.lease <= self.timeout + self.record_max:
            raise InvalidInput(
                f"the lease of a call is {self.lease.total_seconds():g} s",
                field="lease",
                hint=f"make it longer than {(self.timeout + self.record_max).total_seconds():g} s, which the call and "
                "its record may take",
            )


CALL_TIMES: Final = CallTimes()

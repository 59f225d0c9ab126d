"""The one place that asks the machine for the time, for chance and for new ids.

Everything else takes them as arguments or derives them from keys, so that a seed replays a run; a lint rule forbids
these calls everywhere but here. Reads the host's clocks and the kernel's randomness; writes nothing.
"""

import os
import time
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Final
from uuid import UUID, uuid4

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")

# Linux has a clock that goes on while the machine is suspended. Without it, a lease would outlast a night's sleep.
_COUNTS_SUSPEND = getattr(time, "CLOCK_BOOTTIME", None)


class HostClock:
    """The clocks of this machine."""

    def now(self) -> datetime:
        """Return the wall clock in UTC; it jumps when the host's clock is set."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds since some point, which never go back."""
        return time.monotonic() if _COUNTS_SUSPEND is None else time.clock_gettime(_COUNTS_SUSPEND)

    def boot(self) -> str:
        """Name this run of the machine by the random id that Linux gives to each; elsewhere nothing is known."""
        return _boot()


class HostIds:
    """Random guids."""

    def new_guid(self) -> UUID:
        """Mint a random guid."""
        return uuid4()


def random_bytes(length: int) -> bytes:
    """Return unpredictable bytes from the kernel, for keys and nonces."""
    return os.urandom(length)


@cache
def _boot() -> str:
    """Read the id of this run of the machine, once; only the clock that counts suspension is known to go with it."""
    try:
        return "" if _COUNTS_SUSPEND is None else _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""

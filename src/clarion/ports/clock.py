"""Time and new ids, as the core may ask for them.

Everything that decides takes `now` as an argument or derives its jitter and ids from keys; these ports are for the
places where such an argument comes from. The real ones live in `adapters.host`, those that a test sets by hand in
`testing.clock`. Leases and due times are judged by the store's clock, which is not this one.
"""

from datetime import datetime
from typing import Protocol
from uuid import UUID


class Clock(Protocol):
    """What time it is."""

    def now(self) -> datetime:
        """Return the present instant as an aware UTC datetime; it may jump when the host's clock is set."""
        ...

    def monotonic(self) -> float:
        """Return seconds since an arbitrary point; it never goes back, so only differences mean something."""
        ...

    def boot(self) -> str:
        """Name the run of the machine that `monotonic` counts: equal for all its processes, empty where unknown."""
        ...


class Ids(Protocol):
    """Ids that derive from nothing."""

    def new_guid(self) -> UUID:
        """Mint a guid for a manual send without an idempotency key, the one record whose key is not derived."""
        ...

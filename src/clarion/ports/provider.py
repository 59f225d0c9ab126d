"""Providers: whoever carries a message the last mile.

An adapter makes one call for one message and says what came of it; it never retries, never waits for a slot and never
raises what a vendor raised. Credentials are in memory before the first call.
"""

from typing import Protocol

from clarion.domain.call import Call, CallOutcome, Replay


class Provider(Protocol):
    """One account with one provider."""

    @property
    def replay(self) -> Replay:
        """What asking again after an unknown outcome would do."""
        ...

    async def send(self, call: Call) -> CallOutcome:
        """Make the call once. Whatever may have been accepted is `Unknown`, a vendor's error is never raised."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...

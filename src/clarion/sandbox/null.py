"""`null://`: accepts everything at once and keeps nothing, for measuring what the rest costs."""

from clarion.domain.call import Accepted, Call, CallOutcome, Replay
from clarion.ports.clock import Clock
from clarion.ports.provider import EVERY_CHANNEL


class NullProvider:
    """An account that does nothing."""

    channels = EVERY_CHANNEL

    @property
    def replay(self) -> Replay:
        """It cannot tell one call from another."""
        return Replay()

    async def send(self, call: Call) -> CallOutcome:
        """Accept."""
        return Accepted()

    async def close(self) -> None:
        """Do nothing: there is nothing to let go of."""


async def open_provider(url: str, *, clock: Clock) -> NullProvider:  # noqa: ARG001  (every provider is opened so)
    """Make one; there is nothing to configure."""
    return NullProvider()

"""What an entry point of an adapter offers: how it is opened, and what it may offer besides.

`bootstrap` finds them by the scheme of a URL and calls them; what they open is held to the other ports.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

from clarion.ports.blobs import Blobs
from clarion.ports.clock import Clock
from clarion.ports.provider import Provider
from clarion.ports.renderer import Bundle, Renderer
from clarion.ports.store import ClockReading, Migrated, Store
from clarion.ports.vault import Randomness, Vault

BlobOpener = Callable[[str], Blobs]
"""What an entry point of `clarion.blobs` offers: it opens the blob store at a URL."""

Inspector = Callable[[str], Awaitable[None]]
"""What an entry point of `clarion.stores` may offer as `inspect`: it looks through the whole store at a URL for damage,
and raises where there is any."""

Warner = Callable[[str], Awaitable[tuple[str, ...]]]
"""What an entry point of `clarion.stores` may offer as `warn`: it says what can make a store lose commits."""

ClockCommand = Callable[..., Awaitable[ClockReading]]
"""What an entry point of `clarion.stores` may offer as `read_clock(url, *, clock)` and, where its time can be set, as
`set_clock(url, *, clock, actor, reason)`: both work where the store refuses the machine's clock."""


class StoreEngine(Protocol):
    """What an entry point of `clarion.stores` offers."""

    async def open_store(self, url: str, *, clock: Clock) -> Store:
        """Open a migrated store."""
        ...

    async def migrate(self, url: str) -> Migrated:
        """Bring the store's schema up to date; safe when several processes do it at once."""
        ...


class RemoteWakeUp(Protocol):
    """Wakes the workers of other processes on the same store."""

    def wake(self, topic: str) -> None:
        """Wake them for a topic, soon and without waiting."""
        ...

    async def close(self) -> None:
        """Send what is waiting, and hear nothing more."""
        ...


class WakeUpOpener(Protocol):
    """What an entry point of `clarion.stores` may offer as `open_wake_up`, where its engine carries wake-ups."""

    async def __call__(self, url: str, *, hear: Callable[[str], None]) -> RemoteWakeUp:
        """Connect; `hear` is called with the topic of every wake-up of another process."""
        ...


class VaultKind(Protocol):
    """What an entry point of `clarion.vaults` offers."""

    def open_vault(self, url: str, *, randomness: Randomness) -> Vault:
        """Open a vault that was created."""
        ...

    def create_vault(self, url: str, *, randomness: Randomness) -> None:
        """Make the vault of a new installation unless it exists."""
        ...


class RendererOpener(Protocol):
    """What an entry point of `clarion.renderers` offers."""

    def __call__(self, *, apart: bool, quarantined: Callable[[str, Bundle], None]) -> Renderer:
        """Make a renderer; one that merges `apart` from this process is closed in the end (`Closing`)."""
        ...


@runtime_checkable
class Closing(Protocol):
    """A renderer that has something to end."""

    async def close(self) -> None:
        """End it."""
        ...


class ProviderOpener(Protocol):
    """What an entry point of `clarion.providers` offers."""

    async def __call__(self, url: str, *, clock: Clock) -> Provider:
        """Open one account."""
        ...

"""The ports of a world without weather, for setting it up."""

from collections.abc import Callable, Sequence

from clarion.domain.identity import Channel
from clarion.ports.blobs import Blobs
from clarion.ports.provider import Provider
from clarion.ports.store import Store
from clarion.ports.vault import Vault
from clarion.producers.plugin import Plugin
from clarion.testing.simulation.loop import Process, SimulationLoop


class Calm:
    """What lies behind the weather."""

    def __init__(
        self,
        *,
        loop: SimulationLoop,
        store: Store,
        vault: Vault,
        blobs: Blobs,
        provider: Callable[[Channel], Provider],
    ) -> None:
        """Use these as they are."""
        self.loop = loop
        self._store = store
        self._vault = vault
        self._blobs = blobs
        self._provider = provider

    def store(self) -> Store:
        """Open the store itself."""
        return self._store

    def vault(self) -> Vault:
        """Open the vault itself."""
        return self._vault

    def blobs(self) -> Blobs:
        """Open the blobs themselves."""
        return self._blobs

    def provider(self, channel: Channel) -> Provider:
        """Open a channel's account."""
        return self._provider(channel)

    def plugins(self) -> Sequence[Plugin]:
        """Open none: nobody asks about sources while the world is set up."""
        return ()

    def poisoned(self, process: Process) -> None:
        """Let nothing vanish while the world is set up."""

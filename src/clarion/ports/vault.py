"""The keeper of the master key: it makes data keys and nonces, and wraps keys so that they can be stored.

The master key never leaves the vault. What the database holds are wrapped keys; what is sealed with the unwrapped ones
is `domain.seal`'s work. A vault stores nothing itself.
"""

from collections.abc import Callable
from typing import Protocol

Randomness = Callable[[int], bytes]
"""Gives as many unpredictable bytes as asked for; the real one is `adapters.host.random_bytes`."""


class Vault(Protocol):
    """Wraps keys under a master key that it alone knows."""

    def nonce(self) -> bytes:
        """Return 12 bytes that this vault has not returned before."""
        ...

    def new_key(self) -> bytes:
        """Return 32 unpredictable bytes, to become a key."""
        ...

    async def wrap(self, key: bytes, *, context: bytes) -> bytes:
        """Encrypt a key under the current master key, bound to a context that says whose key it is and for what."""
        ...

    async def unwrap(self, wrapped: bytes, *, context: bytes) -> bytes:
        """Return the key, or raise SealBroken where the context, the master key or a byte differs."""
        ...

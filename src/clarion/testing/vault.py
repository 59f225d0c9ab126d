"""A vault whose keys and nonces follow from a seed, so that a run can be replayed byte for byte.

The encryption is the local vault's own. Only chance is replaced: every draw hashes the seed with a counter, so no nonce
comes twice from one vault; two vaults of one seed give the same, which is what replaying means and why this is for
tests only. Reads and writes nothing.
"""

import hashlib

from clarion.adapters.vaults.local import LocalVault
from clarion.domain.seal import KEY_BYTES


class SeededVault:
    """A local vault without chance."""

    def __init__(self, seed: str = "clarion") -> None:
        """Derive the master key and all that follows from a seed."""
        self._seed = seed
        self._drawn = 0
        self._vault = LocalVault(self._draw(KEY_BYTES), randomness=self._draw)

    def __repr__(self) -> str:
        """Show the seed, which replays the run."""
        return f"SeededVault({self._seed!r})"

    def nonce(self) -> bytes:
        """Return the next 12 bytes of the sequence."""
        return self._vault.nonce()

    def new_key(self) -> bytes:
        """Return the next 32 bytes of the sequence."""
        return self._vault.new_key()

    async def wrap(self, key: bytes, *, context: bytes) -> bytes:
        """Encrypt a key under the seed's master key, bound to a context."""
        return await self._vault.wrap(key, context=context)

    async def unwrap(self, wrapped: bytes, *, context: bytes) -> bytes:
        """Return the key, or raise SealBroken where the context, the seed or a byte differs."""
        return await self._vault.unwrap(wrapped, context=context)

    def _draw(self, length: int) -> bytes:
        """Hash the seed and the number of this draw to as many bytes as asked for."""
        self._drawn += 1
        return hashlib.shake_256(f"vault:{self._seed}:{self._drawn}".encode()).digest(length)

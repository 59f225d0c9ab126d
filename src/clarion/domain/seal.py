"""Encryption of single values at rest, bound to the place where they are stored.

A sealed value is `format (1 byte) | key serial (4) | nonce (12) | AES-256-GCM ciphertext and tag`. The header and the
framed place (tenant, table, column, row key) are authenticated with it, so a ciphertext that is moved to another row,
column, table or tenant does not open, and neither does one whose header was changed to name another key.

Pure: keys and nonces are arguments, made and wrapped by the vault (`ports.vault`); nothing is read or written here.
Blind indexes and keyed hashes, which use the other keys of a tenant, live in `domain.hashing`.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from clarion.domain.derived_id import recipient_id_hash
from clarion.domain.hashing import canonical_json
from clarion.domain.identity import Identity
from clarion.errors import BrokenInvariant, SealBroken

KEY_BYTES: Final = 32
"""AES-256, and the output length of SHA-256 for the HMAC keys."""

NONCE_BYTES: Final = 12
"""The one length that GCM uses as it is; any other is hashed first."""

SERIAL_MAX: Final = 2**32 - 1
"""A serial is stored in 4 bytes. One key may seal 2**32 values under random nonces (NIST SP 800-38D, 8.3)."""

_FORMAT: Final = 1
_SERIAL_BYTES: Final = 4
_HEADER_BYTES: Final = 1 + _SERIAL_BYTES + NONCE_BYTES
_TAG_BYTES: Final = 16


def seal(
    key: bytes,
    key_serial: int,
    nonce: bytes,
    plaintext: bytes,
    *,
    tenant_id: str,
    table: str,
    column: str,
    row_key: str,
) -> bytes:
    """Encrypt a value for one place; the nonce must never have been used with this key before."""
    if not 1 <= key_serial <= SERIAL_MAX:
        raise BrokenInvariant(f"a key serial must lie between 1 and {SERIAL_MAX}, got {key_serial}")
    if len(nonce) != NONCE_BYTES:
        raise BrokenInvariant(f"a nonce must have {NONCE_BYTES} bytes, got {len(nonce)}")
    header = bytes([_FORMAT]) + key_serial.to_bytes(_SERIAL_BYTES, "big") + nonce
    place = _place(tenant_id=tenant_id, table=table, column=column, row_key=row_key)
    return header + _cipher(key).encrypt(nonce, plaintext, header + place)


def unseal(
    key: bytes,
    sealed: bytes,
    *,
    tenant_id: str,
    table: str,
    column: str,
    row_key: str,
) -> bytes:
    """Decrypt a value found in a place, or raise SealBroken if it was not sealed there with this key."""
    serial = key_serial_of(sealed)
    header = sealed[:_HEADER_BYTES]
    place = _place(tenant_id=tenant_id, table=table, column=column, row_key=row_key)
    try:
        return _cipher(key).decrypt(header[-NONCE_BYTES:], sealed[_HEADER_BYTES:], header + place)
    except InvalidTag:
        # `from None`: InvalidTag says nothing more, and a longer traceback would only show more of the key's frames.
        raise SealBroken(
            f"the value in {table}.{column} (key serial {serial}) does not open with this tenant's key",
            hint="it was moved or changed, or the master key is not the one it was written under: restore the row "
            "or the key file from backup",
        ) from None


def key_serial_of(sealed: bytes) -> int:
    """Return the serial of the data key that a value was sealed with, or raise SealBroken if it is no sealed value."""
    if len(sealed) < _HEADER_BYTES + _TAG_BYTES:
        raise SealBroken(
            f"a sealed value has at least {_HEADER_BYTES + _TAG_BYTES} bytes, this one has {len(sealed)}",
            hint="it was cut off or never sealed: restore the row from backup",
        )
    if sealed[0] != _FORMAT:
        raise SealBroken(
            f"this program opens sealed values of format {_FORMAT}, this one says {sealed[0]}",
            hint="run the newer program that wrote it, or restore the row from backup",
        )
    return int.from_bytes(sealed[1 : 1 + _SERIAL_BYTES], "big")


class Purpose(StrEnum):
    """What a key of a tenant is for; a key serves one purpose only."""

    IDENTITY = "identity"
    """HMACs of identities and keyed payload hashes: re-wrapped when the master key changes, never rotated."""

    INDEX = "index"
    """Blind indexes, by which a destination is found without being opened."""

    DATA = "data"
    """Sealing; several may be known at once, told apart by serial."""


class TenantKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The unwrapped keys of one tenant; it lives in memory only and shows none of them."""

    tenant_id: str
    identity_key: bytes
    index_key: bytes
    data_keys: Mapping[int, bytes]

    def __post_init__(self) -> None:
        """Refuse keys of the wrong length, a missing data key and a key that serves two purposes."""
        if not self.data_keys:
            raise BrokenInvariant(f"tenant {self.tenant_id!r} has no data key")
        if not all(1 <= serial <= SERIAL_MAX for serial in self.data_keys):
            raise BrokenInvariant(f"tenant {self.tenant_id!r} has a data key serial outside 1 to {SERIAL_MAX}")
        keys = [self.identity_key, self.index_key, *self.data_keys.values()]
        for key in keys:
            _check_key(key)
        if len(set(keys)) != len(keys):
            raise BrokenInvariant(f"tenant {self.tenant_id!r} has one key for two purposes or serials")
        # A copy that cannot be written: a frozen value must not change through the dict it was made from.
        msgspec.structs.force_setattr(self, "data_keys", MappingProxyType(dict(self.data_keys)))

    @property
    def current_serial(self) -> int:
        """Return the serial of the data key that new values are sealed with: the highest."""
        return max(self.data_keys)

    def hash_of(self, identity: Identity) -> str:
        """Return the hash that stands for a recipient of this tenant."""
        return recipient_id_hash(identity_key=self.identity_key, tenant_id=self.tenant_id, identity=identity)

    def data_key(self, serial: int) -> bytes:
        """Return the data key of a serial, or raise SealBroken if this tenant has none such."""
        key = self.data_keys.get(serial)
        if key is None:
            raise SealBroken(
                f"tenant {self.tenant_id!r} has no data key with serial {serial}",
                hint="restore the tenant's wrapped keys from the backup that holds the sealed row",
            )
        return key

    def __repr__(self) -> str:
        """Show whose keys these are and which serials there are, never a key."""
        return f"TenantKeys(tenant_id={self.tenant_id!r}, serials={sorted(self.data_keys)})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        """Show the same to rich, which would otherwise list every field in a traceback."""
        return [("tenant_id", self.tenant_id), ("serials", sorted(self.data_keys))]


def wrap_context(*, tenant_id: str, purpose: Purpose, serial: int) -> bytes:
    """Return what a tenant's key is bound to when the vault wraps it, so that no wrapped key passes for another."""
    return canonical_json(["tenant-key", tenant_id, purpose.value, serial])


def _place(*, tenant_id: str, table: str, column: str, row_key: str) -> bytes:
    """Frame the place as a JSON array, so that no character in one part can be taken for a boundary."""
    return canonical_json(["seal", tenant_id, table, column, row_key])


@lru_cache(maxsize=1000)  # making a cipher of a key takes longer than opening a destination with it
def _cipher(key: bytes) -> AESGCM:
    """Return the cipher of a key."""
    _check_key(key)
    return AESGCM(key)


def _check_key(key: bytes) -> None:
    """Refuse anything but a 256-bit key; AESGCM would quietly take a shorter one for AES-128."""
    if len(key) != KEY_BYTES:
        raise BrokenInvariant(f"a key must have {KEY_BYTES} bytes, got {len(key)}")

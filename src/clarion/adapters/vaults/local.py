"""A vault whose master key lies in a file of this machine.

A wrapped key is `format (1 byte) | master key id (8) | nonce (12) | AES-256-GCM ciphertext and tag`; header and context
are authenticated with it. The id lets several master keys be known at once: new keys are wrapped under the current
one, older ones still open what they wrapped, until all of it has been wrapped again.

Reads the key file, and writes it once, when it does not exist. Losing that file loses every sealed value: it belongs
in the backup, apart from the database.
"""

import hashlib
import hmac
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from clarion.adapters.durable import create_durably
from clarion.domain.seal import KEY_BYTES, NONCE_BYTES
from clarion.errors import BadConfiguration, BrokenInvariant, SealBroken
from clarion.ports.vault import Randomness

_FORMAT: Final = 1
_ID_BYTES: Final = 8  # tells a handful of master keys apart; it authenticates nothing
_HEADER_BYTES: Final = 1 + _ID_BYTES + NONCE_BYTES
_WRAPPED_BYTES: Final = _HEADER_BYTES + KEY_BYTES + 16  # the last are GCM's tag


class LocalVault:
    """Wraps keys under a master key held in memory."""

    def __init__(self, master_key: bytes, *, randomness: Randomness, older_keys: Sequence[bytes] = ()) -> None:
        """Take the current master key, those that may still be needed to unwrap, and where chance comes from."""
        for key in (master_key, *older_keys):
            if len(key) != KEY_BYTES:
                raise BadConfiguration(
                    f"a master key has {len(key)} bytes", hint=f"give one of exactly {KEY_BYTES} bytes, as generated"
                )
        self._randomness = randomness
        self._current_id = _key_id(master_key)
        self._ciphers = {_key_id(key): AESGCM(key) for key in (master_key, *older_keys)}

    def __repr__(self) -> str:
        """Show which master key is current, by its id."""
        return f"LocalVault(current={self._current_id.hex()}, known={len(self._ciphers)})"

    def nonce(self) -> bytes:
        """Return 12 random bytes."""
        return self._randomness(NONCE_BYTES)

    def new_key(self) -> bytes:
        """Return 32 random bytes."""
        return self._randomness(KEY_BYTES)

    async def wrap(self, key: bytes, *, context: bytes) -> bytes:
        """Encrypt a key under the current master key, bound to a context."""
        if len(key) != KEY_BYTES:
            raise BrokenInvariant(f"a key to wrap must have {KEY_BYTES} bytes, got {len(key)}")
        nonce = self.nonce()
        header = bytes([_FORMAT]) + self._current_id + nonce
        return header + self._ciphers[self._current_id].encrypt(nonce, key, header + context)

    async def unwrap(self, wrapped: bytes, *, context: bytes) -> bytes:
        """Return the key, or raise SealBroken where the context, the master key or a byte differs."""
        header, sealed = wrapped[:_HEADER_BYTES], wrapped[_HEADER_BYTES:]
        if len(wrapped) != _WRAPPED_BYTES or header[0] != _FORMAT:
            raise SealBroken(
                "this is not a key wrapped by a local vault of this program",
                hint="check that the vault setting is the one the key was wrapped under, or restore it from backup",
            )
        master_id = header[1 : 1 + _ID_BYTES]
        cipher = self._ciphers.get(master_id)
        if cipher is None:
            raise SealBroken(
                f"the key was wrapped under master key {master_id.hex()}, which this vault does not have",
                hint="add that key's file to the vault's URL as ?older=/path, or restore it from backup",
            )
        try:
            return cipher.decrypt(header[-NONCE_BYTES:], sealed, header + context)
        except InvalidTag:
            raise SealBroken(
                "the wrapped key was changed, or belongs to another tenant or purpose",
                hint="restore the tenant's wrapped keys from backup",
            ) from None


def open_vault(url: str, *, randomness: Randomness) -> LocalVault:
    """Open the vault whose master key lies in the file that a `file:` URL names.

    `?older=/path` names the file of a master key that still opens what it wrapped; it may stand several times.
    """
    path, older = _files(url)
    return LocalVault(_read(path), randomness=randomness, older_keys=[_read(file) for file in older])


def create_vault(url: str, *, randomness: Randomness) -> None:
    """Make the master key's file, for a new installation, unless it exists; of several processes at once, one wins."""
    path, _ = _files(url)
    try:
        if not path.exists():
            create_durably(path, randomness(KEY_BYTES).hex().encode() + b"\n", root=path.parent)
    except OSError as error:
        raise _unusable(path, error) from error


def _files(url: str) -> tuple[Path, list[Path]]:
    """Take a vault's URL apart."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    paths = [unquote(parts.path), *query.pop("older", [])]
    if parts.scheme != "file" or parts.netloc or query or not all(path.startswith("/") for path in paths):
        raise BadConfiguration(
            "the vault URL does not name an absolute file of this machine",
            hint="write file: and three slashes, as in file:///var/lib/clarion/master.key",
        )
    return Path(paths[0]), [Path(path) for path in paths[1:]]


def _read(path: Path) -> bytes:
    """Read a master key from its file; only its owner may be able to read it.

    The file holds the key as 64 hexadecimal digits on a line, so that it can be copied by hand into a safe place.
    """
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            # A little more than a key: enough to see that something else follows, whatever the file's size.
            text = file.read(4 * KEY_BYTES)
    except FileNotFoundError:
        raise BadConfiguration(
            f"there is no master key at {path}",
            hint="restore it from backup; for a new installation, `clarion migrate` makes it",
        ) from None
    except OSError as error:
        raise _unusable(path, error) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise BadConfiguration(f"the master key file {path} is open to other users", hint=f"run: chmod 600 {path}")
    return _parse(text, path=path)


def _unusable(path: Path, error: OSError) -> BadConfiguration:
    return BadConfiguration(
        f"the master key file {path} cannot be used ({error.strerror})",
        hint="name a file that this user can read, in a folder that exists and is writable the first time",
    )


def _parse(text: bytes, *, path: Path) -> bytes:
    """Read 64 hexadecimal digits, without ever quoting them."""
    try:
        key = bytes.fromhex(text.strip().decode("ascii"))
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise BadConfiguration(
            f"the master key file {path} does not hold a key",
            hint=f"restore it from backup: it is one line of {2 * KEY_BYTES} hexadecimal digits",
        )
    return key


def _key_id(key: bytes) -> bytes:
    """Name a master key by a keyed hash, which says nothing about it."""
    return hmac.digest(key, b"clarion master key id", hashlib.sha256)[:_ID_BYTES]

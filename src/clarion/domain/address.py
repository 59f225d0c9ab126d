"""A destination as it was: immutable, sealed at rest, found by blind index.

An edit of a person's address makes a new serial; rows already made keep referring to the version they were made with.
Key hash, index and ciphertext are computed once here, so expanding a campaign costs no cryptography per row.
The sealing itself is in `seal`, the hashes are in `key`.
"""

from typing import ClassVar

import msgspec

from clarion.domain.identity import Channel


class AddressVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One destination of one recipient on one channel; several may be current (push tokens)."""

    GIVEN: ClassVar[tuple[str, ...]] = ("key_hash", "destination_index")

    recipient_id_hash: str
    channel: Channel
    serial: int
    key_hash: str
    destination_index: str
    ciphertext: bytes
    correlation_id: str
    id: int | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What is unique within the tenant."""
        return (self.recipient_id_hash, self.channel, str(self.serial))

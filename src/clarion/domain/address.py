"""A destination as it was: immutable, sealed at rest, found by blind index.

An edit of a person's address makes a new version; rows already made keep referring to the one they were made with. Key
hash, index and ciphertext are computed once here, so expanding a campaign costs no cryptography per row.
The sealing itself is in `seal`, the hashes are in `key`.
"""

from typing import ClassVar

import msgspec

from clarion.domain.identity import Channel


class AddressVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One destination of one recipient on one channel; several may be current (push tokens).

    The hash of the destination is part of its key: the same destination is the same version, however often it comes.
    The store counts the serial, so that two who edit an address at once get two. What a caller writes there is not
    read.
    """

    GIVEN: ClassVar[tuple[str, ...]] = ()

    recipient_id_hash: str
    channel: Channel
    key_hash: str
    destination_index: str
    ciphertext: bytes
    correlation_id: str
    serial: int = 1
    id: int | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What is unique within the tenant."""
        return (self.recipient_id_hash, self.channel, self.key_hash)

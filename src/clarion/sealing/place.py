"""What is private, and where it may be opened: each sealed value's place, written once for sealing and opening.

A value opens only at the place it was sealed for, so the two sides must never drift apart: they stand together here.
Pure: keys and nonces are arguments.
"""

from uuid import UUID

import msgspec

from clarion.domain.identity import Channel
from clarion.domain.seal import TenantKeys, key_serial_of, seal, unseal
from clarion.errors import SealBroken


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a row, or a blob at its path."""

    table: str
    column: str
    row_key: str

    def seal(self, keys: TenantKeys, plaintext: bytes, *, nonce: bytes) -> bytes:
        """Seal a value for this place under the tenant's current data key."""
        serial = keys.current_serial
        return seal(
            keys.data_key(serial),
            serial,
            nonce,
            plaintext,
            tenant_id=keys.tenant_id,
            table=self.table,
            column=self.column,
            row_key=self.row_key,
        )

    def open(self, keys: TenantKeys, sealed: bytes) -> bytes:
        """Open what was sealed for this place, or raise SealBroken."""
        return unseal(
            keys.data_key(key_serial_of(sealed)),
            sealed,
            tenant_id=keys.tenant_id,
            table=self.table,
            column=self.column,
            row_key=self.row_key,
        )


def payload_place(job_guid: UUID) -> Place:
    """Place a job's recipients and merge data, by the job's guid: its row key may become that of an earlier caller."""
    return Place(table="notification_job", column="payload", row_key=str(job_guid))


def destination_place(*, recipient_id_hash: str, channel: Channel, key_hash: str) -> Place:
    """Place the destination of an address version, by its hash: the store counts the serial, unknown before."""
    return Place(table="address_version", column="ciphertext", row_key=f"{recipient_id_hash}:{channel}:{key_hash}")


def numbered_destination_place(*, recipient_id_hash: str, channel: Channel, serial: int) -> Place:
    """Place the destination of an address version whose serial was known when it was sealed: its owner gave it."""
    return Place(table="address_version", column="ciphertext", row_key=f"{recipient_id_hash}:{channel}:{serial}")


def open_destination(
    keys: TenantKeys, sealed: bytes, *, recipient_id_hash: str, channel: Channel, key_hash: str, serial: int
) -> str:
    """Open the destination of an address version, whoever counted its serial."""
    place = destination_place(recipient_id_hash=recipient_id_hash, channel=channel, key_hash=key_hash)
    try:
        return place.open(keys, sealed).decode()
    except SealBroken:
        place = numbered_destination_place(recipient_id_hash=recipient_id_hash, channel=channel, serial=serial)
        return place.open(keys, sealed).decode()


def profile_place(*, recipient_id_hash: str, profile_hash: str) -> Place:
    """Place a version of a profile, by its hash: the store counts its serial, which nobody knows before."""
    return Place(table="person_version", column="profile", row_key=f"{recipient_id_hash}:{profile_hash}")


def open_profile(keys: TenantKeys, sealed: bytes, *, recipient_id_hash: str, profile_hash: str) -> dict[str, object]:
    """Open a version of a profile, as templates read it."""
    place = profile_place(recipient_id_hash=recipient_id_hash, profile_hash=profile_hash)
    profile: dict[str, object] = msgspec.json.decode(place.open(keys, sealed))
    return profile


def inbox_place(*, partition_key: str, row_key: str) -> Place:
    """Place the content of an inbox row."""
    return Place(table="user_message", column="content", row_key=f"{partition_key}|{row_key}")


def source_place(*, source_type: str, source: str, content_hash: str) -> Place:
    """Place what an application said of a source, by its hash: the store counts its versions."""
    return Place(table="source", column="content", row_key=f"{source_type}:{source}:{content_hash}")


def event_place(event_guid: UUID) -> Place:
    """Place what an event tells beside its type."""
    return Place(table="entity_event", column="data", row_key=str(event_guid))


def blob_place(path: str) -> Place:
    """Place the content of a blob."""
    return Place(table="blob", column="content", row_key=path)

"""From a claimed row to its call: opens what is sealed and names the call to its provider. Pure: no byte leaves."""

import msgspec

from clarion.domain import key
from clarion.domain.call import Call
from clarion.domain.claim import ClaimedMessage
from clarion.domain.content import Content
from clarion.domain.seal import TenantKeys
from clarion.sealing.place import destination_place, payload_place


def merge_data(keys: TenantKeys, message: ClaimedMessage) -> dict[str, object]:
    """Open the merge data of a message's job."""
    if message.payload is None:
        return {}
    opened = payload_place(message.job_guid).open(keys, message.payload)
    data: dict[str, object] = msgspec.json.decode(opened)["data"]
    return data


def call_of(keys: TenantKeys, message: ClaimedMessage, content: Content) -> Call:
    """Put the call of a message together."""
    place = destination_place(
        recipient_id_hash=message.recipient_id_hash, channel=message.channel, serial=message.address_serial
    )
    return Call(
        idempotency_key=key.idempotency_key(
            message_id=message.message_id,
            channel=message.channel,
            recipient_key_hash=message.key_hash,
            attempt_no=message.attempt_no,
        ),
        message_id=message.message_id,
        tenant_id=message.tenant_id,
        channel=message.channel,
        destination=place.open(keys, message.ciphertext).decode(),
        content=content,
        attempt=message.attempts,
        correlation_id=message.correlation_id,
        traceparent=message.traceparent,
    )

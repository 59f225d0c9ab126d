"""Ids that are computed from other ids: uuid5 in one namespace, and 16-byte hashes.

Everything is framed alike: the canonical JSON array `[kind, tenant, parts…]`, so that no two kinds, tenants or lists of
parts can run together. What stands for a person is an HMAC under a key of the tenant: a plain hash of a phone number
can be reversed by trying them all. A changed id is a breaking change, as a changed key is (see `key`).

Reads and writes nothing. The secrets come from the vault, as arguments.
"""

import hashlib
import hmac
from collections.abc import Sequence
from uuid import UUID, uuid5

from clarion.domain import part
from clarion.domain.hashing import canonical_json, require_secret
from clarion.domain.identity import ADDRESS_MAX, Channel, Identity, Lane, require_tenant

NAMESPACE = UUID("b5a6b716-4a9b-423a-8ef5-f194249305ca")  # chosen once, at random, for Clarion; it can never change

_HASH_BYTES = 16  # 2**64 recipients until two are likely to share one, and half the room of a whole SHA-256 in each key


def job_guid(*, tenant_id: str, operation: str, idempotency_key: str) -> UUID:
    """Name the job that a caller's idempotency key makes."""
    return _guid("job", tenant_id, *_request(operation=operation, idempotency_key=idempotency_key))


def row_guid(*, tenant_id: str, row_key: str) -> UUID:
    """Name, to the outside, a job that no caller's idempotency key made."""
    return _guid("row", tenant_id, part.made_key(row_key, field="row_key"))


def source_entity(*, tenant_id: str, source_type: str, source: str) -> UUID:
    """Name the entity of a source whose application gave it no guid."""
    return _guid("source", tenant_id, *_source(source_type, source))


def source_event(*, tenant_id: str, source_type: str, source: str, row_version: int) -> UUID:
    """Name the event that tells of one change of a source."""
    part.whole(row_version, field="row_version", least=1)
    return _guid("event", tenant_id, *_source(source_type, source), row_version)


def told_event(*, tenant_id: str, key: str) -> UUID:
    """Name the event that an application tells under a key of its own."""
    return _guid("told", tenant_id, part.plain(key, field="key", size_max=part.KEY_MAX))


def report_job_guid(*, tenant_id: str, scheduler_key: str) -> UUID:
    """Name the messaging job of one run of a report."""
    return _guid("report", tenant_id, part.made_key(scheduler_key, field="scheduler_key"))


def sent_campaign_guid(*, tenant_id: str, draft_guid: UUID) -> UUID:
    """Name the campaign that sending a draft makes, so that sending twice makes one."""
    return _guid("sent", tenant_id, part.guid(draft_guid, field="draft_guid"))


def wave_guid(*, tenant_id: str, campaign_guid: UUID, n: int) -> UUID:
    """Name the messaging job of a campaign's n-th resend."""
    part.whole(n, field="n", least=1)
    return _guid("wave", tenant_id, part.guid(campaign_guid, field="campaign_guid"), n)


def message_id(*, tenant_id: str, pk: str, recipient_id_hash: str) -> UUID:
    """Name what one recipient gets from one parent; `pk` is the partition key of its outgoing rows."""
    parent = part.made_key(pk, field="pk")
    return _guid("message", tenant_id, parent, part.hash32(recipient_id_hash, field="recipient_id_hash"))


def support_case_id(*, tenant_id: str, kind: str, parts: Sequence[str | UUID | int]) -> UUID:
    """Name a support case by its cause, so that the same cause seen again is the same case."""
    cause = [_cause(value, field=f"parts[{place}]") for place, value in enumerate(parts)]
    return _guid("support", tenant_id, part.plain(kind, field="kind", size_max=part.KEY_MAX), *cause)


def recipient_id_hash(*, identity_key: bytes, tenant_id: str, identity: Identity) -> str:
    """Stand for one recipient, wherever it may not be named."""
    return _keyed("recipient-id", identity_key, "identity_key", tenant_id, identity.domain.value, identity.id)


def recipient_key_hash(
    *, identity_key: bytes, tenant_id: str, identity: Identity, channel: Channel, destination: str
) -> str:
    """Stand for one recipient at one destination, normalised and as frozen in the recipient set."""
    return _keyed(
        "recipient-key",
        identity_key,
        "identity_key",
        tenant_id,
        identity.domain.value,
        identity.id,
        part.member(channel, of=Channel, field="channel"),
        part.plain(destination, field="destination", size_max=ADDRESS_MAX),
    )


def destination_index(*, index_key: bytes, tenant_id: str, channel: Channel, destination: str) -> str:
    """Find a normalised destination without being able to read it: the blind index."""
    where = part.member(channel, of=Channel, field="channel")
    address = part.plain(destination, field="destination", size_max=ADDRESS_MAX)
    return _keyed("destination", index_key, "index_key", tenant_id, where, address)


def guard_key_hash(*, identity_key: bytes, tenant_id: str, operation: str, idempotency_key: str) -> str:
    """Stand for a caller's idempotency key in its guard, for the key may hold anything."""
    request = _request(operation=operation, idempotency_key=idempotency_key)
    return _keyed("guard", identity_key, "identity_key", tenant_id, *request)


def order_key(*, tenant_id: str, recipient_id_hash: str, channel: Channel, lane: Lane) -> str | None:
    """Name the rows that must leave one after the other; in the bulk lane there is no order to keep.

    A plain hash: the recipient is a keyed hash already, so nothing can be read from it.
    """
    road = part.member(channel, of=Channel, field="channel"), part.member(lane, of=Lane, field="lane")
    recipient = part.hash32(recipient_id_hash, field="recipient_id_hash")
    if lane is Lane.BULK:
        return None
    return hashlib.sha256(_frame("order", tenant_id, recipient, *road)).digest()[:_HASH_BYTES].hex()


def _frame(kind: str, tenant_id: str, *parts: str | int) -> bytes:
    return canonical_json([kind, require_tenant(tenant_id), *parts])


def _guid(kind: str, tenant_id: str, *parts: str | int) -> UUID:
    return uuid5(NAMESPACE, _frame(kind, tenant_id, *parts).decode())


def _keyed(kind: str, secret: bytes, secret_field: str, tenant_id: str, *parts: str) -> str:
    key = require_secret(secret, field=secret_field)
    return hmac.digest(key, _frame(kind, tenant_id, *parts), "sha256")[:_HASH_BYTES].hex()


def _source(source_type: str, source: str) -> tuple[str, str]:
    return (
        part.plain(source_type, field="source_type", size_max=part.KEY_MAX),
        part.plain(source, field="source", size_max=part.KEY_MAX * 2),
    )


def _request(*, operation: str, idempotency_key: str) -> tuple[str, str]:
    return (
        part.plain(operation, field="operation", size_max=part.KEY_MAX),
        part.plain(idempotency_key, field="idempotency_key", size_max=part.KEY_MAX),
    )


def _cause(value: str | UUID | int, *, field: str) -> str | int:
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, str):
        return part.plain(value, field=field, size_max=part.KEY_MAX)
    part.whole(value, field=field)
    return value

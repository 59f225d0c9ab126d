"""What applications say of sources and events, sealed as it is stored and opened for the rules. Pure."""

from uuid import UUID

import msgspec

from clarion.domain import derived_id
from clarion.domain.entity_event import EVENT_DATA_BYTES_MAX, EntityEvent, EventData
from clarion.domain.fingerprint import Fingerprint
from clarion.domain.seal import TenantKeys
from clarion.domain.source import SourceContent, SourceFacts, SourceRecord, require_content
from clarion.errors import InvalidInput
from clarion.sealing.place import event_place, source_place


def sealed_source(
    keys: TenantKeys,
    *,
    source_type: str,
    source: str,
    content: SourceContent,
    nonce: bytes,
    entity: UUID | None = None,
    business_unit: UUID | None = None,
    active: bool = True,
) -> SourceRecord:
    """Make the record of a source as it is now; an entity that is not given derives from its type and id."""
    plain = require_content(content)
    content_hash = Fingerprint.keyed(msgspec.to_builtins(content), key=keys.identity_key).text
    place = source_place(source_type=source_type, source=source, content_hash=content_hash)
    derived = derived_id.source_entity(tenant_id=keys.tenant_id, source_type=source_type, source=source)
    return SourceRecord(
        source_type=source_type,
        source=source,
        entity_guid=entity or derived,
        business_unit=business_unit,
        active=active,
        content=place.seal(keys, plain, nonce=nonce),
        content_hash=content_hash,
        days=tuple(sorted(content.dates.items())),
    )


def opened_source(keys: TenantKeys, record: SourceRecord) -> SourceFacts:
    """Give a stored source as rules see it."""
    place = source_place(source_type=record.source_type, source=record.source, content_hash=record.content_hash)
    return SourceFacts(
        source_type=record.source_type,
        source=record.source,
        entity=record.entity_guid,
        business_unit=record.business_unit,
        active=record.active,
        version=record.row_version,
        content=msgspec.json.decode(place.open(keys, record.content), type=SourceContent),
    )


def sealed_event_data(keys: TenantKeys, event_guid: UUID, told: EventData, *, nonce: bytes) -> tuple[bytes, str]:
    """Seal what an event tells beside its type; with it comes the hash by which two tellings are compared."""
    plain = msgspec.json.encode(told)
    if len(plain) > EVENT_DATA_BYTES_MAX:
        raise InvalidInput(
            f"it is {len(plain)} bytes long as JSON",
            field="data",
            hint=f"{EVENT_DATA_BYTES_MAX} bytes is the most; store what is longer as a source and name that",
        )
    content_hash = Fingerprint.keyed(msgspec.to_builtins(told), key=keys.identity_key).text
    return event_place(event_guid).seal(keys, plain, nonce=nonce), content_hash


def opened_event_data(keys: TenantKeys, event: EntityEvent) -> EventData:
    """Give what an event tells beside its type; nothing where nothing was said."""
    if event.data is None:
        return EventData()
    return msgspec.json.decode(event_place(event.event_guid).open(keys, event.data), type=EventData)

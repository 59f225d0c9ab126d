"""Sources and events: sealed for their places, compared by content alone, and refused where they are too long."""

from datetime import date
from uuid import UUID

import msgspec
import pytest

from clarion.domain.entity_event import EventData
from clarion.domain.seal import TenantKeys
from clarion.domain.source import SourceContent, SourceRecord
from clarion.errors import InvalidInput, SealBroken
from clarion.sealing.sources import opened_source, sealed_event_data, sealed_source

CONTENT = SourceContent(
    fields={"title": "Class 7b"}, dates={"ends_on": date(2027, 7, 2)}, metrics={"seats": {"north": 3.0}}
)


KEYS = TenantKeys(tenant_id="school", identity_key=b"i" * 32, index_key=b"x" * 32, data_keys={1: b"d" * 32})


def sealed(content: SourceContent = CONTENT, *, source: str = "7b", nonce: int = 1) -> SourceRecord:
    return sealed_source(KEYS, source_type="class", source=source, content=content, nonce=nonce.to_bytes(12, "big"))


def test_rules_see_what_was_said_of_a_source() -> None:
    facts = opened_source(KEYS, sealed())
    assert facts.content == CONTENT
    assert facts.metric("seats", "north") == 3.0
    assert sealed().days == (("ends_on", date(2027, 7, 2)),)


def test_the_same_content_is_the_same_whichever_nonce_it_was_sealed_with() -> None:
    one, two = sealed(nonce=1), sealed(nonce=2)
    assert one.content != two.content
    assert one.content_hash == two.content_hash
    assert one.entity_guid == two.entity_guid


def test_another_content_and_another_source_are_told_apart() -> None:
    other = SourceContent(fields={"title": "Class 7c"})
    assert sealed().content_hash != sealed(other).content_hash
    assert sealed().entity_guid != sealed(source="7c").entity_guid
    assert b"Class 7b" not in sealed().content


def test_what_was_sealed_for_one_source_does_not_open_at_another() -> None:
    moved = msgspec.structs.replace(sealed(), source="7c")
    with pytest.raises(SealBroken):
        opened_source(KEYS, moved)


def test_what_is_too_long_is_refused_with_its_field() -> None:
    with pytest.raises(InvalidInput, match="bytes long as JSON") as refused:
        sealed(SourceContent(fields={"text": "x" * 17_000}))
    assert refused.value.field == "fields"
    with pytest.raises(InvalidInput) as refused:
        sealed_event_data(KEYS, UUID(int=1), EventData(data={"text": "x" * 17_000}), nonce=bytes(12))
    assert refused.value.field == "data"

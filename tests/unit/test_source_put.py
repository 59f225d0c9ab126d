"""The law of a put: what a source is afterwards, and which change that was, written as a table of all cases."""

import msgspec
import pytest

from clarion.domain.source import SourceChange, after_put
from clarion.testing.factories import guid, source_record

NOTHING = None
STORED = {
    "nothing": None,
    "there": source_record(1, row_version=4, business_unit=guid(1, "unit"), days=()),
    "removed": source_record(1, row_version=4, business_unit=guid(1, "unit"), active=False, days=()),
}
GIVEN = {
    "same": source_record(1, business_unit=guid(1, "unit"), content=b"sealed anew"),
    "other content": source_record(1, business_unit=guid(1, "unit"), content_hash="k1:other"),
    "other unit": source_record(1, business_unit=guid(2, "unit")),
    "removal": source_record(1, active=False, content=b"", content_hash="k1:none"),
}
LAW = {
    ("nothing", "same"): SourceChange.CREATED,
    ("nothing", "other content"): SourceChange.CREATED,
    ("nothing", "other unit"): SourceChange.CREATED,
    ("nothing", "removal"): NOTHING,
    ("there", "same"): NOTHING,
    ("there", "other content"): SourceChange.CHANGED,
    ("there", "other unit"): SourceChange.CHANGED,
    ("there", "removal"): SourceChange.REMOVED,
    ("removed", "same"): SourceChange.CREATED,
    ("removed", "other content"): SourceChange.CREATED,
    ("removed", "other unit"): SourceChange.CREATED,
    ("removed", "removal"): NOTHING,
}


def test_the_law_covers_every_case() -> None:
    assert LAW.keys() == {(stored, given) for stored in STORED for given in GIVEN}


@pytest.mark.parametrize("stored, given", LAW, ids=" then ".join)
def test_a_put_comes_to_what_the_law_says(stored: str, given: str) -> None:
    before, asked = STORED[stored], msgspec.structs.replace(GIVEN[given], entity_guid=guid(7, "entity"))
    found = after_put(asked, before)
    assert (found and found[1]) == LAW[stored, given]
    if found is None:
        return
    after, _ = found
    assert after.row_version == (1 if before is None else 5)
    assert after.entity_guid == (asked if before is None else before).entity_guid
    assert (after.active, after.content) == (asked.active, asked.content)
    if given == "removal":
        assert before is not None
        assert (after.business_unit, after.days) == (before.business_unit, ())
    else:
        assert (after.business_unit, after.days) == (asked.business_unit, asked.days)

"""The chain of the audit log: whatever is changed in an entry breaks it (X-31)."""

from datetime import UTC, datetime
from typing import Any

import pytest

from clarion.domain.audit import chained_hash

ENTRY: dict[str, Any] = {
    "tenant_id": "school",
    "seq": 7,
    "at": datetime(2026, 1, 15, 12, tzinfo=UTC),
    "actor": "sam",
    "act": "retry",
    "subject": "outgoing 12",
    "reason": "it never arrived",
    "details": "{}",
}

OTHERS: dict[str, Any] = {
    "tenant_id": "college",
    "seq": 8,
    "at": datetime(2026, 1, 15, 13, tzinfo=UTC),
    "actor": "kim",
    "act": "cancel",
    "subject": "outgoing 13",
    "reason": None,
    "details": '{"version": 2}',
}


@pytest.mark.parametrize("field", ENTRY)
def test_every_field_of_an_entry_is_part_of_its_link(field: str) -> None:
    assert chained_hash("before", **ENTRY | {field: OTHERS[field]}) != chained_hash("before", **ENTRY)


def test_the_entry_before_is_part_of_a_link() -> None:
    assert chained_hash("another", **ENTRY) != chained_hash("before", **ENTRY)

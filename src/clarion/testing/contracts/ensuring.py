"""Every ensure by itself: created once, found ever after, in conflict over exactly what its caller gave.

The tests run over every kind of record and every one of its fields, so that no field can be forgotten.
"""

import re
import unicodedata
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Literal

import msgspec
import pytest

from clarion.domain.automation import TIMING_FIELDS
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.support import DETAILS_BYTES_MAX, SupportCase, SupportKind, SupportStatus
from clarion.testing.contracts.harness import StoreHarness, everything, with_row, without_cases
from clarion.testing.contracts.kind import (
    AUTOMATION_SCHEDULER,
    COMPARED,
    ENTITY_EVENT,
    KINDS,
    NOTIFICATION_JOB,
    NOTIFICATION_SCHEDULER,
    Kind,
    changed,
    contradicted,
    sample,
)
from clarion.testing.factories import guid

LONG_TEXT = "\u2603\x01" * 200  # what takes three bytes, and what JSON writes in six

each_kind = pytest.mark.parametrize("kind", KINDS, ids=str)
each_compared_kind = pytest.mark.parametrize("kind", COMPARED, ids=str)


def _pairs_that_differ() -> Iterator[tuple[str, Kind, str, msgspec.Struct, msgspec.Struct]]:
    """Yield for each compared field a stored and a given record that differ in it alone, in every way they can."""
    for kind in COMPARED:
        for name in kind.given_fields:
            full, bare = kind.full(), kind.bare()
            yield f"{kind}-{name}", kind, name, full, changed(full, name)
            if name in kind.optional_fields():
                filled = msgspec.structs.replace(bare, **{name: sample(bare, name)})
                yield f"{kind}-{name}-was-empty", kind, name, bare, filled
                yield f"{kind}-{name}-is-empty", kind, name, filled, bare


PAIRS_THAT_DIFFER = tuple(_pairs_that_differ())
# The row key of a job belongs to one partition, so no scheduler row differs from another in that alone.
KEY_FIELDS = tuple(
    (kind, name)
    for kind in KINDS
    for name in kind.key_fields
    if kind is not NOTIFICATION_SCHEDULER or name != "artifact_pk"
)
# A new send time is no conflict either, but it moves the row: the contract of automation has it.
FREE_FIELDS = tuple(
    (kind, name)
    for kind in KINDS
    for name in kind.free_fields
    if kind is not AUTOMATION_SCHEDULER or name not in TIMING_FIELDS
)
# Text of a caller's choice; a hash has one spelling.
TEXT_FIELDS = tuple(
    (kind, name)
    for kind in COMPARED
    for name in kind.given_fields
    if type(value := getattr(kind.full(), name)) is str and not re.fullmatch("[0-9a-f]{32}", value)
)
each_pair_that_differs = pytest.mark.parametrize(
    "kind, name, stored, given",
    [pair[1:] for pair in PAIRS_THAT_DIFFER],
    ids=[pair[0] for pair in PAIRS_THAT_DIFFER],
)


async def ensure_one(harness: StoreHarness, kind: Kind, record: object) -> Ensured[Any]:
    """Ensure one record, as a set of one, for the test's tenant."""
    (answer,) = await kind.ensure(harness.store, harness.tenant_id, [record])
    return answer


class EnsuringContract:
    """One record at a time, of every kind."""

    @each_kind
    async def test_a_record_is_created_once_and_found_ever_after(self, harness: StoreHarness, kind: Kind) -> None:
        """I-03: the second call has the same coordinates and writes nothing."""
        first = await ensure_one(harness, kind, kind.make())
        before = await everything(harness)
        again = await ensure_one(harness, kind, kind.make())
        assert first.outcome is Outcome.CREATED
        assert again == Ensured(outcome=Outcome.FOUND, record=first.record)
        assert await everything(harness) == before
        assert await harness.rows(harness.tenant_id, kind.record) == [first.record]

    @each_kind
    @pytest.mark.parametrize("fill", ["full", "bare"])
    async def test_every_field_comes_back_as_it_was_given(self, harness: StoreHarness, kind: Kind, fill: str) -> None:
        """Whatever characters, bytes and instants a record holds, or none; only the id is the store's."""
        given = kind.full() if fill == "full" else kind.bare()
        created = (await ensure_one(harness, kind, given)).record
        resolved = {"id": created.id}
        if kind in (NOTIFICATION_SCHEDULER, ENTITY_EVENT) and fill == "bare":
            resolved["due_at"] = created.due_at
        assert isinstance(created.id, int)
        assert created == msgspec.structs.replace(given, **resolved)
        assert (await ensure_one(harness, kind, given)).record == created

    @each_pair_that_differs
    async def test_a_field_that_differs_is_a_conflict_that_names_it_and_changes_nothing_else(
        self, harness: StoreHarness, kind: Kind, name: str, stored: msgspec.Struct, given: msgspec.Struct
    ) -> None:
        """I-04: the row stays as it was (an occurrence is held back), and one support case says what differs."""
        created = await ensure_one(harness, kind, stored)
        left = contradicted(created.record)
        before = with_row(await everything(harness), left)
        answer = await ensure_one(harness, kind, given)
        assert (answer.outcome, answer.record, answer.differing) == (Outcome.CONFLICT, left, (name,))
        assert not answer.proceeds
        after = await everything(harness)
        assert without_cases(after) == without_cases(before)
        (case,) = await harness.store.list_support_cases(harness.tenant_id)
        assert (case.case_id, case.status, case.seen_count) == (answer.case_id, SupportStatus.OPEN, 1)
        assert list(msgspec.json.decode(case.details)["differing"]) == [name]

    @pytest.mark.parametrize("kind, name", TEXT_FIELDS, ids=str)
    @pytest.mark.parametrize("stored_form", ["NFC", "NFD"])
    async def test_the_same_text_in_another_unicode_form_is_the_same(
        self, harness: StoreHarness, kind: Kind, name: str, stored_form: Literal["NFC", "NFD"]
    ) -> None:
        """Keys and hashes are made of text in NFC, so a caller in another form has the same key and agrees with it."""
        given_form: Literal["NFC", "NFD"] = "NFD" if stored_form == "NFC" else "NFC"
        stored = msgspec.structs.replace(kind.full(), **{name: unicodedata.normalize(stored_form, "Größe é")})
        given = msgspec.structs.replace(stored, **{name: unicodedata.normalize(given_form, "Größe é")})
        assert getattr(stored, name) != getattr(given, name)
        created = await ensure_one(harness, kind, stored)
        before = await everything(harness)
        answer = await ensure_one(harness, kind, given)
        assert answer == Ensured(outcome=Outcome.FOUND, record=created.record)
        assert await everything(harness) == before

    @pytest.mark.parametrize("kind, name", FREE_FIELDS, ids=str)
    async def test_what_the_caller_does_not_decide_is_read_from_the_row_and_never_compared(
        self, harness: StoreHarness, kind: Kind, name: str
    ) -> None:
        """An honest retry after a new template was published is no conflict."""
        created = await ensure_one(harness, kind, kind.full())
        before = await everything(harness)
        answer = await ensure_one(harness, kind, changed(kind.full(), name))
        assert answer == Ensured(outcome=Outcome.FOUND, record=created.record)
        assert await everything(harness) == before

    @pytest.mark.parametrize("kind, name", KEY_FIELDS, ids=str)
    async def test_another_key_is_another_record(self, harness: StoreHarness, kind: Kind, name: str) -> None:
        """Each part of a key keeps two records apart."""
        row = kind.make()
        if kind is NOTIFICATION_SCHEDULER and name == "artifact_type":
            row = kind.make(artifact_pk=str(guid(1)), artifact_rk=str(guid(1)))  # a campaign's history anchor
        other = changed(row, name)
        if kind is NOTIFICATION_JOB:
            other = msgspec.structs.replace(other, guid=guid(2))  # which no two jobs share
        first, second = await ensure_one(harness, kind, row), await ensure_one(harness, kind, other)
        assert (first.outcome, second.outcome) == (Outcome.CREATED, Outcome.CREATED)
        assert first.record.id != second.record.id
        assert len(await harness.rows(harness.tenant_id, kind.record)) == 2

    @each_compared_kind
    async def test_all_that_differs_is_named_in_the_order_of_the_fields(
        self, harness: StoreHarness, kind: Kind
    ) -> None:
        """A caller is told everything at once."""
        stored = kind.full()
        given = msgspec.structs.replace(
            stored, **{name: getattr(changed(stored, name), name) for name in kind.given_fields}
        )
        await ensure_one(harness, kind, stored)
        assert (await ensure_one(harness, kind, given)).differing == kind.given_fields

    @each_compared_kind
    async def test_a_conflict_over_long_texts_still_opens_its_case(self, harness: StoreHarness, kind: Kind) -> None:
        """The case shows the values cut, within the bound of all diagnostics."""
        stored = kind.full()
        texts = {name: LONG_TEXT for name in kind.given_fields if type(getattr(stored, name)) is str}
        assert texts
        await ensure_one(harness, kind, stored)
        answer = await ensure_one(harness, kind, msgspec.structs.replace(stored, **texts))
        assert (answer.outcome, answer.differing) == (Outcome.CONFLICT, tuple(texts))
        (case,) = await harness.store.list_support_cases(harness.tenant_id)
        assert len(case.details.encode()) <= DETAILS_BYTES_MAX
        assert list(msgspec.json.decode(case.details)["differing"]) == list(texts)

    @each_compared_kind
    async def test_the_case_of_a_conflict_says_which_record_and_how_it_differs(
        self, harness: StoreHarness, kind: Kind
    ) -> None:
        """Enough for a person to judge without looking at the row."""
        name = kind.given_fields[0]
        stored = kind.full()
        given = msgspec.structs.replace(changed(stored, name), correlation_id="the second request")
        await ensure_one(harness, kind, stored)
        await ensure_one(harness, kind, given)
        (case,) = await harness.store.list_support_cases(harness.tenant_id)
        assert (case.kind, case.record, case.record_key, case.correlation_id) == (
            SupportKind.CONFLICT,
            kind.record.__name__,
            msgspec.json.encode(given.key).decode(),
            "the second request",
        )
        shown = msgspec.json.decode(case.details)["differing"][name]
        assert shown == {"stored": str(getattr(stored, name)), "given": str(getattr(given, name))}

    @each_compared_kind
    async def test_a_conflict_seen_again_is_the_same_case_counted_once_more(
        self, harness: StoreHarness, kind: Kind
    ) -> None:
        """I-04: however often a broken caller tries, a person sees one case; the last try is the one it shows."""
        last = kind.given_fields[-1]
        await ensure_one(harness, kind, kind.full())
        first = await ensure_one(harness, kind, changed(kind.full(), kind.given_fields[0]))
        (opened,) = await harness.store.list_support_cases(harness.tenant_id)
        if harness.clock is not None:
            harness.clock.advance(timedelta(minutes=1))
        second = await ensure_one(
            harness, kind, msgspec.structs.replace(changed(kind.full(), last), correlation_id="again")
        )
        (case,) = await harness.store.list_support_cases(harness.tenant_id)
        assert first.case_id == second.case_id == case.case_id
        assert (case.seen_count, case.correlation_id) == (2, "again")
        assert list(msgspec.json.decode(case.details)["differing"]) == [last]
        assert case.first_seen_at == opened.first_seen_at
        assert _later(case) or harness.clock is None

    async def test_a_resolved_case_reopens_when_its_conflict_is_seen_again(self, harness: StoreHarness) -> None:
        """Resolved → Open, and the count goes on."""
        kind = COMPARED[0]
        given = changed(kind.full(), kind.given_fields[0])
        await ensure_one(harness, kind, kind.full())
        await ensure_one(harness, kind, given)
        (case,) = await harness.store.list_support_cases(harness.tenant_id)
        await harness.overwrite(harness.tenant_id, msgspec.structs.replace(case, status=SupportStatus.RESOLVED))
        await ensure_one(harness, kind, given)
        (reopened,) = await harness.store.list_support_cases(harness.tenant_id)
        assert (reopened.case_id, reopened.status, reopened.seen_count) == (case.case_id, SupportStatus.OPEN, 2)

    async def test_a_found_record_leaves_an_open_case_as_it_is(self, harness: StoreHarness) -> None:
        """That one caller is right again does not mean that nobody has to look."""
        kind = COMPARED[0]
        await ensure_one(harness, kind, kind.full())
        await ensure_one(harness, kind, changed(kind.full(), kind.given_fields[0]))
        before = await everything(harness)
        assert (await ensure_one(harness, kind, kind.full())).outcome is Outcome.FOUND
        assert await everything(harness) == before


def _later(case: SupportCase) -> bool:
    """Tell whether a case was last seen after it was first seen."""
    return (
        case.first_seen_at is not None
        and case.last_seen_at is not None
        and case.last_seen_at - case.first_seen_at == timedelta(minutes=1)
    )

"""Ensures over sets: answered item by item in the order asked, each tenant by itself, and bounded."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from clarion.domain.address import AddressVersion
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.identity import Channel
from clarion.domain.seal import Purpose
from clarion.errors import InvalidInput
from clarion.ports.ensure import ITEMS_MAX
from clarion.testing.contracts.ensuring import each_compared_kind, each_kind
from clarion.testing.contracts.harness import StoreHarness, everything
from clarion.testing.contracts.kind import ADDRESS_VERSION, COMPARED, Kind, changed, contradicted
from clarion.testing.factories import address_version

# One is a set of one; 500 is the batch that a statement count is promised for.
SIZES = (1, 2, 500, ITEMS_MAX)

CALLERS = 6  # more than one connection's worth, fewer than a pool has

IDENTITY = (Purpose.IDENTITY, 1)
DATA = (Purpose.DATA, 1)


def outcomes(answers: Sequence[Ensured[Any]]) -> list[Outcome]:
    """Give the outcome of each item."""
    return [answer.outcome for answer in answers]


class SetContract:
    """Several records at a time, of every kind, and several tenants."""

    @each_kind
    async def test_answers_come_in_the_order_asked(self, harness: StoreHarness, kind: Kind) -> None:
        """Neither the order of keys nor what was there already shows in the order of answers."""
        await kind.ensure(harness.store, harness.tenant_id, [kind.make(n) for n in (3, 1)])
        asked = [kind.make(n) for n in (5, 3, 2, 1, 4)]
        answers = await kind.ensure(harness.store, harness.tenant_id, asked)
        assert [answer.record.key for answer in answers] == [item.key for item in asked]
        created, found = Outcome.CREATED, Outcome.FOUND
        assert outcomes(answers) == [created, found, created, found, created]

    @each_compared_kind
    async def test_a_conflict_withholds_its_own_item_and_the_others_proceed(
        self, harness: StoreHarness, kind: Kind
    ) -> None:
        """The other records of the set are made."""
        name = kind.given_fields[0]
        await kind.ensure(harness.store, harness.tenant_id, [kind.make(n) for n in (1, 2)])
        asked = [kind.make(3), changed(kind.make(1), name), kind.make(2), kind.make(4)]
        answers = await kind.ensure(harness.store, harness.tenant_id, asked)
        assert outcomes(answers) == [Outcome.CREATED, Outcome.CONFLICT, Outcome.FOUND, Outcome.CREATED]
        assert [answer.differing for answer in answers] == [(), (name,), (), ()]
        assert len(await harness.rows(harness.tenant_id, kind.record)) == 4
        assert len(await harness.store.list_support_cases(harness.tenant_id)) == 1

    @each_kind
    async def test_of_equal_records_in_one_set_the_first_creates_and_the_others_find_it(
        self, harness: StoreHarness, kind: Kind
    ) -> None:
        """A caller need not remove duplicates."""
        asked = [kind.make(2), kind.make(1), kind.make(2), kind.make(2)]
        answers = await kind.ensure(harness.store, harness.tenant_id, asked)
        assert outcomes(answers) == [Outcome.CREATED, Outcome.CREATED, Outcome.FOUND, Outcome.FOUND]
        assert answers[0].record == answers[2].record == answers[3].record
        assert len(await harness.rows(harness.tenant_id, kind.record)) == 2

    @each_compared_kind
    @pytest.mark.parametrize("in_turn", [True, False])
    async def test_of_two_that_differ_in_one_set_the_first_creates_and_the_second_is_in_conflict(
        self, harness: StoreHarness, kind: Kind, in_turn: bool
    ) -> None:
        """The order asked decides, not the order of values."""
        name = kind.given_fields[-1]
        asked = [kind.full(), changed(kind.full(), name)]
        asked = asked if in_turn else asked[::-1]
        first, second = await kind.ensure(harness.store, harness.tenant_id, asked)
        assert (first.outcome, second.outcome) == (Outcome.CREATED, Outcome.CONFLICT)
        assert second.differing == (name,)
        (row,) = await harness.rows(harness.tenant_id, kind.record)
        assert row == second.record == contradicted(first.record)
        assert getattr(row, name) == getattr(asked[0], name)

    @each_compared_kind
    async def test_the_same_conflict_twice_in_one_set_is_one_case_seen_twice(
        self, harness: StoreHarness, kind: Kind
    ) -> None:
        """The case shows the later of the two."""
        first, last = kind.given_fields[0], kind.given_fields[-1]
        await kind.ensure(harness.store, harness.tenant_id, [kind.full()])
        asked = [changed(kind.full(), first), changed(kind.full(), last)]
        answers = await kind.ensure(harness.store, harness.tenant_id, asked)
        assert outcomes(answers) == [Outcome.CONFLICT, Outcome.CONFLICT]
        (case,) = await harness.store.list_support_cases(harness.tenant_id)
        assert case.seen_count == 2
        assert list(msgspec.json.decode(case.details)["differing"]) == [last]

    async def test_several_conflicts_in_one_set_open_a_case_each(self, harness: StoreHarness) -> None:
        """New cases and known ones go together."""
        kind = COMPARED[0]
        name = kind.given_fields[0]
        await kind.ensure(harness.store, harness.tenant_id, [kind.make(n) for n in range(1, 6)])
        await kind.ensure(harness.store, harness.tenant_id, [changed(kind.make(n), name) for n in (4, 2)])
        answers = await kind.ensure(
            harness.store, harness.tenant_id, [changed(kind.make(n), name) for n in (5, 4, 3, 2, 1)]
        )
        cases = await harness.store.list_support_cases(harness.tenant_id)
        seen = {case.case_id: case.seen_count for case in cases}
        assert [seen[answer.case_id] for answer in answers if answer.case_id] == [1, 2, 1, 2, 1]

    @each_kind
    async def test_an_empty_set_has_no_answers(self, harness: StoreHarness, kind: Kind) -> None:
        """Nothing is written."""
        assert await kind.ensure(harness.store, harness.tenant_id, []) == []
        assert not any((await everything(harness)).values())

    @each_kind
    @pytest.mark.parametrize("size", SIZES)
    async def test_a_set_is_created_whole_and_then_found_whole(
        self, harness: StoreHarness, kind: Kind, size: int
    ) -> None:
        """From one record to as many as a set may have; ensured again, none is written."""
        asked = [kind.make(n) for n in range(size)]
        created = await kind.ensure(harness.store, harness.tenant_id, asked)
        assert outcomes(created) == [Outcome.CREATED] * size
        rows = await harness.rows(harness.tenant_id, kind.record)
        found = await kind.ensure(harness.store, harness.tenant_id, asked)
        assert outcomes(found) == [Outcome.FOUND] * size
        assert [answer.record for answer in found] == [answer.record for answer in created]
        assert await harness.rows(harness.tenant_id, kind.record) == rows
        assert len(rows) == size

    @each_kind
    async def test_a_set_over_the_limit_is_refused_and_nothing_of_it_is_written(
        self, harness: StoreHarness, kind: Kind
    ) -> None:
        """One item too many."""
        with pytest.raises(InvalidInput, match=str(ITEMS_MAX)):
            await kind.ensure(harness.store, harness.tenant_id, [kind.make(n) for n in range(ITEMS_MAX + 1)])
        assert not any((await everything(harness)).values())

    @pytest.mark.parametrize("text", ["a\0b", "\ud800"], ids=["nul", "surrogate"])
    async def test_text_that_no_column_can_hold_is_refused_outside_of_sets_too(
        self, harness: StoreHarness, text: str
    ) -> None:
        """SQLite would keep a NUL, which PostgreSQL refuses."""
        with pytest.raises(InvalidInput, match="the set holds"):
            await harness.store.set_type_enabled(harness.tenant_id, text, enabled=False, actor="sam")
        with pytest.raises(InvalidInput, match="the set holds"):
            await harness.store.find_api_key(text)
        assert await harness.store.list_audit(harness.tenant_id) == []

    @pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30], ids=["above", "below", "far"])
    async def test_a_number_that_no_column_can_hold_is_refused_outside_of_sets_too(
        self, harness: StoreHarness, number: int
    ) -> None:
        """In our words, and not in the driver's."""
        with pytest.raises(InvalidInput, match="the set holds"):
            await harness.store.list_audit(harness.tenant_id, after=number)
        with pytest.raises(InvalidInput, match="the set holds"):
            await harness.store.retry_outgoing(harness.tenant_id, number, version=1, actor="sam", reason="again")

    @each_kind
    async def test_of_many_callers_at_once_each_record_is_created_by_one_and_found_by_the_others(
        self, harness: StoreHarness, kind: Kind
    ) -> None:
        """F-04: whatever the order of their sets; nobody gets an error, and all get the same rows."""
        forwards = [kind.make(n) for n in range(20)]
        sets = [forwards if caller % 2 else forwards[::-1] for caller in range(CALLERS)]
        answers = await asyncio.gather(*(kind.ensure(harness.store, harness.tenant_id, one) for one in sets))
        rows = await harness.rows(harness.tenant_id, kind.record)
        assert len(rows) == len(forwards)
        by_record = Counter(answer.record.key for one in answers for answer in one if answer.outcome is Outcome.CREATED)
        assert set(by_record.values()) == {1}
        assert len(by_record) == len(forwards)
        stored = {row.key: row for row in rows}
        assert all(answer.record == stored[answer.record.key] for one in answers for answer in one)

    @each_kind
    async def test_the_same_key_in_two_tenants_is_two_records_that_never_meet(
        self, harness: StoreHarness, kind: Kind
    ) -> None:
        """I-02: nothing is found, nothing is in conflict, and each goes on finding its own, whoever came first."""
        tenants = (harness.tenant_id, f"{harness.tenant_id}-2")
        theirs = changed(kind.make(), kind.given_fields[0] if kind.given_fields else "correlation_id")
        given = dict(zip(tenants, (kind.make(), theirs), strict=True))
        created = {tenant: (await kind.ensure(harness.store, tenant, [given[tenant]]))[0] for tenant in tenants}
        assert outcomes(list(created.values())) == [Outcome.CREATED, Outcome.CREATED]
        before = [await everything(harness, tenant) for tenant in tenants]
        for tenant in tenants:
            (again,) = await kind.ensure(harness.store, tenant, [given[tenant]])
            assert again == Ensured(outcome=Outcome.FOUND, record=created[tenant].record)
            assert await harness.rows(tenant, kind.record) == [created[tenant].record]
        assert [await everything(harness, tenant) for tenant in tenants] == before

    @each_compared_kind
    async def test_one_tenants_conflict_is_no_other_tenants_case(self, harness: StoreHarness, kind: Kind) -> None:
        """Cases are told apart by tenant, ids included."""
        theirs, name = f"{harness.tenant_id}-2", kind.given_fields[0]
        for tenant_id in (harness.tenant_id, theirs):
            await kind.ensure(harness.store, tenant_id, [kind.full()])
        (answer,) = await kind.ensure(harness.store, harness.tenant_id, [changed(kind.full(), name)])
        assert await harness.store.list_support_cases(theirs) == []
        (other,) = await kind.ensure(harness.store, theirs, [changed(kind.full(), name)])
        (case,) = await harness.store.list_support_cases(theirs)
        assert (case.case_id, case.seen_count) == (other.case_id, 1)
        assert answer.case_id != other.case_id

    async def test_address_versions_of_one_recipient_stand_side_by_side(self, harness: StoreHarness) -> None:
        """An edit makes a new version, a second device too; neither touches the one before."""
        versions = [address_version(1, edition, serial=7) for edition in (1, 2, 3)]
        answers = await harness.store.ensure_address_versions(harness.tenant_id, [*versions, address_version(2)])
        assert outcomes(answers) == [Outcome.CREATED] * 4
        assert [answer.record.serial for answer in answers] == [1, 2, 3, 1]
        again = await harness.store.ensure_address_versions(harness.tenant_id, versions[::-1])
        assert [answer.record for answer in again] == [answer.record for answer in answers[2::-1]]
        elsewhere = msgspec.structs.replace(versions[0], channel=Channel.CHAT)
        (answer,) = await harness.store.ensure_address_versions(harness.tenant_id, [elsewhere])
        assert (answer.outcome, answer.record.serial) == (Outcome.CREATED, 1)

    async def test_of_versions_with_one_destination_the_first_is_found(self, harness: StoreHarness) -> None:
        """While owners gave the serials, an edit that was taken back made a second one."""
        store, tenant_id = harness.store, harness.tenant_id
        answers = await store.ensure_address_versions(tenant_id, [address_version(1, n) for n in (1, 2, 3)])
        first, *others = (answer.record for answer in answers)
        for other in others:
            await harness.overwrite(tenant_id, msgspec.structs.replace(other, key_hash=first.key_hash))
        (found,) = await store.ensure_address_versions(tenant_id, [address_version()])
        assert (found.outcome, found.record) == (Outcome.FOUND, first)

    async def test_editors_at_the_same_time_get_a_version_each_and_share_what_is_the_same(
        self, harness: StoreHarness
    ) -> None:
        """No destination is lost and none is stored twice, though each also brings one that all of them bring."""
        shared = address_version(1, 99)
        sets = [[address_version(1, n), shared] if n % 2 else [shared, address_version(1, n)] for n in range(1, 7)]
        asked = [harness.store.ensure_address_versions(harness.tenant_id, one) for one in sets]
        answers = await asyncio.gather(*asked)
        rows = await harness.rows(harness.tenant_id, AddressVersion)
        assert sorted(row.serial for row in rows) == list(range(1, 8))
        assert {row.key_hash for row in rows} == {one.key_hash for given in sets for one in given}
        ids = {row.key_hash: row.id for row in rows}
        assert [[one.record.id for one in answer] for answer in answers] == [
            [ids[one.key_hash] for one in given] for given in sets
        ]

    async def test_an_address_sealed_again_is_the_same_version(self, harness: StoreHarness) -> None:
        """Sealing gives another ciphertext each time; the stored one is kept."""
        kind = ADDRESS_VERSION
        (first,) = await kind.ensure(harness.store, harness.tenant_id, [kind.make(ciphertext=b"one nonce")])
        (again,) = await kind.ensure(harness.store, harness.tenant_id, [kind.make(ciphertext=b"another nonce")])
        assert (again.outcome, again.record) == (Outcome.FOUND, first.record)
        assert again.record.ciphertext == b"one nonce"

    async def test_a_tenant_keeps_the_keys_that_it_was_made_with(self, harness: StoreHarness) -> None:
        """Of two that make the same tenant at once, both go on with the keys of the first."""
        assert await harness.store.find_tenant_keys(harness.tenant_id) is None
        first = {IDENTITY: b"\x00wrapped\xff", DATA: b""}
        assert await harness.store.ensure_tenant(harness.tenant_id, first) == first
        assert await harness.store.ensure_tenant(harness.tenant_id, {IDENTITY: b"another"}) == first
        assert await harness.store.find_tenant_keys(harness.tenant_id) == first

    async def test_a_tenant_that_is_there_or_that_no_person_makes_leaves_no_entry(self, harness: StoreHarness) -> None:
        """With keys and without."""
        for tenant_id, keys in ((harness.tenant_id, {IDENTITY: b"ours"}), (f"{harness.tenant_id}-2", {})):
            await harness.store.ensure_tenant(tenant_id, keys)
            assert await harness.store.ensure_tenant(tenant_id, {IDENTITY: b"new"}, actor="sam") == keys
            assert list(await harness.store.list_audit(tenant_id)) == []
        await harness.store.ensure_tenant(f"{harness.tenant_id}-3", {}, actor="sam")
        (entry,) = await harness.store.list_audit(f"{harness.tenant_id}-3")
        assert (entry.actor, entry.act) == ("sam", "create")

    async def test_each_tenant_has_keys_of_its_own(self, harness: StoreHarness) -> None:
        """Making a second tenant works as making the first."""
        theirs = f"{harness.tenant_id}-2"
        await harness.store.ensure_tenant(harness.tenant_id, {IDENTITY: b"ours"})
        assert await harness.store.find_tenant_keys(theirs) is None
        assert await harness.store.ensure_tenant(theirs, {IDENTITY: b"theirs"}) == {IDENTITY: b"theirs"}
        assert await harness.store.find_tenant_keys(theirs) == {IDENTITY: b"theirs"}
        assert await harness.store.find_tenant_keys(harness.tenant_id) == {IDENTITY: b"ours"}

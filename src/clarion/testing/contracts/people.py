"""People as their owners keep them: replaced as a whole, edited as they were seen, removed, and their attributes."""

import asyncio
from datetime import UTC, datetime
from typing import Final

import msgspec
import pytest

from clarion.domain.attribute import Attribute, Kind
from clarion.domain.audience import Audience
from clarion.domain.group import Relation
from clarion.domain.identity import Channel
from clarion.domain.person import BusinessUnit, StoredPerson
from clarion.errors import InvalidInput
from clarion.testing.contracts.catalog import acts, make_person
from clarion.testing.contracts.harness import StoreHarness, everything
from clarion.testing.factories import address_version, guid, person

AT: Final = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
GRADE: Final = Attribute(name="grade", kind=Kind.NUMBER)

EDITORS: Final = 6
"""Who edit one person at once: more than one connection's worth, fewer than a pool has."""


class PeopleContract:
    """What a store promises of people."""

    async def test_only_those_who_are_changed_are_named_and_audited(self, harness: StoreHarness) -> None:
        """Putting people again as they are changes nothing; each thing that is known of them counts as a change."""
        store, tenant_id = harness.store, harness.tenant_id
        one, two = await make_person(harness, 1), await make_person(harness, 2)
        values = {one.recipient_id_hash: {"grade": "7"}, two.recipient_id_hash: {"grade": "8"}}
        both = sorted(values)
        assert await store.put_people(tenant_id, [one, two], attributes=values, actor="sam") == both
        assert await store.put_people(tenant_id, [two, one], attributes=values, actor="sam") == []
        contact = one.contacts[0]
        changes = [
            (msgspec.structs.replace(one, locale=None), values),
            (msgspec.structs.replace(one, contacts=()), values),
            (one, values),
            (msgspec.structs.replace(one, contacts=(msgspec.structs.replace(contact, verified=False),)), values),
            (msgspec.structs.replace(one, contacts=(msgspec.structs.replace(contact, retired_at=AT),)), values),
            (one, {**values, one.recipient_id_hash: {"grade": "9"}}),
            (one, {**values, one.recipient_id_hash: {"city": "9"}}),
            (one, {two.recipient_id_hash: {"grade": "8"}}),
        ]
        for changed, known in changes:
            put = await store.put_people(tenant_id, [changed, two], attributes=known, actor="sam")
            assert put == [one.recipient_id_hash]
        said = [subject for _, subject in await acts(harness)]
        assert said == ["2 people"] + [f"person {one.recipient_id_hash}"] * len(changes)
        await store.put_people(tenant_id, [one], attributes=values)  # nobody's act
        assert len(await acts(harness)) == len(said)

    async def test_a_person_is_found_with_attributes_of_their_own(self, harness: StoreHarness) -> None:
        """The unknown and another tenant's are left out, and nobody's values are somebody else's."""
        store, tenant_id = harness.store, harness.tenant_id
        one, two = await make_person(harness, 1), await make_person(harness, 2)
        values = {one.recipient_id_hash: {"grade": "7", "city": "Wien"}}
        await store.put_people(tenant_id, [one, two], attributes=values)
        hashes = [one.recipient_id_hash, two.recipient_id_hash, "0" * 32]
        assert await store.find_people(tenant_id, hashes) == {
            one.recipient_id_hash: StoredPerson(person=one, attributes={"grade": "7", "city": "Wien"}),
            two.recipient_id_hash: StoredPerson(person=two),
        }
        assert await store.find_people(f"{tenant_id}-2", hashes) == {}
        assert await store.find_people(tenant_id, []) == {}

    async def test_people_are_listed_in_pages(self, harness: StoreHarness) -> None:
        """Each once, sorted, the tenant's own."""
        made = sorted([(await make_person(harness, n)).recipient_id_hash for n in range(1, 6)])
        first = await harness.store.list_people(harness.tenant_id, limit=2)
        second = await harness.store.list_people(harness.tenant_id, after=first[-1], limit=2)
        third = await harness.store.list_people(harness.tenant_id, after=second[-1], limit=2)
        assert [list(page) for page in (first, second, third)] == [made[:2], made[2:4], made[4:]]
        assert not await harness.store.list_people(harness.tenant_id, after=made[-1], limit=2)
        assert not await harness.store.list_people(f"{harness.tenant_id}-2", limit=2)

    async def test_an_edit_of_somebody_who_is_not_as_they_were_seen_writes_nothing(self, harness: StoreHarness) -> None:
        """Whatever of them is another, and though others of the set are as they were."""
        store, tenant_id = harness.store, harness.tenant_id
        one, two = await make_person(harness, 1), await make_person(harness, 2)
        edited = [msgspec.structs.replace(each, locale="fr") for each in (one, two)]
        seen = await store.find_people(tenant_id, [one.recipient_id_hash, two.recipient_id_hash])
        others = [
            (msgspec.structs.replace(one, tz_id="UTC"), {}),
            (msgspec.structs.replace(one, contacts=()), {}),
            (one, {one.recipient_id_hash: {"grade": "7"}}),
        ]
        for meanwhile, values in others:
            await store.put_people(tenant_id, [meanwhile], attributes=values)
            before = await everything(harness)
            assert await store.put_people(tenant_id, edited, seen=seen, actor="sam") is None
            assert await everything(harness) == before
            assert (await store.find_people(tenant_id, [two.recipient_id_hash])).popitem()[1].person == two
            await store.put_people(tenant_id, [one])
        assert await store.put_people(tenant_id, edited, seen=seen, actor="sam") == sorted(seen)
        await store.remove_people(tenant_id, [one.recipient_id_hash])
        assert await store.put_people(tenant_id, [one], seen=seen) is None  # nor does it come back
        assert await acts(harness) == [("sam", "2 people")]

    async def test_of_those_who_edit_a_person_at_once_one_is_first_and_the_others_are_told(
        self, harness: StoreHarness
    ) -> None:
        """Those who make the same person at once as well: nobody replaces what nobody has seen."""
        store, tenant_id = harness.store, harness.tenant_id
        new, known = person(2), await make_person(harness, 1)
        for edited in (known, new):
            seen = await store.find_people(tenant_id, [edited.recipient_id_hash])
            edits = [msgspec.structs.replace(edited, locale=f"de-A{end}") for end in "BCDEFG"[:EDITORS]]
            put = await asyncio.gather(*(store.put_people(tenant_id, [one], seen=seen) for one in edits))
            assert sorted(put, key=repr) == [None] * (EDITORS - 1) + [[edited.recipient_id_hash]]
            (found,) = (await store.find_people(tenant_id, [edited.recipient_id_hash])).values()
            first = edits[next(n for n, one in enumerate(put) if one)]
            assert found.person.locale == first.locale

    async def test_a_person_who_is_removed_is_in_nothing_any_more(self, harness: StoreHarness) -> None:
        """Others stay where they are, and what was made for the person stays too."""
        store, tenant_id = harness.store, harness.tenant_id
        one, two = await make_person(harness, 1), await make_person(harness, 2)
        hashes = sorted([one.recipient_id_hash, two.recipient_id_hash])
        await store.put_people(tenant_id, [one, two], attributes={each: {"grade": "7"} for each in hashes})
        group, unit, child = guid(1, "group"), guid(1, "unit"), guid(1, "child")
        await store.put_group(tenant_id, guid=group, name="all", members=hashes)
        await store.put_business_unit(tenant_id, BusinessUnit(guid=unit, name="North"))
        await store.change_unit_members(tenant_id, unit, add=hashes, remove=[])
        await store.change_holders(tenant_id, "teacher", unit=unit, add=hashes, remove=[])
        related = [
            Relation(entity_type="child", entity_guid=child, relation="guardian", recipient_id_hash=one)
            for one in hashes
        ]
        await store.change_relations(tenant_id, add=related, remove=[])
        parts = (
            Audience(groups=(group,)),
            Audience(units=(unit,)),
            Audience(roles=(("teacher", str(unit)),)),
            Audience(relations=(("child", child, "guardian"),)),
        )
        assert [list(await store.find_audience(tenant_id, part, limit=9)) for part in parts] == [hashes] * 4
        before = await everything(harness)
        assert await store.remove_people(tenant_id, [one.recipient_id_hash, "0" * 32], actor="sam") == [
            one.recipient_id_hash
        ]
        assert await store.remove_people(tenant_id, [one.recipient_id_hash], actor="sam") == []
        assert await everything(harness) == before
        assert list(await store.find_people(tenant_id, hashes)) == [two.recipient_id_hash]
        left = [list(await store.find_audience(tenant_id, part, limit=9)) for part in parts]
        assert left == [[two.recipient_id_hash]] * 4
        assert await acts(harness) == [("sam", f"person {one.recipient_id_hash}")]
        await store.put_people(tenant_id, [msgspec.structs.replace(one, contacts=())])
        (again,) = (await store.find_people(tenant_id, [one.recipient_id_hash])).values()
        assert (again.person.contacts, again.attributes) == ((), {})

    async def test_another_tenants_person_is_not_removed(self, harness: StoreHarness) -> None:
        """Though it is the same one by name and by hash."""
        one = await make_person(harness, 1)
        assert await harness.store.remove_people(f"{harness.tenant_id}-2", [one.recipient_id_hash], actor="sam") == []
        assert await harness.store.find_people(harness.tenant_id, [one.recipient_id_hash])

    async def test_an_attribute_is_declared_once(self, harness: StoreHarness) -> None:
        """Who declares it again is told which one stands; each tenant has its own."""
        store, tenant_id = harness.store, harness.tenant_id
        other = Attribute(name="grade", kind=Kind.TEXT)
        city = Attribute(name="city", kind=Kind.TEXT)
        assert await store.declare_attribute(tenant_id, GRADE, actor="sam") == (GRADE, True)
        assert await store.declare_attribute(tenant_id, other, actor="sam") == (GRADE, False)
        assert await store.declare_attribute(tenant_id, city, actor="sam") == (city, True)
        assert await store.declare_attribute(f"{tenant_id}-2", other, actor="sam") == (other, True)
        assert await store.list_attributes(tenant_id) == [city, GRADE]
        assert await acts(harness) == [("sam", "attribute grade"), ("sam", "attribute city")]

    async def test_a_contact_of_another_channel_than_its_address_is_refused(self, harness: StoreHarness) -> None:
        """Nothing of the set is written, attributes neither."""
        store, tenant_id = harness.store, harness.tenant_id
        await store.ensure_address_versions(tenant_id, [address_version(1)])
        one = await make_person(harness, 1)
        wrong = msgspec.structs.replace(one.contacts[0], channel=Channel.CHAT)
        changed = msgspec.structs.replace(one, locale="fr", contacts=(wrong,))
        with pytest.raises(InvalidInput, match="no address version"):
            await store.put_people(tenant_id, [changed], attributes={one.recipient_id_hash: {"grade": "7"}})
        assert (await store.find_people(tenant_id, [one.recipient_id_hash])).popitem()[1] == StoredPerson(person=one)

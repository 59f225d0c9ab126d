"""Who belongs together: groups and groups inside them, business units, roles, relations. Changes have their entries."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Final
from uuid import UUID

import msgspec
import pytest

from clarion.domain.group import Group, GroupDetails, MemberChange, Relation
from clarion.domain.person import BusinessUnit, UnitChange
from clarion.errors import InvalidInput
from clarion.ports.ensure import ITEMS_MAX
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.factories import TEXT, guid, person

A, B, C, D = (guid(n, "group") for n in range(1, 5))
NORTH: Final = BusinessUnit(guid=guid(1, "unit"), name="North", locale="de", tz_id="Europe/Vienna")
DEEP: Final = 8
"""How many groups may lie inside each other (domain.audience)."""


def hashes(*numbers: int) -> list[str]:
    """Name people by their hashes, known or not."""
    return [person(n).recipient_id_hash for n in numbers]


async def put(harness: StoreHarness, group: UUID, *children: UUID) -> None:
    """Put a group with these inside it."""
    await harness.store.put_group(harness.tenant_id, guid=group, name="a group", children=children, actor="sam")


async def inside(harness: StoreHarness, group: UUID) -> tuple[UUID, ...]:
    """Give the groups directly inside one."""
    found = await harness.store.find_group(harness.tenant_id, group)
    assert found is not None
    return found.children


async def log(harness: StoreHarness) -> list[tuple[str, str, object]]:
    """Give what was done to what, with its details."""
    entries = await harness.store.list_audit(harness.tenant_id)
    return [(entry.act, entry.subject, msgspec.json.decode(entry.details)) for entry in entries]


class GroupContract:
    """Groups and their members."""

    async def test_a_group_is_put_changed_and_removed_with_an_entry_each(self, harness: StoreHarness) -> None:
        """Doing again what is so already changes nothing and has no entry; nor has what no person does."""
        store, mine = harness.store, harness.tenant_id
        await put(harness, B)
        for changed in (True, False):
            assert await store.put_group(mine, guid=A, name=TEXT, children=[B], actor="sam") is changed
        assert await store.find_group(mine, A) == GroupDetails(guid=A, name=TEXT, children=(B,), members=0)
        for changed in (True, False):
            assert await store.change_group(mine, A, name="Parents", actor="sam") is changed
        assert await inside(harness, A) == (B,), "what is not named stays"
        for changed in (True, False):
            assert await store.change_group(mine, A, children=[], actor="sam") is changed
        assert await store.change_group(mine, C, name="Nobody", actor="sam") is None
        assert await store.find_group(mine, C) is None
        for changed in (True, False):
            assert await store.remove_group(mine, A, actor="sam") is changed
        assert await store.find_group(mine, A) is None
        assert await store.put_group(mine, guid=C, name="by a program")
        assert await log(harness) == [
            ("put", f"group {B}", {"name": "a group", "groups": []}),
            ("put", f"group {A}", {"name": TEXT, "groups": [str(B)]}),
            ("put", f"group {A}", {"name": "Parents"}),
            ("put", f"group {A}", {"groups": []}),
            ("remove", f"group {A}", {}),
        ]

    async def test_groups_are_listed_page_by_page_in_the_order_of_their_guids(self, harness: StoreHarness) -> None:
        """A tenant's own."""
        store, mine = harness.store, harness.tenant_id
        for one in (C, A, B):
            await put(harness, one)
        await store.put_group(f"{mine}-2", guid=D, name="theirs")
        in_order = [Group(guid=one, name="a group") for one in sorted((A, B, C))]
        assert list(await store.list_groups(mine, limit=2)) == in_order[:2]
        assert list(await store.list_groups(mine, after=in_order[1].guid, limit=2)) == in_order[2:]
        assert list(await store.list_groups(mine, after=in_order[2].guid)) == []

    async def test_members_come_and_go_while_all_others_stay(self, harness: StoreHarness) -> None:
        """Each change says what it did; whoever is not known belongs to the group all the same, and is counted."""
        store, mine = harness.store, harness.tenant_id
        known = person(1)
        await store.put_people(mine, [known])
        await store.put_group(mine, guid=A, name="a group")
        add, remove = hashes(1, 2, 2, 3), hashes(9)
        first = await store.change_members(mine, A, add=add, remove=remove, actor="sam")
        assert first == MemberChange(added=3, removed=0, unchanged=1, unknown=2)
        second = await store.change_members(mine, A, add=hashes(1, 4), remove=hashes(2), actor="sam")
        assert second == MemberChange(added=1, removed=1, unchanged=1, unknown=1)
        assert await store.change_members(mine, A, add=[], remove=[], actor="sam") == MemberChange()
        assert await store.change_members(mine, B, add=hashes(1), remove=[], actor="sam") is None
        listed = await store.list_members(mine, A)
        assert [one.recipient_id_hash for one in listed] == sorted(hashes(1, 3, 4))
        assert {one.recipient_id_hash: one.identity for one in listed} == dict.fromkeys(hashes(3, 4)) | {
            known.recipient_id_hash: known.identity
        }
        assert await store.list_members(mine, A, after=listed[0].recipient_id_hash, limit=1) == [listed[1]]
        found = await store.find_group(mine, A)
        assert found is not None
        assert found.members == 3
        assert (await store.find_members(mine, [A]))[A] == tuple(sorted(hashes(1, 3, 4)))
        assert await log(harness) == [
            ("change", f"members of group {A}", {"added": sorted(hashes(1, 2, 3)), "removed": []}),
            ("change", f"members of group {A}", {"added": hashes(4), "removed": hashes(2)}),
        ]

    async def test_a_thousand_come_at_once_and_no_more(self, harness: StoreHarness) -> None:
        """Of so many the log says the number."""
        store, mine = harness.store, harness.tenant_id
        await store.put_group(mine, guid=A, name="a group")
        many = hashes(*range(ITEMS_MAX))
        changed = await store.change_members(mine, A, add=many, remove=[], actor="sam")
        assert changed == MemberChange(added=ITEMS_MAX, unknown=ITEMS_MAX)
        with pytest.raises(InvalidInput, match="1001 items"):
            await store.change_members(mine, A, add=hashes(*range(ITEMS_MAX + 1)), remove=[], actor="sam")
        assert await log(harness) == [("change", f"members of group {A}", {"added": ITEMS_MAX, "removed": []})]

    async def test_a_removed_group_takes_its_members_and_its_places_along(self, harness: StoreHarness) -> None:
        """A group that is put under its guid later begins empty, and is inside nothing."""
        store, mine = harness.store, harness.tenant_id
        await put(harness, C)
        await store.put_group(mine, guid=B, name="b", members=hashes(1, 2), children=[C])
        await put(harness, A, B, C)
        assert await store.remove_group(mine, B, actor="sam")
        assert await inside(harness, A) == (C,)
        await store.put_group(mine, guid=B, name="b")
        assert await store.find_group(mine, B) == GroupDetails(guid=B, name="b")

    async def test_editors_of_one_group_at_once_all_come_through(self, harness: StoreHarness) -> None:
        """Each takes out whom another adds: none of them waits for one who waits for it."""
        store, mine = harness.store, harness.tenant_id
        await store.put_group(mine, guid=A, name="a group", members=hashes(*range(0, 50, 2)))

        async def edit(add: Sequence[str], remove: Sequence[str]) -> MemberChange | None:
            return await store.change_members(mine, A, add=add, remove=remove, actor="sam")

        even, odd = hashes(*range(0, 50, 2)), hashes(*range(1, 50, 2))
        await asyncio.gather(*(edit(*pair) for pair in [(odd, even), (even, odd)] * 4))
        members = [one.recipient_id_hash for one in await store.list_members(mine, A)]
        assert members in (sorted(even), sorted(odd))


class NestingContract:
    """Groups inside groups."""

    @pytest.mark.parametrize("length", [2, 3, 4])
    async def test_a_circle_is_refused_however_long_it_is(self, harness: StoreHarness, length: int) -> None:
        """The error names the way that leads back, and nothing changes."""
        circle = (A, B, C, D)[:length]
        for one in circle:
            await put(harness, one)
        for outer, inner in pairwise(circle):
            await put(harness, outer, inner)
        before = await log(harness)
        with pytest.raises(InvalidInput, match=f"the group {circle[0]} holds the group {circle[-1]} already"):
            await put(harness, circle[-1], circle[0])
        assert await inside(harness, circle[-1]) == ()
        assert await log(harness) == before

    async def test_a_group_inside_itself_and_one_that_is_not_there_are_refused(self, harness: StoreHarness) -> None:
        """By name; another tenant's group is not there."""
        await put(harness, A)
        await harness.store.put_group(f"{harness.tenant_id}-2", guid=B, name="theirs")
        with pytest.raises(InvalidInput, match="a group cannot be inside itself"):
            await put(harness, A, A)
        for strange in (B, C):
            with pytest.raises(InvalidInput, match=f"there is no group {strange}"):
                await put(harness, A, strange)
            with pytest.raises(InvalidInput, match=f"there is no group {strange}"):
                await harness.store.change_group(harness.tenant_id, A, children=[strange], actor="sam")
        assert await inside(harness, A) == ()

    async def test_the_same_group_by_two_ways_is_no_circle(self, harness: StoreHarness) -> None:
        """Whoever is in it is in the outer one once."""
        for one in (D, C, B):
            await put(harness, one)
        await put(harness, B, D)
        await put(harness, C, D)
        await put(harness, A, B, C, D)
        assert await inside(harness, A) == tuple(sorted((B, C, D)))

    async def test_groups_lie_inside_each_other_to_a_bound(self, harness: StoreHarness) -> None:
        """Wherever in the chain the one too many is put: at its foot, at its head or between two halves."""
        chain = [guid(n, "chain") for n in range(DEEP + 1)]
        for one in chain:
            await put(harness, one)
        for outer, inner in pairwise(chain[:DEEP]):
            await put(harness, outer, inner)
        deep = f"{DEEP + 1} deep"
        with pytest.raises(InvalidInput, match=deep):
            await put(harness, chain[DEEP - 1], chain[DEEP])
        with pytest.raises(InvalidInput, match=deep):
            await put(harness, chain[DEEP], chain[0])
        await put(harness, chain[3])  # two halves
        await put(harness, chain[DEEP], chain[4])
        with pytest.raises(InvalidInput, match=deep):
            await put(harness, chain[3], chain[DEEP])
        await put(harness, chain[2], chain[DEEP])
        assert await inside(harness, chain[2]) == (chain[DEEP],)

    async def test_of_two_who_close_a_circle_at_once_one_is_refused(self, harness: StoreHarness) -> None:
        """Each of them alone would be right."""
        for one in (A, B):
            await put(harness, one)
        answers = await asyncio.gather(put(harness, A, B), put(harness, B, A), return_exceptions=True)
        assert [type(answer) for answer in answers if answer is not None] == [InvalidInput]
        assert sorted((await inside(harness, A), await inside(harness, B))) in ([(), (A,)], [(), (B,)])


class BelongingContract:
    """Business units, roles and relations."""

    async def test_a_business_unit_is_put_and_found_with_an_entry_for_each_change(self, harness: StoreHarness) -> None:
        """Its members stay whatever it is called."""
        store, mine = harness.store, harness.tenant_id
        for changed in (True, False):
            assert await store.put_business_unit(mine, NORTH, actor="sam") is changed
        await store.change_unit_members(mine, NORTH.guid, add=hashes(1), remove=[], actor="sam")
        bare = BusinessUnit(guid=NORTH.guid, name="N")
        for changed in (True, False):
            assert await store.put_business_unit(mine, bare, actor="sam") is changed
        assert await store.find_business_unit(mine, NORTH.guid) == bare
        assert await store.find_business_unit(mine, guid(2, "unit")) is None
        assert len(await store.list_unit_members(mine, NORTH.guid)) == 1
        assert await log(harness) == [
            ("put", f"business unit {NORTH.guid}", {"name": "North", "locale": "de", "zone": "Europe/Vienna"}),
            ("change", f"members of business unit {NORTH.guid}", {"added": hashes(1), "removed": []}),
            ("put", f"business unit {NORTH.guid}", {"name": "N"}),
        ]

    async def test_a_business_unit_changes_in_what_is_named_of_it(self, harness: StoreHarness) -> None:
        """Each change has its entry with the whole; the same again has none, and nobody else's unit is there."""
        store, mine = harness.store, harness.tenant_id
        await store.put_business_unit(mine, NORTH)
        moved = msgspec.structs.replace(NORTH, tz_id=None)
        for _ in range(2):
            assert await store.change_business_unit(mine, NORTH.guid, UnitChange(tz_id=None), actor="sam") == moved
        named = msgspec.structs.replace(moved, name="N")
        assert await store.change_business_unit(mine, NORTH.guid, UnitChange(name="N"), actor="sam") == named
        assert await store.find_business_unit(mine, NORTH.guid) == named
        assert await store.change_business_unit(f"{mine}-2", NORTH.guid, UnitChange(name="X"), actor="sam") is None
        assert await log(harness) == [
            ("put", f"business unit {NORTH.guid}", {"name": "North", "locale": "de"}),
            ("put", f"business unit {NORTH.guid}", {"name": "N", "locale": "de"}),
        ]

    async def test_units_are_listed_page_by_page_by_name(self, harness: StoreHarness) -> None:
        """Those of one name by their guids; none is left out or listed twice."""
        names = ("b", TEXT, "a", "a", "Z")
        units = [BusinessUnit(guid=guid(n, "unit"), name=name) for n, name in enumerate(names)]
        for unit in units:
            await harness.store.put_business_unit(harness.tenant_id, unit)
        found: list[BusinessUnit] = []
        after: tuple[str, UUID] | None = None
        while page := await harness.store.list_business_units(harness.tenant_id, after=after, limit=2):
            found += page
            after = page[-1].name, page[-1].guid
        assert found == sorted(units, key=lambda one: (one.name.encode(), one.guid))

    async def test_members_of_a_unit_come_and_go(self, harness: StoreHarness) -> None:
        """Of one that is there."""
        store, mine = harness.store, harness.tenant_id
        await store.put_business_unit(mine, NORTH)
        change = store.change_unit_members
        assert await change(mine, NORTH.guid, add=hashes(1, 2), remove=[]) == MemberChange(added=2, unknown=2)
        assert await change(mine, NORTH.guid, add=hashes(2), remove=hashes(1)) == MemberChange(
            removed=1, unchanged=1, unknown=1
        )
        assert await change(mine, guid(2, "unit"), add=hashes(1), remove=[]) is None
        assert [one.recipient_id_hash for one in await store.list_unit_members(mine, NORTH.guid)] == hashes(2)

    async def test_a_role_is_held_in_one_unit_or_everywhere_and_these_are_two(self, harness: StoreHarness) -> None:
        """Whoever holds it in one loses nothing in the other."""
        store, mine = harness.store, harness.tenant_id
        await store.put_business_unit(mine, NORTH)

        async def change(unit: UUID | None, *, add: list[str], remove: list[str]) -> MemberChange | None:
            return await store.change_holders(mine, "teacher", unit=unit, add=add, remove=remove, actor="sam")

        assert await change(None, add=hashes(1), remove=[]) == MemberChange(added=1, unknown=1)
        assert await change(NORTH.guid, add=hashes(1, 2), remove=[]) == MemberChange(added=2, unknown=2)
        assert await change(NORTH.guid, add=[], remove=hashes(1, 3)) == MemberChange(removed=1, unchanged=1)
        assert await change(guid(2, "unit"), add=hashes(1), remove=[]) is None

        async def holders(role: str, unit: UUID | None) -> list[str]:
            return [one.recipient_id_hash for one in await store.list_holders(mine, role, unit=unit)]

        assert await holders("teacher", None) == hashes(1)
        assert await holders("teacher", NORTH.guid) == hashes(2)
        assert await holders("head", None) == []
        await store.change_holders(mine, "head", unit=None, add=hashes(1, 2, 3), remove=[], actor="sam")
        lines = [(one.role, one.unit, one.holders) for one in await store.list_roles(mine)]
        assert lines == [("head", "", 3), ("teacher", "", 1), ("teacher", str(NORTH.guid), 1)]
        assert [(one.role, one.unit) for one in await store.list_roles(mine, after=("teacher", ""), limit=1)] == [
            ("teacher", str(NORTH.guid))
        ]
        assert [subject for _, subject, _ in await log(harness)] == [
            "members of role teacher",
            f"members of role teacher in business unit {NORTH.guid}",
            f"members of role teacher in business unit {NORTH.guid}",
            "members of role head",
        ]

    async def test_relations_come_and_go_and_are_listed_by_thing_and_by_person(self, harness: StoreHarness) -> None:
        """The same relation again is none; of things with one guid and two types each has its own."""
        store, mine = harness.store, harness.tenant_id
        child = guid(1, "child")
        known = person(1)
        await store.put_people(mine, [known])

        def of(n: int, relation: str = "guardian", kind: str = "child") -> Relation:
            return Relation(
                entity_type=kind, entity_guid=child, relation=relation, recipient_id_hash=person(n).recipient_id_hash
            )

        all_of_them = [of(1), of(2), of(1, "teacher"), of(1, kind="pet"), of(2)]
        assert await store.change_relations(mine, add=all_of_them, remove=[], actor="sam") == MemberChange(
            added=4, unknown=1
        )
        changed = await store.change_relations(mine, add=[of(1)], remove=[of(2), of(3)], actor="sam")
        assert changed == MemberChange(removed=1, unchanged=2)
        of_child = await store.list_relations(mine, ("child", child))
        assert [(one.relation, one.identity) for one in of_child] == [
            ("guardian", known.identity),
            ("teacher", known.identity),
        ]
        after = (of_child[0].relation, of_child[0].recipient_id_hash)
        assert await store.list_relations(mine, ("child", child), after=after, limit=1) == of_child[1:]
        of_person = await store.list_relations_of(mine, known.recipient_id_hash)
        assert [(one.entity_type, one.relation) for one in of_person] == [
            ("child", "guardian"),
            ("child", "teacher"),
            ("pet", "guardian"),
        ]
        place = (of_person[1].entity_type, of_person[1].entity_guid, of_person[1].relation)
        assert await store.list_relations_of(mine, known.recipient_id_hash, after=place) == of_person[2:]
        assert await store.list_relations(mine, ("cat", child)) == []
        assert await store.change_relations(mine, add=[], remove=[], actor="sam") == MemberChange()
        came, went = await log(harness)
        assert came[:2] == went[:2] == ("change", "relations")
        assert went[2] == {"added": [], "removed": [f"guardian of child:{child}: {person(2).recipient_id_hash}"]}

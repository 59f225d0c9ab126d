"""Operations on who belongs together that chance can put together, and the questions about it."""

from typing import Final
from uuid import UUID

import msgspec
from hypothesis import strategies as st

from clarion.domain.group import Relation
from clarion.domain.person import BusinessUnit, LocalForm, UnitChange
from clarion.testing.contracts.side import Operation, Side
from clarion.testing.factories import address_version, guid

PEOPLE: Final = range(1, 5)
GROUPS: Final = range(1, 4)
PAGE: Final = 3
"""Small, so that most lists have a second page."""


class PutUnit(msgspec.Struct, frozen=True):
    """Put a business unit, and say how the tenant's people read."""

    unit: int
    locale: str | None

    async def run(self, side: Side) -> object:
        """Put it."""
        unit = BusinessUnit(guid=guid(self.unit, "unit"), name=f"unit {self.locale}", locale=self.locale)
        await side.store.put_business_unit(side.tenant_id, unit, actor="sam")
        renamed = UnitChange(name=f"unit {self.locale} {self.unit}")
        await side.store.change_business_unit(side.tenant_id, unit.guid, renamed, actor="kim")
        return await side.store.set_tenant_form(side.tenant_id, LocalForm(tz_id=self.locale), actor="sam")


class PutGroup(msgspec.Struct, frozen=True):
    """Put a group of people, known or not, and of groups, which may make a circle."""

    group: int
    members: tuple[int, ...]
    children: tuple[int, ...] | None = None

    async def run(self, side: Side) -> object:
        """Put it."""
        members = [address_version(n).recipient_id_hash for n in self.members]
        children = None if self.children is None else [guid(n, "group") for n in self.children]
        name = f"group of {len(members)}"
        put = side.store.put_group
        return await put(
            side.tenant_id,
            guid=guid(self.group, "group"),
            name=name,
            members=members,
            children=children,
            actor="sam",
        )


class ChangeGroup(msgspec.Struct, frozen=True):
    """Change a group that may be there, or remove it."""

    group: int
    name: str | None
    children: tuple[int, ...] | None
    is_removed: bool

    async def run(self, side: Side) -> object:
        """Change it."""
        one = guid(self.group, "group")
        if self.is_removed:
            return await side.store.remove_group(side.tenant_id, one, actor="sam")
        children = None if self.children is None else [guid(n, "group") for n in self.children]
        return await side.store.change_group(side.tenant_id, one, name=self.name, children=children, actor="sam")


class ChangeMembers(msgspec.Struct, frozen=True):
    """Add people to a group, a business unit, a role and a thing's relatives, and take others out."""

    place: int
    add: tuple[int, ...]
    remove: tuple[int, ...]

    async def run(self, side: Side) -> object:
        """Change them all, the role once in the unit and once everywhere."""
        store, tenant_id, unit = side.store, side.tenant_id, guid(self.place, "unit")
        add, remove = ([address_version(n).recipient_id_hash for n in some] for some in (self.add, self.remove))
        came, went = (
            [
                Relation(entity_type="child", entity_guid=unit, relation=f"of {len(some)}", recipient_id_hash=one)
                for one in some
            ]
            for some in (add, remove)
        )
        return [
            await store.change_members(tenant_id, guid(self.place, "group"), add=add, remove=remove, actor="sam"),
            await store.change_unit_members(tenant_id, unit, add=add, remove=remove, actor="sam"),
            await store.change_holders(tenant_id, "teacher", unit=unit, add=add, remove=remove, actor="sam"),
            await store.change_holders(tenant_id, "teacher", unit=None, add=remove, remove=add),
            await store.change_relations(tenant_id, add=came, remove=went, actor="sam"),
        ]


async def about_groups(side: Side) -> dict[str, object]:
    """Ask who belongs where, page by page."""
    store, tenant_id, units = side.store, side.tenant_id, [guid(n, "unit") for n in GROUPS]
    first = await store.list_groups(tenant_id, limit=1)
    return {
        "each group": [await store.find_group(tenant_id, guid(n, "group")) for n in GROUPS],
        "first groups": first,
        "later groups": await store.list_groups(tenant_id, after=first[-1].guid if first else None),
        "members": [await store.list_members(tenant_id, guid(n, "group"), limit=PAGE) for n in GROUPS],
        "later units": await store.list_business_units(tenant_id, after=("unit None", UUID(int=0))),
        "each unit": [await store.find_business_unit(tenant_id, unit) for unit in units],
        "unit members": [await store.list_unit_members(tenant_id, unit) for unit in units],
        "roles": await store.list_roles(tenant_id),
        "later roles": await store.list_roles(tenant_id, after=("teacher", "")),
        "holders": [await store.list_holders(tenant_id, "teacher", unit=unit) for unit in (None, *units)],
        "relations": [await store.list_relations(tenant_id, ("child", unit), limit=PAGE) for unit in units],
        "relations of people": [
            await store.list_relations_of(tenant_id, address_version(n).recipient_id_hash) for n in PEOPLE
        ],
    }


_N: Final = st.integers(1, len(PEOPLE))
_GROUP: Final = st.integers(1, len(GROUPS))
_CHILDREN: Final = st.none() | st.lists(_GROUP, max_size=2, unique=True).map(tuple)
GROUP_OPERATIONS: Final[tuple[tuple[int, st.SearchStrategy[Operation]], ...]] = (
    (3, st.builds(PutUnit, unit=st.integers(1, len(GROUPS)), locale=st.sampled_from((None, "de", "fr-CA")))),
    (
        4,
        st.builds(PutGroup, group=_GROUP, members=st.lists(_N, max_size=4).map(tuple), children=_CHILDREN),
    ),
    (
        2,
        st.builds(
            ChangeGroup,
            group=_GROUP,
            name=st.sampled_from((None, "renamed")),
            children=_CHILDREN,
            is_removed=st.booleans(),
        ),
    ),
    (
        4,
        st.builds(
            ChangeMembers,
            place=_GROUP,
            add=st.lists(_N, max_size=3).map(tuple),
            remove=st.lists(_N, max_size=3).map(tuple),
        ),
    ),
)
"""Each with how often it is drawn."""

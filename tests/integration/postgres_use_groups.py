"""Everything that a PostgreSQL store can do about who belongs together, done once."""

from uuid import UUID

from clarion.adapters.stores.postgres import PostgresStore
from clarion.domain.group import Relation
from clarion.testing import factories as make
from tests.integration.postgres_fill import TENANT


async def use_groups(store: PostgresStore, group: UUID, unit: UUID, one: str) -> None:
    """Change and list who belongs where."""
    add, remove = [one], [make.address_version(2).recipient_id_hash]
    assert await store.change_group(TENANT, group, name=f"renamed {one}", children=[]) is not None
    assert await store.find_group(TENANT, group)
    first = await store.list_groups(TENANT)
    assert await store.list_groups(TENANT, after=first[0].guid)
    assert await store.change_members(TENANT, group, add=add, remove=remove)
    assert await store.list_members(TENANT, group)
    assert await store.find_business_unit(TENANT, unit)
    assert await store.list_business_units(TENANT, after=("", unit))
    assert await store.change_unit_members(TENANT, unit, add=add, remove=remove)
    assert await store.list_unit_members(TENANT, unit)
    assert await store.change_holders(TENANT, "teacher", unit=unit, add=add, remove=remove)
    assert await store.list_holders(TENANT, "teacher", unit=unit)
    assert await store.list_roles(TENANT)
    related, strange = (
        Relation(entity_type="child", entity_guid=unit, relation="guardian", recipient_id_hash=some)
        for some in (*add, *remove)
    )
    await store.change_relations(TENANT, add=[related], remove=[strange])
    assert await store.list_relations(TENANT, related.entity)
    assert await store.list_relations_of(TENANT, one)
    assert await store.remove_group(TENANT, make.guid(2, "group"))

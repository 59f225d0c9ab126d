"""Roles that people hold, and what they are to things, such as the guardian of a child. Every change is audited."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from clarion.client import wire, wire_groups
from clarion.domain.audience import HELD_EVERYWHERE, EntityKey
from clarion.domain.group import Relation, RelationLine, check_thing, check_word, read_entity
from clarion.domain.identity import read_person
from clarion.domain.seal import TenantKeys
from clarion.errors import InvalidInput
from clarion.operations import page
from clarion.operations.groups import as_change, hashes, members_page, named
from clarion.operations.shape import as_wire
from clarion.ports.store import Store
from clarion.sealing.keyring import Keyring

ROLES: Final = "roles"


class Roles:
    """Who holds a role, in the whole tenant or in one business unit."""

    def __init__(self, store: Store, keyring: Keyring) -> None:
        """Work on this store; hash people under these keys."""
        self._store = store
        self._keyring = keyring

    async def list(self, tenant_id: str, query: wire.PageQuery) -> wire_groups.RolePage:
        """List the roles that anybody holds."""
        role, _, unit = page.read(ROLES, query.cursor, start="").rpartition(":")
        found = await self._store.list_roles(tenant_id, after=(role, unit), limit=query.limit + 1)
        lines, following = page.cut(ROLES, found, query.limit, lambda one: f"{one.role}:{one.unit}")
        items = tuple(as_wire(one, wire_groups.RoleLine, business_unit=_unit(one.unit)) for one in lines)
        return wire_groups.RolePage(items=items, next_cursor=following)

    async def list_holders(
        self, tenant_id: str, role: str, query: wire_groups.HoldersPageQuery
    ) -> wire_groups.MemberPage:
        """List who holds a role; nobody has to, so one that nobody holds has an empty list."""
        check_word(role, field="role")
        name = f"holders {role} {query.business_unit or ''}"
        after = page.read(name, query.cursor, start="")
        found = await self._store.list_holders(
            tenant_id, role, unit=query.business_unit, after=after, limit=query.limit + 1
        )
        return members_page(name, found, query.limit)

    async def change_holders(
        self,
        tenant_id: str,
        role: str,
        request: wire_groups.MembersRequest,
        *,
        unit: UUID | None,
        actor: str,
    ) -> wire_groups.MembersChange:
        """Give people a role, and take it from others."""
        check_word(role, field="role")
        add, remove = hashes(await self._keyring.get(tenant_id), request)
        changed = await self._store.change_holders(tenant_id, role, unit=unit, add=add, remove=remove, actor=actor)
        answer = as_change(changed)
        if answer is None:
            raise InvalidInput(f"there is no business unit {unit}", field="business_unit", hint="put that unit first")
        return answer


class Relations:
    """What people are to things."""

    def __init__(self, store: Store, keyring: Keyring) -> None:
        """Work on this store; hash people under these keys."""
        self._store = store
        self._keyring = keyring

    async def list(self, tenant_id: str, query: wire_groups.RelationQuery) -> wire_groups.RelationPage:
        """List who is related to a thing, or to what somebody is related."""
        if (query.entity is None) == (query.person is None):
            raise InvalidInput(
                "it is exactly one of entity and person",
                field="entity",
                hint="name a thing as TYPE:GUID, or a person as user:ID",
            )
        if query.entity is not None:
            return await self._of_thing(tenant_id, read_entity(query.entity, field="entity"), query)
        return await self._of_person(tenant_id, query.person or "", query)

    async def _of_thing(
        self, tenant_id: str, entity: EntityKey, query: wire_groups.RelationQuery
    ) -> wire_groups.RelationPage:
        name = f"relations {entity[0]}:{entity[1]}"
        relation, _, last = page.read(name, query.cursor, start="").rpartition(":")
        found = await self._store.list_relations(tenant_id, entity, after=(relation, last), limit=query.limit + 1)
        lines, following = page.cut(name, found, query.limit, lambda one: f"{one.relation}:{one.recipient_id_hash}")
        return _page(lines, following)

    async def _of_person(
        self, tenant_id: str, person: str, query: wire_groups.RelationQuery
    ) -> wire_groups.RelationPage:
        keys = await self._keyring.get(tenant_id)
        person_hash = keys.hash_of(read_person(person, field="person"))
        name = f"relations of {person_hash}"
        place = page.read(name, query.cursor, start="")
        after = None
        if place:
            with page.taken_apart():
                kind, guid, relation = place.rsplit(":", 2)
                after = (kind, UUID(guid), relation)
        found = await self._store.list_relations_of(tenant_id, person_hash, after=after, limit=query.limit + 1)
        lines, following = page.cut(
            name, found, query.limit, lambda one: f"{one.entity_type}:{one.entity_guid}:{one.relation}"
        )
        return _page(lines, following)

    async def change(
        self, tenant_id: str, request: wire_groups.RelationsRequest, *, actor: str
    ) -> wire_groups.MembersChange:
        """Add relations and remove others."""
        keys = await self._keyring.get(tenant_id)
        add, remove = _relations(keys, request.add, field="add"), _relations(keys, request.remove, field="remove")
        for place, one in enumerate(remove):
            if one in set(add):
                raise InvalidInput("it is to be added too", field=f"remove[{place}]", hint="say one of the two")
        changed = await self._store.change_relations(tenant_id, add=add, remove=remove, actor=actor)
        return as_wire(changed, wire_groups.MembersChange)


def _relations(keys: TenantKeys, given: Sequence[wire_groups.Relation], *, field: str) -> list[Relation]:
    return [
        Relation(
            entity_type=check_thing(one.entity.type, field=f"{field}[{place}].entity.type"),
            entity_guid=one.entity.guid,
            relation=check_word(one.relation, field=f"{field}[{place}].relation"),
            recipient_id_hash=keys.hash_of(read_person(one.person, field=f"{field}[{place}].person")),
        )
        for place, one in enumerate(given)
    ]


def _page(lines: Sequence[RelationLine], following: str | None) -> wire_groups.RelationPage:
    items = tuple(
        wire_groups.RelationLine(
            entity=wire_groups.Thing(type=one.entity_type, guid=one.entity_guid),
            relation=one.relation,
            person=named(one.identity),
        )
        for one in lines
    )
    return wire_groups.RelationPage(items=items, next_cursor=following)


def _unit(held_in: str) -> UUID | None:
    return None if held_in == HELD_EVERYWHERE else UUID(held_in)

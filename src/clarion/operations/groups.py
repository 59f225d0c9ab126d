"""Groups, business units, roles and relations: who belongs together. Every change is audited.

People are named as `user:ID` or `employee:GUID` and stored by their hashes. Whether somebody is known is asked when a
message is made; the answer to a change counts those who are not.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from msgspec import UNSET

from clarion.catalog.local_form import LocalForms
from clarion.client import wire, wire_groups
from clarion.domain import group as domain
from clarion.domain.group import Member, MemberChange
from clarion.domain.identity import Identity, read_person
from clarion.domain.person import BusinessUnit, LocalForm, UnitChange
from clarion.domain.seal import TenantKeys
from clarion.errors import InvalidInput
from clarion.operations import page
from clarion.operations.shape import as_wire
from clarion.ports.group import GroupStore
from clarion.ports.store import Store
from clarion.sealing.keyring import Keyring

GROUPS: Final = "groups"
UNITS: Final = "units"


class Groups:
    """Groups and their members."""

    def __init__(self, store: Store, keyring: Keyring) -> None:
        """Work on this store; hash people under these keys."""
        self._store = store
        self._keyring = keyring

    async def list(self, tenant_id: str, query: wire.PageQuery) -> wire_groups.GroupPage:
        """List the groups."""
        after = page.read_guid(GROUPS, query.cursor)
        found = await self._store.list_groups(tenant_id, after=after, limit=query.limit + 1)
        lines, following = page.cut(GROUPS, found, query.limit, lambda one: one.guid.hex)
        items = tuple(as_wire(line, wire_groups.GroupLine) for line in lines)
        return wire_groups.GroupPage(items=items, next_cursor=following)

    async def find(self, tenant_id: str, guid: UUID) -> wire_groups.Group | None:
        """Show a group with what lies inside it."""
        found = await self._store.find_group(tenant_id, guid)
        return None if found is None else as_wire(found, wire_groups.Group, groups=found.children)

    async def put(
        self, tenant_id: str, guid: UUID, request: wire_groups.GroupRequest, *, actor: str
    ) -> wire_groups.Group | None:
        """Make a group or replace its name and the groups inside it; its members stay."""
        name = domain.check_name(request.name, field="name")
        await self._store.put_group(tenant_id, guid=guid, name=name, children=request.groups, actor=actor)
        return await self.find(tenant_id, guid)

    async def change(
        self, tenant_id: str, guid: UUID, request: wire_groups.GroupChange, *, actor: str
    ) -> wire_groups.Group | None:
        """Change what is named of a group."""
        name = None if request.name is None else domain.check_name(request.name, field="name")
        await self._store.change_group(tenant_id, guid, name=name, children=request.groups, actor=actor)
        return await self.find(tenant_id, guid)

    async def remove(self, tenant_id: str, guid: UUID, *, actor: str) -> bool:
        """Remove a group, with its members and from the groups that hold it."""
        return await self._store.remove_group(tenant_id, guid, actor=actor)

    async def list_members(self, tenant_id: str, guid: UUID, query: wire.PageQuery) -> wire_groups.MemberPage | None:
        """List a group's own members."""
        name = f"members {guid.hex}"
        after = page.read(name, query.cursor, start="")
        found = await self._store.list_members(tenant_id, guid, after=after, limit=query.limit + 1)
        if not found and await self._store.find_group(tenant_id, guid) is None:
            return None
        return members_page(name, found, query.limit)

    async def change_members(
        self, tenant_id: str, guid: UUID, request: wire_groups.MembersRequest, *, actor: str
    ) -> wire_groups.MembersChange | None:
        """Add people to a group and take others out."""
        add, remove = hashes(await self._keyring.get(tenant_id), request)
        changed = await self._store.change_members(tenant_id, guid, add=add, remove=remove, actor=actor)
        return as_change(changed)


class Units:
    """Business units with their members, and how a tenant's people read."""

    def __init__(self, store: Store, keyring: Keyring) -> None:
        """Work on this store; hash people under these keys."""
        self._store = store
        self._keyring = keyring
        self._forms = LocalForms(store)

    async def find_tenant(self, tenant_id: str) -> wire_groups.Tenant | None:
        """Show the tenant."""
        form = (await self._store.find_local_forms(tenant_id, [])).get(None)
        if form is None:
            return None
        return wire_groups.Tenant(tenant_id=tenant_id, locale=form.locale, zone=form.tz_id)

    async def put_tenant(
        self, tenant_id: str, request: wire_groups.TenantRequest, *, actor: str
    ) -> wire_groups.Tenant | None:
        """Set the language and the zone of a tenant's people."""
        await self._forms.set_tenant(tenant_id, LocalForm(locale=request.locale, tz_id=request.zone), actor=actor)
        return await self.find_tenant(tenant_id)

    async def list(self, tenant_id: str, query: wire.PageQuery) -> wire_groups.UnitPage:
        """List the business units, by name."""
        place = page.read(UNITS, query.cursor, start="")
        with page.taken_apart():
            after = (place[32:], UUID(hex=place[:32])) if place else None
        found = await self._store.list_business_units(tenant_id, after=after, limit=query.limit + 1)
        lines, following = page.cut(UNITS, found, query.limit, lambda one: f"{one.guid.hex}{one.name}")
        return wire_groups.UnitPage(items=tuple(map(_unit, lines)), next_cursor=following)

    async def find(self, tenant_id: str, guid: UUID) -> wire_groups.Unit | None:
        """Show a business unit."""
        found = await self._store.find_business_unit(tenant_id, guid)
        return None if found is None else _unit(found)

    async def put(
        self, tenant_id: str, guid: UUID, request: wire_groups.UnitRequest, *, actor: str
    ) -> wire_groups.Unit:
        """Make a business unit or replace what is known of it; its members stay."""
        form = LocalForm(locale=request.locale, tz_id=request.zone)
        name = domain.check_name(request.name, field="name")
        return _unit(await self._forms.put_unit(tenant_id, guid=guid, name=name, form=form, actor=actor))

    async def change(
        self, tenant_id: str, guid: UUID, request: wire_groups.UnitChange, *, actor: str
    ) -> wire_groups.Unit | None:
        """Change what is named of a business unit."""
        name = request.name if request.name is UNSET else domain.check_name(request.name, field="name")
        change = UnitChange(name=name, locale=request.locale, tz_id=request.zone)
        changed = await self._forms.change_unit(tenant_id, guid, change, actor=actor)
        return None if changed is None else _unit(changed)

    async def list_members(self, tenant_id: str, guid: UUID, query: wire.PageQuery) -> wire_groups.MemberPage | None:
        """List the members of a business unit."""
        name = f"unit members {guid.hex}"
        after = page.read(name, query.cursor, start="")
        found = await self._store.list_unit_members(tenant_id, guid, after=after, limit=query.limit + 1)
        if not found and await self._store.find_business_unit(tenant_id, guid) is None:
            return None
        return members_page(name, found, query.limit)

    async def change_members(
        self, tenant_id: str, guid: UUID, request: wire_groups.MembersRequest, *, actor: str
    ) -> wire_groups.MembersChange | None:
        """Add people to a business unit and take others out."""
        add, remove = hashes(await self._keyring.get(tenant_id), request)
        changed = await self._store.change_unit_members(tenant_id, guid, add=add, remove=remove, actor=actor)
        return as_change(changed)


def hashes(keys: TenantKeys, request: wire_groups.MembersRequest) -> tuple[list[str], list[str]]:
    """Hash those who come and those who go; refuse somebody who is to do both."""
    add = [read_person(text, field=f"add[{place}]") for place, text in enumerate(request.add)]
    remove = [read_person(text, field=f"remove[{place}]") for place, text in enumerate(request.remove)]
    coming = set(add)
    for place, identity in enumerate(remove):
        if identity in coming:
            raise InvalidInput("they are to be added too", field=f"remove[{place}]", hint="say one of the two")
    return [keys.hash_of(one) for one in add], [keys.hash_of(one) for one in remove]


def members_page(name: str, found: Sequence[Member], limit: int) -> wire_groups.MemberPage:
    """Make a page of those who belong somewhere."""
    lines, following = page.cut(name, found, limit, lambda one: one.recipient_id_hash)
    items = tuple(wire_groups.MemberLine(person=named(one.identity)) for one in lines)
    return wire_groups.MemberPage(items=items, next_cursor=following)


def named(identity: Identity | None) -> str | None:
    """Name somebody as callers do."""
    return None if identity is None else f"{identity.domain}:{identity.id}"


def as_change(change: MemberChange | None) -> wire_groups.MembersChange | None:
    """Give what came of a change."""
    return None if change is None else as_wire(change, wire_groups.MembersChange)


def _unit(unit: BusinessUnit) -> wire_groups.Unit:
    return as_wire(unit, wire_groups.Unit, zone=unit.tz_id)


async def is_group(groups: GroupStore, tenant_id: str, guid: UUID) -> bool:
    """Tell whether there is a group, without counting its members."""
    behind = None if guid.int == 0 else UUID(int=guid.int - 1)
    first = await groups.list_groups(tenant_id, after=behind, limit=1)
    return bool(first) and first[0].guid == guid

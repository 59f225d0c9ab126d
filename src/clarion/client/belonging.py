"""What the client does about groups, business units, roles and relations: methods of `connection.Client`."""

from collections.abc import Sequence
from typing import Protocol
from urllib.parse import quote
from uuid import UUID

from clarion.client import wire_groups
from clarion.client.transport import Transport


class Connected(Protocol):
    """Whoever makes requests: the client."""

    transport: Transport


async def groups(client: Connected, *, cursor: str | None = None) -> wire_groups.GroupPage:
    """List groups, page by page."""
    return await client.transport.ask("GET", "/v1/groups", wire_groups.GroupPage, query={"cursor": cursor})


async def group(client: Connected, guid: UUID) -> wire_groups.Group:
    """Show a group."""
    return await client.transport.ask("GET", f"/v1/groups/{guid}", wire_groups.Group)


async def put_group(client: Connected, guid: UUID, *, name: str, groups: Sequence[UUID] = ()) -> wire_groups.Group:
    """Make a group, or replace its name and the groups inside it; its members stay."""
    body = wire_groups.GroupRequest(name=name, groups=tuple(groups))
    return await client.transport.ask("PUT", f"/v1/groups/{guid}", wire_groups.Group, body=body, again=True)


async def change_group(
    client: Connected, guid: UUID, *, name: str | None = None, groups: Sequence[UUID] | None = None
) -> wire_groups.Group:
    """Change what a group is called, or which groups lie inside it; what is None stays."""
    body = wire_groups.GroupChange(name=name, groups=None if groups is None else tuple(groups))
    return await client.transport.ask("PATCH", f"/v1/groups/{guid}", wire_groups.Group, body=body, again=True)


async def remove_group(client: Connected, guid: UUID) -> None:
    """Remove a group; asked for once, because a second time there is none."""
    await client.transport.request("DELETE", f"/v1/groups/{guid}", again=False)


async def members(client: Connected, guid: UUID, *, cursor: str | None = None) -> wire_groups.MemberPage:
    """List a group's own members, page by page."""
    return await client.transport.ask(
        "GET", f"/v1/groups/{guid}/members", wire_groups.MemberPage, query={"cursor": cursor}
    )


async def change_members(
    client: Connected, guid: UUID, *, add: Sequence[str] = (), remove: Sequence[str] = ()
) -> wire_groups.MembersChange:
    """Add people (`user:ID`, `employee:GUID`) to a group and take others out, up to a thousand each."""
    return await _change(client, f"/v1/groups/{guid}/members", add=add, remove=remove)


async def units(client: Connected, *, cursor: str | None = None) -> wire_groups.UnitPage:
    """List business units, page by page."""
    return await client.transport.ask("GET", "/v1/units", wire_groups.UnitPage, query={"cursor": cursor})


async def unit(client: Connected, guid: UUID) -> wire_groups.Unit:
    """Show a business unit."""
    return await client.transport.ask("GET", f"/v1/units/{guid}", wire_groups.Unit)


async def put_unit(
    client: Connected, guid: UUID, *, name: str, locale: str | None = None, zone: str | None = None
) -> wire_groups.Unit:
    """Make a business unit, or replace its name, language and zone; its members stay."""
    body = wire_groups.UnitRequest(name=name, locale=locale, zone=zone)
    return await client.transport.ask("PUT", f"/v1/units/{guid}", wire_groups.Unit, body=body, again=True)


async def change_unit(client: Connected, guid: UUID, change: wire_groups.UnitChange) -> wire_groups.Unit:
    """Change a business unit in part."""
    return await client.transport.ask("PATCH", f"/v1/units/{guid}", wire_groups.Unit, body=change, again=True)


async def unit_members(client: Connected, guid: UUID, *, cursor: str | None = None) -> wire_groups.MemberPage:
    """List the members of a business unit, page by page."""
    return await client.transport.ask(
        "GET", f"/v1/units/{guid}/members", wire_groups.MemberPage, query={"cursor": cursor}
    )


async def change_unit_members(
    client: Connected, guid: UUID, *, add: Sequence[str] = (), remove: Sequence[str] = ()
) -> wire_groups.MembersChange:
    """Add people to a business unit and take others out, up to a thousand each."""
    return await _change(client, f"/v1/units/{guid}/members", add=add, remove=remove)


async def tenant(client: Connected) -> wire_groups.Tenant:
    """Show the tenant whose key it is."""
    return await client.transport.ask("GET", "/v1/tenant", wire_groups.Tenant)


async def put_tenant(client: Connected, *, locale: str | None, zone: str | None) -> wire_groups.Tenant:
    """Set the language and the zone of a tenant's people; None takes one away."""
    body = wire_groups.TenantRequest(locale=locale, zone=zone)
    return await client.transport.ask("PUT", "/v1/tenant", wire_groups.Tenant, body=body, again=True)


async def roles(client: Connected, *, cursor: str | None = None) -> wire_groups.RolePage:
    """List the roles that anybody holds, page by page."""
    return await client.transport.ask("GET", "/v1/roles", wire_groups.RolePage, query={"cursor": cursor})


async def holders(
    client: Connected, role: str, *, business_unit: UUID | None = None, cursor: str | None = None
) -> wire_groups.MemberPage:
    """List who holds a role in the whole tenant, or in a business unit, page by page."""
    query = {"business_unit": None if business_unit is None else str(business_unit), "cursor": cursor}
    return await client.transport.ask(
        "GET", f"/v1/roles/{quote(role, safe='')}/holders", wire_groups.MemberPage, query=query
    )


async def change_holders(
    client: Connected,
    role: str,
    *,
    business_unit: UUID | None = None,
    add: Sequence[str] = (),
    remove: Sequence[str] = (),
) -> wire_groups.MembersChange:
    """Give people a role and take it from others, up to a thousand each."""
    where = "" if business_unit is None else f"?business_unit={business_unit}"
    return await _change(client, f"/v1/roles/{quote(role, safe='')}/holders{where}", add=add, remove=remove)


async def relations(
    client: Connected, *, entity: str | None = None, person: str | None = None, cursor: str | None = None
) -> wire_groups.RelationPage:
    """List who is related to a thing (`TYPE:GUID`), or to what a person is related, page by page."""
    query = {"entity": entity, "person": person, "cursor": cursor}
    return await client.transport.ask("GET", "/v1/relations", wire_groups.RelationPage, query=query)


async def change_relations(
    client: Connected, *, add: Sequence[wire_groups.Relation] = (), remove: Sequence[wire_groups.Relation] = ()
) -> wire_groups.MembersChange:
    """Add relations of people to things and remove others, up to a thousand each."""
    body = wire_groups.RelationsRequest(add=tuple(add), remove=tuple(remove))
    return await client.transport.ask("PATCH", "/v1/relations", wire_groups.MembersChange, body=body, again=True)


async def _change(
    client: Connected, path: str, *, add: Sequence[str], remove: Sequence[str]
) -> wire_groups.MembersChange:
    """Add people somewhere and take others out."""
    body = wire_groups.MembersRequest(add=tuple(add), remove=tuple(remove))
    return await client.transport.ask("PATCH", path, wire_groups.MembersChange, body=body, again=True)

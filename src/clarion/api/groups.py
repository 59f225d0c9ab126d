"""Groups and business units with their members, and how a tenant's people read. Changes are audited."""

from http import HTTPStatus
from typing import Final
from uuid import UUID

from litestar import delete, get, patch, put
from litestar.params import FromPath

from clarion.api import example
from clarion.api.authentication import caller_of
from clarion.api.context import InjectedContext
from clarion.api.contract import Contract
from clarion.api.problem import found
from clarion.api.reading import AnyRequest, read_body, read_page, read_query
from clarion.catalog.access import Grant
from clarion.client import wire, wire_groups

MEMBERS_BYTES_MAX: Final = 1024 * 1024
"""A thousand people to add and a thousand to take out, by ids of 200 characters, are 420 kB."""


@get("/v1/groups", opt=Contract(tag="groups", grant=Grant.VIEW, query=wire.PageQuery, answer=example.GROUP_PAGE).opt)
async def list_groups(request: AnyRequest, context: InjectedContext) -> wire_groups.GroupPage:
    """List the groups, in the order of their guids."""
    return await context.operations.groups.list(*read_page(request, wire.PageQuery))


@get(
    "/v1/groups/{guid:uuid}",
    opt=Contract(tag="groups", grant=Grant.VIEW, problems=(HTTPStatus.NOT_FOUND,), answer=example.GROUP).opt,
)
async def get_group(guid: FromPath[UUID], request: AnyRequest, context: InjectedContext) -> wire_groups.Group:
    """Show a group: what it is called, which groups lie inside it, and how many members of its own it has."""
    return found(await context.operations.groups.find(caller_of(request).tenant_id, guid), "group")


@put(
    "/v1/groups/{guid:uuid}",
    opt=Contract(tag="groups", grant=Grant.PEOPLE, body=example.GROUP_REQUEST, answer=example.GROUP).opt,
)
async def put_group(guid: FromPath[UUID], request: AnyRequest, context: InjectedContext) -> wire_groups.Group:
    """Make a group, or replace its name and the groups inside it. Its members stay.

    A group cannot hold itself, also not by way of others, and groups lie inside each other at most 8 deep, because each
    level is looked up whenever something is sent to the outermost one.
    """
    caller = caller_of(request)
    body = await read_body(request, wire_groups.GroupRequest)
    return found(await context.operations.groups.put(caller.tenant_id, guid, body, actor=caller.actor), "group")


@patch(
    "/v1/groups/{guid:uuid}",
    opt=Contract(
        tag="groups",
        grant=Grant.PEOPLE,
        problems=(HTTPStatus.NOT_FOUND,),
        body=example.GROUP_CHANGE,
        answer=example.GROUP,
    ).opt,
)
async def change_group(guid: FromPath[UUID], request: AnyRequest, context: InjectedContext) -> wire_groups.Group:
    """Change what a group is called, or which groups lie inside it; what is left out stays."""
    caller = caller_of(request)
    body = await read_body(request, wire_groups.GroupChange)
    return found(await context.operations.groups.change(caller.tenant_id, guid, body, actor=caller.actor), "group")


@delete(
    "/v1/groups/{guid:uuid}",
    status_code=HTTPStatus.NO_CONTENT,
    opt=Contract(
        tag="groups",
        grant=Grant.PEOPLE,
        answer=None,
        status=HTTPStatus.NO_CONTENT,
        problems=(HTTPStatus.NOT_FOUND,),
    ).opt,
)
async def remove_group(guid: FromPath[UUID], request: AnyRequest, context: InjectedContext) -> None:
    """Remove a group, with its members and from the groups that hold it. The people themselves stay."""
    caller = caller_of(request)
    removed = await context.operations.groups.remove(caller.tenant_id, guid, actor=caller.actor)
    found(removed or None, "group")


@get(
    "/v1/groups/{guid:uuid}/members",
    opt=Contract(
        tag="groups",
        grant=Grant.VIEW,
        query=wire.PageQuery,
        problems=(HTTPStatus.NOT_FOUND,),
        answer=example.MEMBER_PAGE,
    ).opt,
)
async def list_members(guid: FromPath[UUID], request: AnyRequest, context: InjectedContext) -> wire_groups.MemberPage:
    """List a group's own members; those of groups inside it are theirs."""
    query = read_query(request, wire.PageQuery)
    return found(await context.operations.groups.list_members(caller_of(request).tenant_id, guid, query), "group")


@patch(
    "/v1/groups/{guid:uuid}/members",
    request_max_body_size=MEMBERS_BYTES_MAX,
    opt=Contract(
        tag="groups",
        grant=Grant.PEOPLE,
        problems=(HTTPStatus.NOT_FOUND,),
        body=example.MEMBERS_REQUEST,
        answer=example.MEMBERS_CHANGE,
    ).opt,
)
async def change_members(
    guid: FromPath[UUID], request: AnyRequest, context: InjectedContext
) -> wire_groups.MembersChange:
    """Add people to a group and take others out, up to a thousand each; everybody else stays. It can be repeated."""
    caller = caller_of(request)
    body = await read_body(request, wire_groups.MembersRequest)
    changed = await context.operations.groups.change_members(caller.tenant_id, guid, body, actor=caller.actor)
    return found(changed, "group")


@get("/v1/units", opt=Contract(tag="units", grant=Grant.VIEW, query=wire.PageQuery, answer=example.UNIT_PAGE).opt)
async def list_units(request: AnyRequest, context: InjectedContext) -> wire_groups.UnitPage:
    """List the business units, by name."""
    return await context.operations.units.list(*read_page(request, wire.PageQuery))


@get(
    "/v1/units/{guid:uuid}",
    opt=Contract(tag="units", grant=Grant.VIEW, problems=(HTTPStatus.NOT_FOUND,), answer=example.UNIT).opt,
)
async def get_unit(guid: FromPath[UUID], request: AnyRequest, context: InjectedContext) -> wire_groups.Unit:
    """Show a business unit."""
    return found(await context.operations.units.find(caller_of(request).tenant_id, guid), "business unit")


@put(
    "/v1/units/{guid:uuid}",
    opt=Contract(tag="units", grant=Grant.PEOPLE, body=example.UNIT_REQUEST, answer=example.UNIT).opt,
)
async def put_unit(guid: FromPath[UUID], request: AnyRequest, context: InjectedContext) -> wire_groups.Unit:
    """Make a business unit, or replace its name, language and zone. Its members stay."""
    caller = caller_of(request)
    body = await read_body(request, wire_groups.UnitRequest)
    return await context.operations.units.put(caller.tenant_id, guid, body, actor=caller.actor)


@patch(
    "/v1/units/{guid:uuid}",
    opt=Contract(
        tag="units",
        grant=Grant.PEOPLE,
        problems=(HTTPStatus.NOT_FOUND,),
        body=example.UNIT_CHANGE,
        answer=example.UNIT,
    ).opt,
)
async def change_unit(guid: FromPath[UUID], request: AnyRequest, context: InjectedContext) -> wire_groups.Unit:
    """Change a business unit in part, as a JSON merge patch: what the body leaves out stays, null takes away."""
    caller = caller_of(request)
    body = await read_body(request, wire_groups.UnitChange)
    changed = await context.operations.units.change(caller.tenant_id, guid, body, actor=caller.actor)
    return found(changed, "business unit")


@get(
    "/v1/units/{guid:uuid}/members",
    opt=Contract(
        tag="units",
        grant=Grant.VIEW,
        query=wire.PageQuery,
        problems=(HTTPStatus.NOT_FOUND,),
        answer=example.MEMBER_PAGE,
    ).opt,
)
async def list_unit_members(
    guid: FromPath[UUID], request: AnyRequest, context: InjectedContext
) -> wire_groups.MemberPage:
    """List the members of a business unit."""
    query = read_query(request, wire.PageQuery)
    page = await context.operations.units.list_members(caller_of(request).tenant_id, guid, query)
    return found(page, "business unit")


@patch(
    "/v1/units/{guid:uuid}/members",
    request_max_body_size=MEMBERS_BYTES_MAX,
    opt=Contract(
        tag="units",
        grant=Grant.PEOPLE,
        problems=(HTTPStatus.NOT_FOUND,),
        body=example.MEMBERS_REQUEST,
        answer=example.MEMBERS_CHANGE,
    ).opt,
)
async def change_unit_members(
    guid: FromPath[UUID], request: AnyRequest, context: InjectedContext
) -> wire_groups.MembersChange:
    """Add people to a business unit and take others out, up to a thousand each; everybody else stays."""
    caller = caller_of(request)
    body = await read_body(request, wire_groups.MembersRequest)
    changed = await context.operations.units.change_members(caller.tenant_id, guid, body, actor=caller.actor)
    return found(changed, "business unit")


@get("/v1/tenant", opt=Contract(tag="units", grant=Grant.VIEW, answer=example.TENANT).opt)
async def get_tenant(request: AnyRequest, context: InjectedContext) -> wire_groups.Tenant:
    """Show the tenant whose key this is, and in which language and zone its people read."""
    return found(await context.operations.units.find_tenant(caller_of(request).tenant_id), "tenant")


@put(
    "/v1/tenant",
    opt=Contract(tag="units", grant=Grant.PEOPLE, body=example.TENANT_REQUEST, answer=example.TENANT).opt,
)
async def put_tenant(request: AnyRequest, context: InjectedContext) -> wire_groups.Tenant:
    """Set the language and the zone of people who have none of their own and whose business unit has none."""
    caller = caller_of(request)
    body = await read_body(request, wire_groups.TenantRequest)
    return found(await context.operations.units.put_tenant(caller.tenant_id, body, actor=caller.actor), "tenant")

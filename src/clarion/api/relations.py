"""Roles that people hold, and what they are to things. Changes are audited."""

from typing import Final

from litestar import get, patch
from litestar.params import FromPath

from clarion.api import example
from clarion.api.authentication import caller_of
from clarion.api.context import InjectedContext
from clarion.api.contract import Contract
from clarion.api.groups import MEMBERS_BYTES_MAX
from clarion.api.reading import AnyRequest, read_body, read_page, read_query
from clarion.catalog.access import Grant
from clarion.client import wire, wire_groups

RELATIONS_BYTES_MAX: Final = 2 * 1024 * 1024
"""A thousand relations to add and a thousand to remove, each with the longest names, are 1.2 MB."""


@get("/v1/roles", opt=Contract(tag="roles", grant=Grant.VIEW, query=wire.PageQuery, answer=example.ROLE_PAGE).opt)
async def list_roles(request: AnyRequest, context: InjectedContext) -> wire_groups.RolePage:
    """List the roles that anybody holds, in the whole tenant and in its business units."""
    return await context.operations.roles.list(*read_page(request, wire.PageQuery))


@get(
    "/v1/roles/{role:str}/holders",
    opt=Contract(tag="roles", grant=Grant.VIEW, query=wire_groups.HoldersPageQuery, answer=example.MEMBER_PAGE).opt,
)
async def list_holders(role: FromPath[str], request: AnyRequest, context: InjectedContext) -> wire_groups.MemberPage:
    """List who holds a role in the whole tenant or, with `business_unit`, in that unit."""
    query = read_query(request, wire_groups.HoldersPageQuery)
    return await context.operations.roles.list_holders(caller_of(request).tenant_id, role, query)


@patch(
    "/v1/roles/{role:str}/holders",
    request_max_body_size=MEMBERS_BYTES_MAX,
    opt=Contract(
        tag="roles",
        grant=Grant.PEOPLE,
        query=wire_groups.HoldersQuery,
        body=example.MEMBERS_REQUEST,
        answer=example.MEMBERS_CHANGE,
    ).opt,
)
async def change_holders(
    role: FromPath[str], request: AnyRequest, context: InjectedContext
) -> wire_groups.MembersChange:
    """Give people a role and take it from others, up to a thousand each, in the whole tenant or in a business unit."""
    caller = caller_of(request)
    query = read_query(request, wire_groups.HoldersQuery)
    body = await read_body(request, wire_groups.MembersRequest)
    return await context.operations.roles.change_holders(
        caller.tenant_id, role, body, unit=query.business_unit, actor=caller.actor
    )


@get(
    "/v1/relations",
    opt=Contract(tag="relations", grant=Grant.VIEW, query=wire_groups.RelationQuery, answer=example.RELATION_PAGE).opt,
)
async def list_relations(request: AnyRequest, context: InjectedContext) -> wire_groups.RelationPage:
    """List who is related to a thing (`entity=TYPE:GUID`), or to what a person is related (`person=user:ID`)."""
    return await context.operations.relations.list(*read_page(request, wire_groups.RelationQuery))


@patch(
    "/v1/relations",
    request_max_body_size=RELATIONS_BYTES_MAX,
    opt=Contract(
        tag="relations", grant=Grant.PEOPLE, body=example.RELATIONS_REQUEST, answer=example.MEMBERS_CHANGE
    ).opt,
)
async def change_relations(request: AnyRequest, context: InjectedContext) -> wire_groups.MembersChange:
    """Add relations of people to things and remove others, up to a thousand each; all others stay."""
    caller = caller_of(request)
    body = await read_body(request, wire_groups.RelationsRequest)
    return await context.operations.relations.change(caller.tenant_id, body, actor=caller.actor)

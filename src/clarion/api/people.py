"""People and the attributes that they may have. Changes are audited; what is private needs the grant `reveal`."""

from http import HTTPStatus
from typing import Final

from litestar import delete, get, patch, put
from litestar.params import FromPath

from clarion.api import example_people as example
from clarion.api.authentication import caller_of, trace_of
from clarion.api.context import InjectedContext
from clarion.api.contract import Contract
from clarion.api.problem import found
from clarion.api.reading import AnyRequest, read_body, read_query
from clarion.catalog.access import Grant
from clarion.client import wire, wire_people
from clarion.domain.identity import read_person

PEOPLE_BYTES_MAX: Final = 2 * 1024 * 1024
"""500 people with profiles of 4 kB each, which is as much as one may have."""

_PERSON: Final = "person"


@get("/v1/people", opt=Contract(tag="people", grant=Grant.VIEW, query=wire.PageQuery, answer=example.PERSON_PAGE).opt)
async def list_people(request: AnyRequest, context: InjectedContext) -> wire_people.PersonPage:
    """List the people of the tenant, in an order of ours that stays."""
    caller, query = caller_of(request), read_query(request, wire.PageQuery)
    return await context.operations.people.list(caller.tenant_id, query, whole=caller.may(Grant.REVEAL))


@put(
    "/v1/people",
    request_max_body_size=PEOPLE_BYTES_MAX,
    opt=Contract(tag="people", grant=Grant.PEOPLE, body=example.PEOPLE_REQUEST, answer=example.PEOPLE_STORED).opt,
)
async def put_people(request: AnyRequest, context: InjectedContext) -> wire_people.PeopleStored:
    """Insert or replace up to 500 people, each as a whole. It can be repeated.

    All of them are stored, or none: every mistake is named in `mistakes`, by the place of its person and its field.
    """
    caller = caller_of(request)
    body = await read_body(request, wire_people.PeopleRequest)
    return await context.operations.people.put_all(caller.tenant_id, body, actor=caller.actor, trace=trace_of(request))


@get(
    "/v1/people/{person:str}",
    opt=Contract(tag="people", grant=Grant.VIEW, problems=(HTTPStatus.NOT_FOUND,), answer=example.PERSON).opt,
)
async def get_person(person: FromPath[str], request: AnyRequest, context: InjectedContext) -> wire_people.Person:
    """Show a person, who is named `user:ID` or `employee:GUID`."""
    caller, identity = caller_of(request), read_person(person, field="person")
    shown = await context.operations.people.find(caller.tenant_id, identity, whole=caller.may(Grant.REVEAL))
    return found(shown, _PERSON)


@put(
    "/v1/people/{person:str}",
    opt=Contract(
        tag="people",
        grant=Grant.PEOPLE,
        problems=(HTTPStatus.NOT_FOUND,),
        body=example.PERSON_REQUEST,
        answer=example.PERSON,
    ).opt,
)
async def put_person(person: FromPath[str], request: AnyRequest, context: InjectedContext) -> wire_people.Person:
    """Insert or replace one person as a whole: what the body leaves out, the person has not any more."""
    caller, identity = caller_of(request), read_person(person, field="person")
    body = await read_body(request, wire_people.PersonRequest)
    put = await context.operations.people.put(
        caller.tenant_id,
        identity,
        body,
        actor=caller.actor,
        trace=trace_of(request),
        whole=caller.may(Grant.REVEAL),
    )
    return found(put, _PERSON)


@patch(
    "/v1/people/{person:str}",
    opt=Contract(
        tag="people",
        grant=Grant.PEOPLE,
        problems=(HTTPStatus.NOT_FOUND,),
        body=example.PERSON_CHANGE,
        answer=example.PERSON,
    ).opt,
)
async def change_person(person: FromPath[str], request: AnyRequest, context: InjectedContext) -> wire_people.Person:
    """Change a person in part, as a JSON merge patch: what the body leaves out stays, null takes away.

    Others may change the same person at the same time: nothing of either is lost.
    """
    caller, identity = caller_of(request), read_person(person, field="person")
    body = await read_body(request, wire_people.PersonChange)
    changed = await context.operations.people.change(
        caller.tenant_id,
        identity,
        body,
        actor=caller.actor,
        trace=trace_of(request),
        whole=caller.may(Grant.REVEAL),
    )
    return found(changed, _PERSON)


@delete(
    "/v1/people/{person:str}",
    status_code=HTTPStatus.NO_CONTENT,
    opt=Contract(
        tag="people",
        grant=Grant.PEOPLE,
        answer=None,
        status=HTTPStatus.NO_CONTENT,
        problems=(HTTPStatus.NOT_FOUND,),
    ).opt,
)
async def remove_person(person: FromPath[str], request: AnyRequest, context: InjectedContext) -> None:
    """Remove a person with their contacts, attributes, groups, roles and relations.

    What was sent to them stays, and so does what they do not want: should they come back, it still holds.
    """
    caller, identity = caller_of(request), read_person(person, field="person")
    removed = await context.operations.people.remove(caller.tenant_id, identity, actor=caller.actor)
    found(removed or None, _PERSON)


@get("/v1/attributes", opt=Contract(tag="people", grant=Grant.VIEW, answer=example.ATTRIBUTE_LIST).opt)
async def list_attributes(request: AnyRequest, context: InjectedContext) -> wire_people.AttributeList:
    """List the attributes that people may have."""
    return await context.operations.people.list_attributes(caller_of(request).tenant_id)


@put(
    "/v1/attributes/{name:str}",
    opt=Contract(
        tag="people",
        grant=Grant.PEOPLE,
        problems=(HTTPStatus.CONFLICT,),
        body=example.ATTRIBUTE_REQUEST,
        answer=example.ATTRIBUTE,
    ).opt,
)
async def declare_attribute(
    name: FromPath[str], request: AnyRequest, context: InjectedContext
) -> wire_people.Attribute:
    """Declare an attribute and of which kind its values are, which stays so. It can be repeated."""
    caller = caller_of(request)
    body = await read_body(request, wire_people.AttributeRequest)
    return await context.operations.people.declare(caller.tenant_id, name, body.kind, actor=caller.actor)

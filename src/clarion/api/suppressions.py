"""Who gets nothing, and what people want. Changes are audited, and need the grant `suppress`."""

from http import HTTPStatus
from typing import Final

from litestar import delete, get, post, put
from litestar.params import FromPath

from clarion.api import example_suppression as example
from clarion.api.authentication import caller_of, trace_of
from clarion.api.context import InjectedContext
from clarion.api.contract import Contract
from clarion.api.problem import found
from clarion.api.reading import AnyRequest, read_body, read_query
from clarion.catalog.access import Grant
from clarion.client import wire_suppression as wire
from clarion.domain.identity import read_person
from clarion.operations.suppression import read_id

SUPPRESSIONS_BYTES_MAX: Final = 4 * 1024 * 1024
"""500 of the longest push tokens are 2.1 MB."""


@get(
    "/v1/suppressions",
    opt=Contract(
        tag="suppressions", grant=Grant.VIEW, query=wire.SuppressionQuery, answer=example.SUPPRESSION_PAGE
    ).opt,
)
async def list_suppressions(request: AnyRequest, context: InjectedContext) -> wire.SuppressionPage:
    """List who gets nothing of what, newest first: all, or those of one person, one address or one cause."""
    caller, query = caller_of(request), read_query(request, wire.SuppressionQuery)
    if query.recipient is not None and not query.recipient.startswith(("user:", "employee:")):
        caller.require(Grant.REVEAL, what=": whoever sees only masked addresses does not ask for one")
    return await context.operations.suppressions.list(caller.tenant_id, query, whole=caller.may(Grant.REVEAL))


@post(
    "/v1/suppressions",
    status_code=HTTPStatus.OK,
    request_max_body_size=SUPPRESSIONS_BYTES_MAX,
    opt=Contract(
        tag="suppressions", grant=Grant.SUPPRESS, body=example.SUPPRESSION_REQUEST, answer=example.SUPPRESSIONS_ADDED
    ).opt,
)
async def add_suppressions(request: AnyRequest, context: InjectedContext) -> wire.SuppressionsAdded:
    """Suppress up to 500 people and addresses, all of them or none. It can be repeated.

    What is queued for them and was not called yet is not called any more.
    """
    caller = caller_of(request)
    body = await read_body(request, wire.SuppressionRequest)
    return await context.operations.suppressions.add(
        caller.tenant_id, body, actor=caller.actor, trace=trace_of(request)
    )


@delete(
    "/v1/suppressions/{suppression:str}",
    status_code=HTTPStatus.NO_CONTENT,
    opt=Contract(
        tag="suppressions",
        grant=Grant.SUPPRESS,
        query=wire.ReasonQuery,
        answer=None,
        status=HTTPStatus.NO_CONTENT,
        problems=(HTTPStatus.NOT_FOUND,),
    ).opt,
)
async def lift_suppression(suppression: FromPath[str], request: AnyRequest, context: InjectedContext) -> None:
    """Lift a suppression by its `id`, whatever it came from. What was stopped by it stays stopped."""
    caller, query = caller_of(request), read_query(request, wire.ReasonQuery)
    lifted = await context.operations.suppressions.lift(
        caller.tenant_id, read_id(suppression), reason=query.reason, actor=caller.actor
    )
    found(lifted or None, "suppression")


@get(
    "/v1/people/{person:str}/preferences",
    opt=Contract(tag="people", grant=Grant.VIEW, problems=(HTTPStatus.NOT_FOUND,), answer=example.PREFERENCES).opt,
)
async def get_preferences(person: FromPath[str], request: AnyRequest, context: InjectedContext) -> wire.Preferences:
    """Show what a person can choose, by category and channel, and how it stands."""
    caller, identity = caller_of(request), read_person(person, field="person")
    return found(await context.operations.suppressions.preferences(caller.tenant_id, identity), "person")


@put(
    "/v1/people/{person:str}/preferences",
    opt=Contract(
        tag="people",
        grant=Grant.SUPPRESS,
        problems=(HTTPStatus.NOT_FOUND,),
        body=example.PREFERENCES_REQUEST,
        answer=example.PREFERENCES,
    ).opt,
)
async def set_preferences(person: FromPath[str], request: AnyRequest, context: InjectedContext) -> wire.Preferences:
    """Set what a person wants, all of it or nothing. What the body does not name stays; it can be repeated."""
    caller, identity = caller_of(request), read_person(person, field="person")
    body = await read_body(request, wire.PreferencesRequest)
    done = await context.operations.suppressions.set_preferences(caller.tenant_id, identity, body, actor=caller.actor)
    return found(done, "person")

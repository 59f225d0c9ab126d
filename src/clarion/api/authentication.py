"""Who asks: the API key of a request, and whether its role may do what the route does.

Tenant, actor and role come from the key and from nowhere else. A route without a contract is served to nobody.
"""

from collections.abc import Callable
from http import HTTPMethod, HTTPStatus
from typing import Any, Final

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from clarion.api.contract import CONTRACT, Contract
from clarion.api.problem import Refusal
from clarion.catalog.access import Access, Caller
from clarion.catalog.quota import Meter
from clarion.dispatch.request import Trace
from clarion.errors import BrokenInvariant

CALLER: Final = "caller"
TRACE: Final = "trace"
"""The names under which a request's state has its caller, and what ties it to others."""

RECOGNISE: Final = "recognise"
"""The name under which a request's state has what tells the server that its sender is no stranger."""

SERVE: Final = "serve"
"""The name under which a request's state has what gives it one of the places of its tenant, or refuses it."""

_CHALLENGE: Final = {"www-authenticate": 'Bearer realm="clarion"'}

Connection = ASGIConnection[Any, Any, Any, Any]  # the framework's user, session and state, which are not used here


class Authentication:
    """Lets a request through to its route, or refuses it before its body is read."""

    def __init__(self, access: Access, meter: Meter) -> None:
        """Check the keys of requests with `access`, and count the requests of each with `meter`."""
        self._access = access
        self._meter = meter

    async def __call__(self, connection: Connection, handler: BaseRouteHandler) -> None:
        """Find out who asks, and refuse who may not."""
        if connection.scope.get("method") == HTTPMethod.OPTIONS:
            return  # answers with the methods of a path and nothing else
        contract = handler.opt.get(CONTRACT)
        if not isinstance(contract, Contract):
            raise BrokenInvariant("a route has no contract")
        if contract.grant is None:
            return
        caller = await self._access.check(bearer_token(connection))
        if caller is None:
            raise Refusal(
                HTTPStatus.UNAUTHORIZED,
                "unauthenticated",
                "send a valid API key as `Authorization: Bearer clarion_…`; `clarion keys create` makes one",
                headers=_CHALLENGE,
            )
        await admit(connection, caller, self._meter)
        caller.require(contract.grant)
        connection.scope["state"][CALLER] = caller
        recognise(connection, caller.tenant_id)


async def admit(connection: Connection, caller: Caller, meter: Meter) -> None:
    """Count a request of somebody who showed a key; refuse it where their tenant or key has used up what it may."""
    serve: Callable[[str], None] = connection.scope["state"][SERVE]
    serve(caller.tenant_id)
    await meter.count_request(caller.tenant_id, caller.key_id)


def recognise(connection: Connection, name: str) -> None:
    """Tell the server that whoever sent this request showed a key, a session or a signature that holds, and whose."""
    tell = connection.scope["state"].get(RECOGNISE)
    if tell is not None:
        tell(name)


def caller_of(connection: Connection) -> Caller:
    """Return who asks, where they were let in."""
    caller = connection.scope["state"].get(CALLER)
    if not isinstance(caller, Caller):
        raise BrokenInvariant("a route that needs a caller was reached without one")
    return caller


def trace_of(connection: Connection) -> Trace:
    """Return what ties the request to others, as the door found it."""
    trace = connection.scope["state"].get(TRACE)
    if not isinstance(trace, Trace):
        raise BrokenInvariant("a request came in by another way than the door")
    return trace


def bearer_token(connection: Connection) -> str:
    """Read the bearer token; anything else is an empty one, which is nobody's."""
    scheme, _, token = authorization(connection).partition(" ")
    return token if scheme.lower() == "bearer" else ""


def authorization(connection: Connection) -> str:
    """Read the header that says who asks; one that comes twice is an empty one: a proxy may have checked the other."""
    given = connection.headers.getall("authorization", [])
    return given[0] if len(given) == 1 else ""

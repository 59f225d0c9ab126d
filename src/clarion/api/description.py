"""The OpenAPI 3.1 document, drawn from the routes themselves: their paths, contracts, docstrings and shapes.

Nothing is written twice, so nothing can drift: a route that is added is described, one that is removed is gone. Pure.
"""

import re
from functools import lru_cache
from http import HTTPMethod, HTTPStatus
from typing import Any, Final

import msgspec
from litestar.handlers import HTTPRouteHandler

import clarion
from clarion.api import example
from clarion.api.contract import CONTRACT, Contract
from clarion.api.problem import MEDIA_TYPE
from clarion.catalog.access import GRANTS
from clarion.client import wire
from clarion.ports.catalog import Role

Json = dict[str, Any]  # a JSON document has no better type

_PARAMETER: Final = re.compile(r"\{(\w+):(\w+)\}")
_REFERENCE: Final = "#/components/schemas/{name}"

_KINDS: Final[dict[str, Json]] = {
    "uuid": {"type": "string", "format": "uuid"},
    "int": {"type": "integer", "minimum": 0, "maximum": wire.ROW_ID_MAX},
    "str": {"type": "string", "minLength": 1},
    "path": {"type": "string", "minLength": 1, "description": "percent-encoded, `/` as `%2F`"},
}

_PROBLEMS: Final = {
    HTTPStatus.BAD_REQUEST: "The request cannot be read.",
    HTTPStatus.UNAUTHORIZED: "There is no valid API key or, of a provider, no valid signature.",
    HTTPStatus.FORBIDDEN: "The key's role may not do this.",
    HTTPStatus.NOT_FOUND: "There is no such thing, or it is another tenant's.",
    HTTPStatus.CONFLICT: "It contradicts what is stored.",
    HTTPStatus.GONE: "The key was used, and its record has been removed since.",
    HTTPStatus.REQUEST_TIMEOUT: "The body did not come in time.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is over the limit.",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "The body is not JSON.",
    HTTPStatus.UNPROCESSABLE_ENTITY: "A value cannot be accepted; `field` names it.",
    HTTPStatus.TOO_MANY_REQUESTS: "A quota of the key or its tenant is used up; `Retry-After` says for how long.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "The installation or the program is at fault.",
    HTTPStatus.SERVICE_UNAVAILABLE: "The store does not answer or is busy, or the program is ending; `Retry-After` "
    "says when to ask again.",
}

_ABOUT: Final = (
    "Tell Clarion what happened, and everyone who should know hears of it, once. Send an API key as a bearer token; "
    "tenant, actor and role are the key's. Every error is a problem (RFC 9457) with a stable `code`."
)


@lru_cache(maxsize=4)
def describe(routes: tuple[HTTPRouteHandler, ...]) -> bytes:
    """Write the document for these routes: once, because drawing their shapes takes as long as a dozen requests."""
    described = [(route, route.opt[CONTRACT]) for route in routes]
    shapes = sorted({shape for _, contract in described for shape in _shapes(contract)}, key=lambda one: one.__name__)
    schemas, components = msgspec.json.schema_components(shapes, schema_hook=_any_json, ref_template=_REFERENCE)
    schema_of = dict(zip(shapes, schemas, strict=True))
    queries = {contract.query.__name__ for _, contract in described if contract.query is not None}
    paths: dict[str, Json] = {}
    for route, contract in described:
        (path,) = route.paths
        (method,) = route.http_methods - {HTTPMethod.OPTIONS}
        operation = _operation(route, contract, path, schema_of, components)
        paths.setdefault(_PARAMETER.sub(r"{\1}", path), {})[method.lower()] = operation
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "Clarion", "version": clarion.__version__, "description": _ABOUT},
            "servers": [{"url": "/"}],
            "paths": paths,
            "components": {
                "schemas": {name: shape for name, shape in components.items() if name not in queries},
                "securitySchemes": {
                    "key": {"type": "http", "scheme": "bearer", "bearerFormat": "clarion_{id}_{secret}"}
                },
            },
        }
    )


def _operation(
    route: HTTPRouteHandler, contract: Contract, path: str, schema_of: dict[type, Json], components: Json
) -> Json:
    """Describe one route."""
    summary, _, more = (route.fn.__doc__ or "").strip().partition("\n\n")
    roles = ", ".join(role for role in Role if contract.grant in GRANTS[role])
    needed = f"Needs the grant `{contract.grant}` (roles: {roles})." if contract.grant else "Needs no key."
    operation: Json = {
        "operationId": route.fn.__name__,
        "tags": [contract.tag],
        "summary": " ".join(summary.split()),
        "description": " ".join([*more.split(), needed]),
        "responses": _responses(contract, schema_of),
    }
    if contract.grant is not None:
        operation["security"] = [{"key": []}]
    parameters = _parameters(contract, path, components)
    if parameters:
        operation["parameters"] = parameters
    if contract.body is not None or contract.foreign_body:
        schema = _any_json(object) if contract.body is None else schema_of[type(contract.body)]
        content = {"application/json": _content(schema, contract.body)}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _parameters(contract: Contract, path: str, components: Json) -> list[Json]:
    """Describe what stands in the path, the query and the headers."""
    found: list[Json] = [
        {"name": name, "in": "path", "required": True, "schema": _KINDS[kind]}
        for name, kind in _PARAMETER.findall(path)
    ]
    if contract.query is not None:
        properties: Json = components[contract.query.__name__]["properties"]
        found += [{"name": name, "in": "query", "schema": _given(schema)} for name, schema in properties.items()]
    return found + [
        {
            "name": header.name,
            "in": "header",
            "description": header.description,
            "schema": {"type": "string", "minLength": 1, "maxLength": header.length_max},
        }
        for header in contract.headers
    ]


def _responses(contract: Contract, schema_of: dict[type, Json]) -> Json:
    """Describe what is answered."""
    answered: Json = {"description": contract.status.phrase}
    if contract.answer is not None:
        answered["content"] = {"application/json": _content(schema_of[type(contract.answer)], contract.answer)}
    elif contract.text is not None:
        answered["content"] = {
            contract.text: {"schema": {"type": "string" if "json" not in contract.text else "object"}}
        }
    if contract.status is HTTPStatus.ACCEPTED and contract.headers:
        answered["headers"] = {"Location": {"schema": {"type": "string"}, "description": "Where to ask how it stands."}}
    responses: Json = {str(int(contract.status)): answered}
    for status in contract.every_problem:
        responses[str(int(status))] = {
            "description": _PROBLEMS[status],
            "content": {MEDIA_TYPE: {"schema": schema_of[wire.Problem]}},
        }
    return responses


def _content(schema: Json, shown: msgspec.Struct | None) -> Json:
    return {"schema": schema} if shown is None else {"schema": schema, "example": msgspec.to_builtins(shown)}


def _shapes(contract: Contract) -> list[type[msgspec.Struct]]:
    shapes: list[type[msgspec.Struct]] = [type(example.PROBLEM)]
    shapes += [type(one) for one in (contract.body, contract.answer) if one is not None]
    return shapes if contract.query is None else [*shapes, contract.query]


def _given(schema: Json) -> Json:
    """Describe a parameter that may be left out: it is not null then, it is not there."""
    present: Json = schema["anyOf"][0] if "anyOf" in schema else schema
    return present


def _any_json(kind: type) -> Json:
    """Describe `object`: any JSON."""
    if kind is object:
        return {"description": "any JSON"}
    raise NotImplementedError(f"the wire has no shape for {kind}")

"""Who may do what: keys, every role against every route, and no tenant's things for another's key (X-01, X-04)."""

import json
import re
from collections.abc import AsyncIterator

import pytest
from httpx import Response

from clarion.catalog.access import Access
from clarion.ports.catalog import Role
from tests.integration.api_harness import (
    ENTITY,
    NOBODY,
    OTHER,
    ApiHarness,
    ask,
    comparable,
    filled,
    makes_ones_own,
    problem,
    seeded_api,
    things,
)
from tests.unit.pipeline_line import TENANT

ALL = set(Role)
MATRIX = {
    "POST /v1/notifications": {Role.SENDER, Role.URGENT_SENDER, Role.ADMIN},
    "GET /v1/notifications": ALL,
    "GET /v1/notifications/{job_id}": ALL,
    "POST /v1/notifications/{job_id}/cancel": {Role.SENDER, Role.URGENT_SENDER, Role.SUPPORT, Role.ADMIN},
    "GET /v1/messages/{id}/timeline": ALL,
    "GET /v1/entities/{entity}/notifications": ALL,
    "POST /v1/explain": ALL,
    "GET /v1/inbox/{reader}": ALL,
    "GET /v1/inbox/{reader}/counts": ALL,
    "POST /v1/inbox/{reader}/all/{mark}": {Role.INBOX, Role.ADMIN},
    "POST /v1/inbox/{reader}/{message_id}/{mark}": {Role.INBOX, Role.ADMIN},
    "GET /v1/notifications/{job_id}/recipients": ALL,
    "GET /v1/types": ALL,
    "GET /v1/types/{type_name}": ALL,
    "PUT /v1/types/{type_name}": {Role.AUTHOR, Role.ADMIN},
    "POST /v1/types/{type_name}/preview": ALL,
    "PUT /v1/types/{type_name}/enabled": {Role.AUTHOR, Role.ADMIN},
    "GET /v1/settings": ALL,
    "GET /v1/settings/{type_name}": ALL,
    "PUT /v1/settings/{type_name}": {Role.ADMIN},
    "DELETE /v1/settings/{type_name}": {Role.ADMIN},
    "GET /v1/automation/upcoming": ALL,
    "GET /v1/entities/{guid}/story": ALL,
    "GET /v1/automation/{key}/story": ALL,
    "GET /v1/reminders": ALL,
    "GET /v1/reminders/{guid}": ALL,
    "PUT /v1/reminders/{guid}": {Role.ADMIN},
    "PUT /v1/reminders/{guid}/active": {Role.ADMIN},
    "GET /v1/automation": ALL,
    "GET /v1/automation/{key}": ALL,
    "POST /v1/automation/{key}/{act}": {Role.SUPPORT, Role.ADMIN},
    "POST /v1/automation/{key}/rerun": {Role.SUPPORT, Role.ADMIN},
    "GET /v1/reports": ALL,
    "GET /v1/report-subscriptions": ALL,
    "GET /v1/report-subscriptions/{guid}": ALL,
    "PUT /v1/report-subscriptions/{guid}": {Role.ADMIN},
    "PUT /v1/report-subscriptions/{guid}/active": {Role.ADMIN},
    "PUT /v1/report-subscriptions/{guid}/runs/{run}": {Role.ADMIN},
    "GET /v1/people": ALL,
    "PUT /v1/people": {Role.ADMIN},
    "GET /v1/people/{person}": ALL,
    "PUT /v1/people/{person}": {Role.ADMIN},
    "PATCH /v1/people/{person}": {Role.ADMIN},
    "DELETE /v1/people/{person}": {Role.ADMIN},
    "GET /v1/attributes": ALL,
    "PUT /v1/attributes/{name}": {Role.ADMIN},
    "GET /v1/groups": ALL,
    "GET /v1/groups/{guid}": ALL,
    "PUT /v1/groups/{guid}": {Role.ADMIN},
    "PATCH /v1/groups/{guid}": {Role.ADMIN},
    "DELETE /v1/groups/{guid}": {Role.ADMIN},
    "GET /v1/groups/{guid}/members": ALL,
    "PATCH /v1/groups/{guid}/members": {Role.ADMIN},
    "GET /v1/units": ALL,
    "GET /v1/units/{guid}": ALL,
    "PUT /v1/units/{guid}": {Role.ADMIN},
    "PATCH /v1/units/{guid}": {Role.ADMIN},
    "GET /v1/units/{guid}/members": ALL,
    "PATCH /v1/units/{guid}/members": {Role.ADMIN},
    "GET /v1/tenant": ALL,
    "PUT /v1/tenant": {Role.ADMIN},
    "GET /v1/roles": ALL,
    "GET /v1/roles/{role}/holders": ALL,
    "PATCH /v1/roles/{role}/holders": {Role.ADMIN},
    "GET /v1/relations": ALL,
    "PATCH /v1/relations": {Role.ADMIN},
    "GET /v1/sources/{source_type}": ALL,
    "POST /v1/sources/{source_type}": {Role.SENDER, Role.URGENT_SENDER, Role.ADMIN},
    "GET /v1/sources/{source_type}/{source}": ALL,
    "PUT /v1/sources/{source_type}/{source}": {Role.SENDER, Role.URGENT_SENDER, Role.ADMIN},
    "DELETE /v1/sources/{source_type}/{source}": {Role.SENDER, Role.URGENT_SENDER, Role.ADMIN},
    "POST /v1/events": {Role.SENDER, Role.URGENT_SENDER, Role.ADMIN},
    "GET /v1/events": ALL,
    "GET /v1/events/{event_id}": ALL,
    "POST /v1/events/{event_id}/retry": {Role.SUPPORT, Role.ADMIN},
    "GET /v1/event-mappings": ALL,
    "PUT /v1/event-mappings/{event_type}": {Role.ADMIN},
    "DELETE /v1/event-mappings/{event_type}": {Role.ADMIN},
    "GET /v1/people/{person}/preferences": ALL,
    "PUT /v1/people/{person}/preferences": {Role.SUPPORT, Role.ADMIN},
    "GET /v1/suppressions": ALL,
    "POST /v1/suppressions": {Role.SUPPORT, Role.ADMIN},
    "DELETE /v1/suppressions/{suppression}": {Role.SUPPORT, Role.ADMIN},
    "GET /v1/uncertain": ALL,
    "POST /v1/outgoing/{outgoing_id}/retry": {Role.SUPPORT, Role.ADMIN},
    "POST /v1/notifications/{job_id}/retry": {Role.SUPPORT, Role.ADMIN},
    "GET /v1/support-cases": ALL,
    "GET /v1/support-cases/{case_id}": ALL,
    "POST /v1/support-cases/{case_id}/resolve": {Role.SUPPORT, Role.ADMIN},
    "GET /v1/audit": {Role.SUPPORT, Role.ADMIN},
    "GET /v1/status": {Role.SUPPORT, Role.ADMIN},
}
OPEN = {"GET /health", "GET /ready", "GET /metrics", "GET /openapi.json", "POST /v1/receipts/{account}"}


@pytest.fixture
async def api() -> ApiHarness:
    return await seeded_api()


async def test_every_route_is_in_the_matrix_and_says_so_in_its_description(api: ApiHarness) -> None:
    listed = {f"{method} {path}": operation for method, path, operation in api.operations()}
    assert set(listed) == set(MATRIX) | OPEN
    assert {name for name, operation in listed.items() if "security" not in operation} == OPEN


async def test_a_role_may_do_exactly_what_the_matrix_says(api: ApiHarness) -> None:
    for role in Role:
        async with api.client(role) as client:
            for method, path, operation in api.operations():
                answer = await ask(client, method, filled(path, NOBODY), operation)
                allowed = MATRIX.get(f"{method} {path}", ALL)
                assert (answer.status_code == 403) == (role not in allowed), (role, method, path, answer.text)
                if answer.status_code == 403:
                    assert problem(answer)["code"] == "forbidden"


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer nonsense",
        "Bearer clarion_0123456789abcdef_" + "0" * 64,
        "Basic Y2xhcmlvbjpzZWNyZXQ=",
        "Bearer {key} ",
        "Bearer  {key}",
        "Token {key}",
        "{key}",
        "Bearer {key}x",
    ],
)
async def test_without_a_valid_key_every_route_is_closed_and_no_body_is_read(
    api: ApiHarness, header: str | None
) -> None:
    key = api.keys[TENANT, Role.ADMIN]
    headers = {} if header is None else {"authorization": header.format(key=key)}

    read = []

    async def body() -> AsyncIterator[bytes]:
        read.append(True)
        yield b"{}"

    async with api.client(None) as client:
        for method, path, operation in api.operations():
            if "security" not in operation:
                continue
            content = body() if "requestBody" in operation else None
            answer = await client.request(method, filled(path, NOBODY), content=content, headers=headers)
            assert (answer.status_code, problem(answer)["code"]) == (401, "unauthenticated"), (method, path)
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert key not in answer.text
    assert not read


async def test_a_key_may_be_given_with_any_spelling_of_the_scheme(api: ApiHarness) -> None:
    key = api.keys[TENANT, Role.ADMIN]
    async with api.client(None) as client:
        assert (await client.get("/v1/types", headers={"authorization": f"bearer {key}"})).status_code == 200


async def test_a_revoked_key_is_closed_out_within_seconds(api: ApiHarness) -> None:
    key = api.keys[TENANT, Role.VIEWER]
    async with api.client(Role.VIEWER) as client:
        assert (await client.get("/v1/types")).status_code == 200
        revoked = await Access(api.memory, clock=api.clock).revoke(TENANT, key.split("_")[1], actor="ada")
        assert revoked
        await api.line.wait(2)
        assert (await client.get("/v1/types")).status_code == 401


async def test_another_tenants_id_is_answered_exactly_as_one_that_nobody_has(api: ApiHarness) -> None:
    ids = await things(api)
    compared = 0
    async with api.client(tenant_id=OTHER) as stranger:
        for method, path, operation in api.operations():
            if makes_ones_own(method, path):
                continue  # the tests of these routes hold that it is nobody else's
            for name in re.findall(r"\{(\w+)\}", path):
                theirs = await ask(stranger, method, filled(path, NOBODY | {name: ids[name]}), operation)
                nobodys = await ask(stranger, method, filled(path, NOBODY), operation)
                assert alike(theirs, ids[name]) == alike(nobodys, NOBODY[name]), (method, path)
                makes = method in ("PUT", "PATCH")  # what is not there, as one's own
                mine = path.startswith("/v1/units/")  # made by a line before
                assert makes or mine or theirs.status_code == 404 or not any(theirs.json().values())
                assert "user:1" not in theirs.text.replace("user:parent-17", "")
                compared += 1
    assert compared >= 8


def alike(answer: Response, asked: str) -> object:
    """Give an answer without the id that was asked for, which what is made for the asker names."""
    status, body, headers = comparable(answer)
    return status, json.dumps(body).replace(asked, "it"), headers


async def test_the_owners_key_does_find_each_of_those_things(api: ApiHarness) -> None:
    """Otherwise the test above would compare nothing with nothing."""
    ids = await things(api)
    async with api.client() as owner:
        for method, path, operation in api.operations():
            if "{" in path and "security" in operation:  # an account is no tenant's
                answer = await ask(owner, method, filled(path, ids), operation)
                assert answer.status_code != 404, (method, path)
        history = (await owner.get(f"/v1/entities/{ENTITY}/notifications")).json()
    assert [item["job_id"] for item in history["items"]] == [ids["job_id"]]


async def test_lists_hold_nothing_of_another_tenant(api: ApiHarness) -> None:
    await things(api)
    async with api.client(tenant_id=OTHER) as stranger:
        assert (await stranger.get("/v1/uncertain")).json()["items"] == []
        assert (await stranger.get("/v1/support-cases")).json()["items"] == []
        assert [item["type"] for item in (await stranger.get("/v1/types")).json()["items"]] == ["welcome"]
        audit = (await stranger.get("/v1/audit?limit=100")).json()["items"]
    assert all("of school" not in str(entry) for entry in audit)


async def test_answers_show_what_they_are_meant_to_and_nothing_else(api: ApiHarness) -> None:
    """A new field must be thought about: no key, no hash of a person, no sealed part, no whole address."""
    ids = await things(api)
    async with api.client(Role.VIEWER) as client:
        notification = (await client.get(f"/v1/notifications/{ids['job_id']}")).json()
        timeline = await client.get(f"/v1/messages/{ids['id']}/timeline")
    assert set(notification) == {
        *("job_id", "type", "template_version", "entity", "lane", "result", "stage", "status", "reason"),
        *("accepted_at", "due_at", "actor", "correlation_id", "recipients", "messages", "inbox", "rule"),
        *("business_unit", "totals"),
    }
    assert set(notification["messages"][0]) == {
        *("id", "version", "message_id", "recipient", "destination", "channel", "status", "attempts", "reason"),
        *("account", "due_at", "created_at", "rule"),
    }
    assert "sam@example.com" not in timeline.text
    assert "sam@example.com" not in str(notification)


async def test_two_keys_in_one_request_open_nothing() -> None:
    """Whoever stands before the API may have checked the other one."""
    api = await seeded_api()
    keys = [("authorization", f"Bearer {api.keys[tenant_id, Role.VIEWER]}") for tenant_id in (TENANT, OTHER)]
    async with api.client(None) as client:
        assert (await client.get("/v1/types", headers=keys[:1])).status_code == 200
        assert (await client.get("/v1/types", headers=keys)).status_code == 401

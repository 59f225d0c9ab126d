"""What could be read in two ways, or as nothing, is refused: numbers, ids, keys that are there twice, stray queries."""

import asyncio
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from tests.integration.api_harness import ENTITY, ApiHarness, problem, seeded_api
from tests.integration.test_api_errors import JSON, refused


@pytest.fixture(scope="module")
def api() -> ApiHarness:
    """One API for all tests here: what is refused leaves nothing behind."""
    return asyncio.run(seeded_api())


@pytest.mark.parametrize(
    "outgoing_id", ["99999999999999999999", "-1", "1e3", "0x1", "1_0", "+1", "01", "%201", "%EF%BC%91"]
)
async def test_a_number_in_a_path_that_is_no_row_is_not_found(api: ApiHarness, outgoing_id: str) -> None:
    async with api.client() as client:
        answer = await client.post(f"/v1/outgoing/{outgoing_id}/retry", json={"version": 1, "reason": "r"})
    said = problem(answer)
    assert (answer.status_code, said["code"], said["field"]) == (404, "not-found", "outgoing_id")
    assert said["detail"].startswith("outgoing_id is no number")


@pytest.mark.parametrize(
    "path,field",
    [
        ("/v1/messages/nope/timeline", "id"),
        ("/v1/notifications/nope", "job_id"),
        ("/v1/notifications/%7B00000000-0000-0000-0000-000000000001%7D", "job_id"),
        ("/v1/notifications/urn:uuid:00000000-0000-0000-0000-000000000001", "job_id"),
        ("/v1/support-cases/0b0f7c643f1b5a548a556a3c5c1d2e3f", "case_id"),
    ],
)
async def test_an_id_in_a_path_that_is_none_is_blamed_and_not_the_path(api: ApiHarness, path: str, field: str) -> None:
    async with api.client() as client:
        said = problem(await client.get(path))
    assert (said["status"], said["code"], said["field"]) == (404, "not-found", field)
    assert said["detail"].startswith(f"{field} is no id: use one as ")


@pytest.mark.parametrize(
    "sign", ["\x00", "\x1b", "\x7f", "\x85", "\x9b", "\u2028", "\u202a", "\u202e", "\u2066", "\u2069"]
)
async def test_an_id_that_holds_what_nobody_sees_is_refused_with_the_reason(api: ApiHarness, sign: str) -> None:
    said = "it is blank, or holds a control character or one that turns letters around"
    sent: dict[str, Any] = {"type": "welcome", "to": [{"user": "1"}], "data": {"name": "Sam"}}
    for field, changes in (
        ("to[0].user", {"to": [{"user": f"a{sign}b"}]}),
        ("type", {"type": f"welcome{sign}"}),
        ("entity.type", {"entity": {"type": f"a{sign}", "guid": str(ENTITY)}}),
    ):
        status, answer = await refused(api, msgspec.json.encode(sent | changes))
        assert (status, answer["field"]) == (422, field)
        assert answer["detail"].startswith(said)
    async with api.client() as client:
        answer = problem(await client.get(f"/v1/entities/user:a{quote(sign)}b/notifications"))
    assert (answer["status"], answer["field"]) == (422, "entity")


async def test_an_id_may_be_in_any_script(api: ApiHarness) -> None:
    async with api.client() as client:
        for name in ("Zoë", "مريم", "ש\u200fא", "学生-7"):
            assert (await client.get(f"/v1/entities/user:{quote(name)}/notifications")).status_code == 200


async def test_an_id_may_be_in_capitals(api: ApiHarness) -> None:
    async with api.client() as client:
        said = problem(await client.get("/v1/notifications/0B0F7C64-3F1B-5A54-8A55-6A3C5C1D2E3F"))
    assert "there is no such notification" in said["detail"]


@pytest.mark.parametrize(
    "content,field",
    [
        (b'{"type":"welcome","type":"invoice-due","to":[{"user":"1"}],"data":{"name":"Sam"}}', "type"),
        (b'{"type":"welcome","t\\u0079pe":"welcome","to":[{"user":"1"}],"data":{"name":"Sam"}}', "type"),
        (b'{"type":"welcome","to":[{"user":"1","user":"2"}],"data":{"name":"Sam"}}', "user"),
        (b'{"type":"welcome","to":[{"user":"1"}],"data":{"name":"Sam","x":[{"y":{"z":1,"z":1}}]}}', "z"),
    ],
)
async def test_a_key_that_an_object_has_twice_is_refused(api: ApiHarness, content: bytes, field: str) -> None:
    status, said = await refused(api, content)
    assert (status, said["field"]) == (422, field)
    assert "given twice" in said["detail"]


async def test_a_key_that_stands_in_several_objects_is_none_that_is_there_twice(api: ApiHarness) -> None:
    content = b'{"type":"welcome","to":[{"user":"1"},{"user":"2"}],"data":{"name":"Sam","x":{"name":{"x":[]}}}}'
    async with api.client() as client:
        assert (await client.post("/v1/notifications", content=content, headers=JSON)).status_code == 202


@pytest.mark.parametrize(
    "method,path",
    [
        ("GET", "/v1/types"),
        ("POST", "/v1/notifications"),
        ("GET", f"/v1/messages/{ENTITY}/timeline"),
        ("GET", "/ready"),
    ],
)
async def test_a_query_is_refused_where_none_is_read(api: ApiHarness, method: str, path: str) -> None:
    async with api.client() as client:
        answer = await client.request(method, f"{path}?limit=5")
        assert (answer.status_code, problem(answer)["field"]) == (422, "limit")
        assert (await client.request(method, f"{path}?=")).status_code == 422
    async with api.client(None) as client:
        assert (await client.request("GET", "/v1/types?limit=5")).status_code == 401  # before anything else is said

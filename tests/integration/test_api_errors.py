"""Bad input and bad days: each a problem that says what to do, and nothing of what is inside."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from clarion.api import reading
from clarion.api.problem import KINDS, kind_of
from clarion.api.reading import BODY_BYTES_MAX
from clarion.domain.depth import DEPTH_MAX
from clarion.errors import (
    BadConfiguration,
    BrokenInvariant,
    ClarionError,
    Ending,
    QuotaExceeded,
    SealBroken,
    StoreBusy,
    StoreFull,
    StoreReadOnly,
    StoreUnreachable,
    Superseded,
    every_error,
)
from clarion.ports.catalog import Role
from tests.integration.api_harness import ENTITY, WELCOME, ApiHarness, problem, seeded_api

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def shared() -> ApiHarness:
    """One API for all tests here: what is refused leaves nothing behind."""
    return asyncio.run(seeded_api())


@pytest.fixture
def api(shared: ApiHarness) -> ApiHarness:
    shared.failing.error, shared.failing.only = None, frozenset()
    return shared


async def refused(api: ApiHarness, content: bytes, **headers: str) -> tuple[int, dict[str, Any]]:
    async with api.client() as client:
        answer = await client.post("/v1/notifications", content=content, headers=JSON | headers)
    return answer.status_code, problem(answer)


@pytest.mark.parametrize("content", [b"", b"{", b"nonsense", b'{"type": "welcome"} x', b"\xff\xfe", b'{"a": NaN}'])
async def test_what_is_no_json_is_malformed(api: ApiHarness, content: bytes) -> None:
    status, said = await refused(api, content)
    assert (status, said["code"]) == (400, "malformed")


@pytest.mark.parametrize(
    "changes,field",
    [
        ({"type": "no-such-type"}, "type"),
        ({"type": 7}, "type"),
        ({"type": ""}, "type"),
        ({"type": "wel\0come"}, "type"),
        ({"to": [{"address": f"a{n}@example.com"} for n in range(21)]}, "to"),
        ({"to": [{"address": "no address"}]}, "to[0].address"),
        ({"to": [{"address": "a@example.com,b@example.com"}]}, "to[0].address"),
        ({"to": [{"address": "a@example.com\nbcc: b@example.com"}]}, "to[0].address"),
        ({"to": [{"user": "1", "address": "a@example.com"}]}, "to[0]"),
        ({"to": [{}]}, "to[0]"),
        ({"to": [{"user": "1"}, {"employee": "7"}]}, "to[1].employee"),
        ({"to": [{"users": "1"}]}, "to[0].users"),
        ({"to": [{"user": " "}]}, "to[0].user"),
        ({"to": [{"user": "a\0b"}]}, "to[0].user"),
        ({"to": [{"user": "a\nb"}]}, "to[0].user"),
        ({"to": [{"user": "1", "channel": "sms"}]}, "to[0].channel"),
        ({"to": [{"user": "1"}, {"group": str(ENTITY), "channel": "email"}]}, "to[1].channel"),
        ({"data": {}}, "data"),
        ({"data": [1]}, "data"),
        ({"entity": {"type": "child"}}, "entity.guid"),
        ({"entity": {"type": "child", "guid": "7"}}, "entity.guid"),
        ({"lane": "fast"}, "lane"),
        ({"not_before_at": "tomorrow"}, "not_before_at"),
        ({"not_before_at": "2026-03-01T08:00:00"}, "not_before_at"),
        ({"not_before_at": "2036-03-01T08:00:00Z"}, "not_before_at"),
        ({"ttl_seconds": 0}, "ttl_seconds"),
        ({"ttl_seconds": "60"}, "ttl_seconds"),
        ({"ttl_seconds": 2592001}, "ttl_seconds"),
        ({"locale": "german"}, "locale"),
        ({"locale": "x" * 36}, "locale"),
        ({"channels": ["pigeon"]}, "channels[0]"),
        ({"channels": ["sms"]}, "channels[0]"),
        ({"channels": ["email", "email"]}, "channels[1]"),
        ({"business_unit": "7"}, "business_unit"),
        ({"business_unit": str(ENTITY)}, "business_unit"),
        ({"hints": {"colour": "red"}}, "hints.colour"),
        ({"hints": {"tags": ["a"] * 11}}, "hints.tags"),
        ({"hints": {"unicode": "yes"}}, "hints.unicode"),
        ({"hints": {"from": "a\nb"}}, "hints.from"),
        ({"hints": {"sender_id": "x" * 201}}, "hints.sender_id"),
        ({"tenant_id": "other-school"}, "tenant_id"),
        ({"actor": "somebody else"}, "actor"),
        ({"status": "Done"}, "status"),
        ({"version": 7}, "version"),
    ],
)
async def test_a_value_that_cannot_be_accepted_is_named(api: ApiHarness, changes: dict[str, Any], field: str) -> None:
    async with api.client() as client:
        answer = await client.post("/v1/notifications", json=WELCOME | changes)
    said = problem(answer)
    assert (answer.status_code, said["field"]) == (422, field)
    assert said["code"] in ("invalid-input", "invalid-address", "invalid-key")
    assert not re.search(r"regex|expected|invalid|`\w+`, got|object missing|object contains", said["detail"].lower())
    without_json = re.sub(r"\{.*?\}", "", said["detail"])
    assert without_json.count(": ") == 1, "what is wrong, and after one colon what to do"


@pytest.mark.parametrize(
    "changes, detail",
    [
        ({"lane": "fast"}, "'fast' is not one of its words: choose from critical, high, normal, bulk"),
        (
            {"to": [{"address": "a", "channel": "fax"}]},
            "'fax' is not one of its words: choose from email, sms, push, chat, inbox",
        ),
        ({"type": ""}, "it is empty: use 1 character or more"),
        ({"typ": 1}, "there is no such field: correct it; /openapi.json describes every field"),
    ],
)
async def test_a_refusal_says_what_would_be_accepted(api: ApiHarness, changes: dict[str, Any], detail: str) -> None:
    async with api.client() as client:
        assert problem(await client.post("/v1/notifications", json=WELCOME | changes))["detail"] == detail
        cases = await client.get("/v1/support-cases?status=new")
    assert problem(cases)["detail"] == "'new' is not one of its words: choose from All, Open, Resolved"


async def test_a_missing_variable_is_found_while_the_caller_can_still_mend_it(api: ApiHarness) -> None:
    async with api.client() as client:
        answer = await client.post("/v1/notifications", json=WELCOME | {"data": {"nome": "Sam"}})
    assert "name" in problem(answer)["detail"]


@pytest.mark.parametrize("key", ["", " ", "a" * 256, "ключ", "a\tb"])
async def test_an_idempotency_key_that_cannot_be_one_is_refused(api: ApiHarness, key: str) -> None:
    async with api.client() as client:
        headers = {b"idempotency-key": key.encode()}
        answer = await client.post("/v1/notifications", json=WELCOME, headers=headers)
    assert (answer.status_code, problem(answer)["field"]) == (422, "Idempotency-Key")


async def test_the_longest_idempotency_key_is_taken(api: ApiHarness) -> None:
    async with api.client() as client:
        answer = await client.post("/v1/notifications", json=WELCOME, headers={"idempotency-key": "k" * 255})
    assert answer.status_code == 202


@pytest.mark.parametrize("announced", [True, False])
async def test_a_body_over_the_limit_is_refused_without_reading_on(api: ApiHarness, announced: bool) -> None:
    taken = 0

    async def endless() -> Any:
        nonlocal taken
        while taken < 10_000_000:
            taken += 65536
            yield b" " * 65536

    headers = JSON | ({"content-length": "10000000"} if announced else {})
    async with api.client() as client:
        answer = await client.post("/v1/notifications", content=endless(), headers=headers)
    assert (answer.status_code, problem(answer)["code"]) == (413, "too-large")
    assert taken <= (0 if announced else BODY_BYTES_MAX + 65536)


async def test_a_body_at_the_limit_is_read(api: ApiHarness) -> None:
    content = b'{"type": "welcome"' + b" " * (BODY_BYTES_MAX - 19) + b"}"
    assert len(content) == BODY_BYTES_MAX
    status, said = await refused(api, content)
    assert (status, said["field"]) == (422, "data")


@pytest.mark.parametrize("depth,status", [(DEPTH_MAX, 202), (DEPTH_MAX + 1, 422), (900, 422), (100_000, 422)])
async def test_json_is_nested_only_so_deeply(api: ApiHarness, depth: int, status: int) -> None:
    nested = b"[" * depth + b"]" * depth
    content = b'{"type":"welcome","to":[{"user":"1"}],"data":{"name":"Sam","x":' + nested[1:-1] + b"}}"
    async with api.client() as client:
        answer = await client.post("/v1/notifications", content=content, headers=JSON)
    assert answer.status_code == status
    assert status == 202 or f"at most {DEPTH_MAX} levels" in problem(answer)["detail"]


@pytest.mark.parametrize("number", ["1e308", "-1e308", "1e19", "9007199254740993", "1" * 400, "1e999"])
async def test_a_number_that_no_template_could_merge_is_refused_at_the_door(api: ApiHarness, number: str) -> None:
    # if it were accepted, it would fail after the claim, when it is too late to correct it.
    content = f'{{"type":"welcome","to":[{{"user":"1"}}],"data":{{"name":"Sam","x":{number}}}}}'.encode()
    async with api.client() as client:
        answer = await client.post("/v1/notifications", content=content, headers=JSON)
    assert answer.status_code == 422
    assert "data" in problem(answer)["field"]


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", "application/msgpack", ""])
async def test_only_json_is_read(api: ApiHarness, media_type: str) -> None:
    async with api.client() as client:
        answer = await client.post("/v1/notifications", content=b"{}", headers={"content-type": media_type})
    assert (answer.status_code, problem(answer)["code"]) == (415, "unsupported-media-type")


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "deflate", "br", "identity, gzip"])
async def test_a_compressed_body_is_refused_before_it_can_unfold(api: ApiHarness, encoding: str) -> None:
    status, said = await refused(api, b"\x1f\x8b", **{"content-encoding": encoding})
    assert (status, said["code"]) == (415, "unsupported-media-type")


async def test_json_may_name_its_charset(api: ApiHarness) -> None:
    async with api.client() as client:
        headers = {"content-type": "Application/JSON; charset=utf-8"}
        answer = await client.post("/v1/notifications", content=b"{}", headers=headers)
    assert answer.status_code == 422


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/nothing", "/schema", "/docs", "/v1/notifications/7", "/sandbox/outbox"]
)
async def test_an_unknown_path_is_a_problem_too(api: ApiHarness, path: str) -> None:
    async with api.client() as client:
        answer = await client.get(path)
    assert (answer.status_code, problem(answer)["code"]) == (404, "not-found")


async def test_a_wrong_method_is_told_the_right_ones(api: ApiHarness) -> None:
    async with api.client() as client:
        answer = await client.delete("/v1/notifications")
    assert (answer.status_code, problem(answer)["code"]) == (405, "method-not-allowed")
    assert "POST" in answer.headers["allow"]


@pytest.mark.parametrize(
    "path, methods",
    [
        ("/v1/notifications", "GET, OPTIONS, POST"),
        ("/v1/types/welcome", "GET, OPTIONS, PUT"),
        ("/v1/types", "GET, OPTIONS"),
    ],
)
async def test_a_path_names_all_of_its_methods(api: ApiHarness, path: str, methods: str) -> None:
    async with api.client() as client:
        answer = await client.options(path)
    assert (answer.status_code, answer.headers["allow"], answer.content) == (204, methods, b"")


async def test_a_body_that_does_not_come_is_not_waited_for(api: ApiHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BODY_TIME_MAX", timedelta(milliseconds=10))

    async def stalling() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    async with api.client() as client:
        answer = await client.post("/v1/notifications", content=stalling(), headers=JSON)
    assert (answer.status_code, problem(answer)["code"]) == (408, "too-slow")


async def test_headers_over_the_limit_are_refused(api: ApiHarness) -> None:
    async with api.client() as client:
        answer = await client.get("/health", headers={"x-padding": "a" * 20_000})
    assert (answer.status_code, problem(answer)["code"]) == (431, "headers-too-large")


@pytest.mark.parametrize(
    "query,field",
    [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=x", "limit"),
        ("limit=1_0", "limit"),
        ("limit=1.0", "limit"),
        ("limit=%2B1", "limit"),
        ("limit=01", "limit"),
        ("limt=5", "limt"),
        ("limit=5&limit=6", "limit"),
        ("cursor=x", "cursor"),
        ("cursor=WyJhdWRpdCIsNV0", "cursor"),
        ("cursor=" + "a" * 2000, "cursor"),
    ],
)
async def test_a_query_that_cannot_be_meant_is_refused(api: ApiHarness, query: str, field: str) -> None:
    async with api.client() as client:
        answer = await client.get(f"/v1/uncertain?{query}")
    assert (answer.status_code, problem(answer)["field"]) == (422, field)


@pytest.mark.parametrize(
    "entity", ["nothing", "7", "robot:7", "employee:7", "user:", "address:", "address:a@", "push:"]
)
async def test_an_entity_that_is_none_is_refused(api: ApiHarness, entity: str) -> None:
    async with api.client() as client:
        answer = await client.get(f"/v1/entities/{entity}/notifications")
    assert answer.status_code == 422
    problem(answer)


@pytest.mark.parametrize(
    "error,status,retry_after",
    [
        (StoreUnreachable("no route to db.internal:5432", hint="start it"), 503, "5"),
        (StoreBusy("locked by pid 4711", hint="wait"), 503, "1"),
        (StoreFull("no space on /var/lib/secret", hint="free some"), 503, "30"),
        (StoreReadOnly("db.internal is a replica", hint="fail over"), 503, "30"),
        (Ending("internal words", hint="internal hint"), 503, "5"),
        (Superseded("internal words", hint="internal hint"), 503, "5"),
        (BadConfiguration("secret-host has no key", hint="internal hint"), 500, None),
        (SealBroken("secret-row was moved", hint="internal hint"), 500, None),
        (BrokenInvariant("secret-row twice"), 500, None),
    ],
)
async def test_what_the_house_is_at_fault_for_is_told_without_its_inner_words(
    api: ApiHarness, error: ClarionError, status: int, retry_after: str | None
) -> None:
    api.failing.error, api.failing.only = error, frozenset({"ensure_notification_jobs", "find_job"})
    async with api.client() as client:
        for answer in (
            await client.post("/v1/notifications", json=WELCOME),
            await client.get("/v1/notifications/00000000-0000-0000-0000-000000000001"),
        ):
            said = problem(answer)
            assert (answer.status_code, said["code"]) == (status, error.code)
            assert answer.headers.get("retry-after") == retry_after
            assert error.message not in answer.text
            assert error.hint not in answer.text


async def test_an_error_that_nobody_expected_is_a_bug_without_a_word_of_its_text(api: ApiHarness) -> None:
    unexpected: Any = ZeroDivisionError("sam@example.com")
    api.failing.error, api.failing.only = unexpected, frozenset({"list_newest_audit"})
    async with api.client() as client:
        answer = await client.get("/v1/audit")
    assert (answer.status_code, problem(answer)["code"]) == (500, "bug")
    assert "sam" not in answer.text


async def test_a_store_that_is_down_is_503_already_when_the_key_is_read(api: ApiHarness) -> None:
    api.failing.error = StoreUnreachable("down", hint="start it")
    async with api.client() as client:
        answer = await client.get("/v1/types")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")


def test_every_error_has_an_answer_and_none_of_ours_or_the_operators_shows_its_own_text() -> None:
    for error in every_error():
        kind = kind_of(error)
        fault_of_caller = 400 <= kind.status < 500
        assert fault_of_caller == (kind.detail is None), error
        passes = kind.status in (429, 503) and error is not QuotaExceeded  # which says by itself when it opens
        assert passes == (kind.retry_after is not None), error
    assert set(KINDS) <= set(every_error())


async def test_every_answer_has_the_headers_that_keep_browsers_honest(api: ApiHarness) -> None:
    async with api.client() as client, api.client(base_url="https://clarion.example.com") as secure:
        for answer in (await client.get("/v1/types"), await client.get("/nope"), await client.get("/health")):
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cache-control"] == "no-store"
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            assert "strict-transport-security" not in answer.headers
        assert "strict-transport-security" in (await secure.get("/health")).headers


async def test_no_other_origin_is_let_in(api: ApiHarness) -> None:
    asked = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    async with api.client() as client:
        answer = await client.options("/v1/notifications", headers=asked)
    assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_a_role_cannot_be_gained_by_asking_for_it(api: ApiHarness) -> None:
    async with api.client(Role.VIEWER) as client:
        for headers in ({"x-role": "admin"}, {"x-tenant-id": "other-school"}):
            assert (await client.post("/v1/notifications", json=WELCOME, headers=headers)).status_code == 403


async def test_a_send_is_put_off_by_a_year_at_most(api: ApiHarness) -> None:
    async with api.client() as client:
        for days, status in ((366, 202), (367, 422)):
            later = (api.clock.now() + timedelta(days=days)).isoformat()
            answer = await client.post("/v1/notifications", json=WELCOME | {"not_before_at": later})
            assert answer.status_code == status

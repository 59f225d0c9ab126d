"""The API over the real stores: what is sent, asked, mended and refused is the same on SQLite and on PostgreSQL."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from clarion.adapters.host import HostClock
from clarion.adapters.stores import postgres, sqlite
from clarion.domain.content import SmsContent
from clarion.ports.catalog import Role
from clarion.testing.clock import ManualClock
from tests.integration.api_harness import (
    ENTITY,
    NOBODY,
    OTHER,
    WELCOME,
    ApiHarness,
    ask,
    comparable,
    filled,
    makes_ones_own,
    problem,
    things,
)


@asynccontextmanager
async def api_on(engine: str, request: pytest.FixtureRequest) -> AsyncIterator[ApiHarness]:
    clock = ManualClock(HostClock().now())  # PostgreSQL has the real time, and would find old messages expired
    if engine == "sqlite":
        path: Path = request.getfixturevalue("migrated_sqlite_path")
        store: sqlite.SqliteStore | postgres.PostgresStore = await sqlite.open_store(f"sqlite:///{path}", clock=clock)
    else:
        store = await postgres.open_store(request.getfixturevalue("migrated_postgres_url"), clock=clock)
    try:
        api = ApiHarness(store=store, clock=clock)
        await api.seed()
        yield api
    finally:
        await store.close()


each_engine = pytest.mark.parametrize("engine", ["sqlite", "postgres"])


@each_engine
async def test_a_notification_is_sent_once_asked_about_and_canceled(
    engine: str, request: pytest.FixtureRequest
) -> None:
    async with api_on(engine, request) as api, api.client() as client:
        headers = {"idempotency-key": "k"}
        body = WELCOME | {"entity": {"type": "child", "guid": str(ENTITY)}}
        first = (await client.post("/v1/notifications", json=body, headers=headers)).json()
        again = (await client.post("/v1/notifications", json=body, headers=headers)).json()
        assert again == first | {"repeated": True}
        other = await client.post("/v1/notifications", json=body | {"data": {"name": "Kim"}}, headers=headers)
        assert (other.status_code, problem(other)["code"]) == (409, "conflict")
        await api.line.drain()
        assert len(api.provider.calls) == 1
        told = (await client.get(f"/v1/messages/{first['message_id']}/timeline")).json()
        assert {"accepted", "generated", "claimed", "called", "sent"} <= {line["what"] for line in told["lines"]}
        history = (await client.get(f"/v1/entities/{ENTITY}/notifications")).json()["items"]
        assert [item["job_id"] for item in history] == [first["job_id"]]
        later = (await client.post("/v1/notifications", json=WELCOME)).json()
        path = f"/v1/notifications/{later['job_id']}/cancel"
        assert [(await client.post(path)).json()["repeated"] for _ in range(2)] == [False, True]


@each_engine
async def test_six_texts_to_one_number_leave_in_the_order_in_which_they_were_accepted(
    engine: str, request: pytest.FixtureRequest
) -> None:
    """All six are generated in one step; the keys of direct jobs sort the newest first."""
    body = {"type": "one-time-code", "to": [{"address": "+4915112345678"}]}
    codes = [f"{n}{n}{n}{n}{n}{n}" for n in range(6)]
    async with api_on(engine, request) as api, api.client() as client:
        for code in codes:
            answer = await client.post("/v1/notifications", json=body | {"data": {"code": code}})
            assert answer.status_code == 202, answer.text
            api.clock.advance(timedelta(milliseconds=7))
        await api.line.drain()
        texts = [call.content.text for call in api.provider.calls if isinstance(call.content, SmsContent)]
        assert [code for text in texts for code in codes if code in text] == codes


@each_engine
async def test_lists_are_read_page_by_page_each_item_once(engine: str, request: pytest.FixtureRequest) -> None:
    async with api_on(engine, request) as api, api.client() as client:
        for number in range(5):
            headers = {"idempotency-key": f"k{number}"}
            await client.post("/v1/notifications", json=WELCOME | {"to": [{"user": "1"}]}, headers=headers)
            await client.post("/v1/notifications", json=WELCOME, headers=headers)
        for path in ("/v1/entities/user:1/notifications", "/v1/support-cases", "/v1/audit"):
            whole = (await client.get(path, params={"limit": 100})).json()["items"]
            assert len(whole) >= 5
            found: list[object] = []
            params = {"limit": "2"}
            while True:
                page = (await client.get(path, params=params)).json()
                assert len(page["items"]) <= 2
                found += page["items"]
                if page["next_cursor"] is None:
                    break
                params["cursor"] = page["next_cursor"]
            assert found == whole, path


@each_engine
async def test_another_tenants_id_is_answered_exactly_as_one_that_nobody_has(
    engine: str, request: pytest.FixtureRequest
) -> None:
    async with api_on(engine, request) as api, api.client(tenant_id=OTHER) as stranger:
        ids = await things(api)
        for method, path, operation in api.operations():
            if makes_ones_own(method, path):
                continue
            for name in re.findall(r"\{(\w+)\}", path):
                theirs = await ask(stranger, method, filled(path, NOBODY | {name: ids[name]}), operation)
                nobodys = await ask(stranger, method, filled(path, NOBODY), operation)
                shown, unshown = (
                    (status, str(body).replace(asked, "it"), headers)
                    for (status, body, headers), asked in (
                        (comparable(theirs), ids[name]),
                        (comparable(nobodys), NOBODY[name]),
                    )
                )
                assert shown == unshown, (method, path)
                refused = 422 if method == "PUT" else 404  # what is put under a key is published for oneself
                assert theirs.status_code in (200, 404, refused)


@each_engine
async def test_whatever_stands_in_a_request_the_store_is_not_broken_by_it(
    engine: str, request: pytest.FixtureRequest
) -> None:
    nasty = ["%00", "%27%3B--", "a%0Ab", "%F0%9F%94%94", "%C3%28", "x" * 4000, "9223372036854775807", "..%2F"]
    async with api_on(engine, request) as api, api.client() as client:
        for method, path, operation in api.operations():
            for text in nasty:
                for name in re.findall(r"\{(\w+)\}", path):
                    answer = await ask(client, method, filled(path, NOBODY | {name: text}), operation)
                    assert answer.status_code < 500, (method, path, text, answer.text)
                if "security" in operation and method == "GET":
                    for name in ("cursor", "limit", "status"):
                        answer = await client.get(f"{filled(path, NOBODY)}?{name}={text}")
                        assert answer.status_code < 500, (path, name, text, answer.text)
        for text in (
            "\0",
            "'; --",
            "\ud83d\udd14".encode("utf-16", "surrogatepass").decode("utf-16"),
            "\u202e",
            "x" * 200,
        ):
            body = {"type": text, "to": [{"user": text}], "data": {text: text}, "entity": None}
            for changes in (body, body | {"type": "welcome", "data": {"name": text}}):
                answer = await client.post(
                    "/v1/notifications", json=changes, headers={"idempotency-key": "k" + "'" * 9}
                )
                assert answer.status_code < 500, (text, answer.text)


@each_engine
async def test_keys_types_and_retries_are_kept_and_audited(engine: str, request: pytest.FixtureRequest) -> None:
    async with api_on(engine, request) as api, api.client(Role.ADMIN) as client:
        ids = await things(api)
        assert (await client.put("/v1/types/newsletter/enabled", json={"enabled": False})).status_code == 204
        (line,) = (await client.get("/v1/uncertain")).json()["items"]
        asked = {"version": line["version"], "reason": "asked for"}
        assert (await client.post(f"/v1/outgoing/{line['id']}/retry", json=asked)).status_code == 202
        path = f"/v1/support-cases/{ids['case_id']}/resolve"
        assert (await client.post(path, json={"resolution": "explained"})).json()["status"] == "Resolved"
        types = {item["type"]: item["enabled"] for item in (await client.get("/v1/types")).json()["items"]}
        assert (types["newsletter"], types["welcome"]) == (False, True)
        acts = [entry["act"] for entry in (await client.get("/v1/audit?limit=100")).json()["items"]]
        assert list(dict.fromkeys(acts))[:3] == ["resolve", "retry", "disable"]
        metrics = (await client.get("/metrics")).text
        assert "clarion_store_up 1" in metrics
        assert (await client.get("/ready")).status_code == 200

"""Suppressions and preferences over HTTP: who gets nothing, what people want, and what is refused and why."""

from typing import Any

import httpx
import pytest

from clarion.domain.suppression import NOTE_BYTES_MAX
from clarion.operations import page
from clarion.operations.suppression import GONE
from clarion.ports.catalog import Role
from tests.integration.api_harness import OTHER, ApiHarness, problem, seeded_api
from tests.integration.test_api_groups import asked, every_item

NEWS = {"category": "news", "channel": "email"}


@pytest.fixture
async def api() -> ApiHarness:
    return await seeded_api()


async def suppress(client: httpx.AsyncClient, *items: dict[str, Any], reason: str = "asked") -> int:
    added: int = (await asked(client, "POST", "/v1/suppressions", items=list(items), reason=reason))["added"]
    return added


async def test_people_and_addresses_are_suppressed_listed_and_lifted(api: ApiHarness) -> None:
    async with api.client() as client:
        items = [{"recipient": "user:1", **NEWS}, {"recipient": "Kim@Example.com"}, {"recipient": "sms:+447700900009"}]
        assert await suppress(client, *items) == 3
        assert await suppress(client, *items) == 0
        found = await every_item(client, "/v1/suppressions", 2)
        assert {(one["recipient"], one["category"], one["channel"]) for one in found} == {
            ("user:1", "news", "email"),
            ("kim@example.com", None, None),
            ("+447700900009", None, None),
        }
        assert {(one["cause"], one["note"], one["created_by"]) for one in found} == {
            ("manual", "asked", "admin of school")
        }
        (one,) = await every_item(client, "/v1/suppressions?recipient=KIM@example.com", 2)
        assert await every_item(client, "/v1/suppressions?cause=manual", 1) == found
        assert await every_item(client, "/v1/suppressions?cause=bounce", 1) == []
        await asked(client, "DELETE", f"/v1/suppressions/{one['id']}?reason=mended", 204)
        answer = await client.delete(f"/v1/suppressions/{one['id']}?reason=mended")
        assert (answer.status_code, problem(answer)["code"]) == (404, "not-found")
        assert len(await every_item(client, "/v1/suppressions", 5)) == 2
        log = (await asked(client, "GET", "/v1/audit"))["items"]
        acts = [(entry["act"], entry["reason"]) for entry in log if entry["subject"].startswith("suppression ")]
        assert acts == [("lift", "mended"), *[("suppress", "asked")] * 3]


async def test_of_a_long_reason_a_suppression_keeps_the_beginning_and_the_audit_log_all(api: ApiHarness) -> None:
    reason = "é" * 1000
    async with api.client() as client:
        assert await suppress(client, {"recipient": "user:1", **NEWS}, reason=reason) == 1
        changes = [{"category": "news", "on": False}]
        await asked(client, "PUT", "/v1/people/user:2/preferences", changes=changes, reason=reason)
        found = await every_item(client, "/v1/suppressions", 5)
        log = (await asked(client, "GET", "/v1/audit"))["items"]
    assert {one["note"] for one in found} == {"é" * (NOTE_BYTES_MAX // 2)}
    assert {one["reason"] for one in log if one["subject"].startswith(("suppression ", "preference"))} == {reason}


async def test_whoever_may_not_reveal_sees_masked_addresses_and_asks_for_none(api: ApiHarness) -> None:
    async with api.client() as admin, api.client(Role.VIEWER) as viewer:
        await suppress(admin, {"recipient": "kim@example.com"}, {"recipient": "user:1"})
        shown = {one["recipient"] for one in await every_item(viewer, "/v1/suppressions", 5)}
        assert "kim@example.com" not in shown
        assert "user:1" in shown
        assert len(await every_item(viewer, "/v1/suppressions?recipient=user:1", 5)) == 1
        answer = await viewer.get("/v1/suppressions?recipient=kim@example.com")
        assert (answer.status_code, problem(answer)["code"]) == (403, "forbidden")


async def test_what_is_queued_for_somebody_who_is_suppressed_is_not_called(api: ApiHarness) -> None:
    sent = await api.sent(to=[{"address": "sam@example.com"}])
    async with api.client() as client:
        await api.line.queue()
        await suppress(client, {"recipient": "sam@example.com"})
        await api.line.drain()
        assert api.provider.calls == []
        told = await asked(client, "GET", f"/v1/notifications/{sent['job_id']}")
        (message,) = told["messages"]
        assert (message["status"], message["rule"]) == ("Suppressed", "suppression")
        assert message["reason"] == "somebody suppressed it by hand"


async def test_whoever_suppresses_what_stops_nothing_is_told_so(api: ApiHarness) -> None:
    async with api.client() as client:
        required = {"recipient": "user:1", "category": "account"}
        items = [required, {"recipient": "user:1", **NEWS}, {"recipient": "user:1", "category": "newz"}]
        told = await asked(client, "POST", "/v1/suppressions", items=items, reason="asked")
        assert told["added"] == 3
        unknown, useless = told["warnings"]
        assert unknown.startswith("no published type has the category 'newz'")
        assert useless.startswith("the category 'account' is required")


async def test_preferences_show_what_can_be_chosen_and_are_set_together(api: ApiHarness) -> None:
    async with api.client() as client:
        path = "/v1/people/user:1/preferences"
        shown = await asked(client, "GET", path)
        by_category = {one["category"]: one for one in shown["items"]}
        assert (shown["person"], shown["stopped"]) == ("user:1", None)
        assert by_category["news"] == {
            "category": "news",
            "titles": ["School newsletter"],
            "required": False,
            "channels": {"email": True},
        }
        assert {name for name, one in by_category.items() if one["required"]} == set(by_category) - {"news"}
        assert all(on for one in by_category.values() for on in one["channels"].values())
        set_ = await asked(client, "PUT", path, changes=[{**NEWS, "on": False}], reason="asked")
        assert {one["category"]: one["channels"] for one in set_["items"]}["news"] == {"email": False}
        assert await asked(client, "GET", path) == set_
        (row,) = await every_item(client, "/v1/suppressions", 5)
        assert (row["recipient"], row["category"], row["channel"], row["cause"]) == (
            "user:1",
            "news",
            "email",
            "preference",
        )
        assert await asked(client, "PUT", path, changes=[{"category": "news", "on": True}]) == shown
        assert await every_item(client, "/v1/suppressions", 5) == []
        await suppress(client, {"recipient": "user:1"})
        assert (await asked(client, "GET", path))["stopped"] == "manual"


async def test_what_somebody_switched_off_is_not_sent_and_what_is_required_is(api: ApiHarness) -> None:
    async with api.client() as client:
        await asked(client, "PUT", "/v1/people/user:1/preferences", changes=[{"category": "news", "on": False}])
        news = await api.sent(type="newsletter", to=[{"user": "1"}], data=NEWS_DATA)
        await api.sent(to=[{"user": "1"}])
        await api.line.drain()
        assert [call.channel for call in api.provider.calls] == ["email"]
        told = await asked(client, "GET", f"/v1/notifications/{news['job_id']}")
        assert [one["rule"] for line in told["recipients"] for one in line["skipped"]] == ["preference"]


NEWS_DATA = {"edition": "March", "intro": "Hello", "stories": []}


@pytest.mark.parametrize(
    "body, field",
    [
        ({"changes": [{"category": "nothing", "on": False}]}, "changes[0].category"),
        ({"changes": [{"category": "news", "on": False}, {"category": "account", "on": False}]}, "changes[1].category"),
        ({"changes": [{"category": "news", "channel": "sms", "on": False}]}, "changes[0].channel"),
        ({"changes": []}, "changes"),
        ({"changes": [{"category": "news"}]}, "changes[0].on"),
        ({"changes": [{"category": "news", "channel": "fax", "on": False}]}, "changes[0].channel"),
        ({"changes": [{"category": "news", "on": False}] * 201}, "changes"),
    ],
)
async def test_a_preference_that_cannot_be_set_changes_nothing(
    api: ApiHarness, body: dict[str, Any], field: str
) -> None:
    async with api.client() as client:
        required = {one["category"] for one in (await asked(client, "GET", P))["items"] if one["required"]}
        text = body["changes"]
        body = {"changes": [one | {"category": min(required)} if one["category"] == "account" else one for one in text]}
        answer = await client.put(P, json=body)
        assert (answer.status_code, problem(answer)["field"]) == (422, field), answer.text
        assert await every_item(client, "/v1/suppressions", 5) == []


P = "/v1/people/user:1/preferences"


@pytest.mark.parametrize(
    "item, field",
    [
        ({"recipient": "nobody"}, "items[1].recipient"),
        ({"recipient": "fax:1"}, "items[1].recipient"),
        ({"recipient": "user:"}, "items[1].recipient"),
        ({"recipient": "employee:7"}, "items[1].recipient"),
        ({"recipient": "user:1", "channel": "email"}, "items[1].channel"),
        ({"recipient": "user:1", "category": ""}, "items[1].category"),
    ],
)
async def test_one_that_cannot_be_suppressed_leaves_all_as_they_are(
    api: ApiHarness, item: dict[str, Any], field: str
) -> None:
    async with api.client() as client:
        body = {"items": [{"recipient": "kim@example.com"}, item], "reason": "asked"}
        answer = await client.post("/v1/suppressions", json=body)
        assert (answer.status_code, problem(answer)["field"]) == (422, field), answer.text
        assert await every_item(client, "/v1/suppressions", 5) == []


async def test_without_a_reason_nothing_is_suppressed_or_lifted(api: ApiHarness) -> None:
    async with api.client() as client:
        answer = await client.post("/v1/suppressions", json={"items": [{"recipient": "user:1"}]})
        assert (answer.status_code, problem(answer)["field"]) == (422, "reason")
        await suppress(client, {"recipient": "user:1"})
        (one,) = await every_item(client, "/v1/suppressions", 5)
        answer = await client.delete(f"/v1/suppressions/{one['id']}")
        assert (answer.status_code, problem(answer)["field"]) == (422, "reason")
        for wrong in ("x", "AAAA", "%20", "é"):
            answer = await client.delete(f"/v1/suppressions/{wrong}?reason=r")
            assert (answer.status_code, problem(answer)["field"]) == (422, "id"), answer.text
        for cursor in (
            page.write("suppressions", "2026-11-19T06:00:00 aa *"),
            page.write("suppressions", "0001-01-01T00:00:00+23:59 aa *"),
            page.write("suppressions", "9999-12-31T23:59:59-23:59 aa *"),
            "x",
            page.write("people", "1"),
            page.write("suppressions", "1 2 3"),
            page.write("suppressions", 7),
        ):
            answer = await client.get("/v1/suppressions", params={"cursor": cursor})
            assert (answer.status_code, problem(answer)["field"]) == (422, "cursor"), cursor
        assert len(await every_item(client, "/v1/suppressions", 5)) == 1


async def test_what_is_another_tenants_is_not_there(api: ApiHarness) -> None:
    """Two tenants with the same person and the same address."""
    async with api.client() as client, api.client(tenant_id=OTHER) as stranger:
        await suppress(client, {"recipient": "user:1"}, {"recipient": "kim@example.com"})
        mine = await every_item(client, "/v1/suppressions", 5)
        assert await every_item(stranger, "/v1/suppressions", 5) == []
        for one in mine:
            await asked(stranger, "DELETE", f"/v1/suppressions/{one['id']}?reason=r", 404)
        assert await every_item(client, "/v1/suppressions", 5) == mine


async def test_a_person_who_was_removed_is_named_by_words(api: ApiHarness) -> None:
    async with api.client() as client:
        await suppress(client, {"recipient": "user:1"})
        await asked(client, "DELETE", "/v1/people/user:1", 204)
        (one,) = await every_item(client, "/v1/suppressions", 5)
        assert one["recipient"] == GONE
        await asked(client, "GET", P, 404)
        await asked(client, "PUT", P, 404, changes=[{"category": "news", "on": False}])

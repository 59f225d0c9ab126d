"""Events over HTTP: told once, refused while their teller can mend them, shown to whom, and handled again."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from clarion.domain.entity_event import EventStatus
from clarion.ports.catalog import Role
from clarion.ports.source import EventEnd
from tests.integration.api_harness import ENTITY, OTHER, ApiHarness, problem, seeded_api

ID = "6f1c2c7e-7777-4000-8000-000000000001"
JOINED: dict[str, Any] = {
    "type": "member.joined",
    "id": ID,
    "entity": {"type": "child", "guid": str(ENTITY)},
    "data": {"name": "Robin"},
}


@pytest.fixture
async def api() -> ApiHarness:
    api = await seeded_api()
    async with api.client() as client:
        await asked(client, "PUT", "/v1/event-mappings/member.joined", notification_type="welcome")
        await asked(client, "PUT", "/v1/event-mappings/member.left", notification_type=None)
    return api


async def asked(
    client: httpx.AsyncClient, method: str, path: str, status: int = 200, *, key: str | None = None, **body: Any
) -> Any:
    headers = {} if key is None else {"idempotency-key": key}
    json = None if method in ("GET", "DELETE") else body
    answer = await client.request(method, path, json=json, headers=headers)
    assert answer.status_code == status, answer.text
    return problem(answer) if status >= 400 else answer.json() if answer.content else None


async def told(client: httpx.AsyncClient, status: int = 202, *, key: str | None = None, **changes: Any) -> Any:
    body = {name: value for name, value in (JOINED | changes).items() if value is not None}
    return await asked(client, "POST", "/v1/events", status, key=key, **body)


async def test_an_event_is_stored_once_however_often_it_is_told(api: ApiHarness) -> None:
    async with api.client(Role.SENDER) as client:
        first = await told(client)
        assert first == {"event_id": ID, "entity": str(ENTITY), "repeated": False}
        assert await told(client) == first | {"repeated": True}
        keyed = await told(client, id=None, key="joined-1")
        assert await told(client, id=None, key="joined-1") == keyed | {"repeated": True}
        assert keyed["event_id"] not in (ID, (await told(client, id=None, key="joined-2"))["event_id"])
        assert api.wake_ups == ["events"] * 3
        shown = await asked(client, "GET", f"/v1/events/{ID}")
        assert (shown["type"], shown["status"], shown["data"]) == ("member.joined", "Ready", {"name": "Robin"})
        assert shown["entity"] == {"type": "child", "guid": str(ENTITY)}
        assert len((await asked(client, "GET", "/v1/events"))["items"]) == 3


async def test_another_event_under_the_same_id_is_a_conflict_that_says_in_what_and_opens_a_case(
    api: ApiHarness,
) -> None:
    async with api.client() as client:
        await told(client, occurred_at="2026-01-01T08:00:00Z")
        for changes, named in (
            ({"data": {"name": "Kim"}}, "data.name"),
            ({"type": "member.left"}, "type"),
            ({"entity": {"type": "child", "guid": ID}}, "entity"),
            ({"source": {"type": "child", "id": "7"}}, "source"),
            ({"entity": {**JOINED["entity"], "data": {"a": 1}}}, "entity.data.a"),
            ({"occurred_at": "2026-01-01T08:00:01Z"}, "occurred_at"),
        ):
            given = {"occurred_at": "2026-01-01T09:00:00+01:00"} | changes
            said = await told(client, 409, **given)
            assert f"(it differs in {named})" in said["detail"], said
            assert "Kim" not in said["detail"]
        (case,) = (await asked(client, "GET", "/v1/support-cases"))["items"]
        assert (case["kind"], case["about"], case["seen_count"]) == ("Conflict", f"event {ID}", 6)
        assert (await asked(client, "GET", f"/v1/events/{ID}"))["data"] == {"name": "Robin"}


async def test_an_event_is_refused_with_the_field_that_its_teller_can_mend(api: ApiHarness) -> None:
    async with api.client() as client:
        for changes, key, field in (
            ({"id": None}, None, "id"),
            ({}, "both", "id"),
            ({"type": "member.married"}, None, "type"),
            ({"type": "member joined"}, None, "type"),
            ({"data": {}}, None, "data"),
            ({"data": {"name": "x" * 17_000}}, None, "data"),
            ({"entity": None}, None, "entity"),
            ({"entity": {"type": " ", "guid": ID}}, None, "entity.type"),
            ({"source": {"type": "Child", "id": "7"}}, None, "source.type"),
            ({"source": {"type": "child", "id": ".."}}, None, "source.id"),
            ({"occurred_at": "2026-01-01T08:00:00"}, None, "occurred_at"),
            ({"occurred_at": "2199-01-01T08:00:00Z"}, None, "occurred_at"),
            ({"occurred_at": "1969-01-01T08:00:00Z"}, None, "occurred_at"),
            ({"business_unit": ID}, None, "business_unit"),
            ({"colour": "red"}, None, "colour"),
        ):
            said = await told(client, 422, key=key, **changes)
            assert (said["field"], bool(said["detail"])) == (field, True), said
        assert (await asked(client, "GET", "/v1/events"))["items"] == []
        assert api.wake_ups == []


async def test_an_event_of_a_source_happened_to_its_entity(api: ApiHarness) -> None:
    source = {"type": "child", "id": "a/7"}
    async with api.client() as client:
        before = await told(client, entity=None, source=source)
        await asked(client, "PUT", "/v1/sources/child/a%2F7", entity=str(ENTITY))
        after = await told(client, entity=None, source=source, id=None, key="later")
        assert (before["entity"] != str(ENTITY), after["entity"]) == (True, str(ENTITY))
        again = await told(client, entity=None, source=source)
        assert again == before | {"repeated": True}, "what was left open is as it was when it was told first"
        listed = await asked(client, "GET", f"/v1/events?entity=child:{ENTITY}")
        assert [one["type"] for one in listed["items"]] == ["member.joined", "child.created"]


async def test_what_was_accepted_stays_accepted_whatever_its_type_leads_to_now(api: ApiHarness) -> None:
    async with api.client() as client:
        await told(client)
        await asked(client, "DELETE", "/v1/event-mappings/member.joined", 204)
        assert (await told(client))["repeated"]
        assert (await told(client, 422, id=None, key="new"))["field"] == "type"


async def test_the_table_of_mappings_is_set_listed_and_audited(api: ApiHarness) -> None:
    async with api.client() as client:
        again = await asked(client, "PUT", "/v1/event-mappings/member.left", notification_type=None)
        listed = await asked(client, "GET", "/v1/event-mappings?limit=1")
        rest = await asked(client, "GET", f"/v1/event-mappings?cursor={listed['next_cursor']}")
        assert [(one["event_type"], one["notification_type"]) for one in listed["items"] + rest["items"]] == [
            ("member.joined", "welcome"),
            ("member.left", None),
        ]
        assert rest["items"] == [again]
        for name, body, field in (
            ("member.joined", {"notification_type": "no-such-type"}, "notification_type"),
            ("member joined", {"notification_type": None}, "event_type"),
            ("member.joined", {}, "notification_type"),
        ):
            assert (await asked(client, "PUT", f"/v1/event-mappings/{name}", 422, **body))["field"] == field
        await asked(client, "DELETE", "/v1/event-mappings/member.left", 204)
        await asked(client, "DELETE", "/v1/event-mappings/member.left", 404)
        subjects = [one["subject"] for one in (await asked(client, "GET", "/v1/audit"))["items"]]
        assert sum("member.left" in one for one in subjects) == 2, "what changed nothing is no act"


async def test_an_event_that_failed_is_handled_again_on_a_persons_word(api: ApiHarness) -> None:
    async with api.client() as client:
        await told(client)
        path = f"/v1/events/{ID}/retry"
        assert "not failed" in (await asked(client, "POST", path, 409, reason="mended"))["detail"]
        (claim,) = await api.memory.claim_events(limit=5, lease=timedelta(minutes=1))
        end = EventEnd(
            tenant_id=claim.tenant_id,
            event_id=claim.event.id or 0,
            version=claim.event.version,
            to=EventStatus.FAILED,
            reason="the template is quarantined",
        )
        assert await api.memory.finish_events([end])
        (failed,) = (await asked(client, "GET", "/v1/events?status=Failed"))["items"]
        assert (failed["event_id"], failed["reason"]) == (ID, "the template is quarantined")
        assert (await asked(client, "POST", path, 422, reason=" "))["field"] == "reason"
        api.wake_ups.clear()
        assert await asked(client, "POST", path, 202, reason="mended") == {"event_id": ID}
        assert api.wake_ups == ["events"]
        assert (await asked(client, "GET", f"/v1/events/{ID}"))["status"] == "Ready"
        newest = (await asked(client, "GET", "/v1/audit"))["items"][0]
        assert (newest["act"], newest["subject"], newest["reason"]) == ("retry", f"event {ID}", "mended")
        await asked(client, "POST", f"/v1/events/{UUID(int=1)}/retry", 404, reason="mended")


async def test_events_are_listed_newest_first_page_by_page_and_shown_to_who_may_see_them(api: ApiHarness) -> None:
    async with api.client(Role.SENDER) as client:
        for n in range(5):
            await told(client, id=None, key=f"k{n}", occurred_at=f"2026-01-0{5 - n}T08:00:00Z", data={"name": f"N{n}"})
        first = await asked(client, "GET", "/v1/events?limit=3")
        rest = await asked(client, "GET", f"/v1/events?limit=3&cursor={first['next_cursor']}")
        names = [one["data"]["name"] for one in first["items"] + rest["items"]]
        assert (names, rest["next_cursor"]) == ([f"N{n}" for n in range(5)], None)
        cursor = first["next_cursor"]
        assert (await asked(client, "GET", f"/v1/events?status=Ready&cursor={cursor}", 422))["field"] == "cursor"
        assert (await asked(client, "GET", "/v1/events?entity=child", 422))["field"] == "entity"
    for role, sees in ((Role.VIEWER, False), (Role.AUTHOR, False), (Role.SUPPORT, True)):
        async with api.client(role) as client:
            answer = await client.get("/v1/events")
            assert (answer.status_code, "N3" in answer.text) == (200, sees)


async def test_an_event_of_another_tenant_is_not_there_and_its_id_is_free(api: ApiHarness) -> None:
    async with api.client() as client:
        await told(client)
    async with api.client(tenant_id=OTHER) as stranger:
        await asked(stranger, "GET", f"/v1/events/{ID}", 404)
        await asked(stranger, "POST", f"/v1/events/{ID}/retry", 404, reason="mine")
        assert (await asked(stranger, "GET", "/v1/events"))["items"] == []
        assert (await told(stranger, 422))["field"] == "type", "the other's table is not this one's"
        await asked(stranger, "PUT", "/v1/event-mappings/member.joined", notification_type="welcome")
        assert not (await told(stranger))["repeated"]

"""Sources over HTTP: put one by one and in sets, shown to whom, and refused with the field that is wrong."""

from typing import Any
from urllib.parse import quote

import httpx
import pytest

from clarion.ports.catalog import Role
from tests.integration.api_harness import OTHER, ApiHarness, problem, seeded_api

INVOICE: dict[str, Any] = {
    "fields": {"number": "2026-17", "paid": False, "lines": 3, "total": 120.5},
    "dates": {"due_on": "2026-12-01"},
    "metrics": {"open": 120.5, "seats": {"north": 3}},
}
PATH = "/v1/sources/invoice"
UNIT = "6f1c2c7e-0000-4000-8000-000000000002"
ENTITY = "6f1c2c7e-0000-4000-8000-000000000003"


@pytest.fixture
async def api() -> ApiHarness:
    return await seeded_api()


async def asked(client: httpx.AsyncClient, method: str, path: str, status: int = 200, **body: Any) -> Any:
    answer = await client.request(method, path, json=None if method in ("GET", "DELETE") else body)
    assert answer.status_code == status, answer.text
    return problem(answer) if status >= 400 else answer.json()


async def test_a_source_is_put_shown_and_removed_and_each_change_is_an_event(api: ApiHarness) -> None:
    async with api.client() as client:
        first = await asked(client, "PUT", f"{PATH}/17", **INVOICE)
        assert (first["version"], first["changed"], api.wake_ups) == (1, True, ["events"])
        again = await asked(client, "PUT", f"{PATH}/17", **INVOICE)
        assert again == {"id": "17", "version": 1, "changed": False, "event_id": None}
        paid = await asked(client, "PUT", f"{PATH}/17", fields={"paid": True})
        assert (paid["version"], paid["changed"], len(api.wake_ups)) == (2, True, 2)
        shown = await asked(client, "GET", f"{PATH}/17")
        assert (shown["type"], shown["id"], shown["version"]) == ("invoice", "17", 2)
        assert (shown["fields"], shown["dates"], shown["metrics"]) == ({"paid": True}, {}, {})
        gone = await asked(client, "DELETE", f"{PATH}/17")
        assert (gone["version"], gone["changed"]) == (3, True)
        for method in ("GET", "DELETE"):
            await asked(client, method, f"{PATH}/17", 404)
        back = await asked(client, "PUT", f"{PATH}/17", **INVOICE)
        assert back["version"] == 4
        assert (await asked(client, "GET", f"{PATH}/17"))["entity"] == shown["entity"], "it keeps its history"


async def test_an_id_of_odd_characters_is_reached_by_its_path(api: ApiHarness) -> None:
    async with api.client() as client:
        for name in ("a/b", "/a", "a/", "a//b", "2026 17", "März €", "100%", "a?b#c", "+", "..a", "a%2Fb"):
            path = f"{PATH}/{quote(name, safe='')}"
            assert (await asked(client, "PUT", path, **INVOICE))["id"] == name
            assert (await asked(client, "GET", path))["id"] == name
            assert [one["id"] for one in (await asked(client, "GET", PATH))["items"]] == [name]
            assert (await asked(client, "DELETE", path))["id"] == name


async def test_an_id_that_could_not_be_used_is_refused_with_words(api: ApiHarness) -> None:
    async with api.client() as client:
        for name in (".", "..", " ", "a\nb", "a\u202eb", "x" * 201, "日" * 23):
            for method in ("PUT", "GET", "DELETE"):
                path = f"{PATH}/{quote(name, safe='').replace('.', '%2E')}"
                assert (await asked(client, method, path, 422))["field"] == "id"
            said = await asked(client, "POST", PATH, 422, sources=[{"id": name}])
            assert said["field"] == "sources[0].id"
        assert (await asked(client, "GET", f"{PATH}/%C3%28", 422))["field"] == "source"


async def test_a_set_is_stored_as_a_whole_or_not_at_all_and_every_mistake_is_named(api: ApiHarness) -> None:
    async with api.client() as client:
        said = await asked(
            client,
            "POST",
            PATH,
            422,
            sources=[
                {"id": "1", **INVOICE},
                {"id": "2", "dates": {"due_on": "2026-02-30"}, "metrics": {"open": "much"}},
                {"id": "1"},
                {"id": "3", "business_unit": UNIT},
                {"id": "4", "fields": {f"f{n}": n for n in range(51)}},
            ],
        )
        assert [one["field"] for one in said["mistakes"]] == [
            *("sources[1].dates.due_on", "sources[1].metrics.open", "sources[2].id", "sources[3].business_unit"),
            "sources[4].fields",
        ]
        assert (await asked(client, "GET", PATH))["items"] == []
        assert api.wake_ups == []
        stored = await asked(client, "POST", PATH, sources=[{"id": "1", **INVOICE}, {"id": "2"}])
        assert (stored["changed"], [one["id"] for one in stored["items"]]) == (2, ["1", "2"])
        stored = await asked(client, "POST", PATH, sources=[{"id": "2"}, {"id": "3"}])
        assert (stored["changed"], [one["changed"] for one in stored["items"]]) == (1, [False, True])


WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"dates": {"due_on": "2027-02-29"}}, "dates.due_on"),
    ({"dates": {"due_on": "9999-01-01"}}, "dates.due_on"),
    ({"metrics": {"open": "12"}}, "metrics.open"),
    ({"metrics": {"open": True}}, "metrics.open"),
    ({"metrics": {f"m{n}": n for n in range(51)}}, "metrics"),
    ({"fields": {"note": ["a"]}}, "fields.note"),
    ({"fields": {"not a name": 1}}, "fields.not a name"),
    ({"fields": {"note": "x" * 17_000}}, "fields"),
    ({"colour": "red"}, "colour"),
    ({"fields": "red"}, "fields"),
    ({"business_unit": UNIT}, "business_unit"),
)


async def test_what_is_wrong_with_a_source_is_told_by_its_field(api: ApiHarness) -> None:
    async with api.client() as client:
        for body, field in WRONG:
            assert (await asked(client, "PUT", f"{PATH}/17", 422, **body))["field"] == field
        for number, status in (("NaN", 400), ("1e400", 422), ("1" * 400, 422), ("-Infinity", 400)):
            text = f'{{"metrics": {{"open": {number}}}}}'
            answer = await client.put(f"{PATH}/17", content=text, headers={"content-type": "application/json"})
            assert (answer.status_code, problem(answer).get("field", "metrics")[:7]) == (status, "metrics")
        await asked(client, "GET", f"{PATH}/17", 404)


async def test_a_type_is_a_word(api: ApiHarness) -> None:
    async with api.client() as client:
        for name in ("Invoice", "in voice", "7b", "%2E%2E", "x" * 65):
            for method, path in (("GET", ""), ("POST", ""), ("PUT", "/1"), ("GET", "/1"), ("DELETE", "/1")):
                body: dict[str, Any] = {"sources": [{"id": "1"}]} if method == "POST" else {}
                assert (await asked(client, method, f"/v1/sources/{name}{path}", 422, **body))["field"] == "type"


async def test_a_source_keeps_its_entity_and_may_be_of_a_unit(api: ApiHarness) -> None:
    async with api.client() as client:
        await asked(client, "PUT", f"/v1/units/{UNIT}", name="North")
        await asked(client, "PUT", f"{PATH}/17", entity=ENTITY, business_unit=UNIT)
        shown = await asked(client, "GET", f"{PATH}/17")
        assert (shown["entity"], shown["business_unit"]) == (ENTITY, UNIT)
        await asked(client, "PUT", f"{PATH}/17", entity=ENTITY, fields={"a": 1})
        said = await asked(client, "PUT", f"{PATH}/17", 422, entity=UNIT)
        assert said["field"] == "entity"


async def test_a_list_goes_page_by_page_and_shows_content_to_who_may_see_it(api: ApiHarness) -> None:
    names = ["a b", "a/b", "b", "ä"]
    async with api.client(Role.SENDER) as client:
        await asked(client, "POST", PATH, sources=[{"id": one, **INVOICE} for one in names])
        await asked(client, "PUT", "/v1/sources/class/7b")
        first = await asked(client, "GET", f"{PATH}?limit=3")
        rest = await asked(client, "GET", f"{PATH}?limit=3&cursor={first['next_cursor']}")
        found = [one["id"] for page in (first, rest) for one in page["items"]]
        assert sorted(found) == names
        assert rest["next_cursor"] is None
        assert rest["items"][0]["fields"] == INVOICE["fields"]
        other = (await asked(client, "GET", f"{PATH}?limit=1"))["next_cursor"]
        assert (await asked(client, "GET", f"/v1/sources/class?cursor={other}", 422))["field"] == "cursor"
    for role, sees in ((Role.VIEWER, False), (Role.AUTHOR, False), (Role.SUPPORT, True), (Role.ADMIN, True)):
        async with api.client(role) as client:
            shown = await asked(client, "GET", f"{PATH}/b")
            assert [(shown[part] is not None) for part in ("fields", "dates", "metrics")] == [sees] * 3, role
            assert ("120.5" in str((await asked(client, "GET", PATH))["items"])) == sees


async def test_a_source_of_another_tenant_is_not_there(api: ApiHarness) -> None:
    async with api.client() as client:
        await asked(client, "PUT", f"{PATH}/17", **INVOICE)
    async with api.client(tenant_id=OTHER) as stranger:
        await asked(stranger, "GET", f"{PATH}/17", 404)
        await asked(stranger, "DELETE", f"{PATH}/17", 404)
        assert (await asked(stranger, "GET", PATH))["items"] == []
        assert (await asked(stranger, "PUT", f"{PATH}/17"))["version"] == 1
    async with api.client() as client:
        assert (await asked(client, "GET", f"{PATH}/17"))["fields"] == INVOICE["fields"]

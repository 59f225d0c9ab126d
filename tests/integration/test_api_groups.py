"""Groups, business units, roles and relations over HTTP: bulk changes, pages, and what is refused and why."""

from typing import Any
from uuid import UUID, uuid5

import httpx
import pytest

from clarion.ports.catalog import Role
from tests.integration.api_harness import OTHER, ApiHarness, problem, seeded_api

SPACE = UUID(int=7)
A, B, C = (str(uuid5(SPACE, name)) for name in "abc")
CHILD = str(uuid5(SPACE, "child"))
KNOWN = ("user:1", "user:2")
"""People whom the seeded tenant has."""


@pytest.fixture
async def api() -> ApiHarness:
    return await seeded_api()


async def asked(client: httpx.AsyncClient, method: str, path: str, status: int = 200, **body: Any) -> Any:
    answer = await client.request(method, path, json=body or None)
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else None


async def every_item(client: httpx.AsyncClient, path: str, limit: int) -> list[Any]:
    """Follow the cursors to the end."""
    found: list[Any] = []
    cursor, joint = "", "&" if "?" in path else "?"
    while True:
        page = await asked(client, "GET", f"{path}{joint}limit={limit}{cursor and f'&cursor={cursor}'}")
        found += page["items"]
        assert len(page["items"]) <= limit
        if page["next_cursor"] is None:
            return found
        cursor = page["next_cursor"]


async def test_a_group_is_made_changed_shown_and_removed(api: ApiHarness) -> None:
    async with api.client() as client:
        await asked(client, "PUT", f"/v1/groups/{B}", name="inner")
        made = {"guid": A, "name": "Parents", "groups": [B], "members": 0}
        assert await asked(client, "PUT", f"/v1/groups/{A}", name="Parents", groups=[B]) == made
        assert await asked(client, "PATCH", f"/v1/groups/{A}", name="Eltern") == made | {"name": "Eltern"}
        assert await asked(client, "PATCH", f"/v1/groups/{A}", groups=[]) == made | {"name": "Eltern", "groups": []}
        assert await asked(client, "GET", f"/v1/groups/{A}") == made | {"name": "Eltern", "groups": []}
        listed = await every_item(client, "/v1/groups", 1)
        mine = [one for one in listed if one["guid"] in (A, B)]
        assert mine == sorted(
            [{"guid": A, "name": "Eltern"}, {"guid": B, "name": "inner"}], key=lambda one: one["guid"]
        )
        await asked(client, "DELETE", f"/v1/groups/{A}", 204)
        for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/members")):
            answer = await client.request(method, f"/v1/groups/{A}{path}")
            assert (answer.status_code, problem(answer)["detail"]) == (
                404,
                "there is no such group: check the id and the key's tenant",
            )
        acts = (await client.get("/v1/audit?limit=100")).json()["items"]
    about = [(one["actor"], one["act"], one["details"]) for one in acts if one["subject"] == f"group {A}"]
    assert about == [
        ("admin of school", "remove", {}),
        ("admin of school", "put", {"groups": []}),
        ("admin of school", "put", {"name": "Eltern"}),
        ("admin of school", "put", {"name": "Parents", "groups": [B]}),
    ]


async def test_a_thousand_members_come_in_one_request_and_are_listed_page_by_page(api: ApiHarness) -> None:
    """Known or not; a thousand and one do not."""
    people = [f"user:parent-{n}" for n in range(998)]
    async with api.client() as client:
        await asked(client, "PUT", f"/v1/groups/{A}", name="all")
        path = f"/v1/groups/{A}/members"
        changed = await asked(client, "PATCH", path, add=[*people, *KNOWN])
        assert changed == {"added": 1000, "removed": 0, "unchanged": 0, "unknown": 998}
        again = await asked(client, "PATCH", path, add=[*people, *KNOWN])
        assert again == {"added": 0, "removed": 0, "unchanged": 1000, "unknown": 998}
        assert (await asked(client, "GET", f"/v1/groups/{A}"))["members"] == 1000
        listed = [one["person"] for one in await every_item(client, path, 100)]
        assert len(listed) == 1000
        assert sorted(filter(None, listed)) == list(KNOWN)
        gone = await asked(client, "PATCH", path, remove=people[:500], add=["employee:" + CHILD])
        assert gone == {"added": 1, "removed": 500, "unchanged": 0, "unknown": 1}
        answer = await client.patch(path, json={"add": [*people, "user:3", "user:4", "user:5"]})
        assert (answer.status_code, problem(answer)["field"]) == (422, "add")


@pytest.mark.parametrize(
    "body, field, detail",
    [
        ({"add": ["user:1", "sam@example.com"]}, "add[1]", "it names nobody"),
        ({"add": ["user:"]}, "add[0]", "it names nobody"),
        ({"add": ["user: "]}, "add[0]", "it names nobody"),
        ({"add": [f"user:{'x' * 201}"]}, "add[0]", "it names nobody"),
        ({"remove": ["employee:7"]}, "remove[0]", "it names nobody"),
        ({"remove": [f"group:{A}"]}, "remove[0]", "it names nobody"),
        ({"add": ["user:1", "user:2"], "remove": ["user:2"]}, "remove[0]", "they are to be added too"),
        ({"add": "user:1"}, "add", "Expected"),
        ({"members": ["user:1"]}, "members", ""),
    ],
)
async def test_whoever_is_named_wrongly_is_refused_by_their_place_and_nobody_is_added(
    api: ApiHarness, body: dict[str, Any], field: str, detail: str
) -> None:
    async with api.client() as client:
        await asked(client, "PUT", f"/v1/groups/{A}", name="all")
        answer = await client.patch(f"/v1/groups/{A}/members", json=body)
        said = problem(answer)
        assert (answer.status_code, said["field"]) == (422, field), said
        assert detail.lower() in said["detail"].lower() or detail == "Expected"
        assert (await asked(client, "GET", f"/v1/groups/{A}"))["members"] == 0


async def test_groups_that_would_hold_themselves_are_refused_with_the_way_back(api: ApiHarness) -> None:
    async with api.client() as client:
        for guid in (A, B, C):
            await asked(client, "PUT", f"/v1/groups/{guid}", name="g")
        await asked(client, "PATCH", f"/v1/groups/{A}", groups=[B])
        await asked(client, "PATCH", f"/v1/groups/{B}", groups=[C])
        for method in ("PUT", "PATCH"):
            answer = await client.request(method, f"/v1/groups/{C}", json={"name": "g", "groups": [A]})
            said = problem(answer)
            assert (answer.status_code, said["field"]) == (422, "groups")
            assert f"the group {A} holds the group {C} already" in said["detail"]
        answer = await client.patch(f"/v1/groups/{C}", json={"groups": [CHILD]})
        assert problem(answer)["detail"] == f"there is no group {CHILD}: put that group first"
        assert (await asked(client, "GET", f"/v1/groups/{C}"))["groups"] == []


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\u202eb", "x" * 201])
@pytest.mark.parametrize("path", [f"/v1/groups/{A}", f"/v1/units/{A}"])
async def test_a_name_that_nobody_can_read_is_refused(api: ApiHarness, path: str, name: str) -> None:
    async with api.client() as client:
        answer = await client.put(path, json={"name": name})
        assert (answer.status_code, problem(answer)["field"]) == (422, "name")
        assert (await client.get(path)).status_code == 404


async def test_business_units_have_members_a_language_and_a_zone(api: ApiHarness) -> None:
    async with api.client() as client:
        north = {"guid": A, "name": "North", "locale": "de-AT", "zone": "Europe/Vienna"}
        put = await asked(client, "PUT", f"/v1/units/{A}", name="North", locale="de-at", zone="Europe/Vienna")
        assert put == north, "a language has one form"
        south = await asked(client, "PUT", f"/v1/units/{B}", name="South")
        assert south == {"guid": B, "name": "South", "locale": None, "zone": None}
        assert await asked(client, "GET", f"/v1/units/{A}") == north
        assert await every_item(client, "/v1/units", 1) == [north, south]
        renamed = await asked(client, "PATCH", f"/v1/units/{A}", name="Northern", zone=None)
        assert renamed == north | {"name": "Northern", "zone": None} == await asked(client, "GET", f"/v1/units/{A}")
        assert await asked(client, "PATCH", f"/v1/units/{A}", name="North", zone="Europe/Vienna") == north
        assert (await client.patch(f"/v1/units/{C}", json={"name": "x"})).status_code == 404
        for body, field in (({"name": None}, "name"), ({"name": " "}, "name"), ({"locale": "xx-"}, "locale")):
            answer = await client.patch(f"/v1/units/{A}", json=body)
            assert (answer.status_code, problem(answer)["field"]) == (422, field)
        changed = await asked(client, "PATCH", f"/v1/units/{A}/members", add=["user:1", "user:nobody"])
        assert changed == {"added": 2, "removed": 0, "unchanged": 0, "unknown": 1}
        members = await every_item(client, f"/v1/units/{A}/members", 1)
        assert sorted(str(one["person"]) for one in members) == ["None", "user:1"]
        for path in (f"/v1/units/{C}", f"/v1/units/{C}/members"):
            assert (await client.get(path)).status_code == 404
        assert (await client.patch(f"/v1/units/{C}/members", json={"add": ["user:1"]})).status_code == 404
        for body, field in (({"locale": "xx-"}, "locale"), ({"zone": "Vienna"}, "zone")):
            answer = await client.put(f"/v1/units/{B}", json={"name": "South"} | body)
            assert (answer.status_code, problem(answer)["field"]) == (422, field)


async def test_a_tenants_language_and_zone_are_set_and_taken_away(api: ApiHarness) -> None:
    async with api.client() as client:
        before = await asked(client, "GET", "/v1/tenant")
        assert before["tenant_id"] == "school"
        put = await asked(client, "PUT", "/v1/tenant", locale="fr-ca", zone="America/Toronto")
        assert put == {"tenant_id": "school", "locale": "fr-CA", "zone": "America/Toronto"}
        assert await asked(client, "GET", "/v1/tenant") == put
        assert await asked(client, "PUT", "/v1/tenant", zone="UTC") == put | {"locale": None, "zone": "UTC"}
    async with api.client(tenant_id=OTHER) as stranger:
        assert (await asked(stranger, "GET", "/v1/tenant"))["zone"] != "America/Toronto"


async def test_roles_are_held_in_a_unit_or_in_the_whole_tenant(api: ApiHarness) -> None:
    async with api.client() as client:
        await asked(client, "PUT", f"/v1/units/{A}", name="North")
        holders, there = "/v1/roles/head%20teacher/holders", f"?business_unit={A}"
        assert (await asked(client, "PATCH", holders, add=["user:1"]))["added"] == 1
        assert (await asked(client, "PATCH", holders + there, add=["user:1", "user:2"]))["added"] == 2
        assert (await asked(client, "PATCH", holders, remove=["user:1"]))["removed"] == 1
        assert await every_item(client, holders, 5) == []
        assert len(await every_item(client, holders + there, 1)) == 2
        assert await every_item(client, "/v1/roles", 1) == [{"role": "head teacher", "business_unit": A, "holders": 2}]
        answer = await client.patch(f"{holders}?business_unit={B}", json={"add": ["user:1"]})
        assert (answer.status_code, problem(answer)["field"]) == (422, "business_unit")
        for role in ("a%3Ab", "x" * 65, "%C3%A4" * 40, "%20"):
            answer = await client.patch(f"/v1/roles/{role}/holders", json={"add": ["user:1"]})
            assert (answer.status_code, problem(answer)["field"]) == (422, "role"), role


async def test_relations_are_added_removed_and_asked_for_from_both_ends(api: ApiHarness) -> None:
    def of(person: str, relation: str = "guardian") -> dict[str, Any]:
        return {"entity": {"type": "child", "guid": CHILD}, "relation": relation, "person": person}

    async with api.client() as client:
        changed = await asked(client, "PATCH", "/v1/relations", add=[of("user:1"), of("user:2"), of("user:1", "payer")])
        assert changed == {"added": 3, "removed": 0, "unchanged": 0, "unknown": 0}
        assert (await asked(client, "PATCH", "/v1/relations", remove=[of("user:2")]))["removed"] == 1
        both = [of("user:1"), of("user:1", "payer")]
        assert await every_item(client, f"/v1/relations?entity=child:{CHILD}", 1) == both
        assert await every_item(client, "/v1/relations?person=user:1", 1) == both
        assert await every_item(client, f"/v1/relations?entity=child:{A}", 1) == []
        for query in ("", f"?entity=child:{CHILD}&person=user:1", "?entity=child", "?person=1"):
            answer = await client.get(f"/v1/relations{query}")
            assert answer.status_code == 422, answer.text
        wrong = [
            ({"add": [of("user:1"), of("sam@example.com")]}, "add[1].person"),
            ({"add": [of("user:1") | {"relation": "a:b"}]}, "add[0].relation"),
            ({"add": [of("user:1") | {"relation": "ä" * 40}]}, "add[0].relation"),
            ({"add": [of("user:1") | {"entity": {"type": "ä" * 150, "guid": CHILD}}]}, "add[0].entity.type"),
            ({"add": [of("user:1")], "remove": [of("user:1")]}, "remove[0]"),
        ]
        for body, field in wrong:
            answer = await client.patch("/v1/relations", json=body)
            assert (answer.status_code, problem(answer)["field"]) == (422, field)


@pytest.mark.parametrize("path", ["/v1/groups", "/v1/units", "/v1/roles", f"/v1/relations?entity=child:{CHILD}"])
async def test_a_forged_cursor_is_refused(api: ApiHarness, path: str) -> None:
    """Also one that has the form of this list's, with a place that nobody wrote there."""
    from clarion.operations import page

    names = {"/v1/groups": "groups", "/v1/units": "units", "/v1/roles": "roles"}
    joint = "&" if "?" in path else "?"
    async with api.client(Role.VIEWER) as client:
        for cursor in ("x", page.write("another list", "1"), page.write(names.get(path, "relations"), 7)):
            answer = await client.get(f"{path}{joint}cursor={cursor}")
            assert (answer.status_code, problem(answer)["field"]) == (422, "cursor"), cursor
        if path in ("/v1/groups", "/v1/units"):
            answer = await client.get(f"{path}?cursor={page.write(names[path], 'no guid')}")
            assert (answer.status_code, problem(answer)["field"]) == (422, "cursor")


async def test_two_tenants_have_people_of_the_same_name_apart(api: ApiHarness) -> None:
    """The same guid and the same id of a person mean nothing to another tenant."""
    async with api.client() as client, api.client(tenant_id=OTHER) as stranger:
        for one in (client, stranger):
            await asked(one, "PUT", f"/v1/groups/{A}", name="g")
        await asked(client, "PATCH", f"/v1/groups/{A}/members", add=["user:1"])
        assert (await asked(stranger, "GET", f"/v1/groups/{A}"))["members"] == 0
        await asked(stranger, "DELETE", f"/v1/groups/{A}", 204)
        assert (await asked(client, "GET", f"/v1/groups/{A}"))["members"] == 1

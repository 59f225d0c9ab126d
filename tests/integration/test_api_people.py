"""People over HTTP: in bulk, one by one, in part; what is masked for whom; and what is refused and why."""

import asyncio
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from clarion.client import wire_people
from clarion.ports.catalog import Role
from tests.integration.api_harness import OTHER, ApiHarness, problem, seeded_api
from tests.unit.pipeline_line import TENANT

ANN: dict[str, Any] = {
    "name": "Ann Archer",
    "profile": {"title": "Dr."},
    "locale": "de-AT",
    "zone": "Europe/Vienna",
    "contacts": {"email": [{"destination": "Ann@Example.com"}], "push": [{"destination": "token-of-ann"}]},
    "attributes": {"grade": 7},
}


@pytest.fixture
async def api() -> ApiHarness:
    return await seeded_api()


async def asked(client: httpx.AsyncClient, method: str, path: str, status: int = 200, **body: Any) -> Any:
    answer = await client.request(method, path, json=body or None)
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else None


async def declare(client: httpx.AsyncClient) -> None:
    await asked(client, "PUT", "/v1/attributes/grade", kind="number")


async def test_a_person_is_put_changed_shown_and_removed(api: ApiHarness) -> None:
    async with api.client() as client:
        await declare(client)
        shown: dict[str, Any] = {
            "person": "user:ann",
            "name": "Ann Archer",
            "profile": {"title": "Dr."},
            "locale": "de-AT",
            "zone": "Europe/Vienna",
            "contacts": [
                {"channel": "email", "destination": "ann@example.com", "verified": True, "retired_at": None},
                {"channel": "push", "destination": "token-of-ann", "verified": True, "retired_at": None},
            ],
            "attributes": {"grade": 7},
        }
        for _ in range(2):
            assert await asked(client, "PUT", "/v1/people/user:ann", **ANN) == shown
        assert await asked(client, "GET", "/v1/people/user:ann") == shown
        changed = await asked(
            client,
            "PATCH",
            "/v1/people/user:ann",
            profile={"title": None, "town": "Graz"},
            locale=None,
            contacts={"email": None},
            add_contacts={"push": [{"destination": "another-token", "verified": False}]},
            attributes={"grade": None},
        )
        assert changed == shown | {
            "profile": {"town": "Graz"},
            "locale": None,
            "contacts": [
                shown["contacts"][1],
                {"channel": "push", "destination": "another-token", "verified": False, "retired_at": None},
            ],
            "attributes": {},
        }
        gone = await asked(
            client, "PATCH", "/v1/people/user:ann", remove_contacts={"push": [{"destination": "token-of-ann"}]}
        )
        assert [at["destination"] for at in gone["contacts"]] == ["another-token"]
        assert (await asked(client, "PUT", "/v1/people/user:ann", name="Ann"))["contacts"] == []
        await asked(client, "DELETE", "/v1/people/user:ann", 204)
        for method in ("GET", "DELETE"):
            assert "person" in (await asked(client, method, "/v1/people/user:ann", 404))["detail"]
        assert (await asked(client, "PATCH", "/v1/people/user:ann", 404, name="x"))["code"] == "not-found"
        entries = (await asked(client, "GET", "/v1/audit?limit=100"))["items"]
        of_people = [one for one in entries if one["subject"].startswith("person ")]
        acts = [(one["act"], one["actor"]) for one in of_people]
        admin = f"admin of {TENANT}"
        assert acts == [(act, admin) for act in ("remove", "put", "put", "put", "put")]
        assert "ann" not in str(of_people).lower()


@pytest.mark.parametrize(
    "user", ["a/b", "/a", "a/", "a//b", "../a", "a%2Fb", "a b?c#d", "Zoë/日", "counts", "all/read"]
)
async def test_a_person_of_any_id_is_reached_by_every_path(api: ApiHarness, user: str) -> None:
    """People, what they want, their inbox with its marks, and what they got; nobody is taken for another."""
    path = quote(f"user:{user}", safe=":")
    inbox = f"/v1/inbox/{path}"
    async with api.client() as client:
        await asked(client, "PUT", "/v1/people/user:ab", name="Sam")
        assert (await asked(client, "PUT", f"/v1/people/{path}", name="Ann"))["person"] == f"user:{user}"
        await api.sent(to=[{"user": "ab"}], channels=["inbox"])
        sent = await api.sent(to=[{"user": user}], channels=["inbox"])
        await api.line.drain()
        assert (await asked(client, "PATCH", f"/v1/people/{path}", name="Kim"))["name"] == "Kim"
        assert (await asked(client, "GET", f"/v1/people/{path}"))["name"] == "Kim"
        assert "items" in await asked(client, "GET", f"/v1/people/{path}/preferences")
        (line,) = (await asked(client, "GET", inbox))["items"]
        assert line["message_id"] == sent["message_id"]
        assert (await asked(client, "POST", f"{inbox}/{line['message_id']}/read"))["unread"] == 0
        assert (await asked(client, "POST", f"{inbox}/all/unread"))["unread"] == 1
        assert (await asked(client, "GET", f"{inbox}/counts"))["unread"] == 1
        (got,) = (await asked(client, "GET", f"/v1/entities/{path}/notifications"))["items"]
        assert got["job_id"] == sent["job_id"]
        await asked(client, "DELETE", f"/v1/people/{path}", 204)
        await asked(client, "GET", f"/v1/people/{path}", 404)


@pytest.mark.parametrize(
    "path",
    ["/v1/people%2Fuser:1", "/v1/people/user:1%2Fpreferences", "/v1/types/welcome%2Fenabled", "/v1%2F", "/%2F%FF"],
)
async def test_a_slash_of_a_name_is_none_between_names(api: ApiHarness, path: str) -> None:
    async with api.client() as client:
        assert problem(await client.get(path))["status"] == 404


async def test_people_are_put_in_bulk_and_listed_page_by_page(api: ApiHarness) -> None:
    people: list[dict[str, Any]] = [{"person": f"user:p{n}", "name": f"P {n}"} for n in range(500)]
    async with api.client() as client:
        assert await asked(client, "PUT", "/v1/people", people=people) == {"stored": 500}
        names: list[str] = []
        cursor = ""
        while True:
            page = await asked(client, "GET", f"/v1/people?limit=100{cursor and f'&cursor={cursor}'}")
            names += [one["person"] for one in page["items"]]
            if (cursor := page["next_cursor"]) is None:
                break
        assert len(names) == len(set(names)) == 502  # and the two of the seed
        assert {one["person"] for one in people} < set(names)
        too_many = await asked(client, "PUT", "/v1/people", 422, people=[*people, {"person": "user:one-more"}])
        assert (too_many["field"], too_many["code"]) == ("people", "invalid-input")
        assert "use 500 or less" in too_many["detail"]


async def test_every_mistake_of_a_bulk_request_is_named_and_nothing_is_stored(api: ApiHarness) -> None:
    phone = {"contacts": {"sms": [{"destination": "0664 1234567"}]}}
    async with api.client() as client:
        await declare(client)
        people: list[dict[str, Any]] = [
            {"person": "user:good", "name": "Good"},
            {"person": "user:phone", **phone},
            {"person": "user:grade", "attributes": {"grade": "7"}},
            {"person": "user:level", "attributes": {"level": 7}},
            {"person": "user:good"},
        ]
        refused = await asked(client, "PUT", "/v1/people", 422, people=people)
        assert refused["code"] == "invalid-items"
        assert [one["field"] for one in refused["mistakes"]] == [
            "people[1].contacts.sms[0]",
            "people[2].attributes.grade",
            "people[3].attributes.level",
            "people[4].person",
        ]
        assert "0664" not in str(refused)
        await asked(client, "GET", "/v1/people/user:good", 404)
        await asked(client, "PUT", "/v1/people", people=people[:2], region="AT")
        (at,) = (await asked(client, "GET", "/v1/people/user:phone"))["contacts"]
        assert at["destination"] == "+436641234567"


@pytest.mark.parametrize(
    "method, path, body, field",
    [
        ("PUT", "/v1/people", {"people": []}, "people"),
        ("PUT", "/v1/people", {"people": [{"name": "Ann"}]}, "people[0].person"),
        ("PUT", "/v1/people", {"people": [{"person": "ann"}]}, "people[0].person"),
        ("PUT", "/v1/people", {"people": [{"person": "group:ann"}]}, "people[0].person"),
        ("PUT", "/v1/people", {"people": [{"person": "user:a", "nmae": "A"}]}, "people[0].nmae"),
        ("PUT", "/v1/people/ann", {"name": "Ann"}, "person"),
        ("PUT", "/v1/people/employee:ann", {"name": "Ann"}, "person"),
        ("PUT", "/v1/people/user:ann", {"name": ""}, "name"),
        ("PUT", "/v1/people/user:ann", {"name": " "}, "name"),
        ("PUT", "/v1/people/user:ann", {"profile": {"name": "Ann"}}, "profile.name"),
        ("PUT", "/v1/people/user:ann", {"profile": {"x": "y" * 4096}}, "profile"),
        ("PUT", "/v1/people/user:ann", {"zone": "Wien"}, "zone"),
        ("PUT", "/v1/people/user:ann", {"contacts": {"pigeon": []}}, "contacts"),
        ("PUT", "/v1/people/user:ann", {"contacts": {"email": [{"destination": "ann"}]}}, "contacts.email[0]"),
        ("PUT", "/v1/people/user:ann", {"contacts": {"inbox": [{"destination": "a"}]}}, "contacts.inbox[0]"),
        ("PUT", "/v1/people/user:ann", {"contacts": {"sms": [{"destination": "+4312"}]}}, "contacts.sms[0]"),
        ("PUT", "/v1/people/user:ann", {"region": "Austria"}, "region"),
        ("PUT", "/v1/people/user:ann", {"region": "XX"}, "region"),
        ("PUT", "/v1/people/user:ann", {"attributes": {"level": 7}}, "attributes.level"),
        ("PATCH", "/v1/people/user:1", {"attributes": {"level": 7}}, "attributes.level"),
        ("PATCH", "/v1/people/user:1", {"add_contacts": {"sms": [{"destination": "1"}]}}, "add_contacts.sms[0]"),
        ("PUT", "/v1/attributes/Grade", {"kind": "number"}, "name"),
        ("PUT", "/v1/attributes/grade", {"kind": "colour"}, "kind"),
        ("GET", "/v1/people?cursor=nonsense", None, "cursor"),
    ],
)
async def test_what_cannot_be_accepted_is_refused_by_its_field(
    api: ApiHarness, method: str, path: str, body: Any, field: str
) -> None:
    async with api.client() as client:
        before = await asked(client, "GET", "/v1/people")
        answer = await client.request(method, path, json=body)
        said = problem(answer)
        assert (answer.status_code, said["field"]) == (422, field), said
        assert ": " in said["detail"]
        assert await asked(client, "GET", "/v1/people") == before


async def test_an_attribute_keeps_its_kind(api: ApiHarness) -> None:
    async with api.client() as client:
        for _ in range(2):
            assert await asked(client, "PUT", "/v1/attributes/grade", kind="number") == {
                "name": "grade",
                "kind": "number",
            }
        refused = await asked(client, "PUT", "/v1/attributes/grade", 409, kind="text")
        assert refused["code"] == "conflict"
        await asked(client, "PUT", "/v1/attributes/city", kind="text")
        assert [one["name"] for one in (await asked(client, "GET", "/v1/attributes"))["items"]] == ["city", "grade"]


async def test_what_is_private_is_shown_whole_only_to_those_who_may_reveal(api: ApiHarness) -> None:
    async with api.client() as client:
        await declare(client)
        await asked(client, "PUT", "/v1/people/user:ann", **ANN)
    for role in Role:
        async with api.client(role) as client:
            one = await asked(client, "GET", "/v1/people/user:ann")
            (same,) = [
                each for each in (await asked(client, "GET", "/v1/people"))["items"] if each["person"] == "user:ann"
            ]
            assert one == same
            told = (one["name"], one["profile"], [at["destination"] for at in one["contacts"]])
            if role in (Role.SUPPORT, Role.ADMIN):
                assert told == ("Ann Archer", {"title": "Dr."}, ["ann@example.com", "token-of-ann"])
            else:
                assert told == (None, None, ["a…n@example.com", "…-ann"])
            assert (one["locale"], one["attributes"]) == ("de-AT", {"grade": 7})


async def test_the_same_person_of_two_tenants_is_two_people(api: ApiHarness) -> None:
    async with api.client() as mine, api.client(tenant_id=OTHER) as theirs:
        await declare(mine)
        before = await asked(mine, "PUT", "/v1/people/user:ann", **ANN)
        await asked(theirs, "GET", "/v1/people/user:ann", 404)
        await asked(theirs, "DELETE", "/v1/people/user:ann", 404)
        refused = await asked(theirs, "PUT", "/v1/people/user:ann", 422, **ANN)
        assert refused["field"] == "attributes.grade"
        same = ANN | {"attributes": {}, "name": "Another Ann"}
        shown = await asked(theirs, "PUT", "/v1/people/user:ann", **same)
        assert (shown["name"], shown["attributes"]) == ("Another Ann", {})
        await asked(theirs, "PATCH", "/v1/people/user:ann", contacts={"email": None})
        assert await asked(mine, "GET", "/v1/people/user:ann") == before
        assert [one["person"] for one in (await asked(theirs, "GET", "/v1/people"))["items"]] == ["user:ann"]
        await asked(theirs, "DELETE", "/v1/people/user:ann", 204)
        assert await asked(mine, "GET", "/v1/people/user:ann") == before


async def test_devices_that_register_at_once_all_stay(api: ApiHarness) -> None:
    async with api.client() as client:
        await asked(client, "PUT", "/v1/people/user:ann", name="Ann")
        asking = [
            asked(client, "PATCH", "/v1/people/user:ann", add_contacts={"push": [{"destination": f"token-{n}"}]})
            for n in range(8)
        ]
        await asyncio.gather(*asking)
        shown = await asked(client, "GET", "/v1/people/user:ann")
        assert {at["destination"] for at in shown["contacts"]} == {f"token-{n}" for n in range(8)}
        assert shown["name"] == "Ann"


def test_a_change_sends_only_what_changes() -> None:
    """So that a client leaves alone what it does not know."""
    import msgspec

    change = wire_people.PersonChange(locale=None, profile={"title": None})
    assert msgspec.json.decode(msgspec.json.encode(change)) == {"locale": None, "profile": {"title": None}}

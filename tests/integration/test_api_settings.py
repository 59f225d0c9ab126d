"""Settings of notification types over HTTP: what is set where, what holds in the end, and what is refused."""

from typing import Any
from uuid import UUID

import pytest

from clarion.domain.person import BusinessUnit
from clarion.ports.catalog import Role
from tests.integration.api_harness import OTHER, ApiHarness, problem, seeded_api
from tests.unit.pipeline_line import STAFF, TENANT

NORTH = UUID("6f1c2c7e-0000-4000-8000-0000000000b1")
STRANGE = UUID("6f1c2c7e-0000-4000-8000-0000000000b9")
WELCOME = "/v1/settings/welcome"
OF_NORTH = f"{WELCOME}?business_unit={NORTH}"
TEACHERS = {"role": "teacher"}
EVERY_KIND = [{"group": str(STAFF)}, TEACHERS, {"relation": "guardian"}, {"unit": True}]


@pytest.fixture
async def api() -> ApiHarness:
    api = await seeded_api()
    await api.memory.put_business_unit(TENANT, BusinessUnit(guid=NORTH, name="North"))
    return api


def said(setting: dict[str, Any]) -> dict[str, Any]:
    """Give what was said of the three, and nothing else."""
    return {name: setting[name] for name in ("enabled", "recipients", "channels")}


async def test_a_setting_is_shown_with_what_holds_in_its_place(api: ApiHarness) -> None:
    async with api.client(Role.ADMIN) as admin:
        await admin.put(WELCOME, json={"recipients": [TEACHERS], "channels": ["inbox", "email"]})
        put = await admin.put(OF_NORTH, json={"enabled": False, "channels": ["email"]})
        shown = (await admin.get(OF_NORTH)).json()
        of_tenant = (await admin.get(WELCOME)).json()
        listed = (await admin.get("/v1/settings")).json()
        untouched = (await admin.get("/v1/settings/newsletter")).json()
    assert (put.status_code, put.json()) == (200, shown)
    assert said(shown) == {"enabled": False, "recipients": None, "channels": ["email"]}
    assert (shown["type"], shown["business_unit"], shown["changed_by"]) == ("welcome", str(NORTH), "admin of school")
    assert shown["effective"] == {
        "enabled": False,
        "enabled_by": "unit",
        "recipients": [TEACHERS],
        "recipients_by": "tenant",
        "channels": ["email"],
        "channels_by": "unit",
        "left_out": [
            {
                "channel": "inbox",
                "reason": "the business unit's setting leaves inbox out",
                "rule": "setting",
                "destination": None,
            }
        ],
    }
    assert of_tenant["effective"]["channels"] == ["inbox", "email"]
    assert of_tenant["effective"]["enabled"] is True
    assert [(one["type"], one["business_unit"], said(one)) for one in listed["items"]] == [
        ("welcome", None, said(of_tenant)),
        ("welcome", str(NORTH), said(shown)),
    ]
    assert said(untouched) == {"enabled": None, "recipients": None, "channels": None}
    assert (untouched["changed_by"], untouched["effective"]["channels"]) == (None, ["email"])
    acts = [(one.act, one.subject) for one in await api.memory.list_audit(TENANT, limit=100)]
    assert acts[-2:] == [("set", "setting welcome"), ("set", f"setting welcome of unit {NORTH}")]


async def test_a_put_replaces_and_a_delete_takes_back(api: ApiHarness) -> None:
    async with api.client(Role.ADMIN) as admin:
        for recipients in (EVERY_KIND, [TEACHERS]):
            put = (await admin.put(OF_NORTH, json={"enabled": True, "recipients": recipients})).json()
            assert said(put) == {"enabled": True, "recipients": recipients, "channels": None}
        replaced = (await admin.put(OF_NORTH, json={"channels": ["inbox"]})).json()
        assert said(replaced) == {"enabled": None, "recipients": None, "channels": ["inbox"]}
        for _ in range(2):  # the second finds nothing to take back, and the answer is the same
            cleared = await admin.delete(OF_NORTH)
            assert (cleared.status_code, cleared.json()) == (200, (await admin.get(OF_NORTH)).json())
            assert said(cleared.json()) == {"enabled": None, "recipients": None, "channels": None}
        assert (await admin.get("/v1/settings")).json() == {"items": [], "next_cursor": None}
    acts = [one.act for one in await api.memory.list_audit(TENANT, limit=100)]
    assert acts.count("clear") == 1


async def test_the_switch_of_a_type_and_its_setting_are_one(api: ApiHarness) -> None:
    async with api.client(Role.ADMIN) as admin:
        await admin.put(WELCOME, json={"recipients": [TEACHERS]})
        await admin.put("/v1/types/welcome/enabled", json={"enabled": False})
        assert said((await admin.get(WELCOME)).json()) == {"enabled": False, "recipients": [TEACHERS], "channels": None}
        await admin.put(WELCOME, json={"enabled": True, "recipients": [TEACHERS]})
        types = {one["type"]: one["enabled"] for one in (await admin.get("/v1/types")).json()["items"]}
    assert types["welcome"] is True


@pytest.mark.parametrize(
    "path, body, field",
    [
        (WELCOME, {"recipients": []}, "recipients"),
        (WELCOME, {"recipients": [{"role": f"r{n}"} for n in range(21)]}, "recipients"),
        (WELCOME, {"recipients": [{}]}, "recipients[0]"),
        (WELCOME, {"recipients": [TEACHERS, {"role": "head", "unit": True}]}, "recipients[1]"),
        (WELCOME, {"recipients": [TEACHERS, TEACHERS]}, "recipients[1]"),
        (WELCOME, {"recipients": [{"unit": False}]}, "recipients[0]"),
        (WELCOME, {"recipients": [{"role": ""}]}, "recipients[0].role"),
        (WELCOME, {"recipients": [{"relation": " "}]}, "recipients[0].relation"),
        (WELCOME, {"recipients": [{"role": "a:b"}]}, "recipients[0].role"),
        (WELCOME, {"recipients": [{"role": "x" * 65}]}, "recipients[0].role"),
        (WELCOME, {"recipients": [{"group": "7"}]}, "recipients[0].group"),
        (WELCOME, {"recipients": [TEACHERS, {"group": str(STRANGE)}]}, "recipients[1].group"),
        (WELCOME, {"recipients": [{"user": "1"}]}, "recipients[0].user"),
        (WELCOME, {"recipients": [TEACHERS], "channels": []}, "channels"),
        (WELCOME, {"recipients": [TEACHERS], "channels": ["sms"]}, "channels[0]"),
        (WELCOME, {"channels": ["email", "fax"]}, "channels[1]"),
        (WELCOME, {"channels": ["email", "inbox", "email"]}, "channels[2]"),
        (WELCOME, {"enabled": "no"}, "enabled"),
        (WELCOME, {"enable": False}, "enable"),
        (f"{WELCOME}?business_unit={STRANGE}", {"enabled": False}, "business_unit"),
        (f"{WELCOME}?business_unit=7", {"enabled": False}, "business_unit"),
        (f"{WELCOME}?unit={NORTH}", {"enabled": False}, "unit"),
    ],
)
async def test_what_cannot_be_set_is_named_and_nothing_is_changed(
    api: ApiHarness, path: str, body: dict[str, Any], field: str
) -> None:
    async with api.client(Role.ADMIN) as admin:
        answer = await admin.put(path, json=body)
        assert (answer.status_code, problem(answer)["field"]) == (422, field), answer.text
        assert (await admin.get("/v1/settings")).json()["items"] == []
    assert not [one for one in await api.memory.list_audit(TENANT, limit=100) if one.subject.startswith("setting")]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_a_type_that_is_not_published_and_a_unit_of_another_tenant_have_no_settings(
    api: ApiHarness, method: str
) -> None:
    body = {"enabled": False} if method == "PUT" else None
    async with api.client(Role.ADMIN, tenant_id=OTHER) as stranger:
        unknown = await stranger.request(method, "/v1/settings/newsletter", json=body)  # which only the school has
        assert (unknown.status_code, problem(unknown)["code"]) == (404, "not-found")
        theirs = await stranger.request(method, OF_NORTH, json=body)
        nobodys = await stranger.request(method, f"{WELCOME}?business_unit={STRANGE}", json=body)
    said = [{**problem(one), "correlation_id": ""} for one in (theirs, nobodys)]
    assert said[0] == said[1]
    assert (said[0]["status"], said[0]["field"]) == (422, "business_unit")


async def test_a_group_of_another_tenant_is_none(api: ApiHarness) -> None:
    async with api.client(Role.ADMIN, tenant_id=OTHER) as stranger:
        answer = await stranger.put(WELCOME, json={"recipients": [{"group": str(STAFF)}]})
    assert (answer.status_code, problem(answer)["field"]) == (422, "recipients[0].group")


async def test_settings_are_listed_in_pages(api: ApiHarness) -> None:
    async with api.client(Role.ADMIN) as admin:
        for path in (OF_NORTH, WELCOME, "/v1/settings/newsletter", f"/v1/settings/incident?business_unit={NORTH}"):
            assert (await admin.put(path, json={"enabled": False})).status_code == 200
        found, query = [], "?limit=1"
        while query:
            page = (await admin.get(f"/v1/settings{query}")).json()
            found += [(one["type"], one["business_unit"]) for one in page["items"]]
            query = page["next_cursor"] and f"?limit=1&cursor={page['next_cursor']}"
        other = (await admin.get("/v1/audit?limit=1")).json()["next_cursor"]
        refused = await admin.get(f"/v1/settings?cursor={other}")
    assert found == [("incident", str(NORTH)), ("newsletter", None), ("welcome", None), ("welcome", str(NORTH))]
    assert (refused.status_code, problem(refused)["field"]) == (422, "cursor")


async def test_a_channel_that_the_type_has_lost_since_is_left_out_and_named(api: ApiHarness) -> None:
    definition = {"key": "ping", "title": "Ping", "channels": ["sms", "inbox"]}
    files = {"sms.liquid": "ping", "inbox.liquid": "ping"}
    async with api.client(Role.ADMIN) as admin:
        await admin.put("/v1/types/ping", json={"definition": definition, "files": files})
        await admin.put("/v1/settings/ping", json={"channels": ["sms", "inbox"]})
        del files["sms.liquid"]
        lost = {"definition": definition | {"channels": ["inbox"]}, "files": files}
        assert (await admin.put("/v1/types/ping", json=lost)).status_code == 200
        effective = (await admin.get("/v1/settings/ping")).json()["effective"]
    assert effective["channels"] == ["inbox"]
    assert [(one["channel"], one["rule"]) for one in effective["left_out"]] == [("sms", "no_template")]

"""Reminder settings over HTTP: what is stored and shown, what is refused, and what is only said."""

from typing import Any
from uuid import UUID

import msgspec
import pytest

from clarion.domain.person import BusinessUnit
from clarion.domain.reminder import SETTINGS_MAX, SettingRecord
from clarion.domain.source import SourceRecord
from clarion.ports.catalog import Role
from clarion.testing import factories
from tests.integration.api_harness import OTHER, ApiHarness, problem, seeded_api
from tests.unit.pipeline_line import STAFF, TENANT

NORTH = UUID("6f1c2c7e-0000-4000-8000-0000000000b1")
STRANGE = UUID("6f1c2c7e-0000-4000-8000-0000000000b9")
ONE = "/v1/reminders/6f1c2c7e-0000-4000-8000-0000000000c1"
DATE = {"on": "date", "field": "expires", "offsets": [30, 0], "yearly": False}
METRIC = {
    "on": "threshold",
    "metric": "booked",
    "compare": "at_least",
    "value": 25.0,
    "scope": "all",
    "policy": "FalseToTrue",
}
SETTING: dict[str, Any] = {
    "name": "First aid ends",
    "source_type": "certificate",
    "conditions": [{"field": "kind", "op": "is", "values": ["first-aid", None, 7, True]}],
    "rule": DATE,
    "send_time": "08:30",
    "notification_type": "welcome",
    "recipients": [{"group": str(STAFF)}],
    "business_unit": str(NORTH),
    "inbox_only": False,
    "long_runner": True,
    "active": True,
}


@pytest.fixture
async def api() -> ApiHarness:
    api = await seeded_api()
    await api.memory.put_business_unit(TENANT, BusinessUnit(guid=NORTH, name="North"))
    return api


async def acts(api: ApiHarness) -> list[tuple[str, str]]:
    audit = await api.memory.list_audit(TENANT, limit=100)
    return [(one.act, one.actor) for one in audit if one.subject.startswith("reminder")]


async def test_a_setting_is_put_as_a_whole_and_shown_with_who_changed_it(api: ApiHarness) -> None:
    async with api.client(Role.ADMIN) as admin:
        put = await admin.put(ONE, json=SETTING)
        again = await admin.put(ONE, json=SETTING)
        shown = (await admin.get(ONE)).json()
        replaced = (await admin.put(ONE, json=SETTING | {"rule": METRIC, "recipients": None})).json()
        listed = (await admin.get("/v1/reminders")).json()
    assert (put.status_code, put.json()) == (200, again.json())
    assert {name: shown[name] for name in SETTING} == SETTING
    assert (shown["version"], shown["planned"], shown["changed_by"]) == (1, False, "admin of school")
    assert (replaced["version"], replaced["rule"]) == (2, METRIC)
    line = {name: value for name, value in replaced.items() if name != "warnings"}
    assert listed == {"items": [line], "next_cursor": None}
    assert await acts(api) == [("put", "admin of school")] * 2
    assert api.wake_ups == ["settings"] * 2


async def test_one_setting_too_many_about_a_type_is_refused_and_those_there_are_can_be_changed(api: ApiHarness) -> None:
    """All of a type are read for each event about one of its sources, on or off."""
    stored = [factories.reminder_setting(n, source_type="certificate", active=n % 2 == 0) for n in range(SETTINGS_MAX)]
    for setting in stored:
        await api.memory.put_reminder(TENANT, setting, actor="sam")
    async with api.client(Role.ADMIN) as admin:
        refused = await admin.put(ONE, json=SETTING)
        other_type = await admin.put(ONE, json=SETTING | {"source_type": "class"})
        changed = await admin.put(f"/v1/reminders/{stored[1].guid}", json=SETTING)
    assert problem(refused)["field"] == "source_type"
    assert [other_type.status_code, changed.status_code] == [200, 200]


async def test_what_is_left_out_is_as_the_reference_says(api: ApiHarness) -> None:
    least = {name: SETTING[name] for name in ("name", "source_type", "notification_type")}
    async with api.client(Role.ADMIN) as admin:
        put = (await admin.put(ONE, json=least | {"rule": {"on": "date", "field": "due"}})).json()
    assert put["rule"] == {"on": "date", "field": "due", "offsets": [0], "yearly": False}
    assert (put["send_time"], put["conditions"], put["recipients"], put["business_unit"]) == ("09:00", [], None, None)
    assert (put["inbox_only"], put["long_runner"], put["active"]) == (False, False, True)


async def test_a_setting_is_switched_off_and_on_and_that_is_audited_once(api: ApiHarness) -> None:
    async with api.client(Role.ADMIN) as admin:
        await admin.put(ONE, json=SETTING)
        switched: dict[str, Any] = {}
        for active in (False, False, True):
            switched = (await admin.put(f"{ONE}/active", json={"active": active})).json()
            assert switched == (await admin.get(ONE)).json()
            assert {name: switched[name] for name in SETTING} == SETTING | {"active": active}
        unknown = await admin.put(f"/v1/reminders/{STRANGE}/active", json={"active": False})
    assert switched["version"] == 3
    assert api.wake_ups == ["settings"] * 3
    assert problem(unknown)["code"] == "not-found"
    assert len(await acts(api)) == 3


async def test_a_change_of_somebody_else_at_the_same_moment_is_not_undone_by_switching(
    api: ApiHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def overtaken(tenant_id: str, guid: UUID) -> SettingRecord | None:
        found = await api.memory.find_reminder(tenant_id, guid)
        assert found is not None
        renamed = msgspec.structs.replace(found.setting, name="First aid ends soon")
        await api.memory.put_reminder(tenant_id, renamed, actor="kim")
        return found

    async with api.client(Role.ADMIN) as admin:
        await admin.put(ONE, json=SETTING)
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(api.failing, "find_reminder", overtaken, raising=False)
            refused = await admin.put(f"{ONE}/active", json={"active": False})
        shown = (await admin.get(ONE)).json()
        switched = (await admin.put(f"{ONE}/active", json={"active": False})).json()
    assert (refused.status_code, problem(refused)["code"]) == (409, "conflict")
    assert (shown["name"], shown["active"], shown["version"]) == ("First aid ends soon", True, 2)
    assert (switched["name"], switched["active"]) == ("First aid ends soon", False)


@pytest.mark.parametrize(
    "change, field, says",
    [
        ({"notification_type": "welcom"}, "notification_type", "did you mean welcome?"),
        ({"notification_type": "x"}, "notification_type", "publish it first"),
        ({"business_unit": str(STRANGE)}, "business_unit", "no such business unit"),
        ({"send_time": "24:00"}, "send_time", "it is no time of day: write it such as 09:00"),
        ({"source_type": "First Aid"}, "source_type", "it is no name that a field or a type can have"),
        ({"rule": {"on": "day"}}, "rule.on", "choose from date, threshold"),
        ({"rule": METRIC | {"value": 10**400}}, "rule.value", "it is too large"),
        ({"rule": METRIC | {"policy": "Often"}}, "rule.policy", "choose from OncePerSource"),
        ({"rule": DATE | {"offsets": [1, 1]}}, "rule.offsets[1]", "1 stands there twice"),
        ({"rule": DATE | {"offsets": [-4000]}}, "rule.offsets[0]", "it is too small"),
        ({"recipients": []}, "recipients", "it names 0"),
        ({"recipients": [{"role": "head"}, {}]}, "recipients[1]", "exactly one of group, role, relation and unit"),
        ({"conditions": [{"field": "a", "values": []}]}, "conditions[0].values", "it has too few entries"),
        ({"name": " "}, "name", "it is blank"),
        ({"inbox_only": True, "notification_type": "newsletter"}, "inbox_only", "has no inbox"),
        ({"offset": 3}, "offset", "there is no such field"),
    ],
)
async def test_what_cannot_be_is_named_and_nothing_is_stored(
    api: ApiHarness, change: dict[str, Any], field: str, says: str
) -> None:
    async with api.client(Role.ADMIN) as admin:
        answer = await admin.put(ONE, json=SETTING | change)
        assert (answer.status_code, problem(answer)["field"]) == (422, field), answer.text
        assert says in problem(answer)["detail"]
        assert (await admin.get("/v1/reminders")).json()["items"] == []
    assert await acts(api) == []


async def test_a_number_that_is_none_is_no_json(api: ApiHarness) -> None:
    body = (
        b'{"name": "a", "source_type": "a", "notification_type": "welcome", "rule": {"on": "threshold", "value": NaN}}'
    )
    async with api.client(Role.ADMIN) as admin:
        answer = await admin.put(ONE, content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, problem(answer)["code"]) == (400, "malformed")


async def test_what_may_come_later_is_only_said(api: ApiHarness) -> None:
    source = SourceRecord(
        source_type="certificate",
        source="C/1",
        entity_guid=factories.guid(1),
        content=b"sealed",
        content_hash="h1:0",
        days=(("expires_on", factories.automation_scheduler().target_date),),  # type: ignore[arg-type]  # it has one
    )
    async with api.client(Role.ADMIN) as admin:
        await admin.patch("/v1/roles/bursar/holders", json={"add": ["user:1"]})
        await admin.patch(f"/v1/roles/keeper/holders?business_unit={NORTH}", json={"add": ["user:1"]})
        recipients = [{"role": "bursr"}, {"role": "keeper"}, {"group": str(STRANGE)}, {"group": str(STAFF)}]
        first = (await admin.put(ONE, json=SETTING | {"recipients": recipients})).json()
        await api.memory.put_sources(TENANT, [source], actor="test", correlation_id="c")
        await admin.put("/v1/types/welcome/enabled", json={"enabled": False})
        second = (await admin.put(ONE, json=SETTING | {"recipients": None})).json()
        off = (await admin.put(f"{ONE}/active", json={"active": False})).json()
    assert first["warnings"] == [
        "nobody holds the role 'bursr' yet: did you mean bursar?",
        f"the tenant has no group {STRANGE}: as things stand nobody is told there",
        "no source of type 'certificate' is stored yet; a plugin may provide them",
    ]
    assert second["warnings"] == [
        "the notification type 'welcome' is off",
        "it names nobody, and no setting of its notification type does",
        "none of the first 1 sources has the date 'expires': did you mean expires_on?",
    ]
    assert off["warnings"] == []


async def test_a_metric_that_no_source_has_is_said(api: ApiHarness) -> None:
    setting = SETTING | {"source_type": "class"}
    async with api.client(Role.ADMIN) as admin:
        await admin.put("/v1/sources/class/yoga", json={"metrics": {"booked": 3}})
        known = (await admin.put(ONE, json=setting | {"rule": METRIC})).json()
        missing = (await admin.put(ONE, json=setting | {"rule": METRIC | {"metric": "bookd"}})).json()
    assert known["warnings"] == []
    assert missing["warnings"] == ["none of the first 1 sources has the metric 'bookd': did you mean booked?"]


async def test_another_tenant_neither_sees_nor_changes_it(api: ApiHarness) -> None:
    async with api.client(Role.ADMIN) as admin, api.client(Role.ADMIN, tenant_id=OTHER) as stranger:
        await admin.put(ONE, json=SETTING)
        for answer in (await stranger.get(ONE), await stranger.put(f"{ONE}/active", json={"active": False})):
            assert (answer.status_code, problem(answer)["code"]) == (404, "not-found")
        assert (await stranger.get("/v1/reminders")).json()["items"] == []
        theirs = await stranger.put(ONE, json=SETTING | {"business_unit": None, "recipients": None, "name": "Theirs"})
        assert (theirs.status_code, theirs.json()["version"]) == (200, 1)
        assert (await admin.get(ONE)).json()["name"] == SETTING["name"]


async def test_settings_are_listed_in_pages(api: ApiHarness) -> None:
    paths = [f"/v1/reminders/6f1c2c7e-0000-4000-8000-0000000000c{n}" for n in (3, 1, 2)]
    async with api.client(Role.ADMIN) as admin:
        for path in paths:
            assert (await admin.put(path, json=SETTING)).status_code == 200
        found, query = [], "?limit=2"
        while query:
            page = (await admin.get(f"/v1/reminders{query}")).json()
            found += [one["guid"] for one in page["items"]]
            query = page["next_cursor"] and f"?limit=2&cursor={page['next_cursor']}"
    assert found == [path.rpartition("/")[2] for path in sorted(paths)]

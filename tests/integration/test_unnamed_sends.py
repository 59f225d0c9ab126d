"""Sends that name nobody: they are for whom the settings of their type name, and say so where that is nobody."""

from typing import Any
from uuid import UUID

import pytest

from clarion.client.wire import Recipient, SendRequest
from clarion.dispatch.request import Trace
from clarion.domain.notification import NotificationJob
from clarion.domain.person import BusinessUnit
from clarion.operations.preview import preview
from clarion.ports.catalog import Role
from tests.integration.api_harness import ENTITY, ApiHarness, problem, seeded_api
from tests.unit.pipeline_line import STAFF, TENANT

NORTH = UUID("6f1c2c7e-0000-4000-8000-0000000000b1")
UNNAMED: dict[str, Any] = {"type": "welcome", "data": {"name": "Sam"}}
CHILD = {"entity": {"type": "child", "guid": str(ENTITY)}}
OF_NORTH = {"business_unit": str(NORTH)}
SKIPPED = "as things stand it is skipped"
NO_SETTING = f"it names nobody, and no setting of welcome says who gets it: {SKIPPED}"


@pytest.fixture
async def api() -> ApiHarness:
    api = await seeded_api()
    await api.memory.put_business_unit(TENANT, BusinessUnit(guid=NORTH, name="North"))
    return api


async def send(api: ApiHarness, key: str | None = None, /, **changes: Any) -> dict[str, Any]:
    async with api.client(Role.SENDER) as client:
        headers = {} if key is None else {"idempotency-key": key}
        answer = await client.post("/v1/notifications", json=UNNAMED | changes, headers=headers)
    assert answer.status_code == 202, answer.text
    said: dict[str, Any] = answer.json()
    return said


def about_whom(answer: dict[str, Any]) -> list[str]:
    """Give the warnings about who gets it, without those about channels."""
    return [one for one in answer["warnings"] if "names nobody" in one]


async def set_recipients(api: ApiHarness, *recipients: dict[str, object], unit: bool = False) -> None:
    async with api.client(Role.ADMIN) as admin:
        path = f"/v1/settings/welcome{f'?business_unit={NORTH}' if unit else ''}"
        assert (await admin.put(path, json={"recipients": list(recipients)})).status_code == 200


@pytest.mark.parametrize("to", [{}, {"to": []}], ids=["left out", "empty"])
async def test_it_is_accepted_and_has_no_message_before_it_is_known_who_gets_it(
    api: ApiHarness, to: dict[str, Any]
) -> None:
    sent = await send(api, **to)
    assert (sent["message_id"], sent["repeated"], about_whom(sent)) == (None, False, [NO_SETTING])
    (job,) = await api.memory.rows(TENANT, NotificationJob)
    assert (str(job.guid), job.partition_key, job.message_id) == (sent["job_id"], sent["job_id"], None)


async def test_its_history_is_that_of_its_entity(api: ApiHarness) -> None:
    sent = await send(api, **CHILD)
    async with api.client(Role.VIEWER) as client:
        listed = (await client.get(f"/v1/entities/{ENTITY}/notifications")).json()["items"]
        shown = (await client.get(f"/v1/notifications/{sent['job_id']}")).json()
    assert [(one["job_id"], one["recipients"], one["recipient"]) for one in listed] == [(sent["job_id"], 0, None)]
    assert shown["recipients"] == []


async def test_that_nobody_is_named_is_part_of_what_its_key_stands_for(api: ApiHarness) -> None:
    first = await send(api, "invoice 4711", **CHILD)
    assert (await send(api, "invoice 4711", to=[], **CHILD))["repeated"]
    async with api.client(Role.SENDER) as client:
        named = UNNAMED | CHILD | {"to": [{"user": "1"}]}
        other = await client.post("/v1/notifications", json=named, headers={"idempotency-key": "invoice 4711"})
    assert (other.status_code, problem(other)["code"]) == (409, "conflict")
    assert "it differs in recipients" in problem(other)["detail"]
    assert (await send(api, "another"))["job_id"] != first["job_id"]


@pytest.mark.parametrize(
    "recipient, given, why",
    [
        ({"group": str(STAFF)}, {}, None),
        ({"role": "teacher"}, {}, None),
        ({"relation": "guardian"}, CHILD, None),
        ({"unit": True}, OF_NORTH, None),
        ({"relation": "guardian"}, OF_NORTH, "relation:guardian, who can be nobody in a send without entity"),
        ({"unit": True}, CHILD, "unit, who can be nobody in a send without business unit"),
        ({"unit": True}, {}, "unit, who can be nobody in a send without entity and business unit"),
    ],
)
async def test_the_answer_warns_where_nobody_can_be_meant(
    api: ApiHarness, recipient: dict[str, object], given: dict[str, Any], why: str | None
) -> None:
    await set_recipients(api, recipient)
    expected = [] if why is None else [f"it names nobody, and its setting names {why}: {SKIPPED}"]
    assert about_whom(await send(api, **given)) == expected


async def test_the_setting_of_its_business_unit_counts(api: ApiHarness) -> None:
    await set_recipients(api, {"role": "teacher"}, unit=True)
    assert about_whom(await send(api, **OF_NORTH)) == []
    assert about_whom(await send(api)) == [NO_SETTING]


async def test_who_is_named_needs_no_setting(api: ApiHarness) -> None:
    assert about_whom(await send(api, to=[{"user": "1"}])) == []


async def test_a_group_that_there_is_not_is_told_in_the_answer_and_in_a_dry_run(api: ApiHarness) -> None:
    """Each once, though the group there is says nothing; it may still be put, so nothing is refused."""
    other = f"{'0' * 8}-0000-4000-8000-{'0' * 12}"
    to = [{"group": str(STAFF)}, {"group": other}, {"group": other}]
    warned = f"the tenant has no group {other}: as things stand nobody gets it there"
    assert [one for one in (await send(api, to=to))["warnings"] if "group" in one] == [warned]
    asked = SendRequest(type="welcome", data={"name": "Sam"}, to=(Recipient(group=STAFF), Recipient(group=UUID(other))))
    found = await preview(api.platform, TENANT, asked, key=None, actor="test", trace=Trace(correlation_id="c"))
    assert [one for one in found.warnings if "group" in one] == [warned]


async def test_channels_that_nobody_serves_are_those_of_the_setting(api: ApiHarness) -> None:
    await set_recipients(api, {"group": str(STAFF)})
    assert [one for one in (await send(api))["warnings"] if "on email" in one]
    async with api.client(Role.ADMIN) as admin:
        await admin.put("/v1/settings/welcome", json={"recipients": [{"unit": True}], "channels": ["inbox"]})
    assert not [one for one in (await send(api))["warnings"] if "on email" in one]


async def test_a_dry_run_shows_the_people_whom_the_setting_names(api: ApiHarness) -> None:
    """The two of the staff: of one the address is known, and the other has none."""
    await set_recipients(api, {"group": str(STAFF)}, {"relation": "guardian"})
    asked = SendRequest(type="welcome", data={"name": "Sam"})
    found = await preview(api.platform, TENANT, asked, key=None, actor="test", trace=Trace(correlation_id="c"))
    assert found.addressed_to == (f"group:{STAFF}", "relation:guardian")
    goes = {(one.recipient, one.channel, one.destination) for one in found.messages if one.skipped is None}
    assert goes == {("user:1", "email", "sam@example.com"), ("user:1", "inbox", None), ("user:2", "inbox", None)}
    assert [(one.recipient, one.skipped) for one in found.messages if one.skipped] == [
        ("user:2", "no email address is known")
    ]


async def test_what_a_send_with_recipients_is_refused_for_it_is_refused_for_too(api: ApiHarness) -> None:
    async with api.client(Role.SENDER) as client:
        for changes, field in (
            ({"data": {}}, "data"),
            ({"type": "nope"}, "type"),
            ({"channels": ["sms"]}, "channels[0]"),
        ):
            answer = await client.post("/v1/notifications", json=UNNAMED | changes)
            assert (answer.status_code, problem(answer)["field"]) == (422, field)
    assert await api.memory.rows(TENANT, NotificationJob) == []

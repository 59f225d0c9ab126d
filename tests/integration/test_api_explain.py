"""What a notification would do for one person: an answer about everybody, errors for what does not exist, no change."""

from typing import Any
from uuid import UUID

import httpx
import pytest

from clarion.catalog.access import GRANTS, Grant
from clarion.domain.audience import Addressee
from clarion.domain.identity import Channel, Identity
from clarion.domain.person import BusinessUnit
from clarion.domain.setting import SettingChange
from clarion.domain.suppression import Cause, Suppression
from clarion.ports.catalog import Role
from clarion.testing.contracts.sql_rows import Row
from clarion.testing.store import SqliteDatabase
from tests.integration.api_harness import OTHER, ApiHarness, problem, seeded_api
from tests.integration.sqlite_look import connection_of
from tests.unit.pipeline_line import STAFF, TENANT

NORTH, SOUTH, CHILD = UUID(int=0x10), UUID(int=0x20), UUID(int=0x30)
MAIL, MASKED_MAIL = "sam@example.com", "s…m@example.com"
SAM: dict[str, Any] = {"type": "welcome", "recipient": {"user": "1"}}


@pytest.fixture
async def api() -> ApiHarness:
    return await seeded_api()


async def would(api: ApiHarness, role: Role = Role.VIEWER, **asked: Any) -> dict[str, Any]:
    async with api.client(role) as client:
        answer = await client.post("/v1/explain", json=SAM | asked)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


def outcomes(found: dict[str, Any]) -> list[tuple[str, bool, str | None, str | None]]:
    return [(one["channel"], one["goes"], one["rule"], one["reason"]) for one in found["channels"]]


async def sam(api: ApiHarness) -> str:
    return (await api.line.keyring.get(TENANT)).hash_of(Identity.user("1"))


@pytest.mark.parametrize("role", Role)
async def test_it_says_for_each_channel_where_it_would_go_masked_by_role(api: ApiHarness, role: Role) -> None:
    found = await would(api, role)
    assert (found["type"], found["version"], found["recipient"], found["known"]) == ("welcome", 1, "user:1", True)
    assert outcomes(found) == [("email", True, None, None), ("inbox", True, None, None)]
    mail = MAIL if Grant.REVEAL in GRANTS[role] else MASKED_MAIL
    assert [one["destination"] for one in found["channels"]] == [mail, None]
    assert (found["skipped"], found["names"], found["named_by"]) == (None, [], [])
    assert found["decided_by"] == {"enabled": None, "recipients": None, "channels": None}


async def test_a_person_whom_nobody_knows_is_an_answer(api: ApiHarness) -> None:
    found = await would(api, recipient={"employee": str(UUID(int=9))})
    assert (found["recipient"], found["known"]) == (f"employee:{UUID(int=9)}", False)
    assert [(channel, goes, rule) for channel, goes, rule, _ in outcomes(found)] == [
        ("email", False, "unknown_person"),
        ("inbox", False, "unknown_person"),
    ]


async def test_every_rule_has_its_words_and_names_the_address_that_it_is_about(api: ApiHarness) -> None:
    hashed = await sam(api)
    (mail,) = [
        one
        for one in (await api.memory.find_recipients(TENANT, [hashed]))[hashed].contacts
        if one.channel is Channel.EMAIL
    ]
    items = [
        Suppression(subject=mail.destination_index, scope="*", cause=Cause.BOUNCE),
        Suppression(subject=hashed, scope="account:inbox", cause=Cause.PREFERENCE),
    ]
    await api.memory.put_suppressions(TENANT, items, actor="test")
    change = SettingChange(channels=(Channel.EMAIL, Channel.INBOX))
    await api.memory.put_setting(TENANT, "incident", None, change, actor="test")
    found = await would(api, Role.ADMIN)
    # `welcome` is required, so what speaks against its category does not count.
    assert outcomes(found) == [("email", False, "suppression", "the address bounced"), ("inbox", True, None, None)]
    assert found["channels"][0]["destination"] == MAIL
    found = await would(api, type="incident", channels=["sms", "inbox"])
    assert outcomes(found) == [
        ("inbox", True, None, None),
        ("sms", False, "setting", "the tenant's setting leaves sms out"),
    ]
    assert found["decided_by"] == {"enabled": None, "recipients": None, "channels": "tenant"}


async def test_a_type_that_is_off_reaches_nobody_and_the_channels_say_what_would_be(api: ApiHarness) -> None:
    await api.line.send(to="sam@example.com")
    await api.memory.put_setting(TENANT, "welcome", None, SettingChange(enabled=False), actor="test")
    found = await would(api)
    why = "the notification type 'welcome' is switched off for this tenant"
    assert found["skipped"] == {"rule": "type_off", "reason": why}
    assert outcomes(found) == [("email", True, None, None), ("inbox", True, None, None)]
    assert found["decided_by"]["enabled"] == "tenant"


@pytest.mark.parametrize(
    "asked, named_by",
    [
        ({}, [f"group:{STAFF}", "role:head"]),
        ({"business_unit": str(NORTH)}, [f"group:{STAFF}", "role:head", "role:teacher", "unit"]),
        ({"business_unit": str(SOUTH)}, [f"group:{STAFF}", "role:head"]),
        ({"entity": {"type": "child", "guid": str(CHILD)}}, [f"group:{STAFF}", "role:head", "relation:guardian"]),
        ({"entity": {"type": "class", "guid": str(CHILD)}}, [f"group:{STAFF}", "role:head"]),
        ({"recipient": {"user": "2"}}, [f"group:{STAFF}"]),
        ({"recipient": {"user": "a stranger"}}, []),
    ],
)
async def test_it_says_by_whom_of_the_settings_the_person_is_meant(
    api: ApiHarness, asked: dict[str, Any], named_by: list[str]
) -> None:
    """For this entity in this business unit; whoever is meant in another is not meant here."""
    hashed = await sam(api)
    database = SqliteDatabase(connection_of(api.memory))
    for unit in (NORTH, SOUTH):
        await api.memory.put_business_unit(TENANT, BusinessUnit(guid=unit, name=f"unit {unit}"))
    rows = [
        ("role_holder", "(tenant_id, role, unit, recipient_id_hash)", (TENANT, "teacher", str(NORTH), hashed)),
        ("role_holder", "(tenant_id, role, unit, recipient_id_hash)", (TENANT, "head", "", hashed)),
        ("unit_member", "(tenant_id, unit_guid, recipient_id_hash)", (TENANT, str(NORTH), hashed)),
        (
            "entity_relation",
            "(tenant_id, entity_type, entity_guid, relation, recipient_id_hash)",
            (TENANT, "child", str(CHILD), "guardian", hashed),
        ),
    ]
    for table, columns, values in rows:
        marks = ", ".join(f"${place}" for place in range(1, len(values) + 1))
        await database.fetch(f"INSERT INTO {table} {columns} VALUES ({marks}) RETURNING 1", values)  # noqa: S608  our own names
    recipients = (
        Addressee(group=STAFF),
        Addressee(group=UUID(int=0x40)),
        Addressee(role="head"),
        Addressee(role="teacher"),
        Addressee(relation="guardian"),
        Addressee(unit=True),
    )
    await api.memory.put_setting(TENANT, "welcome", None, SettingChange(recipients=recipients), actor="test")
    found = await would(api, **asked)
    assert found["named_by"] == named_by
    assert found["names"] == [str(one) for one in recipients]
    assert found["decided_by"]["recipients"] == "tenant"


@pytest.mark.parametrize(
    "asked, field",
    [
        ({"type": "no-such-type"}, "type"),
        ({"recipient": {"group": str(STAFF)}}, "recipient"),
        ({"recipient": {"address": MAIL}}, "recipient"),
        ({"recipient": {}}, "recipient"),
        ({"recipient": {"user": "1", "employee": str(UUID(int=9))}}, "recipient"),
        ({"recipient": {"user": "1", "channel": "email"}}, "recipient.channel"),
        ({"recipient": {"user": " "}}, "recipient.user"),
        ({"business_unit": str(NORTH)}, "business_unit"),
        ({"channels": ["sms"]}, "channels[0]"),
        ({"channels": ["email", "email"]}, "channels[1]"),
        ({"channels": ["smoke"]}, "channels[0]"),
        ({"to": []}, "to"),
    ],
)
async def test_what_does_not_exist_is_refused_by_its_field(api: ApiHarness, asked: dict[str, Any], field: str) -> None:
    async with api.client(Role.VIEWER) as client:
        answer = await client.post("/v1/explain", json=SAM | asked)
    assert (answer.status_code, problem(answer)["field"]) == (422, field)


async def test_nothing_is_written_and_nobody_is_woken(api: ApiHarness) -> None:
    database = SqliteDatabase(connection_of(api.memory))

    async def everything() -> dict[str, list[Row]]:
        names = await database.fetch("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name", [])
        return {str(one["name"]): await database.fetch(f"SELECT * FROM {one['name']}", []) for one in names}  # noqa: S608  its own names

    before = await everything()
    await would(api)
    await would(api, recipient={"user": "a stranger"})
    assert await everything() == before
    assert api.wake_ups == []


async def test_another_tenant_has_other_people(api: ApiHarness) -> None:
    async with api.client(Role.VIEWER, tenant_id=OTHER) as client:
        answer: httpx.Response = await client.post("/v1/explain", json=SAM)
    assert answer.json()["known"] is False

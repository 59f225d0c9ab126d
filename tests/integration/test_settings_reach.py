"""Somebody says that invoice 4711 is overdue, and exactly those hear of it whom the settings name, on their channels.

Through the API, over the whole pipeline: a business unit, roles, relations to the entity, a group and its people.
"""

from typing import Any
from uuid import UUID

import pytest

from clarion.catalog.people import ContactEntry, People, PersonEntry
from clarion.domain.group import Relation
from clarion.domain.identity import Channel, Identity
from clarion.domain.person import BusinessUnit
from clarion.ports.catalog import Role
from tests.integration.api_harness import ApiHarness, seeded_api
from tests.unit.pipeline_line import TENANT, TRACE

NORTH, SOUTH = UUID("6f1c2c7e-0000-4000-8000-0000000000b1"), UUID("6f1c2c7e-0000-4000-8000-0000000000b2")
INVOICE, OTHER_INVOICE = (UUID(f"6f1c2c7e-0000-4000-8000-00000000{n}") for n in (4711, 4712))
BOARD = UUID("6f1c2c7e-0000-4000-8000-0000000000a1")
SETTING = "/v1/settings/welcome"
PEOPLE = {
    "accountant of north": ("role", "accountant", NORTH),
    "accountant of south": ("role", "accountant", SOUTH),
    "accountant of all": ("role", "accountant", None),
    "head of north": ("role", "head", NORTH),
    "guardian": ("relation", "guardian", INVOICE),
    "guardian of another": ("relation", "guardian", OTHER_INVOICE),
    "witness": ("relation", "witness", INVOICE),
    "member of north": ("unit", "", NORTH),
    "nobody in particular": ("none", "", None),
}


@pytest.fixture
async def api() -> ApiHarness:
    """A school with two units, and people who are something to them or to an invoice; everybody has a mail address."""
    api = await seeded_api()
    store, keys = api.memory, await api.line.keyring.get(TENANT)
    entries = [
        PersonEntry(
            identity=Identity.user(name),
            name=name,
            contacts=(ContactEntry(channel=Channel.EMAIL, destination=mail_of(name)),),
        )
        for name in PEOPLE
    ]
    people = People(catalog=store, dispatcher=api.line.dispatcher, keyring=api.line.keyring)
    await people.put(TENANT, entries, trace=TRACE)
    for unit, name in ((NORTH, "North"), (SOUTH, "South")):
        await store.put_business_unit(TENANT, BusinessUnit(guid=unit, name=name))
    for who, (kind, name, place) in PEOPLE.items():
        hashed = [keys.hash_of(Identity.user(who))]
        match kind:
            case "role":
                await store.change_holders(TENANT, name, unit=place, add=hashed, remove=[])
            case "relation" if place is not None:
                of = Relation(entity_type="invoice", entity_guid=place, relation=name, recipient_id_hash=hashed[0])
                await store.change_relations(TENANT, add=[of], remove=[])
            case "unit" if place is not None:
                await store.change_unit_members(TENANT, place, add=hashed, remove=[])
    board = [keys.hash_of(Identity.user(one)) for one in ("guardian", "accountant of south")]
    await store.put_group(TENANT, guid=BOARD, name="Board", members=board)
    return api


def mail_of(name: str) -> str:
    return f"{name.replace(' ', '.')}@example.com"


async def overdue(api: ApiHarness, **changes: Any) -> dict[str, Any]:
    """Say that the invoice is overdue, let everything be done, and return how the notification stands."""
    asked = {
        "type": "welcome",
        "data": {"name": "you"},
        "entity": {"type": "invoice", "guid": str(INVOICE)},
        "business_unit": str(NORTH),
    }
    async with api.client() as client:
        body = {name: value for name, value in (asked | changes).items() if value is not None}
        answer = await client.post("/v1/notifications", json=body, headers={"idempotency-key": "invoice 4711"})
        assert answer.status_code == 202, answer.text
        await api.line.drain()
        found: dict[str, Any] = (await client.get(f"/v1/notifications/{answer.json()['job_id']}")).json()
    return found


async def settle(api: ApiHarness, setting: dict[str, Any], *, unit: UUID | None = None) -> None:
    async with api.client(Role.ADMIN) as admin:
        answer = await admin.put(SETTING, json=setting, params={} if unit is None else {"business_unit": str(unit)})
    assert answer.status_code == 200, answer.text


def reached(api: ApiHarness) -> list[str]:
    """Name those whom a mail went to, as often as it did."""
    mailed = {mail_of(name): name for name in PEOPLE}
    return sorted(mailed[call.destination] for call in api.provider.calls)


@pytest.mark.parametrize(
    "recipient, who",
    [
        ({"role": "accountant"}, ["accountant of all", "accountant of north"]),
        ({"relation": "guardian"}, ["guardian"]),
        ({"unit": True}, ["member of north"]),
        ({"group": str(BOARD)}, ["accountant of south", "guardian"]),
    ],
)
async def test_each_kind_of_addressee_is_who_it_is_in_this_send(
    api: ApiHarness, recipient: dict[str, Any], who: list[str]
) -> None:
    await settle(api, {"recipients": [recipient], "channels": ["email"]})
    found = await overdue(api)
    assert reached(api) == who
    assert sorted(one["recipient"] for one in found["recipients"]) == [f"user:{one}" for one in who]


async def test_together_they_are_everybody_in_any_of_them_each_once(api: ApiHarness) -> None:
    everybody = [{"role": "accountant"}, {"relation": "guardian"}, {"unit": True}, {"group": str(BOARD)}]
    await settle(api, {"recipients": everybody, "channels": ["email"]})
    await overdue(api)
    expected = ["accountant of all", "accountant of north", "accountant of south", "guardian", "member of north"]
    assert reached(api) == expected
    await overdue(api)  # the same again, under its key
    assert reached(api) == expected


async def test_the_word_of_the_business_unit_is_the_last(api: ApiHarness) -> None:
    await settle(api, {"recipients": [{"role": "accountant"}], "channels": ["email"]})
    await settle(api, {"recipients": [{"role": "head"}]}, unit=NORTH)
    await settle(api, {"recipients": [{"unit": True}]}, unit=SOUTH)
    await overdue(api)
    assert reached(api) == ["head of north"]


async def test_a_channel_that_the_setting_leaves_out_is_told_of_each_who_would_have_got_it(api: ApiHarness) -> None:
    await settle(api, {"recipients": [{"relation": "guardian"}]})
    await settle(api, {"channels": ["inbox"]}, unit=NORTH)
    found = await overdue(api)
    assert reached(api) == []
    assert [one["recipient"] for one in found["inbox"]] == ["user:guardian"]
    ((skipped,),) = [one["skipped"] for one in found["recipients"]]
    assert (skipped["channel"], skipped["rule"]) == ("email", "setting")
    assert "business unit" in skipped["reason"]


@pytest.mark.parametrize(
    "recipients, changes",
    [
        (None, {}),
        ([{"role": "gardener"}], {}),
        ([{"relation": "guardian"}], {"entity": None}),
        ([{"unit": True}], {"business_unit": None}),
        ([{"unit": True}], {"business_unit": str(SOUTH)}),
    ],
    ids=["nobody is named", "nobody holds the role", "no entity", "no unit", "a unit without members"],
)
async def test_where_nobody_is_found_it_is_skipped_and_says_by_which_rule(
    api: ApiHarness, recipients: list[dict[str, Any]] | None, changes: dict[str, Any]
) -> None:
    await settle(api, {"recipients": recipients})
    found = await overdue(api, **changes)
    assert (found["status"], found["result"], found["rule"]) == ("Skipped", "nobody", "nobody")
    assert reached(api) == []


async def test_who_is_named_gets_it_whatever_the_settings_say(api: ApiHarness) -> None:
    await settle(api, {"recipients": [{"role": "accountant"}], "channels": ["email"]})
    await overdue(api, to=[{"user": "nobody in particular"}])
    assert reached(api) == ["nobody in particular"]


async def test_what_is_off_in_the_unit_goes_to_nobody_there(api: ApiHarness) -> None:
    await settle(api, {"recipients": [{"relation": "guardian"}]})
    await settle(api, {"enabled": False}, unit=NORTH)
    found = await overdue(api)
    assert (found["status"], found["rule"]) == ("Skipped", "setting")
    assert "switched off for this business unit" in found["reason"]
    assert reached(api) == []


async def test_whoever_comes_to_hold_a_role_later_gets_what_is_sent_later(api: ApiHarness) -> None:
    """The set of a notification stands when its messages were made."""
    await settle(api, {"recipients": [{"role": "head"}], "channels": ["email"]})
    await overdue(api)
    newcomer = (await api.line.keyring.get(TENANT)).hash_of(Identity.user("witness"))
    await api.memory.change_holders(TENANT, "head", unit=NORTH, add=[newcomer], remove=[])
    await overdue(api)
    assert reached(api) == ["head of north"]

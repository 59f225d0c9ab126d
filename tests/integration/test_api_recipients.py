"""Whom a notification is for, in timelines and notifications: by name, masked by role, and with a reason per skip."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from clarion.catalog.access import GRANTS, Grant
from clarion.client import wire
from clarion.domain.identity import Channel, Identity
from clarion.domain.notification import NotificationJob
from clarion.domain.suppression import Cause, Suppression
from clarion.ports.catalog import Role
from tests.integration.api_harness import OTHER, ApiHarness, seeded_api
from tests.unit.pipeline_line import STAFF, TENANT

MAY_REVEAL = {Role.SUPPORT, Role.ADMIN}
MAIL, PHONE = "sam@example.com", "+447700900001"
MASKED_MAIL, MASKED_PHONE = "s…m@example.com", "+44…01"
INCIDENT = {
    "name": "Maya",
    "summary": "Leo fell.",
    "happened_at": "2026-02-12T10:40:00+01:00",
    "action": "Please look at the knee.",
    "child": {"name": "Leo", "group": "2b"},
}


@pytest.fixture
async def api() -> ApiHarness:
    return await seeded_api()


async def asked(api: ApiHarness, sent: wire.SendAnswer, role: Role) -> tuple[dict[str, Any], dict[str, Any]]:
    """Ask for the notification and for its timeline."""
    async with api.client(role) as client:
        shown = await client.get(f"/v1/notifications/{sent.job_id}")
        told = await client.get(f"/v1/messages/{sent.job_id}/timeline")
        assert (shown.status_code, told.status_code) == (200, 200)
        return shown.json(), told.json()


@pytest.mark.parametrize("role", Role)
async def test_an_address_is_whole_for_those_who_may_reveal_and_masked_for_the_rest(
    api: ApiHarness, role: Role
) -> None:
    """Before it is worked on and after; nothing else in the answer holds it either."""
    phone = wire.Recipient(address=PHONE, channel=Channel.SMS)
    sent = await api.line.send("incident", MAIL, also=(phone,), data=INCIDENT)
    expected = {MAIL, PHONE} if role in MAY_REVEAL else {MASKED_MAIL, MASKED_PHONE}
    before = await asked(api, sent, role)
    await api.line.drain()
    shown, told = await asked(api, sent, role)
    for answer in (*before, shown, told):
        assert {one["recipient"] for one in answer["recipients"]} == expected
        assert (MAIL in str(answer), PHONE in str(answer)) == (role in MAY_REVEAL, role in MAY_REVEAL)
    assert {one["destination"] for one in shown["messages"]} == expected
    assert {line["recipient"] for line in told["lines"]} == {None, *expected}


def test_the_roles_that_may_reveal_are_those_that_see_messages_as_recipients_do() -> None:
    assert {role for role in Role if Grant.REVEAL in GRANTS[role]} == MAY_REVEAL


@pytest.mark.parametrize("role, mail", [(Role.VIEWER, MASKED_MAIL), (Role.SUPPORT, MAIL)])
async def test_a_user_is_named_by_the_callers_own_id_beside_where_it_went(
    api: ApiHarness, role: Role, mail: str
) -> None:
    sent = await api.line.send(to=wire.Recipient(user="1"))
    before, _ = await asked(api, sent, role)
    assert before["recipients"] == [{"recipient": "user:1", "message_id": str(sent.message_id), "skipped": []}]
    await api.line.drain()
    shown, told = await asked(api, sent, role)
    assert [(one["recipient"], one["destination"]) for one in shown["messages"]] == [("user:1", mail)]
    assert [one["recipient"] for one in shown["inbox"]] == ["user:1"]
    assert shown["recipients"] == told["recipients"] == before["recipients"]


async def test_every_skip_has_its_own_reason_once(api: ApiHarness) -> None:
    """A stranger and somebody without a mail address, in a group and beside it."""
    sent = await api.line.send(to=wire.Recipient(group=STAFF), also=(wire.Recipient(user="a stranger"),))
    waiting, _ = await asked(api, sent, Role.VIEWER)
    assert [one["recipient"] for one in waiting["recipients"]] == [f"group:{STAFF}", "user:a stranger"]
    await api.line.drain()
    shown, told = await asked(api, sent, Role.VIEWER)
    skips = {
        one["recipient"]: [(skip["channel"], skip["reason"], skip["rule"]) for skip in one["skipped"]]
        for one in shown["recipients"]
    }
    assert skips == {
        "user:1": [],
        "user:2": [("email", "no email address is known", "no_address")],
        "user:a stranger": [
            ("email", "the person is not known", "unknown_person"),
            ("inbox", "the person is not known", "unknown_person"),
        ],
    }
    lines = [line for line in told["lines"] if line["what"] == "skipped"]
    assert sorted((line["recipient"], line["channel"], line["detail"], line["rule"]) for line in lines) == sorted(
        (name, *skip) for name, skips_of in skips.items() for skip in skips_of
    )
    assert {line["rule"] for line in told["lines"] if line["what"] != "skipped"} == {None}
    (generated,) = [line["detail"] for line in told["lines"] if line["what"] == "generated"]
    assert generated == "3 recipients, 3 messages, 3 skipped"
    assert shown["result"] == "partly"


async def test_what_was_made_and_not_sent_says_its_rule_as_what_was_never_made(api: ApiHarness) -> None:
    late = await api.line.send(to=MAIL, ttl_seconds=60)
    called_off = await api.line.send(to=MAIL)
    await api.line.queue()
    await api.line.store.cancel_job(TENANT, called_off.job_id, actor="sam")
    api.clock.advance(timedelta(seconds=61))
    await api.line.drain()
    for sent, status, rule in ((late, "Expired", "expired"), (called_off, "Canceled", "canceled")):
        shown, told = await asked(api, sent, Role.VIEWER)
        assert [(one["status"], one["rule"]) for one in shown["messages"]] == [(status, rule)]
        assert [line["what"] for line in told["lines"] if line["rule"] == rule] == [rule]


async def test_whoever_opts_out_of_what_waits_is_counted_apart_from_whoever_bounced(api: ApiHarness) -> None:
    """And in the totals as in the messages."""
    hash_of = (await api.line.keyring.get(TENANT)).hash_of
    data = {"edition": "May", "intro": "Hello.", "stories": []}
    address = wire.Recipient(address="kim@example.com")
    sent = await api.line.send("newsletter", wire.Recipient(user="1"), also=(address,), data=data)
    await api.line.queue()
    items = [
        Suppression(subject=hash_of(Identity.user("1")), scope="news", cause=Cause.UNSUBSCRIBE),
        Suppression(subject=hash_of(Identity.address("kim@example.com")), scope="*", cause=Cause.COMPLAINT),
    ]
    await api.memory.put_suppressions(TENANT, items, actor="test")
    await api.line.drain()
    shown, told = await asked(api, sent, Role.VIEWER)
    assert sorted((one["status"], one["rule"], one["reason"]) for one in shown["messages"]) == [
        ("Suppressed", "preference", "the recipient unsubscribed"),
        ("Suppressed", "suppression", "the recipient complained"),
    ]
    totals = {"recipients": 2, "shown": 2, "messages": 2, "inbox": 0}
    assert shown["totals"] == told["totals"] == totals | {"not_sent": {"preference": 1, "suppression": 1}}
    assert (shown["result"], api.provider.calls) == ("nobody", [])


@pytest.mark.parametrize("role, mail", [(Role.VIEWER, MASKED_MAIL), (Role.SENDER, MASKED_MAIL), (Role.ADMIN, MAIL)])
async def test_a_list_names_a_single_recipient_and_counts_several(api: ApiHarness, role: Role, mail: str) -> None:
    """Masked by role as everywhere."""
    for to in (MAIL, wire.Recipient(user="1"), wire.Recipient(group=STAFF)):
        await api.line.send(to=to)
        await api.line.drain()
        api.clock.advance(timedelta(seconds=1))
    async with api.client(role) as client:
        listed = (await client.get("/v1/notifications")).json()["items"]
    assert [(one["recipients"], one["recipient"]) for one in listed] == [(2, None), (1, "user:1"), (1, mail)]


@pytest.mark.parametrize("role, mail", [(Role.VIEWER, MASKED_MAIL), (Role.SENDER, MASKED_MAIL), (Role.ADMIN, MAIL)])
async def test_a_list_names_whom_the_sender_named_where_nobody_was_decided_on(
    api: ApiHarness, role: Role, mail: str
) -> None:
    """What was skipped, what was canceled before it was worked on, and what waits; several are counted."""
    await api.line.store.set_type_enabled(TENANT, "welcome", enabled=False, actor="test")
    await api.line.send(to=MAIL)
    await api.line.drain()
    api.clock.advance(timedelta(seconds=1))
    await api.line.store.set_type_enabled(TENANT, "welcome", enabled=True, actor="test")
    canceled = await api.line.send(to=wire.Recipient(group=STAFF))
    assert await api.line.store.cancel_job(TENANT, canceled.job_id, actor="test")
    api.clock.advance(timedelta(seconds=1))
    await api.line.send(to=MAIL, also=(wire.Recipient(user="1"),))
    async with api.client(role) as client:
        listed = (await client.get("/v1/notifications")).json()["items"]
    assert [(one["status"], one["recipients"], one["recipient"]) for one in listed] == [
        ("Ready", 2, None),
        ("Canceled", 1, f"group:{STAFF}"),
        ("Skipped", 1, mail),
    ]


@pytest.mark.parametrize("role", Role)
async def test_only_who_may_reveal_can_ask_what_was_sent_to_an_address(api: ApiHarness, role: Role) -> None:
    """Others see addresses masked, and could find the rest of one by asking for every address that it may be."""
    await api.line.send(to=MAIL)
    async with api.client(role) as client:
        for entity in (f"address:{MAIL}", f"email:{MAIL}", "address:nobody@example.com"):
            answer = await client.get(f"/v1/entities/{entity}/notifications")
            if role in MAY_REVEAL:
                assert (answer.status_code, len(answer.json()["items"])) == (200, int("nobody" not in entity))
            else:
                assert answer.status_code == 403
                assert answer.json()["detail"] == (
                    f"a key with the role {role} may not reveal what was sent to an address: "
                    "use a key with the role support or admin"
                )
        assert (await client.get("/v1/entities/user:1/notifications")).status_code == 200


async def test_a_message_names_its_own_recipient_only(api: ApiHarness) -> None:
    sent = await api.line.send(to=MAIL, also=(wire.Recipient(address="kim@example.com"),))
    await api.line.drain()
    shown, _ = await asked(api, sent, Role.ADMIN)
    ids = {one["recipient"]: one["message_id"] for one in shown["recipients"]}
    async with api.client(Role.ADMIN) as client:
        answer = await client.get(f"/v1/messages/{ids[MAIL]}/timeline")
    assert [one["recipient"] for one in answer.json()["recipients"]] == [MAIL]
    assert "kim@example.com" not in answer.text


async def test_recipients_that_cannot_be_opened_are_left_out_and_stop_nothing(api: ApiHarness) -> None:
    sent = await api.line.send()
    (job,) = await api.memory.rows(TENANT, NotificationJob)
    await api.memory.overwrite(TENANT, msgspec.structs.replace(job, payload=b"damaged"))
    shown, told = await asked(api, sent, Role.ADMIN)
    assert shown["recipients"] == told["recipients"] == []


async def test_another_tenants_key_finds_nobody(api: ApiHarness) -> None:
    sent = await api.line.send()
    api.clock.advance(timedelta(seconds=1))
    async with api.client(Role.ADMIN, tenant_id=OTHER) as client:
        for path in (f"/v1/notifications/{sent.job_id}", f"/v1/messages/{sent.job_id}/timeline"):
            assert (await client.get(path)).status_code == 404

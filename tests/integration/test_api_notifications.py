"""Sending over HTTP, once: keys, repeats, conflicts, lost replies, canceling, and asking what happened."""

from datetime import timedelta
from uuid import UUID

import msgspec
import pytest

from clarion.domain.guard import IdempotencyGuard
from clarion.domain.notification import NotificationJob
from clarion.errors import StoreUnreachable
from clarion.ports.catalog import Role
from tests.integration.api_desk import ENTITY, OTHER, WELCOME, ApiDesk, problem, seeded_desk
from tests.unit.pipeline_line import STAFF, TENANT

DOWN = StoreUnreachable("the database at 10.0.0.5 does not answer", hint="start it")

INCIDENT = {
    "name": "Maya",
    "summary": "Leo fell.",
    "happened_at": "2026-02-12T10:40:00+01:00",
    "action": "Please look at the knee.",
    "child": {"name": "Leo", "group": "2b"},
}


@pytest.fixture
async def desk() -> ApiDesk:
    return await seeded_desk()


def jobs(desk: ApiDesk) -> list[NotificationJob]:
    return list(desk.memory.table(TENANT, NotificationJob).values())


async def test_a_notification_is_accepted_and_says_where_to_ask(desk: ApiDesk) -> None:
    async with desk.client(Role.SENDER) as client:
        answer = await client.post("/v1/notifications", json=WELCOME)
        assert answer.status_code == 202
        receipt = answer.json()
        assert set(receipt) == {"job_id", "message_id", "accepted_at", "repeated"}
        assert not receipt["repeated"]
        assert answer.headers["location"] == f"/v1/notifications/{receipt['job_id']}"
        shown = (await client.get(answer.headers["location"])).json()
    assert (shown["type"], shown["status"], shown["actor"]) == ("welcome", "Ready", "sender of school")
    assert desk.rings == ["stages"]


async def test_what_was_accepted_is_sent_and_its_timeline_is_found_by_either_id(desk: ApiDesk) -> None:
    receipt = await desk.sent()
    await desk.line.drain()
    async with desk.client(Role.VIEWER) as client:
        by_job = (await client.get(f"/v1/messages/{receipt['job_id']}/timeline")).json()
        by_message = (await client.get(f"/v1/messages/{receipt['message_id']}/timeline")).json()
        shown = (await client.get(f"/v1/notifications/{receipt['job_id']}")).json()
    told = [line["what"] for line in by_job["lines"]]
    assert told[0] == "accepted"
    assert {"ensured", "generated", "claimed", "called", "sent"} <= set(told)
    assert by_message["lines"] == by_job["lines"]
    assert by_message["messages"] == by_job["messages"] == shown["messages"]
    assert {"id", "version"} <= set(shown["messages"][0])
    assert (by_job["message_id"], by_message["message_id"]) == (None, receipt["message_id"])
    assert [(one["status"], one["channel"]) for one in shown["messages"]] == [("SentToProvider", "email")]
    assert [call.destination for call in desk.provider.calls] == ["sam@example.com"]


async def test_a_timeline_is_found_by_the_message_before_it_has_any_row(desk: ApiDesk) -> None:
    receipt = await desk.sent()
    async with desk.client(Role.VIEWER) as client:
        told = (await client.get(f"/v1/messages/{receipt['message_id']}/timeline")).json()
        assert (told["job_id"], told["message_id"]) == (receipt["job_id"], receipt["message_id"])
        assert [line["what"] for line in told["lines"]] == ["accepted", "ensured", "waiting to be scheduled"]
        unknown = await client.get(f"/v1/messages/{UUID(int=7)}/timeline")
        assert (unknown.status_code, problem(unknown)["code"]) == (404, "not-found")
    async with desk.client(Role.ADMIN, tenant_id=OTHER) as client:
        foreign = await client.get(f"/v1/messages/{receipt['message_id']}/timeline")
        assert (foreign.status_code, problem(foreign)["code"]) == (404, "not-found")


async def test_a_key_that_is_used_again_gives_the_same_answer_and_no_second_message(desk: ApiDesk) -> None:
    async with desk.client() as client:
        first = await client.post("/v1/notifications", json=WELCOME, headers={"idempotency-key": "order 17"})
        desk.clock.advance(timedelta(days=3))
        again = await client.post("/v1/notifications", json=WELCOME, headers={"idempotency-key": "order 17"})
    assert again.status_code == first.status_code == 202
    assert again.json() == first.json() | {"repeated": True}
    assert again.headers["location"] == first.headers["location"]
    await desk.line.drain()
    assert len(desk.provider.calls) == 1
    assert desk.rings == ["stages"]


async def test_a_key_is_its_tenants_own(desk: ApiDesk) -> None:
    for tenant_id in (TENANT, OTHER):
        async with desk.client(tenant_id=tenant_id) as client:
            answer = await client.post("/v1/notifications", json=WELCOME, headers={"idempotency-key": "k"})
        assert not answer.json()["repeated"]


async def test_a_key_with_another_payload_is_a_conflict_with_a_support_case_and_changes_nothing(desk: ApiDesk) -> None:
    headers = {"idempotency-key": "k"}
    async with desk.client() as client:
        first = await client.post("/v1/notifications", json=WELCOME, headers=headers)
        other = await client.post("/v1/notifications", json=WELCOME | {"data": {"name": "Kim"}}, headers=headers)
        said = problem(other)
        cases = (await client.get("/v1/support-cases")).json()["items"]
        again = await client.post("/v1/notifications", json=WELCOME, headers=headers)
    assert (other.status_code, said["code"]) == (409, "conflict")
    assert [case["case_id"] for case in cases if case["case_id"] in said["detail"]]
    assert again.json()["job_id"] == first.json()["job_id"]
    assert len(jobs(desk)) == 1


async def test_a_retired_key_is_gone_and_never_sends_again(desk: ApiDesk) -> None:
    headers = {"idempotency-key": "k"}
    async with desk.client() as client:
        await client.post("/v1/notifications", json=WELCOME, headers=headers)
        guards = desk.memory.table(TENANT, IdempotencyGuard)
        for key, guard in list(guards.items()):
            guards[key] = msgspec.structs.replace(guard, retired_at=desk.clock.now())
        desk.memory.table(TENANT, NotificationJob).clear()
        answer = await client.post("/v1/notifications", json=WELCOME, headers=headers)
    assert (answer.status_code, problem(answer)["code"]) == (410, "gone")
    assert not jobs(desk)


async def test_nothing_is_acknowledged_before_it_is_committed(desk: ApiDesk) -> None:
    desk.failing.error, desk.failing.only = DOWN, frozenset({"ensure_notification_jobs"})
    async with desk.client() as client:
        answer = await client.post("/v1/notifications", json=WELCOME, headers={"idempotency-key": "k"})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert (jobs(desk), desk.rings) == ([], [])
        desk.failing.error = None
        again = await client.post("/v1/notifications", json=WELCOME, headers={"idempotency-key": "k"})
    assert (again.status_code, again.json()["repeated"]) == (202, False)
    assert len(jobs(desk)) == 1


async def test_a_commit_whose_reply_was_lost_is_found_by_the_same_key(desk: ApiDesk) -> None:
    desk.failing.error, desk.failing.only = DOWN, frozenset({"ensure_notification_jobs"})
    desk.failing.after_commit = True
    async with desk.client() as client:
        assert (await client.post("/v1/notifications", json=WELCOME, headers={"idempotency-key": "k"})).is_error
        desk.failing.error = None
        again = await client.post("/v1/notifications", json=WELCOME, headers={"idempotency-key": "k"})
    assert (again.status_code, again.json()["repeated"]) == (202, True)
    assert len(jobs(desk)) == 1


async def test_sends_without_a_key_are_each_their_own(desk: ApiDesk) -> None:
    assert (await desk.sent())["job_id"] != (await desk.sent())["job_id"]


@pytest.mark.parametrize(
    "to,single",
    [
        ([{"user": "1"}], True),
        ([{"address": "kim@example.com", "channel": "email"}], True),
        ([{"group": str(STAFF)}], False),
        ([{"user": "1"}, {"address": "kim@example.com"}], False),
        ([{"address": f"kim{n}@example.com"} for n in range(20)], False),
    ],
)
async def test_a_single_recipient_gets_a_message_id_and_others_do_not(
    desk: ApiDesk, to: list[dict[str, str]], single: bool
) -> None:
    assert ((await desk.sent(to=to))["message_id"] is not None) == single


async def test_a_notification_about_an_entity_stands_in_its_history_newest_first_page_by_page(desk: ApiDesk) -> None:
    sent = []
    for _ in range(5):
        sent.append((await desk.sent(entity={"type": "child", "guid": str(ENTITY)}))["job_id"])
        desk.clock.advance(timedelta(seconds=1))
    await desk.sent()
    found, cursor, pages = [], None, 0
    async with desk.client() as client:
        while pages == 0 or cursor is not None:
            params = {"limit": 2} | ({"cursor": cursor} if cursor else {})
            page = (await client.get(f"/v1/entities/{ENTITY}/notifications", params=params)).json()
            found += [item["job_id"] for item in page["items"]]
            cursor, pages = page["next_cursor"], pages + 1
    assert found == sent[::-1]
    assert pages == 3


async def test_without_an_entity_the_history_is_the_recipients(desk: ApiDesk) -> None:
    receipt = await desk.sent(to=[{"user": "1"}])
    to_group = await desk.sent(to=[{"group": str(STAFF)}])
    async with desk.client() as client:
        user = (await client.get("/v1/entities/user:1/notifications")).json()
        group = (await client.get(f"/v1/entities/group:{STAFF}/notifications")).json()
    assert [item["job_id"] for item in user["items"]] == [receipt["job_id"]]
    assert [item["job_id"] for item in group["items"]] == [to_group["job_id"]]


@pytest.mark.parametrize(
    "address, history",
    [
        ("sam@example.com", "address:sam@example.com"),
        ("sam@example.com", "address:Sam@EXAMPLE.com"),
        ("sam@example.com", "email:sam@example.com"),
        ("+49 151 12345678", "address:+4915112345678"),
        ("+49 151 12345678", "sms:+49%20151%2012345678"),
    ],
)
async def test_the_history_of_an_address_is_found_however_it_is_written(
    desk: ApiDesk, address: str, history: str
) -> None:
    receipt = await desk.sent(type="incident", to=[{"address": address}], data=INCIDENT)
    await desk.sent(to=[{"address": "kim@example.com"}])
    async with desk.client() as client:
        found = (await client.get(f"/v1/entities/{history}/notifications")).json()
    async with desk.client(tenant_id=OTHER) as client:
        elsewhere = (await client.get(f"/v1/entities/{history}/notifications")).json()
    assert [item["job_id"] for item in found["items"]] == [receipt["job_id"]]
    assert elsewhere["items"] == []


async def test_a_notification_is_found_and_canceled_by_the_id_of_its_message(desk: ApiDesk) -> None:
    receipt = await desk.sent()
    path = f"/v1/notifications/{receipt['message_id']}"
    async with desk.client(tenant_id=OTHER) as client:
        assert (await client.get(path)).status_code == 404
        assert (await client.post(f"{path}/cancel")).status_code == 404
    async with desk.client() as client:
        assert (await client.get(path)).json()["job_id"] == receipt["job_id"]
        for repeated in (False, True):
            done = (await client.post(f"{path}/cancel")).json()
            assert done == {"job_id": receipt["job_id"], "repeated": repeated}
        assert (await client.get(path)).json()["status"] == "Canceled"


async def test_a_canceled_notification_is_not_sent_and_canceling_again_says_so(desk: ApiDesk) -> None:
    receipt = await desk.sent()
    path = f"/v1/notifications/{receipt['job_id']}/cancel"
    async with desk.client(Role.SENDER) as client:
        first, again = await client.post(path), await client.post(path)
    assert first.json() == {"job_id": receipt["job_id"], "repeated": False}
    assert again.json() == {"job_id": receipt["job_id"], "repeated": True}
    await desk.line.drain()
    assert not desk.provider.calls
    async with desk.client() as client:
        acts = [(line["act"], line["actor"]) for line in (await client.get("/v1/audit?limit=100")).json()["items"]]
    assert acts.count(("cancel", "sender of school")) == 1


async def test_what_was_sent_cannot_be_canceled(desk: ApiDesk) -> None:
    receipt = await desk.sent()
    await desk.line.drain()
    async with desk.client() as client:
        answer = await client.post(f"/v1/notifications/{receipt['job_id']}/cancel")
    assert (answer.status_code, problem(answer)["code"]) == (409, "conflict")


async def test_not_before_holds_a_notification_back(desk: ApiDesk) -> None:
    later = (desk.clock.now() + timedelta(hours=1)).isoformat()
    await desk.sent(not_before_at=later)
    await desk.line.drain()
    assert not desk.provider.calls
    await desk.line.wait(3600)
    assert len(desk.provider.calls) == 1


async def test_the_correlation_id_of_a_request_is_the_jobs(desk: ApiDesk) -> None:
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    async with desk.client() as client:
        answer = await client.post(
            "/v1/notifications", json=WELCOME, headers={"x-correlation-id": "shop.42", "traceparent": trace}
        )
    assert answer.headers["x-correlation-id"] == "shop.42"
    assert [(job.correlation_id, job.traceparent) for job in jobs(desk)] == [("shop.42", trace)]


@pytest.mark.parametrize("given", ["", "a" * 129, "a b", "<script>", "é"])
async def test_a_correlation_id_that_is_no_id_is_replaced(desk: ApiDesk, given: str) -> None:
    async with desk.client() as client:
        answer = await client.get("/health", headers={b"x-correlation-id": given.encode()})
    minted = answer.headers["x-correlation-id"]
    assert minted == str(UUID(minted))

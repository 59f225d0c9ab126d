"""Sending over HTTP, once: keys, repeats, conflicts, lost replies, canceling, and asking what happened."""

import threading
from datetime import datetime, timedelta
from uuid import UUID

import msgspec
import pytest

from clarion.domain.guard import IdempotencyGuard
from clarion.domain.notification import NotificationJob, NotificationScheduler
from clarion.errors import StoreUnreachable
from clarion.ports.catalog import Role
from clarion.testing.clock import START_AT, ManualClock
from clarion.testing.store import SqliteInMemory
from tests.integration.api_harness import ENTITY, OTHER, WELCOME, ApiHarness, problem, seeded_api
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
async def api() -> ApiHarness:
    return await seeded_api()


async def jobs(api: ApiHarness) -> list[NotificationJob]:
    return await api.memory.rows(TENANT, NotificationJob)


async def test_a_notification_is_accepted_and_says_where_to_ask(api: ApiHarness) -> None:
    async with api.client(Role.SENDER) as client:
        answer = await client.post("/v1/notifications", json=WELCOME)
        assert answer.status_code == 202
        sent = answer.json()
        assert set(sent) == {"job_id", "message_id", "accepted_at", "repeated", "warnings"}
        assert not sent["repeated"]
        assert answer.headers["location"] == f"/v1/notifications/{sent['job_id']}"
        shown = (await client.get(answer.headers["location"])).json()
    assert (shown["type"], shown["status"], shown["actor"]) == ("welcome", "Ready", "sender of school")
    assert api.wake_ups == ["stages"]


async def test_what_was_accepted_is_sent_and_its_timeline_is_found_by_either_id(api: ApiHarness) -> None:
    sent = await api.sent()
    await api.line.drain()
    async with api.client(Role.VIEWER) as client:
        by_job = (await client.get(f"/v1/messages/{sent['job_id']}/timeline")).json()
        by_message = (await client.get(f"/v1/messages/{sent['message_id']}/timeline")).json()
        shown = (await client.get(f"/v1/notifications/{sent['job_id']}")).json()
    told = [line["what"] for line in by_job["lines"]]
    assert told[0] == "accepted"
    assert {"stored", "generated", "claimed", "called", "sent"} <= set(told)
    assert by_message["lines"] == by_job["lines"]
    assert by_message["messages"] == by_job["messages"] == shown["messages"]
    assert {"id", "version"} <= set(shown["messages"][0])
    assert (by_job["message_id"], by_message["message_id"]) == (None, sent["message_id"])
    assert [(one["status"], one["channel"]) for one in shown["messages"]] == [("SentToProvider", "email")]
    assert [call.destination for call in api.provider.calls] == ["sam@example.com"]


async def test_a_timeline_is_found_by_the_message_before_it_has_any_row(api: ApiHarness) -> None:
    sent = await api.sent()
    async with api.client(Role.VIEWER) as client:
        told = (await client.get(f"/v1/messages/{sent['message_id']}/timeline")).json()
        assert (told["job_id"], told["message_id"]) == (sent["job_id"], sent["message_id"])
        assert [line["what"] for line in told["lines"]] == ["accepted", "stored", "waiting to be scheduled"]
        unknown = await client.get(f"/v1/messages/{UUID(int=7)}/timeline")
        assert (unknown.status_code, problem(unknown)["code"]) == (404, "not-found")
    async with api.client(Role.ADMIN, tenant_id=OTHER) as client:
        foreign = await client.get(f"/v1/messages/{sent['message_id']}/timeline")
        assert (foreign.status_code, problem(foreign)["code"]) == (404, "not-found")


async def test_a_key_that_is_used_again_gives_the_same_answer_and_no_second_message(api: ApiHarness) -> None:
    async with api.client() as client:
        first = await client.post("/v1/notifications", json=WELCOME, headers={"idempotency-key": "order 17"})
        api.clock.advance(timedelta(days=3))
        again = await client.post("/v1/notifications", json=WELCOME, headers={"idempotency-key": "order 17"})
    assert again.status_code == first.status_code == 202
    assert again.json() == first.json() | {"repeated": True}
    assert again.headers["location"] == first.headers["location"]
    await api.line.drain()
    assert len(api.provider.calls) == 1
    assert api.wake_ups == ["stages"]


async def test_a_key_is_its_tenants_own(api: ApiHarness) -> None:
    for tenant_id in (TENANT, OTHER):
        async with api.client(tenant_id=tenant_id) as client:
            answer = await client.post("/v1/notifications", json=WELCOME, headers={"idempotency-key": "k"})
        assert not answer.json()["repeated"]


async def test_a_key_with_another_payload_is_a_conflict_with_a_support_case_and_changes_nothing(
    api: ApiHarness,
) -> None:
    headers = {"idempotency-key": "k"}
    async with api.client() as client:
        first = await client.post("/v1/notifications", json=WELCOME, headers=headers)
        other = await client.post("/v1/notifications", json=WELCOME | {"data": {"name": "Kim"}}, headers=headers)
        said = problem(other)
        cases = (await client.get("/v1/support-cases")).json()["items"]
        again = await client.post("/v1/notifications", json=WELCOME, headers=headers)
    assert (other.status_code, said["code"]) == (409, "conflict")
    assert [case["case_id"] for case in cases if case["case_id"] in said["detail"]]
    assert again.json()["job_id"] == first.json()["job_id"]
    assert len(await jobs(api)) == 1


async def test_a_retired_key_is_gone_and_never_sends_again(api: ApiHarness) -> None:
    headers = {"idempotency-key": "k"}
    async with api.client() as client:
        await client.post("/v1/notifications", json=WELCOME, headers=headers)
        (guard,) = await api.memory.rows(TENANT, IdempotencyGuard)
        await api.memory.overwrite(TENANT, msgspec.structs.replace(guard, retired_at=api.clock.now()))
        (job,) = await jobs(api)
        await api.memory.remove(TENANT, job)
        answer = await client.post("/v1/notifications", json=WELCOME, headers=headers)
    assert (answer.status_code, problem(answer)["code"]) == (410, "gone")
    assert not await jobs(api)


async def test_nothing_is_acknowledged_before_it_is_committed(api: ApiHarness) -> None:
    api.failing.error, api.failing.only = DOWN, frozenset({"ensure_notification_jobs"})
    async with api.client() as client:
        answer = await client.post("/v1/notifications", json=WELCOME, headers={"idempotency-key": "k"})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert (await jobs(api), api.wake_ups) == ([], [])
        api.failing.error = None
        again = await client.post("/v1/notifications", json=WELCOME, headers={"idempotency-key": "k"})
    assert (again.status_code, again.json()["repeated"]) == (202, False)
    assert len(await jobs(api)) == 1


async def test_a_commit_whose_reply_was_lost_is_found_by_the_same_key(api: ApiHarness) -> None:
    api.failing.error, api.failing.only = DOWN, frozenset({"ensure_notification_jobs"})
    api.failing.after_commit = True
    async with api.client() as client:
        assert (await client.post("/v1/notifications", json=WELCOME, headers={"idempotency-key": "k"})).is_error
        api.failing.error = None
        again = await client.post("/v1/notifications", json=WELCOME, headers={"idempotency-key": "k"})
    assert (again.status_code, again.json()["repeated"]) == (202, True)
    assert len(await jobs(api)) == 1


async def test_sends_without_a_key_are_each_their_own(api: ApiHarness) -> None:
    assert (await api.sent())["job_id"] != (await api.sent())["job_id"]


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
    api: ApiHarness, to: list[dict[str, str]], single: bool
) -> None:
    assert ((await api.sent(to=to))["message_id"] is not None) == single


async def test_a_notification_about_an_entity_stands_in_its_history_newest_first_page_by_page(api: ApiHarness) -> None:
    sent = []
    for _ in range(5):
        sent.append((await api.sent(entity={"type": "child", "guid": str(ENTITY)}))["job_id"])
        api.clock.advance(timedelta(seconds=1))
    await api.sent()
    found, cursor, pages = [], None, 0
    async with api.client() as client:
        while pages == 0 or cursor is not None:
            params = {"limit": 2} | ({"cursor": cursor} if cursor else {})
            page = (await client.get(f"/v1/entities/{ENTITY}/notifications", params=params)).json()
            found += [item["job_id"] for item in page["items"]]
            cursor, pages = page["next_cursor"], pages + 1
    assert found == sent[::-1]
    assert pages == 3


async def test_without_an_entity_the_history_is_the_recipients(api: ApiHarness) -> None:
    sent = await api.sent(to=[{"user": "1"}])
    to_group = await api.sent(to=[{"group": str(STAFF)}])
    async with api.client() as client:
        user = (await client.get("/v1/entities/user:1/notifications")).json()
        group = (await client.get(f"/v1/entities/group:{STAFF}/notifications")).json()
    assert [item["job_id"] for item in user["items"]] == [sent["job_id"]]
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
    api: ApiHarness, address: str, history: str
) -> None:
    sent = await api.sent(type="incident", to=[{"address": address}], data=INCIDENT)
    await api.sent(to=[{"address": "kim@example.com"}])
    async with api.client() as client:
        found = (await client.get(f"/v1/entities/{history}/notifications")).json()
    async with api.client(tenant_id=OTHER) as client:
        elsewhere = (await client.get(f"/v1/entities/{history}/notifications")).json()
    assert [item["job_id"] for item in found["items"]] == [sent["job_id"]]
    assert elsewhere["items"] == []


async def test_a_notification_is_found_and_canceled_by_the_id_of_its_message(api: ApiHarness) -> None:
    sent = await api.sent()
    path = f"/v1/notifications/{sent['message_id']}"
    async with api.client(tenant_id=OTHER) as client:
        assert (await client.get(path)).status_code == 404
        assert (await client.post(f"{path}/cancel")).status_code == 404
    async with api.client() as client:
        assert (await client.get(path)).json()["job_id"] == sent["job_id"]
        for repeated in (False, True):
            done = (await client.post(f"{path}/cancel")).json()
            assert done == {"job_id": sent["job_id"], "repeated": repeated}
        assert (await client.get(path)).json()["status"] == "Canceled"


async def test_a_canceled_notification_is_not_sent_and_canceling_again_says_so(api: ApiHarness) -> None:
    sent = await api.sent()
    path = f"/v1/notifications/{sent['job_id']}/cancel"
    async with api.client(Role.SENDER) as client:
        first, again = await client.post(path), await client.post(path)
    assert first.json() == {"job_id": sent["job_id"], "repeated": False}
    assert again.json() == {"job_id": sent["job_id"], "repeated": True}
    await api.line.drain()
    assert not api.provider.calls
    async with api.client() as client:
        acts = [(line["act"], line["actor"]) for line in (await client.get("/v1/audit?limit=100")).json()["items"]]
    assert acts.count(("cancel", "sender of school")) == 1


async def test_what_was_sent_cannot_be_canceled(api: ApiHarness) -> None:
    sent = await api.sent()
    await api.line.drain()
    async with api.client() as client:
        answer = await client.post(f"/v1/notifications/{sent['job_id']}/cancel")
    assert (answer.status_code, problem(answer)["code"]) == (409, "conflict")


@pytest.mark.parametrize("role", [Role.SENDER, Role.URGENT_SENDER, Role.ADMIN])
@pytest.mark.parametrize("lane", ["critical", "high", "normal", "bulk"])
async def test_only_some_roles_may_raise_a_lane_and_everybody_may_lower_it(
    api: ApiHarness, role: Role, lane: str
) -> None:
    """The type's own lane is normal."""
    async with api.client(role) as client:
        answer = await client.post("/v1/notifications", json=WELCOME | {"lane": lane})
        if role is Role.SENDER and lane in ("critical", "high"):
            assert (answer.status_code, problem(answer)["code"]) == (403, "forbidden")
            assert f"may not raise it to {lane}: leave lane out" in problem(answer)["detail"]
            assert "use a key with the role urgent-sender or admin" in problem(answer)["detail"]
        else:
            assert answer.status_code == 202, answer.text
            assert (await client.get(answer.headers["location"])).json()["lane"] == lane


async def test_not_before_holds_a_notification_back(api: ApiHarness) -> None:
    later = (api.clock.now() + timedelta(hours=1)).isoformat()
    await api.sent(not_before_at=later)
    await api.line.drain()
    assert not api.provider.calls
    await api.line.wait(3600)
    assert len(api.provider.calls) == 1


async def test_the_correlation_id_of_a_request_is_the_jobs(api: ApiHarness) -> None:
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    async with api.client() as client:
        answer = await client.post(
            "/v1/notifications", json=WELCOME, headers={"x-correlation-id": "shop.42", "traceparent": trace}
        )
    assert answer.headers["x-correlation-id"] == "shop.42"
    assert [(job.correlation_id, job.traceparent) for job in await jobs(api)] == [("shop.42", trace)]


@pytest.mark.parametrize("given", ["", "a" * 129, "a b", "<script>", "é"])
async def test_a_correlation_id_that_is_no_id_is_replaced(api: ApiHarness, given: str) -> None:
    async with api.client() as client:
        answer = await client.get("/health", headers={b"x-correlation-id": given.encode()})
    minted = answer.headers["x-correlation-id"]
    assert minted == str(UUID(minted))


@pytest.mark.parametrize("days", [-3, 30])
async def test_a_notification_is_accepted_by_the_stores_clock_and_not_by_the_hosts(days: int) -> None:
    store_clock = ManualClock()
    api = ApiHarness(store=SqliteInMemory(store_clock), clock=ManualClock(START_AT + timedelta(days=days)))
    await api.seed()
    later_at = START_AT + timedelta(days=7)
    now, later = await api.sent(), await api.sent(not_before_at=later_at.isoformat())
    assert {msgspec.convert(one["accepted_at"], datetime) for one in (now, later)} == {START_AT}
    (due_at,) = {row.due_at for row in await api.memory.rows(TENANT, NotificationScheduler)} - {START_AT}
    assert due_at == later_at


async def test_no_request_is_handed_to_a_thread_of_the_framework() -> None:
    """It does so with guards and handlers that are plain functions: a third of the time of an accept went there."""
    api = await seeded_api()
    before = {thread.name for thread in threading.enumerate()}
    async with api.client() as client:
        sent = await client.post("/v1/notifications", json=WELCOME)
        assert sent.status_code == 202
        assert (await client.get(f"/v1/notifications/{sent.json()['job_id']}")).status_code == 200
    assert {thread.name for thread in threading.enumerate()} == before

"""What people look after: uncertain messages and their retry, support cases, types on and off, the audit log."""

import json
import unicodedata
from datetime import timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

import msgspec
import pytest

from clarion.domain.call import Refused, Unknown
from clarion.domain.notification import NotificationJob
from clarion.domain.support import SupportKind
from clarion.operations import support
from clarion.ports.catalog import Role
from clarion.testing.contracts.support_cases import support_case
from tests.integration.api_harness import WELCOME, ApiHarness, problem, seeded_api
from tests.unit.pipeline_line import TENANT


@pytest.fixture
async def api() -> ApiHarness:
    return await seeded_api()


async def uncertain(api: ApiHarness) -> dict[str, Any]:
    api.provider.answers = [Unknown(reason="no reply within 20 s")]
    await api.sent()
    await api.line.drain()
    async with api.client(Role.VIEWER) as client:
        (line,) = (await client.get("/v1/uncertain")).json()["items"]
    found: dict[str, Any] = line
    return found


async def test_an_uncertain_message_is_listed_and_sent_again_on_a_persons_word(api: ApiHarness) -> None:
    line = await uncertain(api)
    assert (line["channel"], line["account"]) == ("email", "scripted")
    async with api.client(Role.SUPPORT) as client:
        asked = {"version": line["version"], "reason": "the provider says it never arrived"}
        answer = await client.post(f"/v1/outgoing/{line['id']}/retry", json=asked)
        assert (answer.status_code, answer.json()) == (202, {"id": line["id"]})
        assert api.wake_ups[-1] == "outgoing"
        await api.line.drain()
        assert len(api.provider.calls) == 2
        assert api.provider.calls[0].idempotency_key == api.provider.calls[1].idempotency_key
        assert (await client.get("/v1/uncertain")).json()["items"] == []
        (entry,) = [one for one in (await client.get("/v1/audit?limit=100")).json()["items"] if one["act"] == "retry"]
    assert (entry["actor"], entry["reason"]) == ("support of school", asked["reason"])


async def test_a_one_time_code_that_is_over_is_not_sent_again(api: ApiHarness) -> None:
    api.provider.answers = [Refused(reason="no such number")]
    sent = await api.sent(type="one-time-code", to=[{"address": "+447700900001"}], data={"code": "407 112"})
    await api.line.drain()
    async with api.client(Role.SUPPORT) as client:
        (message,) = (await client.get(f"/v1/notifications/{sent['job_id']}")).json()["messages"]
        asked = {"version": message["version"], "reason": "the number was mended"}
        answer = await client.post(f"/v1/outgoing/{message['id']}/retry", json=asked)
    said = problem(answer)
    assert (answer.status_code, said["code"]) == (410, "gone")
    assert said["detail"] == "it was a one-time code, and its data was erased when it was over: send a new code"


async def test_uncertain_messages_are_listed_page_by_page(api: ApiHarness) -> None:
    api.provider.answers = [Unknown(reason="no reply within 20 s")] * 3
    for number in range(3):
        await api.sent(to=[{"address": f"reader-{number}@example.com"}])
    await api.line.drain()
    seen: list[int] = []
    async with api.client(Role.VIEWER) as client:
        cursor: str | None = ""
        while cursor is not None:
            page = (await client.get(f"/v1/uncertain?limit=1{cursor and f'&cursor={cursor}'}")).json()
            seen += [one["id"] for one in page["items"]]
            cursor = page["next_cursor"]
    assert len(seen) == len(set(seen)) == 3


async def test_a_double_click_retries_once(api: ApiHarness) -> None:
    line = await uncertain(api)
    asked = {"version": line["version"], "reason": "r"}
    async with api.client(Role.SUPPORT) as client:
        first = await client.post(f"/v1/outgoing/{line['id']}/retry", json=asked)
        second = await client.post(f"/v1/outgoing/{line['id']}/retry", json=asked)
        audit = (await client.get("/v1/audit?limit=100")).json()["items"]
    assert (first.status_code, second.status_code) == (202, 404)
    assert [one["act"] for one in audit].count("retry") == 1
    await api.line.drain()
    assert len(api.provider.calls) == 2


async def test_a_retry_of_what_has_moved_on_is_refused(api: ApiHarness) -> None:
    line = await uncertain(api)
    async with api.client(Role.SUPPORT) as client:
        asked = {"version": line["version"] + 1, "reason": "r"}
        answer = await client.post(f"/v1/outgoing/{line['id']}/retry", json=asked)
    assert (answer.status_code, problem(answer)["code"]) == (409, "conflict")
    assert str(line["version"]) in problem(answer)["detail"]


async def test_a_message_that_failed_for_good_can_be_retried_too(api: ApiHarness) -> None:
    api.provider.answers = [Refused(reason="mailbox full")]
    sent = await api.sent()
    await api.line.drain()
    async with api.client(Role.SUPPORT) as client:
        (message,) = (await client.get(f"/v1/notifications/{sent['job_id']}")).json()["messages"]
        assert message["status"] == "FailedFinal"
        asked = {"version": message["version"], "reason": "the mailbox was emptied"}
        api.clock.advance(timedelta(minutes=5))
        assert (await client.post(f"/v1/outgoing/{message['id']}/retry", json=asked)).status_code == 202
    await api.line.drain()
    assert len(api.provider.calls) == 2


@pytest.mark.parametrize("reason", [None, "", "  ", "a\0b", "r" * 1001, 7])
async def test_a_retry_without_a_reason_is_refused_and_nothing_happens(api: ApiHarness, reason: Any) -> None:
    line = await uncertain(api)
    asked = {"version": line["version"]} | ({} if reason is None else {"reason": reason})
    async with api.client(Role.SUPPORT) as client:
        answer = await client.post(f"/v1/outgoing/{line['id']}/retry", json=asked)
        assert len((await client.get("/v1/uncertain")).json()["items"]) == 1
    assert (answer.status_code, problem(answer)["field"]) == (422, "reason")


async def failed(api: ApiHarness) -> tuple[str, NotificationJob]:
    """Accept a notification whose row is damaged before it is worked on; return its id and the row as it was."""
    sent = await api.sent()
    (job,) = await api.memory.rows(TENANT, NotificationJob)
    await api.memory.overwrite(TENANT, msgspec.structs.replace(job, payload=b"damaged"))
    await api.line.drain()
    return sent["job_id"], job


async def test_a_notification_that_failed_is_a_case_and_goes_on_once_it_was_mended_and_retried(api: ApiHarness) -> None:
    job_id, job = await failed(api)
    async with api.client(Role.SUPPORT) as client:
        assert (await client.get(f"/v1/notifications/{job_id}")).json()["status"] == "Failed"
        (case,) = (await client.get("/v1/support-cases")).json()["items"]
        assert (case["kind"], case["record"]) == ("Failed", "notification")
        await api.memory.overwrite(TENANT, job)
        asked = {"reason": "the row was restored"}
        answer = await client.post(f"/v1/notifications/{job_id}/retry", json=asked)
        assert (answer.status_code, answer.json()) == (202, {"job_id": job_id})
        assert api.wake_ups[-1] == "stages"
        again = await client.post(f"/v1/notifications/{job_id}/retry", json=asked)
        assert (again.status_code, problem(again)["code"]) == (409, "conflict")
        await api.line.drain()
        assert len(api.provider.calls) == 1
        (entry,) = [one for one in (await client.get("/v1/audit?limit=100")).json()["items"] if one["act"] == "retry"]
    assert (entry["actor"], entry["subject"], entry["reason"]) == (
        "support of school",
        f"job {job_id}",
        asked["reason"],
    )


async def test_a_notification_of_nobody_or_without_a_reason_is_not_retried(api: ApiHarness) -> None:
    job_id, _ = await failed(api)
    async with api.client(Role.SUPPORT) as client:
        unknown = await client.post(f"/v1/notifications/{UUID(int=7)}/retry", json={"reason": "r"})
        silent = await client.post(f"/v1/notifications/{job_id}/retry", json={"reason": " "})
        assert (unknown.status_code, silent.status_code, problem(silent)["field"]) == (404, 422, "reason")
        assert (await client.get(f"/v1/notifications/{job_id}")).json()["status"] == "Failed"


async def conflict(api: ApiHarness, key: str = "k") -> str:
    async with api.client(Role.SENDER) as client:
        headers = {"idempotency-key": key}
        await client.post("/v1/notifications", json=WELCOME, headers=headers)
        answer = await client.post("/v1/notifications", json=WELCOME | {"data": {"name": "Kim"}}, headers=headers)
    assert answer.status_code == 409
    found: str = next(word for word in problem(answer)["detail"].split() if word.count("-") == 4)
    return found


async def test_a_conflict_is_a_case_with_its_differing_fields_until_somebody_resolves_it(api: ApiHarness) -> None:
    case_id = await conflict(api)
    async with api.client(Role.SUPPORT) as client:
        case = (await client.get(f"/v1/support-cases/{case_id}")).json()
        assert (case["kind"], case["status"], case["record"]) == ("Conflict", "Open", "notification")
        assert case["details"] == {"differing": ["recipients, data, lane or not_before_at"]}
        path = f"/v1/support-cases/{case_id}/resolve"
        resolved = await client.post(path, json={"resolution": "the shop fixed its keys"})
        assert (resolved.status_code, resolved.json()["status"]) == (200, "Resolved")
        shown = (await client.get(f"/v1/support-cases/{case_id}")).json()
        assert (shown["resolved_by"], shown["resolution"]) == ("support of school", "the shop fixed its keys")
        assert case["resolved_at"] is None
        assert shown["resolved_at"] == api.clock.now().isoformat().replace("+00:00", "Z")
        again = await client.post(path, json={"resolution": "again"})
        assert (again.status_code, problem(again)["code"]) == (409, "conflict")
        assert (await client.get("/v1/support-cases?status=Open")).json()["items"] == []
        assert (await client.get("/v1/support-cases")).json()["items"] == []
        assert len((await client.get("/v1/support-cases?status=All")).json()["items"]) == 1
        assert len((await client.get("/v1/support-cases?status=Resolved")).json()["items"]) == 1
        (entry,) = [one for one in (await client.get("/v1/audit?limit=100")).json()["items"] if one["act"] == "resolve"]
    assert (entry["actor"], entry["reason"]) == ("support of school", "the shop fixed its keys")


async def test_cases_of_every_kind_can_be_read(api: ApiHarness) -> None:
    """A kind that has no word would make the whole list an error of the program."""
    cases = [support_case(n, kind=kind) for n, kind in enumerate(SupportKind)]
    await api.line.store.open_support_cases(TENANT, cases)
    async with api.client(Role.SUPPORT) as client:
        answer = await client.get("/v1/support-cases")
    assert answer.status_code == 200
    words = {"Failed" if kind is SupportKind.DEAD_LETTER else kind.value for kind in SupportKind}
    assert {one["kind"] for one in answer.json()["items"]} == words


async def test_support_cases_are_read_page_by_page_each_once(api: ApiHarness) -> None:
    made = {await conflict(api, f"k{number}") for number in range(5)}
    found: list[str] = []
    cursor, pages = None, 0
    async with api.client() as client:
        while pages == 0 or cursor is not None:
            params = {"limit": 2} | ({"cursor": cursor} if cursor else {})
            page = (await client.get("/v1/support-cases", params=params)).json()
            found += [case["case_id"] for case in page["items"]]
            cursor, pages = page["next_cursor"], pages + 1
    assert (sorted(found), pages) == (sorted(made), 3)


async def test_a_cursor_of_one_list_is_no_cursor_of_another(api: ApiHarness) -> None:
    for number in range(3):
        await conflict(api, f"k{number}")
    async with api.client() as client:
        cursor = (await client.get("/v1/support-cases?limit=1")).json()["next_cursor"]
        for path in ("/v1/support-cases?status=All&", "/v1/audit?", "/v1/uncertain?"):
            answer = await client.get(f"{path}cursor={cursor}")
            assert (answer.status_code, problem(answer)["field"]) == (422, "cursor")


async def test_a_type_that_is_switched_off_is_skipped_and_its_timeline_says_by_what(api: ApiHarness) -> None:
    async with api.client(Role.AUTHOR) as client:
        off = await client.put("/v1/types/welcome/enabled", json={"enabled": False})
        assert (off.status_code, off.content) == (204, b"")
        listed = {item["type"]: item["enabled"] for item in (await client.get("/v1/types")).json()["items"]}
        assert listed["welcome"] is False
        assert listed["newsletter"] is True
    sent = await api.sent()
    await api.line.drain()
    assert not api.provider.calls
    async with api.client(Role.SUPPORT) as client:
        shown = (await client.get(f"/v1/notifications/{sent['job_id']}")).json()
        assert (shown["status"], "off" in shown["reason"]) == ("Skipped", True)
        acts = [(one["act"], one["actor"]) for one in (await client.get("/v1/audit?limit=100")).json()["items"]]
    assert ("disable", "author of school") in acts
    async with api.client(Role.AUTHOR) as client:
        await client.put("/v1/types/welcome/enabled", json={"enabled": True})
    await api.sent()
    await api.line.drain()
    assert len(api.provider.calls) == 1


@pytest.mark.parametrize("body", [{}, {"enabled": "yes"}, {"enabled": 1}, {"enabled": True, "reason": "r"}])
async def test_a_switch_is_on_or_off_and_nothing_else(api: ApiHarness, body: dict[str, Any]) -> None:
    async with api.client(Role.AUTHOR) as client:
        answer = await client.put("/v1/types/welcome/enabled", json=body)
    assert answer.status_code == 422
    problem(answer)


@pytest.mark.parametrize("name", ["no-such-type", "%00", "..%2F..", "welcome%20"])
async def test_a_type_that_is_not_published_cannot_be_switched(api: ApiHarness, name: str) -> None:
    async with api.client(Role.AUTHOR) as client:
        answer = await client.put(f"/v1/types/{name}/enabled", json={"enabled": False})
    assert (answer.status_code, problem(answer)["code"]) == (404, "not-found")


async def test_the_list_of_types_says_what_each_needs(api: ApiHarness) -> None:
    async with api.client(Role.VIEWER) as client:
        types = {item["type"]: item for item in (await client.get("/v1/types")).json()["items"]}
    assert types["welcome"]["variables"] == ["name"]
    assert types["one-time-code"]["lane"] == "critical"
    assert set(types["incident"]["channels"]) == {"email", "sms", "inbox"}


async def test_the_audit_log_is_read_newest_first_page_by_page(api: ApiHarness) -> None:
    async with api.client(Role.SUPPORT) as client:
        first = (await client.get("/v1/audit?limit=4")).json()
        rest = (await client.get("/v1/audit", params={"cursor": first["next_cursor"]})).json()
    numbers = [entry["seq"] for entry in first["items"] + rest["items"]]
    assert numbers == list(range(len(numbers), 0, -1))
    assert len(first["items"]) == 4


async def test_a_log_of_several_pages_is_verified_as_one_chain(
    api: ApiHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(support, "PAGE_MAX", 3)
    (last,) = await api.memory.list_newest_audit(TENANT, limit=1)
    assert last.seq > 6
    assert await support.Support(api.line.store, wake=api.wake_ups.append).verify_audit(TENANT) == (last.seq, last.hash)


async def test_an_auditor_computes_every_hash_again_from_what_is_shown(api: ApiHarness) -> None:
    """As docs/reference/api.md says it, and without a line of ours (X-31)."""
    api.clock.advance(timedelta(milliseconds=120))
    async with api.client(Role.ADMIN) as client:
        await client.put("/v1/types/welcome/enabled", json={"enabled": False})
        items = (await client.get("/v1/audit?limit=100")).json()["items"]
    assert {entry["act"] for entry in items} >= {"publish", "mint", "disable"}
    assert {tuple(entry["details"]) for entry in items if entry["act"] == "publish"} == {("content_hash", "version")}
    previous = ""
    for entry in reversed(items):
        assert entry["hash"] == recomputed(entry, previous=previous)
        assert recomputed(entry | {"details": {"version": 9}}, previous=previous) != entry["hash"]
        previous = entry["hash"]


def recomputed(entry: dict[str, Any], *, previous: str) -> str:
    def plain(value: object) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)

    whole, _, fraction = entry["at"].removesuffix("Z").partition(".")
    at = f"{whole}.{fraction}".rstrip("0").rstrip(".") + "Z" if fraction else entry["at"]
    did = (entry["actor"], entry["act"], entry["subject"], entry["reason"], plain(entry["details"]))
    text = unicodedata.normalize("NFC", plain([previous, TENANT, entry["seq"], at, *did]))
    return f"h1:{sha256(text.encode()).hexdigest()}"

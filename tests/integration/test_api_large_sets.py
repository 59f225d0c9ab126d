"""A notification for more people than one answer can tell of: some of them, totals of all, and all of them in pages."""

from typing import Any
from uuid import UUID

import pytest

from clarion.client import wire
from clarion.operations.part import SHOWN
from clarion.pipeline.generate import whom
from clarion.ports.catalog import Role
from tests.integration.api_harness import OTHER, ApiHarness, seeded_api
from tests.integration.sqlite_look import counted
from tests.unit.crowd import EVERYBODY, gather
from tests.unit.pipeline_line import TENANT

PEOPLE = 3 * SHOWN
WITHOUT_MAIL = PEOPLE // 10
NEWS = {"edition": "May", "intro": "Hello.", "stories": []}


@pytest.fixture
async def api(monkeypatch: pytest.MonkeyPatch) -> ApiHarness:
    """A set of 300 is large here, and lies in pages."""
    monkeypatch.setattr(whom, "INLINE_MAX", PEOPLE // 2)
    return await seeded_api()


async def sent_to(api: ApiHarness, number: int = PEOPLE) -> wire.SendAnswer:
    gather(api.memory, range(number))
    sent = await api.line.send("newsletter", wire.Recipient(group=EVERYBODY), data=NEWS)
    await api.line.queue()
    return sent


async def asked(api: ApiHarness, path: str, role: Role = Role.VIEWER) -> dict[str, Any]:
    async with api.client(role) as client:
        answer = await client.get(path)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


async def every_page(api: ApiHarness, job_id: UUID, *, limit: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await asked(api, f"/v1/notifications/{job_id}/recipients?limit={limit}{cursor}")
        assert len(page["items"]) <= limit
        found += page["items"]
        cursor = None if page["next_cursor"] is None else f"&cursor={page['next_cursor']}"
    return found


async def test_an_answer_tells_of_some_and_counts_all(api: ApiHarness) -> None:
    sent = await sent_to(api)
    shown = await asked(api, f"/v1/notifications/{sent.job_id}")
    told = await asked(api, f"/v1/messages/{sent.job_id}/timeline")
    for answer in (shown, told):
        assert answer["totals"] == {
            "recipients": PEOPLE,
            "shown": SHOWN,
            "messages": PEOPLE - WITHOUT_MAIL,
            "inbox": 0,
            "not_sent": {"no_address": WITHOUT_MAIL},
        }
        assert len(answer["recipients"]) == SHOWN
        named = {one["message_id"] for one in answer["recipients"] if not one["skipped"]}
        assert {one["message_id"] for one in answer["messages"]} == named
        assert all(one["recipient"] for one in answer["messages"])
    assert (shown["result"], shown["status"]) == ("waiting", "Done")
    assert [line["what"] for line in told["lines"]].count("skipped") == SHOWN - len(told["messages"])


async def test_everybody_is_on_one_page_with_what_was_made_and_what_was_not(api: ApiHarness) -> None:
    sent = await sent_to(api)
    found = await every_page(api, sent.job_id, limit=70)
    assert len({one["recipient"] for one in found}) == len(found) == PEOPLE
    skipped = [one for one in found if one["skipped"]]
    assert {(skip["channel"], skip["rule"]) for one in skipped for skip in one["skipped"]} == {("email", "no_address")}
    assert (len(skipped), {len(one["messages"]) for one in skipped}) == (WITHOUT_MAIL, {0})
    assert {len(one["messages"]) for one in found if not one["skipped"]} == {1}
    await api.memory.cancel_job(TENANT, sent.job_id, actor="sam")
    page = await asked(api, f"/v1/notifications/{sent.job_id}/recipients?limit=3")
    assert page["totals"]["not_sent"] == {"canceled": PEOPLE - WITHOUT_MAIL, "no_address": WITHOUT_MAIL}
    assert {one["rule"] for item in page["items"] for one in item["messages"]} <= {"canceled"}
    assert (await asked(api, f"/v1/notifications/{sent.job_id}"))["result"] == "nobody"


async def test_one_message_of_many_has_its_own_timeline(api: ApiHarness) -> None:
    sent = await sent_to(api)
    (*_, last) = [one for one in await every_page(api, sent.job_id, limit=100) if one["messages"]]
    told = await asked(api, f"/v1/messages/{last['message_id']}/timeline")
    assert (told["message_id"], told["totals"]) == (last["message_id"], None)
    assert [one["recipient"] for one in told["recipients"]] == [last["recipient"]]
    assert [one["message_id"] for one in told["messages"]] == [last["message_id"]]
    assert {line["message_id"] for line in told["lines"]} == {None, last["message_id"]}


async def test_a_small_set_has_its_pages_too(api: ApiHarness) -> None:
    sent = await sent_to(api, number=25)
    found = await every_page(api, sent.job_id, limit=10)
    whole = await asked(api, f"/v1/notifications/{sent.job_id}")
    assert [one["recipient"] for one in found] == [one["recipient"] for one in whole["recipients"]]
    assert (whole["totals"]["recipients"], whole["totals"]["shown"]) == (25, 25)
    waiting = await api.line.send("newsletter", wire.Recipient(group=EVERYBODY), data=NEWS)
    page = await asked(api, f"/v1/notifications/{waiting.job_id}/recipients")
    assert (page["items"], page["totals"]["recipients"], page["next_cursor"]) == ([], 0, None)


async def test_the_statements_of_an_answer_do_not_grow_with_the_set(api: ApiHarness) -> None:
    paths = ("/v1/notifications/{}", "/v1/messages/{}/timeline", "/v1/notifications/{}/recipients")
    numbers = []
    sent = await sent_to(api)
    gather(api.memory, range(PEOPLE, 2 * PEOPLE))
    larger = await api.line.send("newsletter", wire.Recipient(group=EVERYBODY), data=NEWS)
    await api.line.queue()
    await asked(api, "/v1/types")  # from now on the key is known
    for job_id in (sent.job_id, larger.job_id):
        with counted(api.memory) as statements:
            for path in paths:
                await asked(api, path.format(job_id))
        numbers.append(len(statements.methods))
    assert numbers[0] == numbers[1]


async def test_another_tenant_sees_none_of_it(api: ApiHarness) -> None:
    sent = await sent_to(api, number=5)
    async with api.client(Role.ADMIN, tenant_id=OTHER) as client:
        assert (await client.get(f"/v1/notifications/{sent.job_id}/recipients")).status_code == 404
    async with api.client(Role.ADMIN) as client:
        answer = await client.get(f"/v1/notifications/{sent.job_id}/recipients?cursor=nonsense")
        assert answer.status_code == 422

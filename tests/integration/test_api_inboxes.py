"""Inboxes over HTTP: lists with their filters and cursors, counts, marks of one line and of all, and who may what."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from clarion.client import wire
from clarion.domain.inbox import UserMessage
from clarion.operations import inbox
from clarion.ports.catalog import Role
from tests.integration.api_harness import OTHER, ApiHarness, problem, seeded_api
from tests.integration.test_api_recipients import INCIDENT
from tests.unit.pipeline_line import STAFF, TENANT

SAM = "/v1/inbox/user:1"
SECOND = timedelta(seconds=1)


@pytest.fixture
async def api() -> ApiHarness:
    return await seeded_api()


async def put(api: ApiHarness, number: int, **changes: Any) -> list[str]:
    """Put so many lines into Sam's inbox, a second apart; return the ids of their messages, the newest first."""
    ids = []
    for n in range(number):
        data = {"data": {"name": f"Sam {n}"}} | changes
        ids.append(str((await api.line.send(to=wire.Recipient(user="1"), channels=("inbox",), **data)).message_id))
        api.clock.advance(SECOND)
    await api.line.drain()
    return ids[::-1]


async def get(api: ApiHarness, path: str = SAM, *, role: Role = Role.INBOX, tenant_id: str = TENANT) -> dict[str, Any]:
    async with api.client(role, tenant_id=tenant_id) as client:
        answer = await client.get(path)
        assert answer.status_code == 200, answer.text
        read: dict[str, Any] = answer.json()
        return read


async def mark(api: ApiHarness, path: str) -> dict[str, int]:
    async with api.client(Role.INBOX) as client:
        answer = await client.post(f"{SAM}/{path}")
        assert answer.status_code == 200, answer.text
        counts: dict[str, int] = answer.json()
        return counts


async def listed(api: ApiHarness, query: str = "") -> list[str]:
    """Name the lines of every page of a list."""
    page = await get(api, f"{SAM}?{query}")
    items = [item["message_id"] for item in page["items"]]
    while page["next_cursor"] is not None:
        page = await get(api, f"{SAM}?{query}&cursor={page['next_cursor']}")
        items += [item["message_id"] for item in page["items"]]
    return items


async def test_lines_are_listed_newest_first_with_what_they_say(api: ApiHarness) -> None:
    ids = await put(api, 3)
    page = await get(api)
    assert [item["message_id"] for item in page["items"]] == ids
    newest = page["items"][0]
    assert (newest["type"], newest["category"], newest["title"]) == ("welcome", "account", "Welcome, Sam 2")
    assert newest["body"]
    assert (newest["seen_at"], newest["read_at"], newest["archived_at"]) == (None, None, None)
    assert set(newest) == {
        *("message_id", "type", "category", "title", "body"),
        *("created_at", "expires_at", "seen_at", "read_at", "archived_at"),
    }


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
async def test_pages_make_the_whole(api: ApiHarness, limit: int) -> None:
    ids = await put(api, 3)
    assert await listed(api, f"limit={limit}") == ids
    assert len((await get(api, f"{SAM}?limit={limit}"))["items"]) == min(limit, 3)


async def test_an_inbox_that_nobody_wrote_to_is_empty_and_so_is_one_of_nobody(api: ApiHarness) -> None:
    for reader in ("user:2", "user:nobody", "employee:6f1c2c7e-0000-4000-8000-000000000009"):
        assert await get(api, f"/v1/inbox/{reader}") == {"items": [], "next_cursor": None}
        none = {"lines": 0, "unseen": 0, "unread": 0, "archived": 0}
        assert await get(api, f"/v1/inbox/{reader}/counts") == none
        async with api.client(Role.INBOX) as client:
            assert (await client.post(f"/v1/inbox/{reader}/all/read")).json() == none


async def test_marks_change_lines_lists_and_counts(api: ApiHarness) -> None:
    third, second, first = await put(api, 3)
    assert await get(api, f"{SAM}/counts") == {"lines": 3, "unseen": 3, "unread": 3, "archived": 0}
    assert await mark(api, f"{second}/read") == {"lines": 3, "unseen": 2, "unread": 2, "archived": 0}
    assert await mark(api, "all/seen") == {"lines": 3, "unseen": 0, "unread": 2, "archived": 0}
    assert await mark(api, f"{third}/archive") == {"lines": 2, "unseen": 0, "unread": 1, "archived": 1}
    assert await listed(api) == [second, first]
    assert await listed(api, "unread=true") == [first]
    assert await listed(api, "archived=true") == [third]
    assert await listed(api, "archived=true&unread=true") == [third]
    assert await mark(api, "all/read") == {"lines": 2, "unseen": 0, "unread": 0, "archived": 1}
    assert await listed(api, "unread=true") == []
    assert await mark(api, f"{second}/unread") == {"lines": 2, "unseen": 0, "unread": 1, "archived": 1}
    assert await listed(api, "unread=true") == [second]
    assert await mark(api, "all/unarchive") == {"lines": 3, "unseen": 0, "unread": 1, "archived": 0}
    assert await mark(api, "all/archive") == {"lines": 0, "unseen": 0, "unread": 0, "archived": 3}
    assert await mark(api, f"{first}/unarchive") == {"lines": 1, "unseen": 0, "unread": 0, "archived": 2}
    assert await mark(api, "all/unread") == {"lines": 1, "unseen": 0, "unread": 1, "archived": 2}
    assert await mark(api, f"{first}/seen") == {"lines": 1, "unseen": 0, "unread": 1, "archived": 2}


async def test_the_same_mark_again_is_answered_as_before(api: ApiHarness) -> None:
    """Not even a time changes."""
    one, two = await put(api, 2)
    for path in (f"{one}/read", f"{one}/archive", f"{two}/seen", "all/read", "all/archive"):
        first = await mark(api, path)
        before = await get(api, f"{SAM}?archived={'archive' in path}".lower())
        api.clock.advance(SECOND)
        assert await mark(api, path) == first
        assert await get(api, f"{SAM}?archived={'archive' in path}".lower()) == before


async def test_a_category_is_a_filter_and_is_remembered_by_its_cursor(api: ApiHarness) -> None:
    welcome = await put(api, 2)
    await api.line.send("incident", wire.Recipient(user="1"), channels=("inbox",), data=INCIDENT)
    await api.line.drain()
    assert await listed(api, "category=account&limit=1") == welcome
    assert len(await listed(api)) == 3
    assert await listed(api, "category=none") == []
    cursor = (await get(api, f"{SAM}?category=account&limit=1"))["next_cursor"]
    async with api.client(Role.INBOX) as client:
        for other in (SAM, f"{SAM}?category=billing", f"{SAM}?category=account&unread=true", "/v1/inbox/user:2"):
            answer = await client.get(f"{other}{'&' if '?' in other else '?'}cursor={cursor}")
            assert (answer.status_code, problem(answer)["field"]) == (422, "cursor")


async def test_a_filter_looks_at_a_bounded_number_of_lines_and_goes_on(
    api: ApiHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page may be empty and have a next one; all pages together are the whole."""
    monkeypatch.setattr(inbox, "LOOKED_MAX", 4)
    monkeypatch.setattr(inbox, "PAGE_MAX", 2)
    ids = await put(api, 9)
    await mark(api, "all/read")
    await mark(api, f"{ids[7]}/unread")
    page = await get(api, f"{SAM}?unread=true")
    assert page["items"] == []
    assert page["next_cursor"] is not None
    assert await listed(api, "unread=true") == [ids[7]]


async def test_what_has_expired_is_gone_from_the_list_and_from_the_counts(api: ApiHarness) -> None:
    """At once, though no janitor came; and it cannot be marked any more."""
    (gone,) = await put(api, 1, ttl_seconds=60)
    (stays,) = await put(api, 1)
    assert (await get(api, f"{SAM}/counts"))["lines"] == 2
    shown = (await get(api))["items"]
    assert [item["expires_at"] is None for item in shown] == [True, False]
    api.clock.advance(timedelta(seconds=60))
    assert await listed(api) == [stays]
    assert await get(api, f"{SAM}/counts") == {"lines": 1, "unseen": 1, "unread": 1, "archived": 0}
    async with api.client(Role.INBOX) as client:
        answer = await client.post(f"{SAM}/{gone}/read")
        assert (answer.status_code, problem(answer)["code"]) == (404, "not-found")


@pytest.mark.parametrize("role, is_shown", [(role, role in {Role.INBOX, Role.SUPPORT, Role.ADMIN}) for role in Role])
async def test_what_lines_say_is_told_only_to_those_who_may_see_it(api: ApiHarness, role: Role, is_shown: bool) -> None:
    await put(api, 1)
    (line,) = (await get(api, role=role))["items"]
    assert (line["title"] is not None, line["body"] is not None) == (is_shown, is_shown)
    assert line["type"] == "welcome"
    assert (await get(api, f"{SAM}/counts", role=role))["unread"] == 1


async def test_a_line_that_cannot_be_opened_is_listed_without_what_it_says(api: ApiHarness) -> None:
    first, second = await put(api, 2)
    (row,) = [one for one in await api.memory.rows(TENANT, UserMessage) if str(one.message_id) == first]
    await api.memory.overwrite(TENANT, msgspec.structs.replace(row, content=b"damaged"))
    items = (await get(api))["items"]
    assert [(item["message_id"], item["title"] is None) for item in items] == [(first, True), (second, False)]


async def test_two_tenants_have_a_user_of_the_same_id_and_inboxes_of_their_own(api: ApiHarness) -> None:
    (line,) = await put(api, 1)
    assert await get(api, role=Role.ADMIN, tenant_id=OTHER) == {"items": [], "next_cursor": None}
    async with api.client(Role.ADMIN, tenant_id=OTHER) as stranger:
        assert (await stranger.post(f"{SAM}/{line}/read")).status_code == 404
        assert (await stranger.post(f"{SAM}/all/read")).json()["lines"] == 0
    assert (await get(api, f"{SAM}/counts"))["unread"] == 1


async def test_a_line_of_somebody_else_is_not_found_in_this_inbox(api: ApiHarness) -> None:
    sent = await api.line.send(to=wire.Recipient(group=STAFF), channels=("inbox",))
    await api.line.drain()
    lines = {reader: (await get(api, f"/v1/inbox/{reader}"))["items"][0] for reader in ("user:1", "user:2")}
    assert lines["user:1"]["message_id"] != lines["user:2"]["message_id"]
    async with api.client(Role.INBOX) as client:
        for message_id in (lines["user:2"]["message_id"], str(sent.job_id), str(UUID(int=7))):
            answer = await client.post(f"{SAM}/{message_id}/read")
            assert (answer.status_code, problem(answer)["code"]) == (404, "not-found")
    assert (await get(api, "/v1/inbox/user:2/counts"))["unread"] == 1


@pytest.mark.parametrize(
    "reader",
    [
        "1",
        "user:",
        "user:%20",
        "employee:5",
        "group:6f1c2c7e-0000-4000-8000-000000000001",
        "address:sam@example.com",
        "x",
    ],
)
async def test_who_has_no_inbox_is_refused_with_words(api: ApiHarness, reader: str) -> None:
    async with api.client(Role.ADMIN) as client:
        for answer in (
            await client.get(f"/v1/inbox/{reader}"),
            await client.get(f"/v1/inbox/{reader}/counts"),
            await client.post(f"/v1/inbox/{reader}/all/read"),
            await client.post(f"/v1/inbox/{reader}/{UUID(int=1)}/read"),
        ):
            assert (answer.status_code, problem(answer)["field"]) == (422, "reader")


@pytest.mark.parametrize("word", ["Read", "delete", "all"])
async def test_a_mark_that_there_is_not_is_refused_and_changes_nothing(api: ApiHarness, word: str) -> None:
    (line,) = await put(api, 1)
    async with api.client(Role.ADMIN) as client:
        for to in (line, "all"):
            answer = await client.post(f"{SAM}/{to}/{word}")
            assert (answer.status_code, problem(answer)["field"]) == (422, "mark")
            assert "seen, read, unread, archive, unarchive" in problem(answer)["detail"]
    assert await get(api, f"{SAM}/counts") == {"lines": 1, "unseen": 1, "unread": 1, "archived": 0}


@pytest.mark.parametrize("query", ["cursor=nonsense", "limit=0", "unread=perhaps", "seen=true", "category="])
async def test_a_query_that_cannot_be_meant_is_refused(api: ApiHarness, query: str) -> None:
    async with api.client(Role.INBOX) as client:
        answer = await client.get(f"{SAM}?{query}")
    assert (answer.status_code, problem(answer)["field"]) == (422, query.partition("=")[0])


async def test_marks_leave_no_entry_in_the_audit_log(api: ApiHarness) -> None:
    """They are the reader's own doing, and as many as there are readers."""
    (line,) = await put(api, 1)
    before = await get(api, "/v1/audit?limit=100", role=Role.ADMIN)
    await mark(api, f"{line}/read")
    await mark(api, "all/archive")
    assert await get(api, "/v1/audit?limit=100", role=Role.ADMIN) == before

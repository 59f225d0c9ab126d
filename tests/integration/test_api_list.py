"""The list of the latest notifications over HTTP: its order, its pages, its filters, and that results are true."""

from datetime import timedelta
from typing import Any

import pytest

from clarion.client import wire
from clarion.domain.call import Accepted, Deferred, Refused, Unknown
from clarion.domain.outgoing import OutgoingStatus
from clarion.operations import latest
from clarion.ports.catalog import Role
from clarion.ports.track import ProviderEvent
from tests.integration.api_harness import OTHER, ApiHarness, problem, seeded_api
from tests.unit.pipeline_line import STAFF, TENANT

SECOND = timedelta(seconds=1)


@pytest.fixture
async def api() -> ApiHarness:
    return await seeded_api()


async def listed(api: ApiHarness, query: str = "", role: Role = Role.VIEWER) -> dict[str, Any]:
    async with api.client(role) as client:
        answer = await client.get(f"/v1/notifications{query}")
        assert answer.status_code == 200, answer.text
        page: dict[str, Any] = answer.json()
        return page


async def every_page(api: ApiHarness, query: str) -> list[dict[str, Any]]:
    """Follow the cursors to the end."""
    pages = [await listed(api, query)]
    while pages[-1]["next_cursor"] is not None:
        pages.append(await listed(api, f"{query}&cursor={pages[-1]['next_cursor']}"))
    return pages


async def sent_one_a_second(api: ApiHarness, number: int) -> list[str]:
    """Send so many, and return their ids, the newest first."""
    ids = []
    for _ in range(number):
        ids.append(str((await api.line.send()).job_id))
        api.clock.advance(SECOND)
    return ids[::-1]


async def test_notifications_are_listed_newest_first_whatever_they_are_about(api: ApiHarness) -> None:
    ids = []
    for to in ("sam@example.com", wire.Recipient(user="1"), wire.Recipient(group=STAFF), "kim@example.com"):
        ids.append(str((await api.line.send(to=to)).job_id))
        api.clock.advance(SECOND)
    page = await listed(api)
    assert [item["job_id"] for item in page["items"]] == ids[::-1]
    assert {item["result"] for item in page["items"]} == {"waiting"}
    assert set(page) == {"items", "next_cursor"}
    assert page["next_cursor"] is None
    async with api.client(Role.ADMIN, tenant_id=OTHER) as client:
        assert (await client.get("/v1/notifications")).json()["items"] == []


@pytest.mark.parametrize("limit, pages", [(1, [1, 1, 1, 1]), (2, [2, 2]), (3, [3, 1]), (4, [4]), (5, [4])])
async def test_pages_make_the_whole_and_the_last_one_says_so(api: ApiHarness, limit: int, pages: list[int]) -> None:
    """A page that happens to be full has no next one where nothing follows."""
    ids = await sent_one_a_second(api, 4)
    read = await every_page(api, f"?limit={limit}")
    assert [item["job_id"] for page in read for item in page["items"]] == ids
    assert [len(page["items"]) for page in read] == pages


async def test_a_time_is_where_the_list_begins_and_ends(api: ApiHarness) -> None:
    begun = api.clock.now()
    ids = await sent_one_a_second(api, 5)

    async def between(since: int | None, until: int | None) -> list[str]:
        at = {"since_at": since, "until_at": until}
        given = [f"{name}={(begun + n * SECOND).isoformat()}" for name, n in at.items() if n is not None]
        page = await listed(api, f"?{'&'.join(given)}".replace("+", "%2B"))
        assert page["next_cursor"] is None
        return [item["job_id"] for item in page["items"]]

    assert await between(2, None) == ids[:3]
    assert await between(None, 2) == ids[3:]
    assert await between(1, 3) == ids[2:4]
    assert await between(9, None) == []
    assert await between(None, 0) == []


async def test_pages_of_a_list_that_ends_at_a_time_make_the_whole(api: ApiHarness) -> None:
    begun = api.clock.now()
    ids = await sent_one_a_second(api, 5)
    query = f"?limit=2&until_at={begun + 4 * SECOND:%Y-%m-%dT%H:%M:%SZ}"
    first = await listed(api, query)
    second = await listed(api, f"{query}&cursor={first['next_cursor']}")
    assert [item["job_id"] for item in first["items"] + second["items"]] == ids[1:]
    assert second["next_cursor"] is None


async def test_every_result_is_told_as_it_is_and_can_be_asked_for(api: ApiHarness) -> None:
    """What failed or reached nobody is not called done; each result is one of a notification that was really sent."""
    line, ids = api.line, {}

    async def send(name: str, *outcomes: Any, to: Any = "sam@example.com", **more: Any) -> None:
        line.provider.answers = list(outcomes)
        ids[name] = str((await line.send(to=to, **more)).job_id)
        await line.drain()
        api.clock.advance(SECOND)

    also = (wire.Recipient(address="kim@example.com"),)
    await send("sent", Accepted(provider_message_id="p-sent"))
    await send("delivered", Accepted(provider_message_id="p-delivered"))
    await send("failed", Refused(reason="no such mailbox"))
    await send("uncertain", Unknown(reason="no reply"))
    await send("partly", Accepted(), Refused(reason="no such mailbox"), also=also)
    await send("nobody", to=wire.Recipient(user="a stranger"))
    await send("waiting", Deferred(reason="busy"))
    reported = ProviderEvent(
        account="scripted",
        event_id="e-1",
        status=OutgoingStatus.DELIVERED,
        provider_message_id="p-delivered",
        happened_at=api.clock.now(),
        raw="{}",
    )
    await line.store.keep_events(TENANT, [reported])
    await line.drain()
    page = await listed(api)
    assert {item["job_id"]: item["result"] for item in page["items"]} == {ids[name]: name for name in ids}
    async with api.client(Role.VIEWER) as client:
        for name, job_id in ids.items():
            only = await listed(api, f"?result={name}")
            assert [item["job_id"] for item in only["items"]] == [job_id]
            assert (await client.get(f"/v1/notifications/{job_id}")).json()["result"] == name
    statuses = {item["result"]: item["status"] for item in page["items"]}
    assert statuses["failed"] == statuses["nobody"] == "Done"  # the state of the work, which is what misled people


async def test_a_type_that_is_off_reached_nobody(api: ApiHarness) -> None:
    await api.line.store.set_type_enabled(TENANT, "welcome", enabled=False, actor="test")
    await api.line.send()
    await api.line.drain()
    assert [item["result"] for item in (await listed(api))["items"]] == ["nobody"]


async def test_a_filter_looks_at_a_bounded_number_and_goes_on_where_it_ended(
    api: ApiHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left out and nothing comes twice, though most of what is looked at is not asked for."""
    monkeypatch.setattr(latest, "PAGE_MAX", 3)
    monkeypatch.setattr(latest, "LOOKED_MAX", 6)
    begun, wanted = api.clock.now(), []
    for n in range(20):
        type_ = "newsletter" if n in (0, 1, 17) else "welcome"
        sent = await api.line.send(type_, data={"name": "Sam", "edition": "March", "intro": "Hello", "stories": []})
        wanted += [str(sent.job_id)] if type_ == "newsletter" else []
        api.clock.advance(SECOND)
    read = await every_page(api, "?type=newsletter&limit=2")
    assert [item["job_id"] for page in read for item in page["items"]] == wanted[::-1]
    assert [len(page["items"]) for page in read] == [1, 0, 0, 2]
    looked_to = [page.get("searched_to_at") for page in read]
    assert looked_to == [*(f"{begun + n * SECOND:%Y-%m-%dT%H:%M:%SZ}" for n in (14, 8, 2)), None]


async def test_a_cursor_of_another_filter_is_refused(api: ApiHarness) -> None:
    await sent_one_a_second(api, 3)
    cursor = (await listed(api, "?limit=1"))["next_cursor"]
    async with api.client(Role.VIEWER) as client:
        for query in ("type=welcome", "result=waiting", "since_at=2026-01-01T00:00:00Z"):
            answer = await client.get(f"/v1/notifications?limit=1&cursor={cursor}&{query}")
            assert (answer.status_code, problem(answer)["field"]) == (422, "cursor")


@pytest.mark.parametrize(
    "query",
    [
        *("result=done", "result=null", "limit=0"),
        *("since_at=yesterday", "since_at=2026-01-01T00:00:00", "since_at=5", "until_at=null"),
    ],
)
async def test_a_filter_that_means_nothing_is_refused(api: ApiHarness, query: str) -> None:
    async with api.client(Role.VIEWER) as client:
        answer = await client.get(f"/v1/notifications?{query}")
        assert (answer.status_code, problem(answer)["field"]) == (422, query.partition("=")[0])

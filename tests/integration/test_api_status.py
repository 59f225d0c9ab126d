"""What runs, as a caller hears of it: a warning with what nobody would send, and the status of the installation."""

from collections.abc import Mapping
from datetime import timedelta
from uuid import UUID

import pytest

from clarion.domain.call import Deferred
from clarion.domain.identity import Channel
from clarion.domain.worker import LOST_AFTER
from clarion.errors import StoreUnreachable
from clarion.ports.catalog import Role
from clarion.workers.presence import Presence
from tests.integration.api_harness import WELCOME, ApiHarness, problem, seeded_api

SOME = {"type": "welcome", "to": [{"user": "1"}], "data": {"name": "Sam"}}


@pytest.fixture
async def api() -> ApiHarness:
    return await seeded_api()


def present(api: ApiHarness, *channels: Channel) -> Presence:
    """Make a process that works on these channels."""
    presence = Presence(
        api.memory, clock=api.clock, worker_id=UUID(int=1), name="host:1", channels=channels, accounts=["scripted"]
    )
    api.line.observe = presence.observe
    return presence


async def warnings(api: ApiHarness, body: Mapping[str, object] = WELCOME, *, key: str | None = None) -> list[str]:
    api.clock.advance(timedelta(seconds=1))  # what the process read of the workers before is out of date
    async with api.client() as client:
        answer = await client.post(
            "/v1/notifications", json=body, headers={} if key is None else {"idempotency-key": key}
        )
    assert answer.status_code == 202
    said: list[str] = answer.json()["warnings"]
    return said


async def test_a_send_that_nobody_would_carry_is_accepted_with_a_warning(api: ApiHarness) -> None:
    (said,) = await warnings(api)
    assert said.startswith("no worker sends on email now")


async def test_a_channel_that_a_worker_serves_is_no_reason_to_warn(api: ApiHarness) -> None:
    presence = present(api, Channel.EMAIL)
    await presence.step()
    assert await warnings(api) == []
    await presence.end()
    assert len(await warnings(api)) == 1, "the worker has stopped"


async def test_a_worker_that_was_killed_does_not_serve(api: ApiHarness) -> None:
    await present(api, Channel.EMAIL).step()
    api.clock.advance(LOST_AFTER)
    assert len(await warnings(api)) == 1


async def test_a_person_may_be_reached_on_every_channel_of_the_type_and_the_inbox_needs_nobody(api: ApiHarness) -> None:
    """The type `welcome` goes by mail and to the inbox."""
    await present(api, Channel.SMS).step()
    (said,) = await warnings(api, SOME)
    assert said.startswith("no worker sends on email now")


async def test_a_repeat_is_warned_as_things_stand_now(api: ApiHarness) -> None:
    """Its first answer may have been lost."""
    assert len(await warnings(api, key="k")) == 1
    assert len(await warnings(api, key="k")) == 1
    await present(api, Channel.EMAIL).step()
    assert await warnings(api, key="k") == []


@pytest.mark.parametrize("public_url, count", [(None, 1), ("https://clarion.example.com", 0)])
async def test_a_send_with_links_to_an_installation_without_url_is_accepted_with_a_warning(
    public_url: str | None, count: int
) -> None:
    """Of the channels that it goes to, only the text message has such a link; a preview of it says the same."""
    api = ApiHarness(public_url=public_url)
    await api.seed()
    await present(api, Channel.SMS, Channel.PUSH).step()
    definition = {
        "key": "ball",
        "title": "Ball",
        "channels": ["sms", "push"],
        "links": {"BALL_LINK": "{{ public_url }}/ball"},
    }
    files = {"sms.liquid": "See {{ BALL_LINK }}", "push.liquid": "See\n\nyou"}
    async with api.client(Role.AUTHOR) as author:
        await author.put("/v1/types/ball", json={"definition": definition, "files": files})
        shown = await author.post("/v1/types/ball/preview", json={})
    said = await warnings(api, {"type": "ball", "to": [{"user": "1"}], "data": {}})
    assert [one[:60] for one in said] == ["on sms it has links to this installation, and its URL is not"] * count
    if count:
        assert problem(shown)["detail"] == (
            "the notification 'ball' has links to this installation, and its URL is not set: set CLARION_PUBLIC_URL "
            "and start again"
        )
    else:
        assert shown.json()["contents"]["sms"] == {"text": "See https://clarion.example.com/ball"}


async def test_what_is_accepted_stays_accepted_where_the_store_cannot_tell_who_works(api: ApiHarness) -> None:
    api.failing.error = StoreUnreachable("it does not answer", hint="wait")
    api.failing.only = frozenset({"list_workers"})
    assert await warnings(api) == []


async def test_the_status_tells_what_runs_what_fails_and_what_waits(api: ApiHarness) -> None:
    presence = present(api, Channel.EMAIL)
    api.provider.answers = [Deferred(reason="connecting: refused")] * 10
    await api.line.send()
    for _ in range(60):
        api.clock.advance(timedelta(seconds=1))
        await api.line.drain()
        await presence.step()
    await api.line.send("one-time-code", "+447700900001", data={"code": "407 112"})
    await api.line.queue()
    api.clock.advance(timedelta(seconds=10))
    async with api.client(role=Role.SUPPORT) as client:
        status = (await client.get("/v1/status")).json()
    (worker,) = status["workers"]
    assert (worker["name"], worker["channels"], worker["lost"]) == ("host:1", ["email"], False)
    (account,) = status["accounts"]
    assert (account["account"], account["failing"], account["reason"]) == ("scripted", True, "connecting: refused")
    assert status["open_support_cases"] == 1
    assert status["waiting"] == [{"channel": "sms", "oldest_seconds": 10.0, "served": False}]
    assert (status["messages_waiting"], status["oldest_message_seconds"]) == (1, 10.0)


@pytest.mark.parametrize("role", Role)
async def test_only_support_and_admin_see_what_runs(api: ApiHarness, role: Role) -> None:
    async with api.client(role=role) as client:
        answer = await client.get("/v1/status")
    assert answer.status_code == (200 if role in (Role.SUPPORT, Role.ADMIN) else 403)

"""Quotas as a caller meets them: 429 with what is used up and when it opens again; a key's last use."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta

import httpx
import msgspec
import pytest

from clarion.api import context
from clarion.catalog import quota
from clarion.catalog.access import Access
from clarion.catalog.quota import Meter, UsageStore
from clarion.domain.quota import Limits
from clarion.errors import InvalidInput
from clarion.ports.catalog import Role
from clarion.ports.clock import Clock
from tests.integration.api_harness import ENTITY, OTHER, WELCOME, ApiHarness, running_api, seeded_api
from tests.unit.pipeline_line import TENANT


@pytest.fixture
async def api() -> ApiHarness:
    return await seeded_api()


def key_id(api: ApiHarness, role: Role = Role.ADMIN) -> str:
    return api.keys[TENANT, role].split("_")[1]


async def limit(api: ApiHarness, *, key: str | None = None, **limits: int) -> None:
    await Access(api.memory, clock=api.clock).set_quota(TENANT, Limits(**limits), key_id=key, actor="ada")


async def send(client: httpx.AsyncClient, key: str | None = None, recipients: int = 1) -> httpx.Response:
    to = [{"address": f"user-{n}@example.com"} for n in range(recipients)]
    headers = {} if key is None else {"idempotency-key": key}
    return await client.post("/v1/notifications", json=WELCOME | {"to": to}, headers=headers)


async def test_a_key_that_has_used_its_requests_up_is_told_which_quota_and_when_it_opens(api: ApiHarness) -> None:
    await limit(api, key=key_id(api), requests=2)
    async with api.client() as client, api.client(Role.SENDER) as another:
        assert [(await client.get("/v1/types")).status_code for _ in range(2)] == [200, 200]
        refused = await client.get("/v1/types")
        assert (await another.get("/v1/types")).status_code == 200
    assert (refused.status_code, refused.json()["code"]) == (429, "quota-exceeded")
    assert refused.json()["detail"].startswith("the key's quota of 2 requests a day is used up: it opens again at")
    assert refused.headers["retry-after"] == str(12 * 60 * 60)  # the clock stands at noon


async def test_a_used_up_quota_is_known_however_many_others_came_while_a_body_did(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A key that is not in use is forgotten where there are many; a send with it was then let through."""
    meters: list[Meter] = []

    def noted(store: UsageStore, *, clock: Clock) -> Meter:
        meters.append(Meter(store, clock=clock))
        return meters[-1]

    monkeypatch.setattr(quota, "ACCOUNTS_MAX", 10)
    monkeypatch.setattr(context, "Meter", noted)
    api = await seeded_api()
    (meter,) = meters
    await limit(api, notifications=1)
    waiting, go_on = asyncio.Event(), asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        waiting.set()
        await go_on.wait()
        yield msgspec.json.encode(WELCOME)

    async with api.client() as client, asyncio.TaskGroup() as tasks:
        assert (await send(client)).status_code == 202
        late = tasks.create_task(
            client.post("/v1/notifications", content=slowly(), headers={"content-type": "application/json"})
        )
        await waiting.wait()
        for number in range(30):
            await meter.tell()
            await meter.count_request(OTHER, f"key {number}")
        go_on.set()
    assert late.result().status_code == 429


async def test_a_tenants_quota_of_recipients_leaves_other_tenants_alone(api: ApiHarness) -> None:
    await limit(api, recipients=5)
    async with api.client() as client, api.client(tenant_id=OTHER) as stranger:
        assert (await send(client, recipients=3)).status_code == 202
        refused = await send(client, recipients=3)
        assert (await send(client, recipients=2)).status_code == 202
        assert (await client.get("/v1/types")).status_code == 200, "reading is not limited by it"
        assert (await send(stranger, recipients=3)).status_code == 202
    assert (refused.status_code, refused.json()["code"]) == (429, "quota-exceeded")
    assert "the tenant's quota of 5 recipients a day has 2 left" in refused.json()["detail"]


async def test_a_repeat_is_answered_as_before_though_the_quota_is_used_up_and_counts_once(api: ApiHarness) -> None:
    await limit(api, notifications=1)
    async with api.client() as client:
        first = await send(client, "k")
        again = [await send(client, "k") for _ in range(3)]
        new = await send(client, "another")
        without = await send(client)
    assert [one.status_code for one in (first, *again, new, without)] == [202, 202, 202, 202, 429, 429]
    assert {one.json()["job_id"] for one in again} == {first.json()["job_id"]}
    await api.line.drain()
    assert len(api.provider.calls) == 1


async def test_an_event_counts_as_a_notification_and_told_again_uses_nothing(api: ApiHarness) -> None:
    await limit(api, notifications=1, recipients=0)
    event = {"type": "member.left", "entity": {"type": "child", "guid": str(ENTITY)}}
    async with api.client() as client:
        await client.put("/v1/event-mappings/member.left", json={"notification_type": None})
        wrong = await client.post("/v1/events", json=event | {"type": "unmapped"}, headers={"idempotency-key": "a"})
        told = [await client.post("/v1/events", json=event, headers={"idempotency-key": key}) for key in "aba"]
    assert [answer.status_code for answer in (wrong, *told)] == [422, 202, 429, 202]
    assert [answer.json().get("repeated") for answer in told] == [False, None, True]


async def test_what_is_refused_uses_nothing(api: ApiHarness) -> None:
    await limit(api, notifications=1)
    async with api.client() as client:
        for _ in range(3):
            bad = await client.post("/v1/notifications", json=WELCOME | {"type": "no-such-type"})
            assert bad.status_code == 422
        assert (await send(client)).status_code == 202


async def test_a_wrong_key_uses_nothing_of_anybody(api: ApiHarness) -> None:
    await limit(api, requests=1)
    async with api.client(None) as nobody, api.client() as client:
        for _ in range(3):
            forged = {"authorization": f"Bearer clarion_{key_id(api)}_{'0' * 64}"}
            assert (await nobody.get("/v1/types", headers=forged)).status_code == 401
        assert (await client.get("/v1/types")).status_code == 200


async def test_a_keys_last_use_is_known_and_of_one_never_used_nothing() -> None:
    async with running_api() as api:
        api.clock.advance(timedelta(minutes=5))
        async with api.client(Role.SENDER) as client:
            await client.get("/v1/types")
    used = {key.role: key.last_used_at for key in await api.memory.list_api_keys(TENANT)}
    assert used.pop(Role.SENDER) == api.clock.now()
    assert set(used.values()) == {None}


async def test_setting_a_quota_is_audited_once_and_only_for_keys_that_exist(api: ApiHarness) -> None:
    await limit(api, key=key_id(api), requests=2)
    await limit(api, key=key_id(api), requests=2)
    await limit(api, notifications=10)
    with pytest.raises(InvalidInput, match="has no key"):
        await limit(api, key="nobodys", requests=2)
    with pytest.raises(InvalidInput, match="is no quota"):
        await limit(api, requests=-1)
    acts = [(one.act, one.subject, one.details) for one in await api.memory.list_audit(TENANT, limit=200)]
    limits = [one for one in acts if one[0] == "limit"]
    assert [subject for _, subject, _ in limits] == [f"key {key_id(api)}", f"tenant {TENANT}"]
    assert re.search(r'"requests":2\b', limits[0][2])

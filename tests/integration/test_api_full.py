"""Places for requests in work: a full door says so, and nobody takes more than half of the places from the others."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from clarion.api import door
from clarion.ports.catalog import ApiKey
from tests.integration.api_harness import OTHER, problem, seeded_api
from tests.unit.pipeline_line import TENANT

JSON = {"content-type": "application/json"}


class SlowBody:
    """The body of a request that is in work until the test lets it end."""

    def __init__(self) -> None:
        self.waiting, self.go_on = asyncio.Event(), asyncio.Event()

    async def __call__(self) -> AsyncIterator[bytes]:
        self.waiting.set()
        await self.go_on.wait()
        yield b"{"


async def test_a_door_that_is_full_sends_the_next_away_and_lets_in_those_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "REQUESTS_MAX", 2)
    api = await seeded_api()
    slow = {tenant_id: SlowBody() for tenant_id in (TENANT, OTHER)}
    async with api.client() as client, api.client(tenant_id=OTHER) as other, asyncio.TaskGroup() as tasks:
        clients = {TENANT: client, OTHER: other}
        first = []
        for tenant_id, body in slow.items():
            post = clients[tenant_id].post("/v1/notifications", content=body(), headers=JSON)
            first.append(tasks.create_task(post))
            await body.waiting.wait()
        second = await client.get("/v1/types")
        assert (second.status_code, problem(second)["code"], second.headers["retry-after"]) == (503, "overloaded", "1")
        for body in slow.values():
            body.go_on.set()
        assert [(await one).status_code for one in first] == [400, 400]
        assert (await client.get("/v1/types")).status_code == 200


async def test_one_tenant_with_slow_requests_leaves_half_of_the_places_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(door, "REQUESTS_MAX", 4)
    api = await seeded_api()
    slow = [SlowBody(), SlowBody()]
    async with api.client() as client, api.client(tenant_id=OTHER) as other, asyncio.TaskGroup() as tasks:
        for body in slow:
            tasks.create_task(client.post("/v1/notifications", content=body(), headers=JSON))
            await body.waiting.wait()
        refused = await client.get("/v1/types")
        assert (refused.status_code, problem(refused)["code"]) == (503, "overloaded")
        assert problem(refused)["detail"] == "too many requests of this tenant are being served: try again in a moment"
        assert (await other.get("/v1/types")).status_code == 200
        for body in slow:
            body.go_on.set()


async def test_strangers_at_one_address_whose_keys_are_looked_up_leave_half_of_the_places_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every invented key is looked up, which takes as long as the store takes."""
    monkeypatch.setattr(door, "REQUESTS_MAX", 4)
    api = await seeded_api()
    go_on, looked_up = asyncio.Event(), asyncio.Semaphore(0)
    find = api.memory.find_api_key

    async def slowly(key_id: str) -> ApiKey | None:
        looked_up.release()
        await go_on.wait()
        return await find(key_id)

    async with api.client() as client, asyncio.TaskGroup() as tasks:
        assert (await client.get("/v1/types")).status_code == 200  # now this key is known
        monkeypatch.setattr(api.memory, "find_api_key", slowly)
        strange = []
        for number in range(3):
            headers = {"authorization": f"Bearer clarion_{number:016x}_{number:064x}"}
            strange.append(tasks.create_task(client.get("/v1/types", headers=headers)))
        for _ in range(2):
            await looked_up.acquire()
        transport = httpx.ASGITransport(api.door, client=("192.0.2.7", 1))  # type: ignore[arg-type]  # ASGI
        async with httpx.AsyncClient(transport=transport, headers=client.headers, base_url=client.base_url) as apart:
            assert (await apart.get("/v1/types")).status_code == 200
        go_on.set()
        assert sorted([(await one).status_code for one in strange]) == [401, 401, 503]

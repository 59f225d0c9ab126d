"""The API over SQLite in memory: two tenants, a key of every role, and the whole pipeline to drain by hand."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import msgspec

from clarion.adapters.blobs import open_blobs
from clarion.api.app import ROUTES, create_app
from clarion.api.description import describe
from clarion.api.metrics import Metrics
from clarion.bootstrap import Platform, Settings
from clarion.catalog.access import Access, mint
from clarion.domain.call import Unknown
from clarion.domain.identity import Channel
from clarion.errors import ClarionError
from clarion.ports.catalog import Role
from clarion.ports.provider import Provider
from clarion.producers.opening import open_automation
from clarion.producers.records import Records
from clarion.producers.registration import report_plugins
from clarion.producers.report_plugin import Reports
from clarion.producers.sources import Sources
from clarion.testing.clock import ManualClock, SeededIds
from clarion.testing.factories import automation_scheduler
from clarion.testing.store import SqliteInMemory
from tests.unit.pipeline_line import DEFINITIONS, TENANT, Line, Scripted, publish_compiled

OTHER = "other-school"
ENTITY = UUID("6f1c2c7e-0000-4000-8000-000000000001")
GROUP = UUID("6f1c2c7e-0000-4000-8000-000000000002")  # and a business unit with the same guid
WELCOME: dict[str, Any] = {"type": "welcome", "to": [{"address": "sam@example.com"}], "data": {"name": "Sam"}}


class FailingStore:
    """A store that fails as a test says: every method, or those named, before its work or after it."""

    def __init__(self, store: SqliteInMemory) -> None:
        self.store = store
        self.error: ClarionError | None = None
        self.after_commit = False
        self.only: frozenset[str] = frozenset()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.store, name)

        async def failing(*args: Any, **kwargs: Any) -> Any:
            fails = self.error is not None and (not self.only or name in self.only)
            if fails and self.error is not None and not self.after_commit:
                raise self.error
            result = await method(*args, **kwargs)
            if fails and self.error is not None:
                raise self.error
            return result

        return failing


class ApiHarness:
    """Everything that a test of the API asks for."""

    def __init__(
        self,
        *,
        sandbox: Path | None = None,
        store: Any = None,
        clock: ManualClock | None = None,
        reporters: Mapping[str, Provider] = {},
        public_url: str | None = None,
    ) -> None:
        self.clock = clock or ManualClock()
        self.provider = Scripted()
        self.memory: SqliteInMemory = store or SqliteInMemory(self.clock)
        self.failing = FailingStore(self.memory)
        delegating: Any = self.failing  # every method of the store
        self.line = Line(delegating, self.clock, self.provider, public_url=public_url)
        self.metrics = Metrics()
        self.wake_ups: list[str] = []
        self.keys: dict[tuple[str, Role], str] = {}
        providers = {"*": f"sandbox://{sandbox}"} if sandbox else {"*": "null://"}
        sources = Sources(Records(delegating, self.line.keyring))
        self.platform = Platform(
            settings=Settings(
                store="memory://", blobs="memory://", vault="memory://", providers=providers, public_url=public_url
            ),
            store=delegating,
            blobs=open_blobs("memory://"),
            keyring=self.line.keyring,
            dispatcher=self.line.dispatcher,
            recipient_sets=self.line.recipient_sets,
            contents=self.line.contents,
            templates=self.line.templates,
            renderer=self.line.renderer,
            accounts={Channel.EMAIL: "scripted", Channel.SMS: "scripted"},
            providers={"scripted": self.provider, **reporters},
            sends=self.line.sends,
            reports=Reports(report_plugins({})),
            sources=sources,
            automation=open_automation(delegating, sources=sources, sends=self.line.sends),
            clock=self.clock,
            ids=SeededIds("api"),
            randomness=bytes,
        )
        self.door = create_app(self.platform, wake=self.wake_ups.append, metrics=self.metrics)

    async def seed(self) -> None:
        """Make both tenants with their notifications, and a key of every role for each."""
        await self.line.seed()
        await self.line.dispatcher.ensure_tenant(OTHER)
        await publish_compiled(self.memory, OTHER, folder=DEFINITIONS / "welcome")  # and nothing else
        access, ids = Access(self.memory, clock=self.clock), SeededIds("keys")
        for tenant_id in (TENANT, OTHER):
            for role in Role:
                minted = mint(
                    tenant_id=tenant_id,
                    actor=f"{role} of {tenant_id}",
                    role=role,
                    key_guid=ids.new_guid(),
                    secret=ids.new_guid().bytes + ids.new_guid().bytes,
                )
                await access.grant(minted, actor="test")
                self.keys[tenant_id, role] = minted.token

    def operations(self) -> list[tuple[str, str, dict[str, Any]]]:
        """List every operation of the OpenAPI document: method, path, description."""
        document = msgspec.json.decode(describe(ROUTES))
        return [
            (method.upper(), path, operation)
            for path, item in document["paths"].items()
            for method, operation in item.items()
        ]

    def client(self, role: Role | None = Role.ADMIN, *, tenant_id: str = TENANT, **options: Any) -> httpx.AsyncClient:
        """Make a client with the key of a role, or with none."""
        headers = {"authorization": f"Bearer {self.keys[tenant_id, role]}"} if role else {}
        options.setdefault("base_url", "http://127.0.0.1:8025")
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(self.door, raise_app_exceptions=False),  # type: ignore[arg-type]  # ASGI, spelled otherwise
            headers=headers,
            **options,
        )

    async def sent(self, tenant_id: str = TENANT, **changes: Any) -> dict[str, Any]:
        """Send one notification and return the answer."""
        async with self.client(tenant_id=tenant_id) as client:
            answer = await client.post("/v1/notifications", json=WELCOME | changes)
            assert answer.status_code == 202, answer.text
            sent: dict[str, Any] = answer.json()
            return sent


async def seeded_api() -> ApiHarness:
    """Make an API with tenants and keys. Its app is not started, which only the outbox and the pulse would notice."""
    api = ApiHarness()
    await api.seed()
    return api


@asynccontextmanager
async def running_api(*, sandbox: Path | None = None) -> AsyncIterator[ApiHarness]:
    """Make an API with tenants and keys, and start its app."""
    api = ApiHarness(sandbox=sandbox)
    await api.seed()
    async with api.door.lifespan():
        yield api


def problem(answer: httpx.Response) -> dict[str, Any]:
    """Read a problem, and hold it to its form."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    said: dict[str, Any] = msgspec.json.decode(answer.content)
    assert said["status"] == answer.status_code
    assert said["type"] == f"urn:clarion:error:{said['code']}"
    assert said["title"]
    assert said["detail"]
    assert said["correlation_id"] == answer.headers["x-correlation-id"]
    assert set(said) <= {"type", "title", "status", "detail", "code", "correlation_id", "field", "mistakes"}
    return said


NOBODY = {
    "job_id": str(UUID(int=1)),
    "id": str(UUID(int=1)),
    "entity": str(UUID(int=1)),
    "case_id": str(UUID(int=1)),
    "outgoing_id": "987654321",
    "type_name": "no-such-type",
    "account": "no-such-account",
    "reader": "user:nobody",
    "message_id": str(UUID(int=1)),
    "mark": "read",
    "guid": str(UUID(int=1)),
    "run": str(UUID(int=1)),
    "role": "no-such-role",
    "person": "user:nobody",
    "suppression": "AAECAwQFBgcICQoLDA0ODyo?reason=r",
    "name": "level",
    "key": "reminder:nobody:invoice:17:due:2026-03-31:7",
    "act": "hold",
    "source_type": "nothing",
    "source": "nobody's",
    "event_id": str(UUID(int=1)),
    "event_type": "nothing.told",
}
"""Ids that nobody has, for every parameter of a path: a new one must be added here and to `things`."""


def makes_ones_own(method: str, path: str) -> bool:
    """Tell whether a route makes the asker something whose answer has an id or a time of its own."""
    own = ("/v1/sources/", "/v1/event-mappings/", "/v1/reminders/", "/v1/report-subscriptions/")
    return path.startswith(own) and method in ("PUT", "POST")


def filled(path: str, ids: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: ids[found[1]], path)


async def ask(client: httpx.AsyncClient, method: str, path: str, operation: dict[str, Any]) -> httpx.Response:
    """Send an operation with the example that its description has."""
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
    return await client.request(method, path, json=body)


async def things(api: ApiHarness) -> dict[str, str]:
    """Make one thing of each kind in the first tenant, and name them by the parameters of paths."""
    api.provider.answers = [Unknown(reason="no reply")]
    sent = await api.sent(entity={"type": "child", "guid": str(ENTITY)})
    await api.line.drain()
    line = await api.sent(to=[{"user": "1"}], channels=["inbox"])
    await api.line.drain()
    async with api.client() as client:
        key = {"idempotency-key": "k"}
        await client.post("/v1/notifications", json=WELCOME, headers=key)
        await client.post("/v1/notifications", json=WELCOME | {"data": {"name": "Kim"}}, headers=key)
        cases = (await client.get("/v1/support-cases?status=Open")).json()["items"]
        (case,) = [one for one in cases if one["kind"] == "Conflict"]
        (uncertain,) = (await client.get("/v1/uncertain")).json()["items"]
        for path in (f"/v1/groups/{GROUP}", f"/v1/units/{GROUP}"):
            assert (await client.put(path, json={"name": "North"})).status_code == 200
            assert (await client.patch(f"{path}/members", json={"add": ["user:1"]})).status_code == 200
        assert (await client.patch("/v1/roles/teacher/holders", json={"add": ["user:1"]})).status_code == 200
        assert (await client.put("/v1/attributes/grade", json={"kind": "number"})).status_code == 200
        source = {"fields": {"payer": "user:1"}}
        for source_type in ("invoice", "nothing"):
            assert (await client.put(f"/v1/sources/{source_type}/2026%2F17", json=source)).status_code == 200
        mapping = {"notification_type": "welcome"}
        assert (await client.put("/v1/event-mappings/member.joined", json=mapping)).status_code == 200
        event = {"type": "member.joined", "entity": {"type": "child", "guid": str(ENTITY)}, "data": {"name": "user:1"}}
        told = (await client.post("/v1/events", json=event, headers={"idempotency-key": "joined"})).json()
        nobody = {"items": [{"recipient": "stop@example.com"}], "reason": "asked"}
        assert (await client.post("/v1/suppressions", json=nobody)).status_code == 200
        (suppressed,) = (await client.get("/v1/suppressions")).json()["items"]
        reminder = {"name": "Soon", "source_type": "order", "rule": {"on": "date", "field": "due"}}
        put = await client.put(f"/v1/reminders/{GROUP}", json=reminder | {"notification_type": "welcome"})
        assert put.status_code == 200, put.text
        report = {"name": "Weekly", "report": "delivery-summary", "rule": "0 8 * * MON", "time_zone": "UTC"}
        put = await client.put(f"/v1/report-subscriptions/{GROUP}", json=report | {"notification_type": "welcome"})
        assert put.status_code == 200, put.text
    await api.memory.ensure_automation_schedulers(TENANT, [automation_scheduler()])
    return {
        "job_id": sent["job_id"],
        "id": sent["message_id"],
        "entity": str(ENTITY),
        "case_id": case["case_id"],
        "outgoing_id": str(uncertain["id"]),
        "type_name": "newsletter",
        "account": "scripted",  # which reports nothing
        "reader": "user:1",
        "message_id": line["message_id"],
        "mark": "read",
        "guid": str(GROUP),
        "run": str(GROUP),
        "role": "teacher",
        "person": "user:2",
        "suppression": f"{suppressed['id']}?reason=r",
        "name": "grade",
        "key": automation_scheduler().scheduler_key,
        "act": "hold",
        "source_type": "invoice",
        "source": "2026%2F17",
        "event_id": told["event_id"],
        "event_type": "member.joined",
    }


def comparable(answer: httpx.Response) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Give all that a caller can see of an answer, without the id that each request has of its own."""
    body = answer.json() if answer.content else {}
    headers = {name: value for name, value in answer.headers.items() if name != "x-correlation-id"}
    if "correlation_id" in body and "code" in body:
        assert body.pop("correlation_id")
        headers.pop("content-length", None)  # ids may differ in length
    return answer.status_code, body, headers

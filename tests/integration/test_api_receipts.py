"""Receipts over HTTP: who may report, what is answered, and that the answer comes after the store has it (I-30)."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from clarion.api.reading import BODY_BYTES_MAX
from clarion.api.receipts import BYTES_MAX
from clarion.domain.call import Call, Unknown
from clarion.domain.key import read_idempotency_key
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.signature import SIGNATURE, sign
from clarion.errors import SignatureRefused, StoreBusy, StoreUnreachable
from clarion.pipeline.track import Track
from clarion.ports.catalog import Role
from clarion.ports.track import ProviderEvent
from clarion.sandbox import report
from clarion.sandbox.provider import SandboxProvider, open_provider
from clarion.sandbox.report import Report
from clarion.testing.clock import ManualClock
from clarion.testing.row import WebhookEvent
from tests.integration.api_harness import OTHER, ApiHarness, problem
from tests.unit.pipeline_line import TENANT, Scripted

PATH = "/v1/receipts/sandbox"


class Reporting(ApiHarness):
    """An API with an account whose provider reports."""

    def __init__(self, sandbox: SandboxProvider, clock: ManualClock) -> None:
        super().__init__(clock=clock, reporters={"sandbox": sandbox})
        self.sandbox = sandbox

    async def post(self, body: bytes, *, path: str = PATH, **headers: str) -> httpx.Response:
        """Report as the provider does, without any key."""
        _, secret = await self.sandbox.identity()
        made = sign(secret, webhook_id="msg_1", at=self.clock.now(), body=body)
        async with self.client(None) as client:
            return await client.post(path, content=body, headers=made | headers)

    async def events(self, tenant_id: str = TENANT) -> list[WebhookEvent]:
        return await self.memory.rows(tenant_id, WebhookEvent)

    async def call(self, **changes: Any) -> Call:
        """Send a notification to the end and return its call."""
        await self.sent(**changes)
        await self.line.drain()
        return self.provider.calls[-1]


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Reporting]:
    clock = ManualClock()
    sandbox = await open_provider(f"sandbox://{tmp_path}/sandbox.db", clock=clock)
    api = Reporting(sandbox, clock)
    await api.seed()
    yield api
    await sandbox.close()


def event(api: ApiHarness, call: Call, **changes: object) -> Report:
    plain = Report(
        id="e-1",
        status="Delivered",
        happened_at=api.clock.now(),
        tenant_id=call.tenant_id,
        key=call.idempotency_key,
    )
    return msgspec.structs.replace(plain, **changes)


async def timeline(api: ApiHarness, call: Call) -> list[str]:
    async with api.client(Role.VIEWER) as client:
        lines = (await client.get(f"/v1/messages/{call.message_id}/timeline")).json()["lines"]
    return [line["what"] for line in lines]


async def test_what_a_provider_reports_is_kept_applied_and_told(api: Reporting) -> None:
    call = await api.call()
    api.wake_ups.clear()
    body = report.write([event(api, call), event(api, call, id="e-2", status="Opened")])
    answer = await api.post(body)
    assert (answer.status_code, answer.json()) == (200, {"kept": 2})
    assert api.wake_ups == ["events"]
    assert (await timeline(api, call))[-2:] == ["receipt", "receipt"]
    api.clock.advance(timedelta(seconds=1))
    await Track(events=api.memory).step()
    assert (await timeline(api, call))[-4:] == ["receipt", "receipt", "delivered", "opened"]


async def test_the_same_request_again_changes_nothing_and_wakes_nobody(api: Reporting) -> None:
    """X-09: within its minutes a request can be replayed, and is known by its events."""
    call = await api.call()
    body = report.write([event(api, call)])
    assert (await api.post(body)).json() == {"kept": 1}
    api.wake_ups.clear()
    assert (await api.post(body)).json() == {"kept": 0}
    assert api.wake_ups == []
    assert len(await api.events()) == 1


async def test_a_receipt_settles_an_uncertain_send_and_nothing_is_called_for_it(api: Reporting) -> None:
    """I-33."""
    api.provider.answers = [Unknown(reason="no reply")]
    call = await api.call()
    assert (await api.post(report.write([event(api, call)]))).status_code == 200
    await Track(events=api.memory).step()
    async with api.client() as client:
        assert (await client.get("/v1/uncertain")).json()["items"] == []
    await api.line.drain()
    assert len(api.provider.calls) == 1


async def test_one_request_may_report_for_several_tenants_and_each_keeps_its_own(api: Reporting) -> None:
    call = await api.call()
    body = report.write([event(api, call), event(api, call, id="e-2", tenant_id=OTHER)])
    assert (await api.post(body)).json() == {"kept": 2}
    assert [[one.event_id for one in await api.events(tenant)] for tenant in (TENANT, OTHER)] == [["e-1"], ["e-2"]]
    # The other tenant has no such message, so its event waits and moves nothing.
    assert await Track(events=api.memory).step() == 1


@pytest.mark.parametrize("tenant_id", ["nobodys", "No Tenant", "-"])
async def test_an_event_of_a_tenant_that_there_is_not_is_bad_input_and_nothing_is_kept(
    api: Reporting, tenant_id: str
) -> None:
    call = await api.call()
    answer = await api.post(report.write([event(api, call), event(api, call, id="e-2", tenant_id=tenant_id)]))
    assert (answer.status_code, problem(answer)["field"]) == (422, "tenant_id")
    assert await api.events() == []


async def test_an_account_that_reports_nothing_is_answered_as_one_that_nobody_has(api: Reporting) -> None:
    call = await api.call()
    body = report.write([event(api, call)])
    told = []
    for account in ("scripted", "nobodys", "sandbox-email", "%00"):
        said = problem(await api.post(body, path=f"/v1/receipts/{account}"))
        del said["correlation_id"]
        told.append(said)
    assert told[0]["status"] == 404
    assert all(one == told[0] for one in told)
    assert await api.events() == []


async def test_a_request_that_is_not_signed_keeps_nothing_whatever_key_it_has(api: Reporting) -> None:
    """X-08: an API key opens nothing here, not even an admin's."""
    call = await api.call()
    body = report.write([event(api, call)])
    async with api.client(Role.ADMIN) as client:
        bare = await client.post(PATH, content=body)
    for answer in (bare, await api.post(body, **{SIGNATURE: "v1,AAAA"}), await api.post(body, **{SIGNATURE: ""})):
        assert (answer.status_code, problem(answer)["code"]) == (401, "signature-refused")
    assert await api.events() == []


async def test_what_cannot_be_read_is_bad_input_only_for_who_signed_it(api: Reporting) -> None:
    answer = await api.post(b"{")
    assert (answer.status_code, problem(answer)["field"]) == (422, "body")
    answer = await api.post(b"{", **{SIGNATURE: "v1,AAAA"})
    assert problem(answer)["code"] == "signature-refused"


async def test_the_answer_is_yes_only_when_the_store_has_it(api: Reporting) -> None:
    call = await api.call()
    body = report.write([event(api, call)])
    api.failing.only = frozenset({"keep_events"})
    for error, after in ((StoreBusy("held", hint="wait"), False), (StoreUnreachable("gone", hint="wait"), True)):
        api.failing.error, api.failing.after_commit = error, after
        answer = await api.post(body)
        assert (answer.status_code, problem(answer)["code"]) == (503, error.code)
        assert "retry-after" in answer.headers
        assert len(await api.events()) == int(after)
    api.failing.error = None
    assert (await api.post(body)).json() == {"kept": 0}


async def test_a_body_may_be_larger_than_others_and_not_too_large(api: Reporting) -> None:
    call = await api.call()
    body = report.write([event(api, call)])
    large = body + b" " * (BODY_BYTES_MAX + 1)
    assert (await api.post(large)).json() == {"kept": 1}
    answer = await api.post(body + b" " * BYTES_MAX)
    assert (answer.status_code, problem(answer)["code"]) == (413, "too-large")
    assert "1024 kB" in problem(answer)["detail"]


async def test_a_compressed_body_or_a_huge_header_is_refused_before_anything_is_computed(api: Reporting) -> None:
    answer = await api.post(b"\x1f\x8b", **{"content-encoding": "gzip"})
    assert (answer.status_code, problem(answer)["code"]) == (415, "unsupported-media-type")
    answer = await api.post(b"{}", **{SIGNATURE: "v1,AAAA " * 100_000})
    assert (answer.status_code, problem(answer)["code"]) == (431, "headers-too-large")


class OtherForm(Scripted):
    """A provider that reports in a form of its own: a word and a key as plain text, with its secret in a header."""

    def check_headers(self, headers: Mapping[str, str], *, now: datetime) -> None:
        """Leave it to the whole request."""

    async def read_reports(
        self, account: str, headers: Mapping[str, str], body: bytes, *, now: datetime
    ) -> Mapping[str, Sequence[ProviderEvent]]:
        if headers.get("x-secret") != "s3cret":
            raise SignatureRefused("it is not signed", hint="sign it")
        status, idempotency_key = body.decode().split()
        message_id, recipient_key_hash = read_idempotency_key(idempotency_key)
        kept = ProviderEvent(
            account=account,
            event_id=f"{status} {idempotency_key}",
            status=OutgoingStatus(status),
            message_id=message_id,
            recipient_key_hash=recipient_key_hash,
            provider_message_id=None,
            happened_at=now,
            raw=body.decode(),
        )
        return {TENANT: [kept]}


async def test_a_provider_reports_in_the_form_that_its_account_reads() -> None:
    api = ApiHarness(reporters={"other": OtherForm()})
    await api.seed()
    await api.sent()
    await api.line.drain()
    call = api.provider.calls[-1]
    async with api.client(None) as client:
        body = f"Delivered {call.idempotency_key}".encode()
        assert (await client.post("/v1/receipts/other", content=body)).status_code == 401
        answer = await client.post("/v1/receipts/other", content=body, headers={"x-secret": "s3cret"})
    assert (answer.status_code, answer.json()) == (200, {"kept": 1})
    await Track(events=api.memory).step()
    assert (await timeline(api, call))[-1] == "delivered"

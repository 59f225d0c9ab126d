"""What the sandbox reports: which receipts it has, and that nobody else can report them."""

import re
import sqlite3
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import get_args
from uuid import UUID

import msgspec
import pytest

from clarion.adapters.host import HostClock
from clarion.domain.outgoing import EVIDENCE_ORDER, RANK, OutgoingStatus
from clarion.domain.signature import SIGNATURE, sign
from clarion.domain.suppression import Signal
from clarion.errors import BadConfiguration, InvalidInput, SignatureRefused
from clarion.ports.provider import Reporter
from clarion.ports.track import ProviderEvent
from clarion.sandbox import null, remote, report
from clarion.sandbox.ledger import Ledger
from clarion.sandbox.provider import SandboxProvider, open_outbox, open_provider
from clarion.sandbox.report import EVENTS_MAX, Report
from clarion.testing.clock import START_AT, ManualClock
from tests.integration.api_harness import OTHER
from tests.integration.sandbox_use import HASH, SECOND, call, waiting
from tests.unit.pipeline_line import TENANT


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sandbox://{tmp_path}/sandbox.db"


@pytest.fixture
async def provider(url: str, clock: ManualClock) -> AsyncIterator[SandboxProvider]:
    provider = await open_provider(url, clock=clock)
    yield provider
    await provider.close()


# What it has.


@pytest.mark.parametrize(
    "to,said",
    [
        ("ann", OutgoingStatus.DELIVERED),
        ("bounce", OutgoingStatus.BOUNCED),
        ("softbounce", OutgoingStatus.BOUNCED),
        ("complain", OutgoingStatus.COMPLAINED),
        ("stop", OutgoingStatus.DELIVERED),
        ("unknown", None),
        ("lost", None),
        ("fail", None),
        ("nobody", None),
        ("defer", None),
        ("throttle", None),
        ("misconfigured", None),
    ],
)
async def test_a_receipt_waits_a_second_after_the_reply(
    provider: SandboxProvider, clock: ManualClock, to: str, said: OutgoingStatus | None
) -> None:
    await provider.send(call(1, to))
    assert await waiting(provider) == []
    clock.advance(SECOND)
    assert await waiting(provider) == ([(1, said)] if said else [])


async def test_a_slow_reply_puts_its_receipt_off(url: str, clock: ManualClock) -> None:
    provider = await open_provider(f"{url}?latency=20ms", clock=clock)
    await provider.send(call(1))
    clock.advance(SECOND)
    assert await waiting(provider) == []
    clock.advance(timedelta(milliseconds=20))
    assert await waiting(provider) == [(1, OutgoingStatus.DELIVERED)]
    await provider.close()


async def test_a_repeated_key_that_is_not_delivered_again_has_no_second_receipt(url: str, clock: ManualClock) -> None:
    provider = await open_provider(f"{url}?dedupe=24h", clock=clock)
    for attempt in (1, 2):
        await provider.send(call(1, attempt=attempt))
    clock.advance(SECOND)
    assert await waiting(provider) == [(1, OutgoingStatus.DELIVERED)]
    await provider.close()


async def test_a_message_can_be_said_to_be_opened_once(url: str, provider: SandboxProvider) -> None:
    await provider.send(call(1, "unknown"))
    outbox = open_outbox(url)
    assert [await outbox.report(1, OutgoingStatus.OPENED) for _ in range(2)] == [True, False]
    await outbox.close()
    later = await open_provider(url, clock=HostClock())
    assert await waiting(later) == [(1, OutgoingStatus.OPENED)]
    await later.close()


async def test_a_file_from_before_receipts_is_used_as_it_is(url: str, clock: ManualClock) -> None:
    first = await open_provider(url, clock=clock)
    await first.send(call(1))
    await first.close()
    with closing(sqlite3.connect(url.removeprefix("sandbox://"))) as file:
        file.executescript("drop table receipt; drop table identity")
    second = await open_provider(url, clock=clock)
    await second.send(call(2))
    clock.advance(SECOND)
    assert await waiting(second) == [(2, OutgoingStatus.DELIVERED)]
    await second.close()


async def test_name_and_secret_are_made_once_for_each_file(tmp_path: Path, url: str, provider: SandboxProvider) -> None:
    name, secret = await provider.identity()
    assert (len(name), len(secret)) == (8, 32)
    again, other = Ledger(Path(url.removeprefix("sandbox://"))), Ledger(tmp_path / "other.db")
    assert again.identity() == (name, secret)
    assert not {name, secret} & set(other.identity())
    again.close()
    other.close()


def test_those_who_ask_at_once_for_a_new_files_secret_get_the_same(tmp_path: Path) -> None:
    ledgers = [Ledger(tmp_path / "sandbox.db") for _ in range(8)]
    start = threading.Barrier(len(ledgers))

    def ask(ledger: Ledger) -> tuple[str, bytes]:
        start.wait()
        return ledger.identity()

    with ThreadPoolExecutor(len(ledgers)) as threads:
        assert len(set(threads.map(ask, ledgers))) == 1
    for ledger in ledgers:
        ledger.close()


# Only it can report them.


def event(**changes: object) -> Report:
    plain = Report(
        id="e-1",
        status="Delivered",
        happened_at=START_AT,
        tenant_id=TENANT,
        key=call(1).idempotency_key,
        provider_message_id="sandbox-1",
    )
    return msgspec.structs.replace(plain, **changes)


async def read(
    provider: SandboxProvider,
    body: bytes,
    *,
    signed: bytes | None = None,
    now: timedelta = timedelta(),
    headers: Mapping[str, str] = {},
) -> dict[str, Sequence[ProviderEvent]]:
    """Have an account read a body that was signed at the start, this one or another."""
    _, secret = await provider.identity()
    made = sign(secret, webhook_id="msg_1", at=START_AT, body=body if signed is None else signed)
    return dict(await provider.read_reports("sandbox", {**made, **headers}, body, now=START_AT + now))


async def test_what_it_signed_is_read_by_tenant(provider: SandboxProvider) -> None:
    events = [event(), event(id="e-2", tenant_id=OTHER, status="Bounced"), event(id="e-3", status="Opened")]
    reports = await read(provider, report.write(events))
    assert {tenant: [one.event_id for one in found] for tenant, found in reports.items()} == {
        TENANT: ["e-1", "e-3"],
        OTHER: ["e-2"],
    }
    assert reports[OTHER][0] == ProviderEvent(
        account="sandbox",
        event_id="e-2",
        status=OutgoingStatus.BOUNCED,
        message_id=UUID(int=1),
        recipient_key_hash=HASH,
        provider_message_id="sandbox-1",
        happened_at=START_AT,
        raw=msgspec.json.encode(events[1]).decode(),
    )


async def test_what_a_recipient_answered_and_of_what_kind_a_bounce_is_is_read_too(provider: SandboxProvider) -> None:
    events = [
        event(id="e-1", status="Bounced", signal="soft_bounce"),
        event(id="e-2", signal="stop"),
        event(id="e-3", signal="start"),
        event(id="e-4"),
    ]
    (found,) = (await read(provider, report.write(events))).values()
    assert [one.signal for one in found] == [Signal.SOFT_BOUNCE, Signal.STOP, Signal.START, None]


async def test_nothing_but_the_very_bytes_that_were_signed_is_read(provider: SandboxProvider, tmp_path: Path) -> None:
    """X-08: verified over the raw bytes, before anything reads them."""
    body = report.write([event()])
    spaced = msgspec.json.format(body, indent=2)
    assert msgspec.json.decode(spaced) == msgspec.json.decode(body)
    doubled = body.replace(b'"status":"Delivered"', b'"status":"Delivered","status":"Bounced"')
    assert doubled != body
    for changed in (body[:-1] + b" ", spaced, doubled, body + b"\n", b"", b"no JSON"):
        with pytest.raises(SignatureRefused):
            await read(provider, changed, signed=body)
    other = await open_provider(f"sandbox://{tmp_path}/other.db", clock=ManualClock())
    _, secret = await other.identity()
    await other.close()
    with pytest.raises(SignatureRefused):
        await provider.read_reports(
            "sandbox", sign(secret, webhook_id="msg_1", at=START_AT, body=body), body, now=START_AT
        )


async def test_a_key_that_is_there_twice_is_refused_although_it_is_signed(provider: SandboxProvider) -> None:
    body = report.write([event()]).replace(b'"status":"Delivered"', b'"status":"Delivered","status":"Bounced"')
    with pytest.raises(InvalidInput, match="given twice"):
        await read(provider, body)


@pytest.mark.parametrize("signature", ["", "v1,", "v1a,AAAA", "v1,AAAA " * 100_000])
async def test_a_signature_that_is_none_is_refused(provider: SandboxProvider, signature: str) -> None:
    with pytest.raises(SignatureRefused):
        await read(provider, report.write([event()]), headers={SIGNATURE: signature})


@pytest.mark.parametrize("minutes,holds", [(-6, False), (-4, True), (4, True), (6, False), (23 * 60, False)])
async def test_a_signature_holds_for_minutes(provider: SandboxProvider, minutes: int, holds: bool) -> None:
    """X-09."""
    body, now = report.write([event()]), timedelta(minutes=minutes)
    if holds:
        assert await read(provider, body, now=now)
    else:
        with pytest.raises(SignatureRefused, match="another time"):
            await read(provider, body, now=now)


@pytest.mark.parametrize(
    "body,says",
    [
        (b"", "body: it is no JSON"),
        (b"{", "body: it is no JSON"),
        (b"\xff", "body: it is no JSON"),
        (b"[" * 100_000, "body: it is a list and must be an object"),
        (b'{"events":[]}', "events"),
        (report.write([event(id=f"e-{number}") for number in range(EVENTS_MAX + 1)]), "events"),
        (report.write([event(status="Canceled")]), r"events\[0\].status"),
        (report.write([event(id="")]), r"events\[0\].id"),
        (report.write([event(id="e" * 201)]), "id"),
        (report.write([event(id="é")]), "id"),
        (report.write([event(key="key-1")]), "key: it is no idempotency key"),
        (report.write([event(happened_at=START_AT.replace(tzinfo=None))]), "happened_at"),
        (report.write([event(happened_at=START_AT.replace(year=1))]), "happened_at"),
        (report.write([event(happened_at=START_AT.replace(year=9999))]), "happened_at"),
        (report.write([event()]).replace(b'"id"', b'"rank":9,"id"'), "rank"),
        (report.write([event(signal="HELP")]), r"events\[0\].signal"),
        (report.write([event(signal="soft_bounce")]), "signal: only what bounced is a soft bounce"),
    ],
    ids=range(17),
)
async def test_what_it_signed_and_cannot_be_read_is_bad_input(
    provider: SandboxProvider, body: bytes, says: str
) -> None:
    with pytest.raises(InvalidInput, match=says):
        await read(provider, body)


def test_it_can_report_what_evidence_can_show_and_nothing_else() -> None:
    statuses = get_args(msgspec.structs.fields(Report)[1].type)
    assert statuses == tuple(EVIDENCE_ORDER)


def test_the_reference_has_what_can_be_reported_in_the_order_of_its_rank() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "receipts.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| ([0-9]) \| `(\w+)` \|", page, re.MULTILINE) == [
        (str(RANK[status]), status) for status in EVIDENCE_ORDER
    ]


async def test_a_file_that_fails_is_the_operators(provider: SandboxProvider) -> None:
    provider._ledger.close()
    with pytest.raises(BadConfiguration, match="the sandbox's file failed"):
        await provider.read_reports("sandbox", {}, b"", now=START_AT)


async def test_the_other_accounts_report_nothing(provider: SandboxProvider, clock: ManualClock) -> None:
    assert isinstance(provider, Reporter)
    over_http = await remote.open_provider("sandbox+http://127.0.0.1:1", clock=clock)
    for silent in (over_http, await null.open_provider("null://", clock=clock)):
        assert not isinstance(silent, Reporter)
        await silent.close()

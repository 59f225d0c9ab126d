"""The API on a real port when too many are there: strangers give way, and nobody else is harmed."""

import asyncio
from contextlib import AsyncExitStack, closing
from pathlib import Path

import msgspec
import pytest

from clarion.api import reading, server
from clarion.domain.signature import sign
from clarion.ports.catalog import Role
from clarion.sandbox.provider import open_provider
from clarion.testing.clock import ManualClock
from tests.integration.api_harness import OTHER, WELCOME, ApiHarness, seeded_api
from tests.integration.api_server import serving
from tests.unit.pipeline_line import TENANT

HEALTH = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
ELSEWHERE = "127.0.0.2"
"""Another address of this machine, for a second source."""


class Peer:
    """One connection of a caller."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Send a request, and read the status and the body of its answer."""
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        (length,) = [int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")]
        return int(head.split()[1]), await self.reader.readexactly(length)

    async def rest(self) -> bytes:
        """Read until the server closes the connection."""
        try:
            return await self.reader.read()
        except ConnectionError:
            return b""

    @property
    def is_open(self) -> bool:
        return not self.reader.at_eof()


async def connect(stack: AsyncExitStack, port: int, *, source: str = "127.0.0.1") -> Peer:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
    stack.enter_context(closing(writer))
    return Peer(reader, writer)


def request(
    api: ApiHarness,
    path: str,
    *lines: str,
    method: str = "GET",
    role: Role | None = Role.ADMIN,
    tenant_id: str = TENANT,
) -> bytes:
    key = [f"authorization: Bearer {api.keys[tenant_id, role]}"] if role else []
    return "\r\n".join([f"{method} {path} HTTP/1.1", "host: 127.0.0.1", *key, *lines, "", ""]).encode()


async def test_strangers_who_hold_connections_take_them_from_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """2,050 idle connections that had asked for /health once made every answer 503, that of /health too."""
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 20)
    api = await seeded_api()
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serving(api))
        caller = await connect(stack, port)  # before everybody else, so that it is the oldest
        assert (await caller.ask(request(api, "/v1/types")))[0] == 200
        probe = await connect(stack, port, source=ELSEWHERE)
        assert (await probe.ask(HEALTH))[0] == 200

        strangers = []
        for _ in range(50):
            strangers.append(await connect(stack, port))
            assert (await strangers[-1].ask(HEALTH))[0] == 200
        assert [await one.rest() for one in strangers[:40]] == [b""] * 40
        assert [one.is_open for one in strangers[40:]] == [True] * 10  # half of the places, for one source

        for peer in (caller, await connect(stack, port), await connect(stack, port, source=ELSEWHERE)):
            assert (await peer.ask(request(api, "/v1/types")))[0] == 200
            body = msgspec.json.encode(WELCOME)
            send = request(
                api,
                "/v1/notifications",
                *("content-type: application/json", f"content-length: {len(body)}"),
                method="POST",
            )
            assert (await peer.ask(send + body))[0] == 202
        assert (await probe.ask(HEALTH))[0] == 200


async def test_many_sources_with_a_few_connections_each_do_not_shut_callers_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 20)
    api = await seeded_api()
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serving(api))
        for number in range(40):
            stranger = await connect(stack, port, source=f"127.0.1.{number + 1}")
            assert (await stranger.ask(HEALTH))[0] == 200
        caller = await connect(stack, port)
        assert (await caller.ask(request(api, "/v1/types")))[0] == 200


async def test_a_tenant_that_holds_every_connection_gives_up_those_that_it_does_not_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """2,000 idle connections with one tenant's key made every answer to others 503, for as long as it liked."""
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 3)
    api = await seeded_api()
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serving(api))
        holding = []
        for _ in range(3):
            holding.append(await connect(stack, port))
            assert (await holding[-1].ask(request(api, "/v1/types")))[0] == 200
        assert (await holding[0].ask(request(api, "/v1/types")))[0] == 200
        other = await connect(stack, port)
        assert (await other.ask(HEALTH))[0] == 200
        assert (await other.ask(request(api, "/v1/types", tenant_id=OTHER)))[0] == 200
        assert await holding[1].rest() == b"", "used least lately"
        for peer in (holding[0], holding[2], other):
            assert (await peer.ask(request(api, "/v1/types")))[0] == 200


async def test_a_caller_that_has_to_leave_gets_its_answer_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 1)
    api = await seeded_api()
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serving(api))
        busy, body = await connect(stack, port), msgspec.json.encode(WELCOME)
        assert (await busy.ask(request(api, "/v1/types")))[0] == 200
        lines = ("content-type: application/json", f"content-length: {len(body)}")
        busy.writer.write(request(api, "/v1/notifications", *lines, method="POST") + body[:1])
        await asyncio.sleep(0.1)  # until its key is checked, and its body waited for
        late = await connect(stack, port)
        assert (await late.ask(HEALTH))[0] == 200
        assert (await busy.ask(body[1:]))[0] == 202
        assert await busy.rest() == b""
        assert (await late.ask(request(api, "/v1/types")))[0] == 200


@pytest.mark.parametrize("lines", [(), ("content-type: application/json", "content-length: 100")])
async def test_whoever_shows_no_key_is_answered_once_and_not_kept(lines: tuple[str, ...]) -> None:
    api = await seeded_api()
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serving(api))
        peer = await connect(stack, port)
        status, _ = await peer.ask(request(api, "/v1/notifications", *lines, method="POST", role=None))
        assert (status, await peer.rest()) == (401, b"")


async def test_a_body_that_does_not_come_in_time_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BODY_TIME_MAX", reading.BODY_TIME_MAX / 400)
    api = await seeded_api()
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serving(api))
        peer = await connect(stack, port)
        lines = ("content-type: application/json", "content-length: 100")
        status, said = await peer.ask(request(api, "/v1/notifications", *lines, method="POST"))
        assert (status, msgspec.json.decode(said)["code"]) == (408, "too-slow")
        assert await peer.rest() == b""


async def test_a_body_that_nobody_reads_is_not_taken_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "REST_MAX", server.REST_MAX / 40)
    api = await seeded_api()
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serving(api))
        peer = await connect(stack, port)
        unwanted = request(api, "/v1/types", "content-length: 1000000")
        assert (await peer.ask(unwanted + b"x"))[0] == 200
        assert await peer.rest() == b""


async def test_a_body_that_nobody_reads_and_that_ends_does_not_end_the_connection() -> None:
    api = await seeded_api()
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serving(api))
        peer = await connect(stack, port)
        assert (await peer.ask(request(api, "/v1/types", "content-length: 4")))[0] == 200
        peer.writer.write(b"rest")
        assert (await peer.ask(HEALTH))[0] == 200


async def test_an_answer_that_nobody_takes_is_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "TAKING_MAX", server.TAKING_MAX / 400)
    api = await seeded_api()
    ended = asyncio.Event()

    async def pour(_scope: object, _receive: object, send: object) -> None:
        assert callable(send)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(200):
            await send({"type": "http.response.body", "body": bytes(1_000_000), "more_body": True})
        ended.set()

    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serving(api))
        monkeypatch.setattr(api.door, "app", pour)
        peer = await connect(stack, port)
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]  # of a transport that reads
        peer.writer.write(HEALTH)
        async with asyncio.timeout(20):
            await ended.wait()  # nothing is sent any more once the connection is gone
        monkeypatch.undo()


async def test_receipts_that_never_end_leave_room_for_the_providers(tmp_path: Path) -> None:
    """20 bodies that did not end kept every provider out for 19 seconds."""
    clock = ManualClock()
    sandbox = await open_provider(f"sandbox://{tmp_path}/sandbox.db", clock=clock)
    api = ApiHarness(clock=clock, reporters={"sandbox": sandbox})
    await api.seed()
    path = "/v1/receipts/sandbox"
    signed = [f"{name}: {value}" for name, value in sign(bytes(32), webhook_id="w", at=clock.now(), body=b"").items()]
    async with AsyncExitStack() as stack:
        stack.push_async_callback(sandbox.close)
        port = await stack.enter_async_context(serving(api))
        bare = await connect(stack, port)  # is refused by its headers alone
        status, said = await bare.ask(request(api, path, "content-length: 100", method="POST", role=None))
        assert (status, msgspec.json.decode(said)["code"]) == (401, "signature-refused")
        assert await bare.rest() == b""

        endless = [await connect(stack, port) for _ in range(2 * reading.STRANGE_BODIES_MAX)]
        for peer in endless:
            peer.writer.write(request(api, path, *signed, "content-length: 100", method="POST", role=None) + b"{")
        async with asyncio.timeout(reading.BODY_TIME_MAX.total_seconds() / 2):  # long before any of them is out of time
            for peer in endless[: -reading.STRANGE_BODIES_MAX // 2]:  # all but half of the places
                assert (await peer.rest()).startswith(b"HTTP/1.1 408 ")

        body = b'{"events":[]}'
        _, secret = await sandbox.identity()
        own = [f"{name}: {value}" for name, value in sign(secret, webhook_id="w", at=clock.now(), body=body).items()]
        for source in ("127.0.0.1", ELSEWHERE):  # behind a proxy everybody has one address
            provider = await connect(stack, port, source=source)
            lines = (*own, f"content-length: {len(body)}")
            status, said = await provider.ask(request(api, path, *lines, method="POST", role=None) + body)
            assert (status, msgspec.json.decode(said)["field"]) == (422, "events")  # read, and found to be its own


async def test_bodies_of_one_tenant_that_never_end_take_no_place_from_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "BODIES_MAX", 4)
    api = await seeded_api()
    lines = ("content-type: application/json", "content-length: 100")
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serving(api))
        endless = [await connect(stack, port) for _ in range(5)]
        for peer in endless:
            peer.writer.write(request(api, "/v1/notifications", *lines, method="POST"))
        async with asyncio.timeout(reading.BODY_TIME_MAX.total_seconds() / 2):
            for peer in endless[:3]:
                assert (await peer.rest()).startswith(b"HTTP/1.1 408 ")
        assert (await (await connect(stack, port)).ask(request(api, "/v1/types")))[0] == 200


@pytest.mark.parametrize("host", ["a:b", "a:99999", "a:-1", "a b", "a/b", "[::1", "::1", "a@b", "[::1]:b"])
async def test_a_host_that_is_none_is_refused(host: str) -> None:
    """`Host: a:b` was answered 500."""
    api = await seeded_api()
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serving(api))
        peer = await connect(stack, port)
        for path in ("/health", "/v1/nothing"):
            status, said = await peer.ask(f"GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n".encode())
            assert (status, msgspec.json.decode(said)["code"]) == (400, "malformed")


@pytest.mark.parametrize("lines", ["", "host: a\r\nhost: a\r\n"])
async def test_a_request_has_one_host(lines: str) -> None:
    api = await seeded_api()
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serving(api))
        peer = await connect(stack, port)
        assert (await peer.ask(f"GET /health HTTP/1.1\r\n{lines}\r\n".encode()))[0] == 400


@pytest.mark.parametrize("host", ["a", "a:1", "a:", "127.0.0.1:65535", "[::1]:8025", "[2001:db8::1]", "x.example.", ""])
async def test_a_host_is_a_name_or_an_address_with_or_without_a_port(host: str) -> None:
    api = await seeded_api()
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serving(api))
        peer = await connect(stack, port)
        assert (await peer.ask(f"GET /health HTTP/1.1\r\nhost: {host}\r\n\r\n".encode()))[0] == 200
        old = await connect(stack, port)
        assert (await old.ask(b"GET /health HTTP/1.0\r\n\r\n"))[0] == 200

"""The API on a real port: heads and bodies without end, heads that never come, and requests that are cut off."""

import asyncio
import socket
from typing import cast

import msgspec
import pytest

from clarion.api import door, server
from clarion.ports.catalog import Role
from tests.integration.api_harness import WELCOME, ApiHarness, seeded_api
from tests.integration.api_server import serving
from tests.unit.pipeline_line import TENANT


async def exchange(port: int, *chunks: bytes, ends: bool = False) -> bytes:
    """Send chunks and read until the server closes the connection or has answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for chunk in chunks:
            writer.write(chunk)
            try:
                await writer.drain()
            except ConnectionError:
                break  # the server closed the connection before all was sent
        if ends:
            writer.write_eof()
        try:
            return await reader.read(65536)
        except ConnectionError:
            return b""
    finally:
        writer.close()


def head(api: ApiHarness, *lines: str) -> bytes:
    key = api.keys[TENANT, Role.SENDER]
    start = ["POST /v1/notifications HTTP/1.1", "host: 127.0.0.1", f"authorization: Bearer {key}"]
    return "\r\n".join([*start, *lines, "", ""]).encode()


async def test_a_body_of_ten_megabytes_is_refused_while_it_is_being_sent() -> None:
    api = await seeded_api()
    async with serving(api) as port:
        announced = head(api, "content-type: application/json", "content-length: 10000000")
        answer = await exchange(port, announced, *[b" " * 65536] * 160)
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"application/problem+json" in answer


async def test_a_body_without_an_end_is_refused_too() -> None:
    api = await seeded_api()
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    async with serving(api) as port:
        start = head(api, "content-type: application/json", "transfer-encoding: chunked")
        assert (await exchange(port, start, *[chunk] * 20)).startswith(b"HTTP/1.1 413 ")


async def test_a_head_without_an_end_is_cut_off() -> None:
    api = await seeded_api()
    async with serving(api) as port:
        start = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nx-endless: "
        answer = await exchange(port, start, *[b"a" * 16384] * 40)
        assert answer in (b"", server._REFUSED)


async def test_a_head_that_is_too_large_but_ends_is_told_why() -> None:
    api = await seeded_api()
    async with serving(api) as port:
        answer = await exchange(port, head(api, f"x-padding: {'a' * 20_000}"))
        assert answer.startswith(b"HTTP/1.1 431 ")
        assert b"headers-too-large" in answer


async def test_a_head_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEAD_MAX", server.HEAD_MAX / 100)
    api = await seeded_api()
    async with serving(api) as port:
        assert await exchange(port, b"GET /health HTTP/1.1\r\nhost: ") == b""
        assert await exchange(port) == b""


async def test_an_open_connection_is_kept_for_the_next_request() -> None:
    api = await seeded_api()
    async with serving(api) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(3):
            writer.write(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert await reader.readexactly(len(b'{"alive":true}')) == b'{"alive":true}'
            assert b"server:" not in answer.lower()
        writer.close()


async def test_no_part_of_an_answer_waits_for_the_one_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    api = await seeded_api()
    made: list[server.BoundedProtocol] = []
    begin = server.BoundedProtocol.connection_made

    def keep(self: server.BoundedProtocol, transport: asyncio.Transport) -> None:
        begin(self, transport)
        made.append(self)

    monkeypatch.setattr(server.BoundedProtocol, "connection_made", keep)
    async with serving(api) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        await exchange(port, b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        options = [
            one.transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            for one in made[:1]
        ]
        writer.close()
    assert [bool(option) for option in options] == [True]


async def test_head_and_body_of_an_answer_are_one_packet(monkeypatch: pytest.MonkeyPatch) -> None:
    api = await seeded_api()
    sent: list[bytes] = []

    class Noted:
        def __init__(self, transport: asyncio.Transport) -> None:
            self._transport = transport

        def __getattr__(self, name: str) -> object:
            return getattr(self._transport, name)

        def write(self, data: bytes) -> None:
            sent.append(data)
            self._transport.write(data)

    begin = server.BoundedProtocol.connection_made

    def note(self: server.BoundedProtocol, transport: asyncio.Transport) -> None:
        begin(self, cast("asyncio.Transport", Noted(transport)))

    monkeypatch.setattr(server.BoundedProtocol, "connection_made", note)
    async with serving(api) as port:
        alive = await exchange(port, b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert sent == [alive]
        assert alive.endswith(b'\r\n\r\n{"alive":true}')


async def test_a_head_that_no_body_follows_is_sent_all_the_same() -> None:
    api = await seeded_api()
    async with serving(api) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for method, status in ((b"OPTIONS", b"204"), (b"HEAD", b"405"), (b"OPTIONS", b"204")):
            writer.write(method + b" /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 " + status)
        lines = ("content-type: application/json", "content-length: 2", "expect: 100-continue")
        writer.write(head(api, *lines))
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"{}")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 422 ")
        writer.close()


async def test_a_request_that_is_cut_off_is_nobodys_and_the_server_goes_on() -> None:
    api = await seeded_api()
    async with serving(api) as port:
        start = head(api, "content-type: application/json", "content-length: 100")
        await exchange(port, start, b'{"type":', ends=True)
        answer = await exchange(port, b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("garbage", [b"\x16\x03\x01\x02\x00\x01", b"nonsense\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"])
async def test_what_is_no_http_is_refused(garbage: bytes) -> None:
    api = await seeded_api()
    async with serving(api) as port:
        assert not (await exchange(port, garbage, ends=True)).startswith(b"HTTP/1.1 2")


async def test_nobody_says_for_somebody_else_where_they_sit(monkeypatch: pytest.MonkeyPatch) -> None:
    api = await seeded_api()
    seen = []

    async def look(scope: dict[str, object], _receive: object, _send: object) -> None:
        seen.append(scope.get("client"))

    async with serving(api) as port:
        monkeypatch.setattr(api.door, "app", look)
        request = b"GET / HTTP/1.1\r\nhost: a\r\nx-forwarded-for: 203.0.113.7\r\nconnection: close\r\n\r\n"
        await exchange(port, request)
        monkeypatch.undo()
    assert [str(client).startswith("('127.0.0.1'") for client in seen] == [True]


async def test_a_store_that_hangs_is_not_waited_for_and_what_was_begun_comes_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Callers give up after some seconds, and should hear before that what they can do.
    monkeypatch.setattr(door, "ANSWER_MAX", door.ANSWER_MAX / 40)
    api = await seeded_api()
    ensure, asked, goes_on = api.memory.ensure_notification_jobs, asyncio.Event(), asyncio.Event()

    async def hanging(*args: object, **options: object) -> object:
        asked.set()
        await goes_on.wait()
        return await ensure(*args, **options)  # type: ignore[arg-type]  # passed on as they are

    monkeypatch.setattr(api.memory, "ensure_notification_jobs", hanging)
    body = msgspec.json.encode(WELCOME)
    lines = ("content-type: application/json", f"content-length: {len(body)}", "idempotency-key: one")
    async with serving(api) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head(api, *lines) + body)
        answer = await reader.readuntil(b"}")
        assert asked.is_set()
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 5\r\n" in answer
        assert b"try again with the same Idempotency-Key" in answer
        goes_on.set()
        writer.write(head(api, *lines, "connection: close") + body)  # on the same connection, which is as it was
        again = await reader.read()
        writer.close()
    assert again.startswith(b"HTTP/1.1 202 ")
    assert msgspec.json.decode(again.partition(b"\r\n\r\n")[2])["repeated"] is True


async def test_a_slow_caller_is_not_taken_for_a_slow_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "ANSWER_MAX", door.ANSWER_MAX / 40)
    api = await seeded_api()
    body = msgspec.json.encode(WELCOME)
    start = head(api, "content-type: application/json", f"content-length: {len(body)}", "connection: close")
    async with serving(api) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(start)
        with pytest.raises(TimeoutError):  # nothing is said while the body is still to come
            async with asyncio.timeout(4 * door.ANSWER_MAX.total_seconds()):
                await reader.read(1)
        writer.write(body)
        assert (await reader.read()).startswith(b"HTTP/1.1 202 ")
        writer.close()

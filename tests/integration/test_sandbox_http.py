"""Calls over HTTP: every status, and every way in which a reply can fail to come, byte by byte."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest

from clarion.domain.call import Accepted, CallOutcome, Deferred, Misconfigured, Refused, Unknown
from clarion.errors import BadConfiguration
from clarion.sandbox.remote import RemoteSandbox, open_provider
from clarion.testing.clock import ManualClock
from clarion.testing.contracts.provider import call_to


@asynccontextmanager
async def connected(port: int, query: str = "") -> AsyncIterator[RemoteSandbox]:
    provider = await open_provider(f"sandbox+http://127.0.0.1:{port}{query}", clock=ManualClock())
    yield provider
    await provider.close()


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    (length,) = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return await reader.readexactly(int(length.split(b":")[1]))


class Peer:
    """A server that reads requests and does one thing, byte by byte."""

    def __init__(self, act: Callable[["Peer", asyncio.StreamWriter], Any]) -> None:
        self.act = act
        self.requests = 0
        self.writers: list[asyncio.StreamWriter] = []
        self.over = asyncio.Event()

    @property
    def connections(self) -> int:
        return len(self.writers)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        try:
            while not writer.is_closing():
                await read_request(reader)
                self.requests += 1
                await self.act(self, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def leave(self) -> None:
        """Close every connection, with what nobody read: none outlives its test."""
        self.over.set()
        for writer in self.writers:
            writer.transport.abort()
            with suppress(ConnectionError):
                await writer.wait_closed()


@asynccontextmanager
async def peer(act: Callable[[Peer, asyncio.StreamWriter], Any]) -> AsyncIterator[tuple[Peer, int]]:
    one = Peer(act)
    server = await asyncio.start_server(one.serve, "127.0.0.1", 0)
    async with server:
        try:
            yield one, server.sockets[0].getsockname()[1]
        finally:
            await one.leave()


def says(text: str) -> Callable[[Peer, asyncio.StreamWriter], Any]:
    """Make an act that sends some bytes and hangs up."""

    async def act(_: Peer, writer: asyncio.StreamWriter) -> None:
        writer.write(text.encode())
        await writer.drain()
        writer.close()

    return act


async def hangs_up(_: Peer, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def resets(_: Peer, writer: asyncio.StreamWriter) -> None:
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    writer.transport.abort()


async def stalls(one: Peer, _: asyncio.StreamWriter) -> None:
    await one.over.wait()


# What a reply means, and what none does.


@pytest.mark.parametrize(
    "act",
    [
        hangs_up,
        resets,
        says("HTTP/1.1 202 Acc"),
        says("HTTP/1.1 202 Accepted\r\nContent-Length: 100\r\n\r\n{"),
        says("hello, this is no HTTP\r\n\r\n"),
    ],
    ids=["closed", "reset", "half a head", "half a body", "no HTTP"],
)
async def test_a_reply_that_did_not_come_whole_leaves_it_unknown(
    act: Callable[[Peer, asyncio.StreamWriter], Any],
) -> None:
    async with peer(act) as (one, port), connected(port) as provider:
        assert isinstance(await provider.send(call_to("ann")), Unknown)
        assert one.requests == 1


async def test_a_reply_that_does_not_come_in_time_leaves_it_unknown() -> None:
    async with peer(stalls) as (one, port), connected(port, "?timeout=200ms") as provider:
        outcome = await provider.send(call_to("ann"))
        assert isinstance(outcome, Unknown)
        assert one.requests == 1


async def test_a_connection_that_breaks_on_its_second_call_leaves_that_one_unknown() -> None:
    """On a connection that is used again too, what has left is not sent once more."""

    async def act(one: Peer, writer: asyncio.StreamWriter) -> None:
        if one.requests == 1:
            writer.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
        else:
            await resets(one, writer)

    async with peer(act) as (one, port), connected(port) as provider:
        assert await provider.send(call_to("ann")) == Accepted()
        assert isinstance(await provider.send(call_to("ann")), Unknown)
        assert (one.requests, one.connections) == (2, 1)


async def test_a_connection_that_was_closed_while_idle_costs_nothing() -> None:
    async with peer(says("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")) as (one, port):
        async with connected(port) as provider:
            for _ in range(5):
                assert await provider.send(call_to("ann")) == Accepted()
        assert one.requests == 5


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_nobody_listening_defers() -> None:
    async with connected(free_port()) as provider:
        outcome = await provider.send(call_to("ann"))
    assert isinstance(outcome, Deferred)
    assert "refused" in outcome.reason


async def test_a_host_that_does_not_exist_defers() -> None:
    provider = await open_provider("sandbox+http://no-such-host.invalid:80", clock=ManualClock())
    assert isinstance(await provider.send(call_to("ann")), Deferred)
    await provider.close()


async def test_a_connection_that_never_stands_defers() -> None:
    """A server whose queue is full does not answer the first packet: no byte of ours has left."""
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for waiting in (first, second):
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        async with connected(full.getsockname()[1], "?timeout=400ms") as provider:
            assert isinstance(await provider.send(call_to("ann")), Deferred)


@pytest.mark.parametrize(
    "status, expected",
    [
        (200, Accepted()),
        (202, Accepted()),
        (302, Misconfigured(reason="the provider replied 302")),
        (400, Refused(reason="the provider replied 400")),
        (401, Misconfigured(reason="the provider replied 401")),
        (403, Misconfigured(reason="the provider replied 403")),
        (410, Refused(reason="the provider replied 410", recipient_not_found=True)),
        (413, Refused(reason="the provider replied 413")),
        (429, Deferred(reason="the provider replied 429", retry_after=timedelta(seconds=7), throttled=True)),
        (500, Unknown(reason="the provider replied 500")),
        (502, Unknown(reason="the provider replied 502")),
        (503, Deferred(reason="the provider replied 503", retry_after=timedelta(seconds=7))),
        (504, Unknown(reason="the provider replied 504")),
        (599, Unknown(reason="the provider replied 599")),
    ],
)
async def test_every_status_has_its_outcome(status: int, expected: CallOutcome) -> None:
    reply = f"HTTP/1.1 {status} X\r\nRetry-After: 7\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    async with peer(says(reply)) as (one, port), connected(port) as provider:
        assert await provider.send(call_to("ann")) == expected
        assert one.requests == 1


@pytest.mark.parametrize(
    "body, ident",
    [('{"id":"a"}', "a"), ('{"id":null}', None), ("{}", None), ("no JSON", None), ("[]", None), ('{"id":1}', None)],
)
async def test_an_acceptance_without_a_readable_id_is_an_acceptance(body: str, ident: str | None) -> None:
    reply = f"HTTP/1.1 202 X\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    async with peer(says(reply)) as (_, port), connected(port) as provider:
        assert await provider.send(call_to("ann")) == Accepted(provider_message_id=ident)


@pytest.mark.parametrize(
    "status, expected",
    [
        (202, Accepted()),
        (429, Deferred(reason="the provider replied 429", throttled=True)),
        (503, Deferred(reason="the provider replied 503")),
    ],
)
async def test_a_header_that_is_no_text_does_not_undo_its_reply(status: int, expected: CallOutcome) -> None:
    """F-28: the reply came whole, so nothing is unknown about it."""
    reply = f"HTTP/1.1 {status} X\r\nRetry-After: ÿ\r\nDate: ÿ\r\nContent-Length: 0\r\n\r\n"
    async with peer(says(reply)) as (_, port), connected(port) as sandbox:
        assert await sandbox.send(call_to("sam@example.com")) == expected


async def test_a_reply_that_does_not_end_is_judged_by_its_status_and_not_read_on() -> None:
    async def act(_: Peer, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:  # until the other side closes the connection
            writer.write(b"1000\r\n" + b"x" * 0x1000 + b"\r\n")
            await writer.drain()

    async with peer(act) as (one, port), connected(port) as provider:
        assert await provider.send(call_to("ann")) == Accepted()
        assert one.requests == 1


@pytest.mark.parametrize(
    "url",
    [
        "sandbox+http://host",
        "sandbox+http://:80",
        "sandbox+http://host:80/path",
        "sandbox+http://a:b@host:80",
        "sandbox+http://host:x",
    ],
)
async def test_a_url_that_cannot_be_used_says_so(url: str) -> None:
    with pytest.raises(BadConfiguration, match="does not name a host and a port"):
        await open_provider(url, clock=ManualClock())

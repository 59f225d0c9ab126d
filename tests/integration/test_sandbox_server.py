"""The sandbox's server as a process of its own: what it keeps, what it can be told to do, how it starts and stops."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyreqwest.client import ClientBuilder

from clarion.domain.call import Accepted, Deferred, Unknown
from clarion.sandbox.remote import RemoteSandbox, open_provider
from clarion.testing.clock import ManualClock
from clarion.testing.contracts.provider import call_to


@asynccontextmanager
async def connected(port: int, query: str = "") -> AsyncIterator[RemoteSandbox]:
    provider = await open_provider(f"sandbox+http://127.0.0.1:{port}{query}", clock=ManualClock())
    yield provider
    await provider.close()


@contextmanager
def started(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start a server and stop it again."""
    process = subprocess.Popen(
        [sys.executable, "-m", "clarion.sandbox.server", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        yield process, json.loads(line)["port"]
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


async def ask(port: int, method: str, path: str, body: object = None) -> Any:
    """Ask the server something besides calls."""
    async with ClientBuilder().no_proxy().build() as client:
        content = json.dumps(body).encode() if body is not None else b""
        response = await client.request(method, f"http://127.0.0.1:{port}{path}").body_bytes(content).build().send()
        return json.loads(bytes(await response.bytes()))


async def test_the_server_keeps_a_ledger_that_outlives_it(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    with started("--file", str(ledger)) as (_, port):
        async with connected(port) as provider:
            calls = [call_to("ann", key=f"key-{number}") for number in range(50)]
            outcomes = await asyncio.gather(*map(provider.send, calls))
            assert all(isinstance(outcome, Accepted) for outcome in outcomes)
            await provider.send(call_to("ann", key="key-0"))
            await provider.send(call_to("unknown", key="key-u"))
            await provider.send(call_to("defer", key="key-d"))
        totals = await ask(port, "GET", "/totals")
    with started("--file", str(ledger)) as (_, port):
        assert await ask(port, "GET", "/totals") == totals
        deliveries = await ask(port, "GET", "/deliveries")
    assert totals == {
        "calls": 53,
        "accepted": 52,
        "duplicates": 0,
        "turned_down": 1,
        "lost": 0,
        "keys": 52,
        "repeated_keys": 1,
        "open": 0,
    }
    assert deliveries == {f"key-{n}": 1 for n in range(1, 50)} | {"key-0": 2, "key-u": 1, "key-d": 0}


async def test_a_server_that_dedupes_delivers_a_key_once(tmp_path: Path) -> None:
    with started("--file", str(tmp_path / "ledger.db"), "--dedupe", "24h") as (_, port):
        async with connected(port, "?dedupe=24h") as provider:
            outcomes = await asyncio.gather(*(provider.send(call_to("ann", attempt=n)) for n in range(1, 9)))
        assert len(set(outcomes)) == 1
        totals = await ask(port, "GET", "/totals")
    assert (totals["calls"], totals["accepted"], totals["duplicates"]) == (8, 1, 7)


async def test_a_reply_that_is_held_back_shows_as_an_open_call_that_is_in_the_ledger(tmp_path: Path) -> None:
    with started("--file", str(tmp_path / "ledger.db")) as (_, port):
        assert await ask(port, "PUT", "/behaviour", {"hold_seconds": -1}) == {}
        async with connected(port) as provider, asyncio.TaskGroup() as tasks:
            sending = tasks.create_task(provider.send(call_to("ann")))
            while (await ask(port, "GET", "/totals"))["open"] == 0:
                assert not sending.done()
            assert (await ask(port, "GET", "/totals"))["accepted"] == 1
            await ask(port, "POST", "/release")
            assert isinstance(await sending, Accepted)
        assert (await ask(port, "GET", "/totals"))["open"] == 0


async def test_a_caller_that_was_killed_leaves_no_open_call(tmp_path: Path) -> None:
    """Its connection is gone, though its reply is still held back."""
    with started("--file", str(tmp_path / "ledger.db"), "--hold", "1h") as (_, port):
        with socket.create_connection(("127.0.0.1", port)) as caller:
            body = msgspec.json.encode(call_to("ann"))
            caller.sendall(b"POST /calls HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            while (await ask(port, "GET", "/totals"))["open"] == 0:
                pass
        while (await ask(port, "GET", "/totals"))["open"] == 1:
            pass
        assert (await ask(port, "GET", "/totals"))["accepted"] == 1


async def test_a_behaviour_is_for_as_many_calls_as_it_says(tmp_path: Path) -> None:
    with started("--file", str(tmp_path / "ledger.db")) as (_, port):
        async with connected(port) as provider:
            await ask(port, "PUT", "/behaviour", {"status": 503, "retry_after": "3", "times": 2})
            outcomes = [await provider.send(call_to("ann")) for _ in range(3)]
            assert outcomes[:2] == [Deferred(reason="the provider replied 503", retry_after=timedelta(seconds=3))] * 2
            assert isinstance(outcomes[2], Accepted)
            await ask(port, "PUT", "/behaviour", {"drop": "before", "times": 1})
            assert isinstance(await provider.send(call_to("ann", key="before")), Unknown)
            await ask(port, "PUT", "/behaviour", {"drop": "after", "times": 1})
            assert isinstance(await provider.send(call_to("ann", key="after")), Unknown)
        assert await ask(port, "GET", "/deliveries") == {"key-1": 1, "after": 1}


async def test_a_sink_accepts_and_keeps_nothing() -> None:
    with started("--sink") as (_, port):
        async with connected(port) as provider:
            assert await provider.send(call_to("fail")) == Accepted(provider_message_id="sink")
        assert "error" in await ask(port, "GET", "/totals")


async def test_what_is_no_call_is_refused(tmp_path: Path) -> None:
    with started("--file", str(tmp_path / "ledger.db")) as (_, port):
        assert "error" in await ask(port, "POST", "/calls", {"hello": 1})
        assert "error" in await ask(port, "PUT", "/behaviour", {"hold": 1})
        assert "error" in await ask(port, "GET", "/nothing")
        with socket.create_connection(("127.0.0.1", port)) as caller:
            caller.sendall(b"POST /calls HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n")
            assert caller.recv(100).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    "arguments, complaint",
    [
        ([], "--file is needed"),
        (["--file", "/proc/nowhere/x.db"], "cannot be used"),
        (["--sink", "--hold", "soon"], "soon"),
    ],
)
def test_a_server_that_cannot_start_says_why(arguments: list[str], complaint: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "clarion.sandbox.server", *arguments], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_an_error_of_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "clarion.sandbox.server", "--sink", "--port", str(port)],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


async def test_the_server_says_in_our_words_what_is_wrong_with_a_body(tmp_path: Path) -> None:
    with started("--file", str(tmp_path / "ledger.db")) as (_, port):
        assert await ask(port, "PUT", "/behaviour", {"drop": 7}) == {
            "error": "drop: it is a whole number and must be text or null"
        }
        assert await ask(port, "PUT", "/behaviour", {"nope": 7}) == {"error": "nope: there is no such field"}
        assert await ask(port, "POST", "/calls", {}) == {"error": "idempotency_key: it is missing"}

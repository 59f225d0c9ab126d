"""The sandbox as a process of its own: a small HTTP server over a ledger, for tests that kill everything else.

    python -m clarion.sandbox.server --port 0 --file /tmp/ledger.db [--dedupe 24h] [--hold 20ms] [--sink]

It prints one line of JSON with its port and serves until it is told to stop. A reply goes out only after its call is
in the file; calls that arrive together share a transaction. A call is *open* from its last byte to its reply.

| request | what it does |
|---|---|
| `POST /calls` | takes a call (the JSON of `domain.call.Call`), fails as its destination asks (`fault`) |
| `GET /totals` | the counts of the ledger, and how many calls are open |
| `GET /deliveries` | deliveries by idempotency key, for every key that was called |
| `PUT /behaviour` | replaces what is done to the calls from now on (`Behaviour`) |
| `POST /release` | sends the replies that are held back |

`--hold` keeps every reply back for a while; `--sink` keeps no records and holds nothing, for measuring clients. Faults
on the wire: 410 for `nobody`, 422 for `fail`, 503, 429 with Retry-After, 401, and a closed connection for a lost reply.
"""

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, nullcontext
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Final, Literal, assert_never

import msgspec

from clarion.domain.call import Call
from clarion.domain.misfit import read_json_fault, read_misfit
from clarion.errors import ClarionError
from clarion.sandbox.connection import Connection
from clarion.sandbox.fault import THROTTLE_PAUSE, Fault, Options, parse_span
from clarion.sandbox.ledger import Entry, Ledger
from clarion.sandbox.provider import ending_of

_SUNK: Final = (
    b"HTTP/1.1 202 Accepted\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\r\n" + b'{"id":"sink"}'
)


class Behaviour(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is done to every call, besides what its destination asks for.

    `hold_seconds` keeps the reply back, for ever if it is negative (`POST /release` ends that); `status` replies so
    instead of taking the call; `drop` closes the connection, before the call is taken or after; `times` is how many
    calls this is for, after which there is nothing special any more.
    """

    hold_seconds: float = 0.0
    status: int | None = None
    retry_after: str | None = None
    drop: Literal["before", "after"] | None = None
    times: int | None = None


class SandboxServer:
    """Takes calls, writes them down, and answers."""

    def __init__(self, ledger: Ledger | None, options: Options, *, behaviour: Behaviour) -> None:
        """Serve over a ledger, whose clock tells the time, or over none for a sink."""
        self._ledger = ledger
        self._options = options
        self._behaviour = behaviour
        self._waiting: list[tuple[Entry, Callable[[str | None], None]]] = []
        self._held: dict[int, tuple[asyncio.TimerHandle | None, Callable[[], None]]] = {}
        self._numbers = count()
        self._decoder = msgspec.json.Decoder(Call)
        self._connections: set[Connection] = set()
        self._open: set[Connection] = set()

    @property
    def open_calls(self) -> int:
        """Calls that were taken and not yet answered, and whose caller is still there."""
        return len(self._open)

    def answer(self, method: str, path: str, body: bytes, connection: Connection) -> None:
        """Answer one request, now or later."""
        match method, path:
            case "POST", "/calls":
                self._take(body, connection)
            case "GET", "/totals" if self._ledger is not None:
                connection.reply(200, {**msgspec.to_builtins(self._ledger.totals()), "open": self.open_calls})
            case "GET", "/deliveries" if self._ledger is not None:
                connection.reply(200, self._ledger.deliveries())
            case "PUT", "/behaviour":
                self._behave(body, connection)
            case "POST", "/release":
                self.release()
                connection.reply(200, {})
            case _:
                connection.reply(404, {"error": f"there is no {method} {path}"})

    def connected(self, connection: Connection) -> None:
        """Take note of a new connection."""
        self._connections.add(connection)

    def lost(self, connection: Connection) -> None:
        """Forget a connection that was closed: nobody waits for a reply there any more."""
        self._connections.discard(connection)
        self._open.discard(connection)

    def close_connections(self) -> None:
        """Close every connection."""
        for connection in list(self._connections):
            connection.drop()

    def release(self) -> None:
        """Send all replies that are held back."""
        for number in list(self._held):
            self._let_go(number)

    def _behave(self, body: bytes, connection: Connection) -> None:
        """Take on a new behaviour."""
        try:
            self._behaviour = msgspec.json.decode(body, type=Behaviour)
        except msgspec.DecodeError as error:
            connection.reply(400, {"error": _why(error)})
        else:
            connection.reply(200, {})

    def _take(self, body: bytes, connection: Connection) -> None:
        """Take a call: decide its fate, have it written down, answer."""
        if self._ledger is None:
            connection.write(_SUNK)
            return
        try:
            call = self._decoder.decode(body)
        except msgspec.DecodeError as error:
            connection.reply(400, {"error": _why(error)})
            return
        special = self._special()
        if special.drop == "before":
            connection.drop()
            return
        if special.status is not None:
            connection.reply(special.status, {}, retry_after=special.retry_after)
            return
        fault, delay = self._options.fate(call)
        hold = max(delay.total_seconds(), special.hold_seconds) if special.hold_seconds >= 0 else -1.0
        if special.drop == "after":
            fault = Fault.UNKNOWN
        self._open.add(connection)
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._write_down)

        def settle(delivery_id: str | None) -> None:
            self._later(hold, lambda: self._close(connection, fault, delivery_id))

        self._waiting.append((Entry(call, ending_of(fault)), settle))

    def _special(self) -> Behaviour:
        """Return what is done to this call, and count it."""
        behaviour = self._behaviour
        if behaviour.times is not None:
            left = behaviour.times - 1
            self._behaviour = msgspec.structs.replace(behaviour, times=left) if left > 0 else Behaviour()
        return behaviour

    def _write_down(self) -> None:
        """Write down all calls that wait, in one transaction, and answer them."""
        waiting, self._waiting = self._waiting, []
        if self._ledger is not None:
            results = self._ledger.record([entry for entry, _ in waiting], dedupe=self._options.dedupe)
            for (_, settle), delivery_id in zip(waiting, results, strict=True):
                settle(delivery_id)

    def _later(self, seconds: float, send: Callable[[], None]) -> None:
        """Answer now, after a while, or when released."""
        if seconds == 0:
            send()
            return
        number = next(self._numbers)
        loop = asyncio.get_running_loop()
        timer = loop.call_later(seconds, self._let_go, number) if seconds > 0 else None
        self._held[number] = timer, send

    def _let_go(self, number: int) -> None:
        """Send one reply that was held back."""
        timer, send = self._held.pop(number)
        if timer is not None:
            timer.cancel()
        send()

    def _close(self, connection: Connection, fault: Fault, delivery_id: str | None) -> None:
        """Answer a call as its fault wants it."""
        self._open.discard(connection)
        match fault:
            case Fault.NONE | Fault.SLOW | Fault.BOUNCE | Fault.SOFT_BOUNCE | Fault.COMPLAIN | Fault.STOP:
                connection.reply(202, {"id": delivery_id})
            case Fault.FAIL:
                connection.reply(422, {"error": "refused"})
            case Fault.NOBODY:
                connection.reply(410, {"error": "no such recipient"})
            case Fault.DEFER:
                connection.reply(503, {"error": "not now"})
            case Fault.THROTTLE:
                connection.reply(429, {"error": "too many"}, retry_after=str(THROTTLE_PAUSE.seconds))
            case Fault.MISCONFIGURED:
                connection.reply(401, {"error": "not allowed"})
            case Fault.UNKNOWN | Fault.LOST:
                connection.drop()
            case _:
                assert_never(fault)


def _why(error: msgspec.DecodeError) -> str:
    """Say what is wrong with a body."""
    if not isinstance(error, msgspec.ValidationError):
        return f"the body is no JSON, {read_json_fault(str(error))}"
    misfit = read_misfit(str(error))
    return f"{misfit.field or 'the body'}: {misfit.what}" + (f", {misfit.hint}" if misfit.hint else "")


@asynccontextmanager
async def listening(sandbox: SandboxServer, *, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[int]:
    """Answer on a port, any that is free for 0, until the block ends; the block is told which."""
    server = await asyncio.get_running_loop().create_server(lambda: Connection(sandbox), host, port, backlog=1024)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        sandbox.close_connections()
        await server.wait_closed()


async def serve(sandbox: SandboxServer, *, host: str, port: int) -> None:
    """Serve until the process is told to stop."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with listening(sandbox, host=host, port=port) as bound:
        sys.stdout.write(json.dumps({"port": bound}) + "\n")
        sys.stdout.flush()
        await stopped.wait()


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m clarion.sandbox.server", description="A provider that keeps a ledger."
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 for any that is free")
    parser.add_argument("--file", type=Path, help="where the ledger is; needed unless --sink")
    parser.add_argument(
        "--dedupe", type=parse_span, help="answer a repeated key without a second delivery, for so long"
    )
    parser.add_argument("--hold", type=parse_span, default=timedelta(), help="keep every reply back for so long")
    parser.add_argument("--sink", action="store_true", help="keep nothing")
    try:
        given = parser.parse_args(arguments)
        if given.file is None and not given.sink:
            parser.error("--file is needed")
        behaviour = Behaviour(hold_seconds=given.hold.total_seconds())
        with nullcontext() if given.sink else closing(Ledger(given.file)) as ledger:
            sandbox = SandboxServer(ledger, Options(dedupe=given.dedupe), behaviour=behaviour)
            asyncio.run(serve(sandbox, host=given.host, port=given.port))
    except (ClarionError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

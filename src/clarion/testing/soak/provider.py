"""The provider of a soak: the sandbox over HTTP, inside the process that is never killed.

Each program has a door of its own, so that it is known who made a call; both lead to one ledger, so that a provider
that de-duplicates does so for both. Every reply is kept back for a moment: calls are open long enough to be met.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Final

import msgspec

from clarion.domain.call import Call
from clarion.domain.content import EmailContent
from clarion.ports.clock import Clock
from clarion.sandbox.connection import Connection
from clarion.sandbox.fault import Options
from clarion.sandbox.ledger import Ledger
from clarion.sandbox.server import Behaviour, SandboxServer

HOLD: Final = timedelta(milliseconds=40)
"""How long a reply is kept back."""


class TakenCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call as the provider saw it: when, through whose door, to whom, and what it said."""

    at: datetime
    program: str
    message_id: str
    destination: str
    says: str


class Door:
    """The sandbox as one program sees it."""

    def __init__(self, program: str, ledger: Ledger, *, dedupe: timedelta | None, clock: Clock) -> None:
        """Serve one program."""
        self.calls: list[TakenCall] = []
        self._program = program
        self._clock = clock
        behaviour = Behaviour(hold_seconds=HOLD.total_seconds())
        self._sandbox = SandboxServer(ledger, Options(dedupe=dedupe), behaviour=behaviour)
        self._decoder = msgspec.json.Decoder(Call)
        self._at_call: list[Callable[[], None]] = []

    @property
    def open_calls(self) -> int:
        """Calls that were taken and not yet answered."""
        return self._sandbox.open_calls

    def at_next_call(self, do: Callable[[], None]) -> None:
        """Have something done when the next call was taken."""
        self._at_call.append(do)

    def answer(self, method: str, path: str, body: bytes, connection: Connection) -> None:
        """Note a call and leave the rest to the sandbox."""
        call = self._decoder.decode(body)
        says = call.content.subject if isinstance(call.content, EmailContent) else ""
        self.calls.append(
            TakenCall(
                at=self._clock.now(),
                program=self._program,
                message_id=str(call.message_id),
                destination=call.destination,
                says=says,
            )
        )
        self._sandbox.answer(method, path, body, connection)
        waiting, self._at_call = self._at_call, []
        for do in waiting:
            do()

    def connected(self, connection: Connection) -> None:
        """Pass on."""
        self._sandbox.connected(connection)

    def lost(self, connection: Connection) -> None:
        """Pass on."""
        self._sandbox.lost(connection)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """Answer on a free port until the block ends; the block is told which."""
        server = await asyncio.get_running_loop().create_server(lambda: Connection(self), "127.0.0.1", 0)
        try:
            yield int(server.sockets[0].getsockname()[1])
        finally:
            server.close()
            self._sandbox.close_connections()
            await server.wait_closed()

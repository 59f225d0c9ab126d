"""The sandbox in this process: `sandbox:///folder/sandbox.db`, a provider for every channel, and its outbox.

The path is absolute: three slashes before the first folder. The options stand in `fault`. With `dedupe` the account
says that it may be asked again after an unknown outcome, and keeps that promise.

| what happens | outcome |
|---|---|
| the call is written down | accepted, or what the destination asks for |
| the file is busy, full or read-only: nothing was written | deferred |
| the file fails in any other way | unknown |

A second after its reply an accepted message gets its receipt (`fault` says which). It lies in the file until a postman
brings it, and the account recognises it by the file's secret.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

from clarion.domain import signature
from clarion.domain.call import Call, CallOutcome, Deferred, Replay, Unknown
from clarion.domain.identity import Channel
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.suppression import Signal
from clarion.errors import BadConfiguration
from clarion.ports.clock import Clock
from clarion.ports.provider import EVERY_CHANNEL
from clarion.ports.track import ProviderEvent
from clarion.sandbox import report
from clarion.sandbox.fault import Fault, Options, outcome_of
from clarion.sandbox.ledger import Ending, Entry, Ledger, OutboxPage, SandboxMessage
from clarion.sandbox.link import Visitor
from clarion.sandbox.receipt import Receipt, WaitingReceipt

RECEIPT_AFTER: Final = timedelta(seconds=1)
"""From the reply to the receipt: short for a person who waits, and long enough for the reply to be stored first."""

T = TypeVar("T")


class Runner(Protocol):
    """Runs what waits for the disk, one work after the other; a simulation runs it inline."""

    async def run(self, work: Callable[[], T]) -> T:
        """Run one work and return what it returns, or raise what it raises."""
        ...

    async def close(self) -> None:
        """Let go of what runs the works, after those that were asked for before."""
        ...


class OneThread:
    """Runs works in a thread of their own, in the order asked; each is finished even if its caller was canceled."""

    def __init__(self) -> None:
        """Start no thread before the first work."""
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="clarion-sandbox")

    async def run(self, work: Callable[[], T]) -> T:
        """Put the work behind those that wait, and wait for it."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def close(self) -> None:
        """End the thread after the works that wait, each of which is a few statements."""
        self._thread.shutdown(wait=True)


class SandboxProvider:
    """An account that writes down what it is given."""

    channels = EVERY_CHANNEL

    def __init__(self, ledger: Ledger, options: Options, *, clock: Clock, runner: Runner | None = None) -> None:
        """Write to a ledger that is open; it is closed with the provider."""
        self._ledger = ledger
        self._options = options
        self._clock = clock
        self._runner = runner or OneThread()
        self._identity: tuple[str, bytes] | None = None

    @property
    def replay(self) -> Replay:
        """What the options promise."""
        return Replay(dedupe_window=self._options.dedupe)

    async def send(self, call: Call) -> CallOutcome:
        """Write the call down, and answer as its destination asks."""
        fault, delay = self._options.fate(call)
        called_at, said = self._clock.now(), fault.said
        receipt = None if said is None else Receipt(said[0], called_at + delay + RECEIPT_AFTER, said[1])
        entry = Entry(call, ending_of(fault), called_at, receipt)
        try:
            (delivery_id,) = await self._runner.run(partial(self._ledger.record, [entry], dedupe=self._options.dedupe))
        except sqlite3.OperationalError as error:  # busy, full, read-only
            return Deferred(reason=f"the sandbox's file cannot be written ({error})")
        except sqlite3.Error as error:
            return Unknown(reason=f"the sandbox's file failed ({error})")
        if delay:
            await asyncio.sleep(delay.total_seconds())
        return outcome_of(fault, delivery_id=delivery_id)

    def check_headers(self, headers: Mapping[str, str], *, now: datetime) -> None:
        """Refuse what has no signature of the sandbox's kind, or one of another time."""
        signature.check_headers(headers, now=now)

    async def read_reports(
        self, account: str, headers: Mapping[str, str], body: bytes, *, now: datetime
    ) -> Mapping[str, Sequence[ProviderEvent]]:
        """Read a report of the sandbox; it must be signed with the secret that is in the sandbox's file."""
        _, secret = await self.identity()
        signature.verify(secret, headers, body, now=now)
        return report.read(account, body)

    async def identity(self) -> tuple[str, bytes]:
        """Return the name of the file and the secret that signs what it reports."""
        if self._identity is None:
            self._identity = await self._run(self._ledger.identity)
        return self._identity

    async def waiting_receipts(self, *, limit: int) -> Sequence[WaitingReceipt]:
        """Return the receipts that are to be brought by now, the oldest first."""
        return await self._run(partial(self._ledger.waiting_receipts, now=self._clock.now(), limit=limit))

    async def end_receipts(self, ids: Sequence[int]) -> None:
        """Note that these were taken, or refused for good."""
        await self._run(partial(self._ledger.end_receipts, ids, now=self._clock.now()))

    async def _run(self, work: Callable[[], T]) -> T:
        """Work on the file, or raise BadConfiguration where it fails."""
        try:
            return await self._runner.run(work)
        except sqlite3.Error as error:
            raise BadConfiguration(
                f"the sandbox's file failed ({error})", hint="let this user write it, on a disk with space"
            ) from None

    async def close(self) -> None:
        """Close the file after the calls that are being written."""
        await self._runner.run(self._ledger.close)
        await self._runner.close()


class Outbox:
    """What the sandbox accepted, for reading."""

    def __init__(self, ledger: Ledger, *, runner: Runner | None = None) -> None:
        """Read from a ledger that is open; it is closed with the outbox."""
        self._ledger = ledger
        self._runner = runner or OneThread()

    async def page(
        self,
        *,
        before: int | None = None,
        limit: int = 50,
        tenant_id: str | None = None,
        channel: Channel | None = None,
    ) -> OutboxPage:
        """Return messages, the newest first, from behind `before` on; of all tenants where none is named."""
        return await self._runner.run(
            partial(self._ledger.page, before=before, limit=limit, tenant_id=tenant_id, channel=channel)
        )

    async def find(self, message: int, *, tenant_id: str | None = None) -> SandboxMessage | None:
        """Return one message, or None where there is none, or it is another tenant's."""
        return await self._runner.run(partial(self._ledger.find, message, tenant_id=tenant_id))

    async def report(self, message: int, status: OutgoingStatus, signal: Signal | None = None) -> bool:
        """Have a receipt brought for a message of the outbox; False where it has been or will be brought already."""
        return await self._runner.run(partial(self._ledger.add_receipt, message, status, signal))

    async def exchange(self, link: str) -> str | None:
        """Give a browser's session for a one-time link; None where the link opens nothing any more."""
        return await self._runner.run(partial(self._ledger.links.exchange, link))

    async def find_visitor(self, session: str) -> Visitor | None:
        """Say what the holder of a session may see; None where there is no such session now."""
        return await self._runner.run(partial(self._ledger.links.find_visitor, session))

    async def close(self) -> None:
        """Close the file."""
        await self._runner.run(self._ledger.close)
        await self._runner.close()


async def open_provider(url: str, *, clock: Clock) -> SandboxProvider:
    """Open the account that a URL names."""
    path, options = _parse(url)
    return SandboxProvider(Ledger(path), options, clock=clock)


def open_outbox(url: str) -> Outbox:
    """Open the outbox of the account that a URL names, also while others write to it."""
    path, _ = _parse(url)
    return Outbox(Ledger(path))


def make_link(url: str, *, tenant_id: str | None, is_https: bool = False) -> str:
    """Make the token of a one-time link to the outbox of the account that a URL names."""
    path, _ = _parse(url)
    with closing(Ledger(path)) as ledger:
        return ledger.links.make(tenant_id=tenant_id, is_https=is_https)


def sandbox_url(providers: Mapping[str, str]) -> str | None:
    """Find an account of the sandbox in this process among the providers' URLs: only such a one has an outbox."""
    return next((url for url in providers.values() if url.startswith("sandbox:")), None)


def has_outbox(url: str) -> bool:
    """Tell whether the account that a URL names was ever opened: to look into its outbox should not make one."""
    path, _ = _parse(url)
    return path.exists()


def ending_of(fault: Fault) -> Ending:
    """Say what becomes of a call at the provider."""
    if fault.takes:
        return Ending.ACCEPTED
    return Ending.LOST if fault is Fault.LOST else Ending.TURNED_DOWN


def _parse(url: str) -> tuple[Path, Options]:
    """Read a URL."""
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.netloc or parts.fragment or not path.startswith("/") or path.endswith("/") or "\0" in path:
        raise BadConfiguration(
            "the sandbox account's URL does not name a file by its whole path",
            hint="write sandbox: and three slashes, as in sandbox:///var/lib/clarion/sandbox.db",
        )
    return Path(path), Options.parse(parts.query)

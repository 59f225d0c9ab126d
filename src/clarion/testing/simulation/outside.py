"""The outside: a provider that does its worst, and its receipts.

A call is served in the world, not in the process that made it: a worker that dies in the middle of a call does not stop
the provider. What the provider did stands in the ledger; what the worker hears is another matter. Receipts go to the
platform's door until it takes them, as providers do.
"""

import asyncio
from datetime import datetime, timedelta
from typing import Final, Protocol

import msgspec

from clarion.domain.call import (
    Accepted,
    Call,
    CallOutcome,
    Deferred,
    Misconfigured,
    Refused,
    Replay,
    Unknown,
)
from clarion.domain.identity import Channel
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.suppression import Signal
from clarion.ports.provider import EVERY_CHANNEL
from clarion.ports.track import ProviderEvent
from clarion.testing.simulation.ledger import Fate, Ledger, LedgerCall, Receipt, RowName
from clarion.testing.simulation.loop import PROCESS, Process, SimulationLoop
from clarion.testing.simulation.option import Fault, Options
from clarion.testing.simulation.scene import Claim
from clarion.testing.simulation.weather import Weather

FATES: Final = (
    Fault.REFUSE,
    Fault.DEFER,
    Fault.MISCONFIGURED,
    Fault.ACCEPT_ERROR,
    Fault.ACCEPT_SLOW,
    Fault.ACCEPT_RAISE,
    Fault.LOST,
)

_RECEIPTS: Final = (
    (OutgoingStatus.BLOCKED, 0.15),
    (OutgoingStatus.DELIVERED, 0.7),
    (OutgoingStatus.OPENED, 0.4),
    (OutgoingStatus.BOUNCED, 0.2),
    (OutgoingStatus.COMPLAINED, 0.2),
)
"""What is reported of an accepted message, and how often."""

SUPPRESSING: Final = (OutgoingStatus.BOUNCED, OutgoingStatus.COMPLAINED)
"""Reports after which nothing is sent to a destination any more, unless they say that it may go away by itself."""

SOFT: Final = 0.5
"""The share of bounces that may go away by themselves. After any other nothing is sent to a destination any more."""


class AdapterBroken(Exception):
    """What an adapter raises that should have answered."""


class Host(Protocol):
    """What the outside asks of the world around it."""

    def now(self) -> datetime:
        """Tell the true time."""
        ...

    def trace(self, line: str) -> None:
        """Write a line of the timeline."""
        ...

    def call_begins(self, process: Process | None, call: Call) -> Claim | None:
        """Look at a call when its adapter is entered; return the claim that it belongs to."""
        ...

    def row_of(self, call: Call) -> RowName:
        """Say which row a call is for."""
        ...

    def call_leaves(self, call: LedgerCall, claim: Claim | None) -> None:
        """Look at a call when its bytes leave."""
        ...

    def call_delivered(self, call: LedgerCall) -> None:
        """Look at a message that its recipient got."""
        ...

    def receipt_offered(self, receipt: Receipt) -> None:
        """Look at a receipt that is brought to a door for the first time."""
        ...

    async def take_receipt(self, tenant_id: str, event: ProviderEvent) -> None:
        """Take a receipt at one of the platform's doors; returns when it is taken."""
        ...


class Outside:
    """One provider account for each channel, and the way of its receipts."""

    def __init__(self, options: Options, loop: SimulationLoop, *, weather: Weather, ledger: Ledger, host: Host) -> None:
        """Serve as the options say."""
        self._options = options
        self._loop = loop
        self._weather = weather
        self._ledger = ledger
        self._host = host
        self._chance = options.chance("outside")
        self._events = 0
        self.receipts_under_way = 0

    def replay(self, account: str) -> Replay:
        """Return what an account, which is called after its channel, promises about repeated calls."""
        return Replay(dedupe_window=self._options.dedupe[Channel(account)])

    async def send(self, channel: Channel, call: Call) -> CallOutcome:
        """Carry one call out and its reply back, through the weather."""
        claim = self._host.call_begins(PROCESS.get(), call)
        try:
            return await self._carried_out(channel, call, claim)
        finally:
            if claim is not None:
                claim.ended_at = self._loop.time()

    async def _carried_out(self, channel: Channel, call: Call, claim: Claim | None) -> CallOutcome:
        """Let a call's bytes leave, and wait for its reply."""
        await self._weather.before("send")
        entry = LedgerCall(
            row=self._host.row_of(call),
            key=call.idempotency_key,
            account=channel,
            attempt=call.attempt,
            content=msgspec.json.encode(call.content),
            destination=call.destination,
            at=self._loop.time(),
        )
        self._host.call_leaves(entry, claim)
        self._ledger.write(entry)
        reply: asyncio.Future[CallOutcome] = self._loop.create_future()
        self._loop.start(None, self._serve(entry, call, reply))
        try:
            outcome = await reply
        except AdapterBroken:
            entry.is_broken = True
            raise
        await self._weather.after("send")
        entry.reply = outcome
        return outcome

    async def _serve(self, entry: LedgerCall, call: Call, reply: "asyncio.Future[CallOutcome]") -> None:
        """Do with a call what its fate is, and answer if anybody is still there."""
        await asyncio.sleep(self._chance.choice((0.0, 0.01, 0.2, 1.0)))
        fault = next((kind for kind in FATES if self._weather.strikes(kind)), None)
        self._host.trace(
            f"provider: {entry.row.channel} …{entry.key[-8:]} attempt {entry.attempt}: {fault or 'accepted'}"
        )
        match fault:
            case Fault.REFUSE:
                entry.fate = Fate.REFUSED
                self._answer(reply, Refused(reason="the recipient is blocked"))
            case Fault.DEFER:
                entry.fate = Fate.DEFERRED
                pause = self._chance.choice((None, timedelta(seconds=5)))
                self._answer(reply, Deferred(reason="too many", retry_after=pause, throttled=True))
            case Fault.MISCONFIGURED:
                entry.fate = Fate.MISCONFIGURED
                self._answer(reply, Misconfigured(reason="the password is wrong"))
            case Fault.LOST:
                entry.fate = Fate.LOST
                if self._chance.random() < 0.5:
                    self._answer(reply, Unknown(reason="connection reset"))
            case _:
                await self._accept(entry, call, reply, fault)

    async def _accept(
        self, entry: LedgerCall, call: Call, reply: "asyncio.Future[CallOutcome]", fault: Fault | None
    ) -> None:
        """Take a message, once for its key within the window, and reply as the fault has it."""
        window = self._options.dedupe[entry.row.channel]
        earlier = None if window is None else self._ledger.first_within(entry, window=window.total_seconds())
        entry.fate = Fate.ACCEPTED if earlier is None else Fate.REPEATED
        provider_id = f"p{self._ledger.calls.index(earlier or entry)}"
        if earlier is None:
            self._host.call_delivered(entry)
            if self._options.receipts:
                self._report(entry, call, provider_id)
                if self._weather.strikes(Fault.RECEIPT_EARLY):
                    await asyncio.sleep(5.0)
        match fault:
            case Fault.ACCEPT_ERROR:
                self._answer(reply, Unknown(reason="the provider replied 502"))
            case Fault.ACCEPT_SLOW:
                await asyncio.sleep(self._chance.choice((25.0, 90.0)))
                self._answer(reply, Accepted(provider_message_id=provider_id))
            case Fault.ACCEPT_RAISE:
                if not reply.done():
                    reply.set_exception(AdapterBroken("the adapter did not expect this"))
            case _:
                with_id = self._chance.random() < 0.9  # some say nothing but yes (F-32)
                self._answer(reply, Accepted(provider_message_id=provider_id if with_id else None))

    def _answer(self, reply: "asyncio.Future[CallOutcome]", outcome: CallOutcome) -> None:
        """Reply, unless nobody waits any more."""
        if not reply.done():
            reply.set_result(outcome)

    def _report(self, entry: LedgerCall, call: Call, provider_id: str) -> None:
        """Send the receipts of an accepted message on their way, repeated and out of order where the weather is so."""
        for status, share in _RECEIPTS:
            if self._chance.random() >= share:
                continue
            self._events += 1
            event = self._event(entry, call, provider_id, status)
            receipt = Receipt(
                row=entry.row,
                event_id=event.event_id,
                status=status,
                provider_message_id=provider_id,
                names_ours=event.message_id is not None,
                destination=entry.destination,
                suppresses=status in SUPPRESSING and event.signal is None,
            )
            self._ledger.receipts.append(receipt)
            for _ in range(3 if self._weather.strikes(Fault.RECEIPT_TWICE) else 1):
                late = self._weather.strikes(Fault.RECEIPT_LATE)
                delay = self._chance.uniform(20, 120) if late else self._chance.choice((0.0, 0.5, 2.0, 10.0))
                self.receipts_under_way += 1
                self._loop.start(None, self._carry(call.tenant_id, event, receipt, delay))

    async def _carry(self, tenant_id: str, event: ProviderEvent, receipt: Receipt, delay: float) -> None:
        """Bring one receipt to the door."""
        await asyncio.sleep(delay)
        if receipt.offered_at is None:
            receipt.offered_at = self._loop.time()
            self._host.receipt_offered(receipt)
        await self._host.take_receipt(tenant_id, event)
        receipt.taken_at = receipt.taken_at or self._loop.time()
        self.receipts_under_way -= 1

    def _event(self, entry: LedgerCall, call: Call, provider_id: str, status: OutgoingStatus) -> ProviderEvent:
        """Write a receipt: it names the message by our key, or by the provider's id alone."""
        by_id = self._options.receipts_by_provider_id
        is_soft = status is OutgoingStatus.BOUNCED and self._chance.random() < SOFT
        return ProviderEvent(
            account=entry.account,
            event_id=f"e{self._events}",
            status=status,
            message_id=None if by_id else call.message_id,
            recipient_key_hash=None if by_id else call.idempotency_key.split(":")[2],
            provider_message_id=provider_id,
            signal=Signal.SOFT_BOUNCE if is_soft else None,
            happened_at=self._host.now(),
            raw="{}",
        )


class Account:
    """One account of the outside, as a worker opens it."""

    channels = EVERY_CHANNEL

    def __init__(self, outside: Outside, channel: Channel) -> None:
        """Serve one channel."""
        self._outside = outside
        self._channel = channel

    @property
    def replay(self) -> Replay:
        """What a repeated call would do."""
        return self._outside.replay(self._channel)

    async def send(self, call: Call) -> CallOutcome:
        """Make one call."""
        return await self._outside.send(self._channel, call)

    async def close(self) -> None:
        """Do nothing: there are no connections."""

"""Faults on demand: by the destination of a message, or by chance that a seed repeats.

A destination whose first word is one of these names behaves so, on every channel: `defer@example.com`,
`defer+anything@example.com`, the chat id `defer-1`, the push token `defer:abc`. Phone numbers have no words, so some of
those that are reserved for fiction stand for them. A digit behind the word bounds it to the first attempts:
`defer2@example.com` is deferred twice and accepted then. Every other destination accepts.

| word | phone number | what happens | outcome | receipt |
|---|---|---|---|---|
| `fail` | +12025550141 | the message is refused for good | refused | |
| `nobody` | +12025550142 | the recipient does not exist | refused, recipient not found: a contact is retired | |
| `defer` | +12025550143 | not now | deferred | |
| `throttle` | +12025550144 | too many, try again in 2 seconds | deferred, throttled | |
| `unknown` | +12025550145 | the message is accepted and the reply is lost | unknown | none by itself |
| `lost` | +12025550146 | the message is lost and so is the reply | unknown | |
| `misconfigured` | +12025550147 | the account is not allowed to send | misconfigured | |
| `slow` | +12025550148 | the reply takes a second; a digit is its seconds | accepted | Delivered |
| `bounce` | +12025550149 | the message is accepted and bounces | accepted | Bounced |
| `softbounce` | +12025550150 | it bounces for a while only, as of a full mailbox | accepted | Bounced, soft |
| `complain` | +12025550151 | the recipient calls it unwanted | accepted | Complained |
| `stop` | +12025550152 | the recipient answers STOP | accepted | Delivered, with STOP |
| any other | any other | the message is accepted | accepted | Delivered |

The options of an account's URL, besides `dedupe` (how long a repeated key is answered without a second delivery):
`latency` for every reply, a share between 0 and 1 under any of the words above for faults by chance, and `seed`. Chance
is a hash of seed, key and attempt, so the same call always ends the same way. Pure.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Final, Self, assert_never
from urllib.parse import parse_qsl

import msgspec

from clarion.domain.call import Accepted, Call, CallOutcome, Deferred, Misconfigured, Refused, Unknown
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.suppression import Signal
from clarion.errors import BadConfiguration


class Fault(StrEnum):
    """What happens to a call."""

    NONE = "none"
    FAIL = "fail"
    NOBODY = "nobody"
    DEFER = "defer"
    THROTTLE = "throttle"
    UNKNOWN = "unknown"
    LOST = "lost"
    MISCONFIGURED = "misconfigured"
    SLOW = "slow"
    BOUNCE = "bounce"
    SOFT_BOUNCE = "softbounce"
    COMPLAIN = "complain"
    STOP = "stop"

    @property
    def takes(self) -> bool:
        """Whether the message is taken, whatever is replied."""
        return self is Fault.UNKNOWN or self.said is not None

    @property
    def said(self) -> tuple[OutgoingStatus, Signal | None] | None:
        """What is reported later; nothing of `unknown`, so that there is an uncertain message to look at."""
        return _SAID.get(self)


_SAID: Final[Mapping[Fault, tuple[OutgoingStatus, Signal | None]]] = {
    Fault.NONE: (OutgoingStatus.DELIVERED, None),
    Fault.SLOW: (OutgoingStatus.DELIVERED, None),
    Fault.BOUNCE: (OutgoingStatus.BOUNCED, None),
    Fault.SOFT_BOUNCE: (OutgoingStatus.BOUNCED, Signal.SOFT_BOUNCE),
    Fault.COMPLAIN: (OutgoingStatus.COMPLAINED, None),
    Fault.STOP: (OutgoingStatus.DELIVERED, Signal.STOP),
}

NUMBERS: Final[Mapping[str, Fault]] = {
    "+12025550141": Fault.FAIL,
    "+12025550142": Fault.NOBODY,
    "+12025550143": Fault.DEFER,
    "+12025550144": Fault.THROTTLE,
    "+12025550145": Fault.UNKNOWN,
    "+12025550146": Fault.LOST,
    "+12025550147": Fault.MISCONFIGURED,
    "+12025550148": Fault.SLOW,
    "+12025550149": Fault.BOUNCE,
    "+12025550150": Fault.SOFT_BOUNCE,
    "+12025550151": Fault.COMPLAIN,
    "+12025550152": Fault.STOP,
}

THROTTLE_PAUSE: Final = timedelta(seconds=2)

_WORD: Final = re.compile(rf"({'|'.join(fault for fault in Fault if fault is not Fault.NONE)})([1-9])?(?![a-z0-9])")
_SPAN: Final = re.compile(r"([0-9]+)(ms|s|m|h)")
_UNITS: Final = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
}


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How an account of the sandbox behaves."""

    dedupe: timedelta | None = None
    latency: timedelta = timedelta()
    shares: dict[Fault, float] = {}
    seed: str = ""

    @classmethod
    def parse(cls, query: str) -> Self:
        """Read the options of a URL, or raise BadConfiguration."""
        given = dict(parse_qsl(query, keep_blank_values=True))
        shares = {Fault(name): _share(name, given.pop(name)) for name in list(given) if name in _NAMES}
        if unknown := sorted(set(given) - {"dedupe", "latency", "seed"}):
            raise _unusable(f"there is no option {unknown[0]!r}")
        if sum(shares.values()) > 1:
            raise _unusable("the shares of the faults add up to more than 1")
        return cls(
            dedupe=span_option(given["dedupe"]) if "dedupe" in given else None,
            latency=span_option(given["latency"]) if "latency" in given else timedelta(),
            shares=shares,
            seed=given.get("seed", ""),
        )

    def fate(self, call: Call) -> tuple[Fault, timedelta]:
        """Say what happens to a call, and how long its reply takes."""
        fault, count = NUMBERS.get(call.destination, Fault.NONE), None
        word = _WORD.match(call.destination)
        if word is not None:
            fault, count = Fault(word[1]), int(word[2]) if word[2] else None
        if fault is Fault.SLOW:
            return fault, timedelta(seconds=count or 1)
        if count is not None and call.attempt > count:
            fault = Fault.NONE
        return (self._chance(call) if fault is Fault.NONE else fault), self.latency

    def _chance(self, call: Call) -> Fault:
        """Draw a fault by the shares."""
        if not self.shares:
            return Fault.NONE
        drawn = sha256(f"{self.seed}:{call.idempotency_key}:{call.attempt}".encode()).digest()
        fraction = int.from_bytes(drawn[:8], "big") / 2**64
        for fault, share in self.shares.items():
            fraction -= share
            if fraction < 0:
                return fault
        return Fault.NONE


def outcome_of(fault: Fault, *, delivery_id: str | None) -> CallOutcome:
    """Say what a caller hears."""
    match fault:
        case Fault.NONE | Fault.SLOW | Fault.BOUNCE | Fault.SOFT_BOUNCE | Fault.COMPLAIN | Fault.STOP:
            return Accepted(provider_message_id=delivery_id)
        case Fault.FAIL:
            return Refused(reason="the sandbox was asked to refuse it")
        case Fault.NOBODY:
            return Refused(reason="the sandbox was asked not to know the recipient", recipient_not_found=True)
        case Fault.DEFER:
            return Deferred(reason="the sandbox was asked to defer it")
        case Fault.THROTTLE:
            return Deferred(reason="the sandbox was asked to throttle it", retry_after=THROTTLE_PAUSE, throttled=True)
        case Fault.MISCONFIGURED:
            return Misconfigured(reason="the sandbox was asked to refuse the account")
        case Fault.UNKNOWN | Fault.LOST:
            return Unknown(reason="the sandbox was asked to lose the reply")
        case _:
            assert_never(fault)


def parse_span(text: str) -> timedelta:
    """Read a length of time such as 200ms, 30s, 15m or 24h, or raise ValueError."""
    found = _SPAN.fullmatch(text)
    if found is None:
        raise ValueError("a length of time is a number and a unit: 200ms, 30s, 15m, 24h")
    return int(found[1]) * _UNITS[found[2]]


def span_option(text: str) -> timedelta:
    """Read a length of time in an account's URL, or raise BadConfiguration."""
    try:
        return parse_span(text)
    except ValueError as error:
        raise _unusable(str(error)) from None


_NAMES: Final = frozenset(Fault) - {Fault.NONE, Fault.SLOW}


def _share(name: str, text: str) -> float:
    """Read a share between 0 and 1."""
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise _unusable(f"the share of {name} is no number between 0 and 1")
    return share


def _unusable(why: str) -> BadConfiguration:
    """Make the error for a URL that cannot be used."""
    return BadConfiguration(
        f"the sandbox account's URL cannot be used: {why}",
        hint="write sandbox:///folder/sandbox.db?dedupe=24h&defer=0.1, or leave the options out",
    )

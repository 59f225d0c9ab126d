"""What a seed decides: which faults may strike and how often, how the world is set up, what is asked for.

Faults are drawn as a swarm: each kind is off in nearly half of the runs and has one of four rates in the others, so
that rare combinations are met and a common fault does not hide a rare one. Pure: a seed gives the same options for ever
(until this file changes, which re-deals all seeds).
"""

from datetime import timedelta
from enum import StrEnum
from random import Random
from typing import Final, Self

import msgspec

from clarion.domain.audience import Addressee
from clarion.domain.identity import Channel
from clarion.testing.simulation.agenda import Agenda
from clarion.testing.simulation.society import PEOPLE


class Fault(StrEnum):
    """One kind of trouble."""

    STORE_ERROR = "store error before the transaction"
    STORE_REPLY_LOST = "store commits, then error"
    CRASH_BEFORE = "crash before a port call"
    CRASH_AFTER = "crash after a port call"
    STALL = "stall at a port call"
    KILL = "kill"
    PAUSE = "pause"
    STOP = "graceful stop"
    OUTAGE = "no worker for a day"
    POISON = "job that kills its workers"
    CLOCK = "wall clock set"
    STORE_CLOCK = "store's clock leaps"
    WAKE_UP_LOST = "wake-up between processes lost"
    REFUSE = "provider refuses"
    DEFER = "provider defers"
    MISCONFIGURED = "provider refuses the account"
    ACCEPT_ERROR = "provider accepts, then replies 5xx"
    ACCEPT_SLOW = "provider accepts, then replies too late"
    ACCEPT_RAISE = "provider accepts, then the adapter raises"
    LOST = "call lost"
    RECEIPT_TWICE = "receipt repeated"
    RECEIPT_EARLY = "receipt before the reply"
    RECEIPT_LATE = "receipt late and out of order"
    CANCEL = "person cancels"
    RETRY = "person retries"
    ADDRESS_EDIT = "address edited"
    PUBLISH = "template published anew"
    SWITCH_OFF = "notification type switched off"
    GATE = "broadcast paused, opened or canceled"
    OPT_OUT = "person opts out of a category, or in again"
    SUPPRESS = "person or address suppressed by hand, or no more"
    SETTING = "setting changed"
    MEMBER = "group, unit, role or relation changed"
    SOURCE = "application changes a source"
    REMINDER = "reminder setting changed"
    OCCURRENCE = "occurrence held, released, run or deactivated by a person"
    EVENT_LOST = "event lost"
    EVENT_TWICE = "event told again"
    EVENT_LATE = "event told late and out of order"
    COMMIT_LATE = "application commits late"
    PLUGIN = "plugin raises"


OF_AUTOMATION: Final = (
    Fault.SOURCE,
    Fault.REMINDER,
    Fault.OCCURRENCE,
    Fault.EVENT_LOST,
    Fault.EVENT_TWICE,
    Fault.EVENT_LATE,
    Fault.COMMIT_LATE,
    Fault.PLUGIN,
)
"""Kinds that there are only in runs with automation."""


AT_PORTS: Final = (
    Fault.STORE_ERROR,
    Fault.STORE_REPLY_LOST,
    Fault.CRASH_BEFORE,
    Fault.CRASH_AFTER,
    Fault.STALL,
)
"""Faults that can happen at every call of a port; one message needs dozens of such calls."""

AT_PROVIDERS: Final = (
    Fault.REFUSE,
    Fault.DEFER,
    Fault.MISCONFIGURED,
    Fault.ACCEPT_ERROR,
    Fault.ACCEPT_SLOW,
    Fault.ACCEPT_RAISE,
    Fault.LOST,
    Fault.RECEIPT_TWICE,
    Fault.RECEIPT_EARLY,
    Fault.RECEIPT_LATE,
)
"""Faults that can happen once in a call or a receipt, of which a message has one or two."""

PROVIDER_SHARE: Final = 2.0
"""The rates of faults at providers are multiplied by this."""

OFF: Final = 0.45
"""The chance that a kind is off in a run. If most were on in most runs, few runs would have only two or three kinds."""

RATES: Final = (0.01, 0.03, 0.08, 0.20)

PORT_SHARES: Final = (0.1, 0.3, 1.0)
"""The rates of faults at ports are multiplied by one of these. At the full rate hardly a message reaches its provider
before everything heals; at a tenth the platform works, and the other faults are met."""

CALM: Final = 0.03
"""The share of runs without any fault; nothing may become uncertain in them (I-12)."""

NO_RECEIPTS: Final = 0.25
"""The share of runs in which providers report nothing (F-42)."""

DEDUPE_WINDOWS: Final = (None, None, timedelta(seconds=60), timedelta(hours=24))
"""None twice: most providers do not de-duplicate. A minute is too short to rely on, a day is not."""

SAFETY_SECONDS: Final = (40, 160)

PROVIDER_SECONDS: Final = (0, 60)
"""How long providers, people and the nemesis go on after ports have healed."""

CHANNELS: Final = (Channel.EMAIL, Channel.SMS)


POISONED: Final = 0.3
"""The share of jobs that crash every worker, in runs that have such jobs."""


BROADCAST: Final = 0.3
"""The share of jobs whose messages belong to a broadcast."""


AUTOMATION: Final = 0.15
"""The share of runs with sources and reminders; they have fewer notifications that clients ask for."""

AUTOMATION_RATES: Final = (0.08, 0.20, 0.40)
"""Events and answers of a plugin are few in a run."""


PAGED: Final = 0.5
"""The share of runs in which sets of more than two recipients lie in pages."""


BY_SETTING: Final = 0.25
"""The share of jobs that name nobody."""


STORM: Final = 0.05
"""From this chance of a fault at a port call on, a run counts as a storm: a stage makes some ten such calls, so four
stages in ten do not come to their end and are left to their lease."""


STORM_AUTOMATED: Final = 0.02
"""The same in a run with automation, whose processes make several times as many calls beside those of a stage."""


class JobPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One notification that a client asks for, and what else it does about it."""

    number: int
    at: float
    type: str
    to: tuple[int, ...]  # people by number; see `society`
    by_address: bool
    by_group: bool
    keyed: bool
    twin: bool  # two clients ask at the same instant
    again_after: float | None  # the same once more
    other_after: float | None  # another payload under the same key
    later_by: float | None  # not before so many seconds from then
    poison: bool  # whether every worker dies of it
    broadcast: bool  # whether its messages stand behind the gate of a broadcast
    by_setting: bool  # it names nobody: whom the settings of its type name
    unit: int | None  # on whose behalf
    about: int | None  # which thing it is about
    text: str | None = None  # of a reminder: what it says
    named: tuple[tuple[Addressee, ...], ...] | None = None  # of a reminder: whom its setting may name

    @property
    def correlation_id(self) -> str:
        """What ties everything to this plan."""
        return f"job-{self.number}"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """All that a seed decides before the run begins."""

    seed: int
    rates: dict[Fault, float]
    receipts: bool
    receipts_by_provider_id: bool
    dedupe: dict[Channel, timedelta | None]
    workers: int
    slots: int
    wake_ups: bool
    port_share: float
    paged: bool  # whether a set of a few recipients already lies in pages
    safety_seconds: float
    provider_seconds: float
    jobs: tuple[JobPlan, ...]
    agenda: Agenda | None = None  # what there is to be reminded of, in a run with automation

    @classmethod
    def of(cls, seed: int, *, automates: bool | None = None) -> "Options":
        """Deal the options of a seed; whether it is a run with automation is dealt too, where nobody says it."""
        chance = Random(f"options:{seed}")
        calm = chance.random() < CALM
        kinds: list[Fault] = [kind for kind in Fault if kind not in OF_AUTOMATION]
        rates = {kind: chance.choice(RATES) for kind in kinds if chance.random() >= OFF}
        dealt = cls._of_notifications(seed, chance, rates, calm=calm)
        other = Random(f"automation:{seed}")
        drawn = other.random() < AUTOMATION
        return _automated(dealt, other, calm=calm) if (drawn if automates is None else automates) else dealt

    @classmethod
    def _of_notifications(cls, seed: int, chance: Random, rates: dict[Fault, float], *, calm: bool) -> Self:
        """Deal what there is in every run."""
        return cls(
            seed=seed,
            rates={} if calm else rates,
            receipts=chance.random() >= NO_RECEIPTS,
            receipts_by_provider_id=chance.random() < 0.3,
            dedupe={channel: chance.choice(DEDUPE_WINDOWS) for channel in CHANNELS},
            workers=chance.choice((1, 2, 2, 3)),
            slots=chance.choice((1, 2, 4, 8)),
            wake_ups=chance.random() < 0.5,
            port_share=chance.choice(PORT_SHARES),
            paged=chance.random() < PAGED,
            safety_seconds=chance.uniform(*SAFETY_SECONDS),
            provider_seconds=chance.uniform(*PROVIDER_SECONDS),
            jobs=tuple(
                _job(chance, number, poison=not calm and Fault.POISON in rates)
                for number in range(chance.randint(1, 5))
            ),
        )

    @property
    def stormy(self) -> bool:
        """Whether so much goes wrong at port calls that hardly a stage comes to its end."""
        return sum(self.rates.get(kind, 0.0) for kind in AT_PORTS) * self.port_share >= (
            STORM if self.agenda is None else STORM_AUTOMATED
        )

    def without(self, kind: Fault) -> Self:
        """Switch one kind off; the others strike as before, since each draws from a stream of its own."""
        return msgspec.structs.replace(self, rates={one: rate for one, rate in self.rates.items() if one is not kind})

    def chance(self, stream: str) -> Random:
        """Open a stream of chance of its own name."""
        return Random(f"{stream}:{self.seed}")


def _automated(dealt: Options, chance: Random, *, calm: bool) -> Options:
    """Deal what there is to be reminded of, in a stream of its own, so that other runs are as they were."""
    rates = {kind: chance.choice(AUTOMATION_RATES) for kind in OF_AUTOMATION if chance.random() >= OFF}
    acts = {kind: chance.choice(RATES[1:]) for kind in (Fault.SOURCE, Fault.REMINDER)}
    if Fault.OCCURRENCE in rates:
        acts[Fault.OCCURRENCE] = chance.choice(RATES[:3])
    return msgspec.structs.replace(
        dealt,
        rates={} if calm else dealt.rates | rates | acts,
        jobs=dealt.jobs[: chance.choice((0, 1, 1))],
        agenda=Agenda.of(chance),
    )


def _job(chance: Random, number: int, *, poison: bool) -> JobPlan:
    """Deal one notification."""
    return JobPlan(
        number=number,
        at=chance.uniform(0, 20),
        type=chance.choice(("notice", "notice", "code", "letter", "flash")),
        to=tuple(chance.sample(range(PEOPLE), chance.randint(1, 3))),
        by_address=chance.random() < 0.4,
        by_group=chance.random() < 0.15,
        keyed=chance.random() < 0.9,
        twin=chance.random() < 0.2,
        again_after=chance.uniform(0, 60) if chance.random() < 0.4 else None,
        other_after=chance.uniform(0, 60) if chance.random() < 0.15 else None,
        later_by=chance.uniform(1, 30) if chance.random() < 0.15 else None,
        poison=chance.random() < POISONED and poison,
        broadcast=chance.random() < BROADCAST,
        by_setting=chance.random() < BY_SETTING,
        unit=chance.choice((None, None, 0, 1)),
        about=chance.choice((None, 0, 0, 1)),
    )

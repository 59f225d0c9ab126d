"""Bugs to plant in a simulation, one at a time, and what must find each: one of these invariants is reported broken.

With `python -m tests.simulation.planted --seeds 100` this module says how many seeds each bug needs, and with `--write`
it notes those at which it is caught in `planted.json`, which the tests read.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Final, cast

import msgspec

from clarion.adapters.stores.sqlite import SqliteStore
from clarion.adapters.stores.sqlite.session import Session
from clarion.domain.key import FiringPolicy
from clarion.ports.blobs import Blobs
from clarion.ports.provider import Provider
from clarion.ports.store import Store
from clarion.testing.simulation.agenda import Agenda
from clarion.testing.simulation.option import Fault, Options
from clarion.testing.simulation.run import Report, run
from tests.simulation.bugs import (
    AThirdSkipped,
    CancelIsForgotten,
    CancelsUnasked,
    CodesAreErasedEarly,
    CodesAreKept,
    DropsOutcomes,
    DropsReceipts,
    EmptyContent,
    ErasesTheAuditLog,
    ExpiresEarly,
    FailsAtFirstDeferral,
    GateIsForgotten,
    GivesUpEarly,
    IgnoresOrderKeys,
    NeverReplays,
    RandomKey,
    ReplaysHalf,
    RescueIsRetry,
    TenTimesTheSlots,
    UnconditionalClaim,
    UnfencedFinish,
    UnknownIsSuccess,
    WrongDestination,
)
from tests.simulation.bugs_of_automation import (
    DeactivatesOnly,
    DueAtOnce,
    EveryPlanIsAnEdge,
    HandsOverAnew,
    HoldsAreForgotten,
    KeysByChance,
    NeverRepairs,
    NobodyIsThere,
    PlansByHalf,
    RepairsUnderOtherKeys,
    SettingsAreReadOnce,
    TakesBackACancel,
    TakesWhatIsHeld,
    ThresholdsStandStill,
)
from tests.simulation.bugs_of_people import (
    BouncesAreForgotten,
    CategoriesAreForgotten,
    ChannelsOfSettingsAreForgotten,
    DoneAfterOneStep,
    EditsLeakIntoRetries,
    FirstAddressOnly,
    HistoryIsForgotten,
    LinesAreCountedTwice,
    NestedGroupsAreForgotten,
    OptOutsAreNotLookedUp,
    PagesAreLost,
    PagesAreSkipped,
    RelationsAreForgotten,
    RequiredIsRefused,
    RolesOfAllUnits,
    SetsAreReadAnew,
    SuppressesTheWrongOne,
    UnitsSayNothing,
    UnverifiedIsGoodEnough,
    WithoutSuppressions,
)


class Bug(msgspec.Struct, frozen=True, kw_only=True):
    """One bug: where it is planted, what must find it, and faults without which it cannot show."""

    found_by: frozenset[str]
    store: Callable[[SqliteStore, Session], object] | None = None
    provider: Callable[[Provider], Provider] | None = None
    caller: Callable[[Store], object] | None = None
    blobs: Callable[[Blobs], Blobs] | None = None
    paged: bool | None = None
    rates: Mapping[Fault, float] = {}
    automates: bool = False
    policy: FiringPolicy | None = None  # of every threshold, where it shows only in one
    lease: float | None = None  # of what falls due

    def options(self, seed: int) -> Options:
        """Deal a seed's options, with the faults that this bug needs."""
        dealt = Options.of(seed, automates=self.automates)
        paged = dealt.paged if self.paged is None else self.paged
        agenda = None if dealt.agenda is None else self._changed(dealt.agenda)
        return msgspec.structs.replace(dealt, rates={**dealt.rates, **self.rates}, paged=paged, agenda=agenda)

    def _changed(self, agenda: Agenda) -> Agenda:
        """Give a run with automation what this bug needs."""
        settings = agenda.settings
        if self.policy is not None:
            settings = tuple(
                msgspec.structs.replace(one, first=one.first._replace(policy=self.policy)) for one in settings
            )
        lease = agenda.lease if self.lease is None else self.lease
        return msgspec.structs.replace(agenda, settings=settings, lease=lease)

    def run(self, seed: int) -> Report:
        """Run a seed with the bug planted."""
        return run(
            self.options(seed),
            change_store=self.store,
            change_provider=self.provider,
            change_caller=self.caller,
            change_blobs=self.blobs,
        )

    def is_caught_by(self, report: Report) -> bool:
        """Tell whether a run found it, by what it breaks."""
        found = {violation.partition(":")[0] for violation in report.violations}
        return not found.isdisjoint(self.found_by)


def of_store(bug: Callable[[SqliteStore, Session], object], *found_by: str, **rates: float) -> Bug:
    """Plant a bug in front of the store."""
    return Bug(store=bug, found_by=frozenset(found_by), rates={Fault[kind]: rate for kind, rate in rates.items()})


def paged(bug: Callable[[SqliteStore, Session], object], *found_by: str) -> Bug:
    """Plant a bug in front of the store that shows in sets with pages."""
    return Bug(store=bug, found_by=frozenset(found_by), paged=True)


def of_process(bug: Callable[[Store], object], *found_by: str, **rates: float) -> Bug:
    """Plant a bug in a process, in front of the weather, in a run with automation."""
    return Bug(
        caller=bug,
        found_by=frozenset(found_by),
        rates={Fault[kind]: rate for kind, rate in rates.items()},
        automates=True,
    )


def of_automation(bug: Callable[[SqliteStore, Session], object], *found_by: str, **rates: float) -> Bug:
    """Plant a bug in front of the store, in a run with automation."""
    return msgspec.structs.replace(of_store(bug, *found_by, **rates), automates=True)


def of_provider(bug: Callable[[Provider], Provider], *found_by: str) -> Bug:
    """Plant a bug in front of the providers."""
    return Bug(provider=bug, found_by=frozenset(found_by))


BUGS: Final[Mapping[str, Bug]] = {
    "a claim without its condition": of_store(UnconditionalClaim, "I-19"),
    "a finish without its fence": of_store(UnfencedFinish, "I-17", STALL=0.2),
    "a rescue that sends again": of_store(RescueIsRetry, "I-13"),
    "a forgotten cancel": of_store(CancelIsForgotten, "I-16", CANCEL=0.5, DEFER=0.5),
    "a forgotten gate": of_store(GateIsForgotten, "I-16", GATE=0.5),
    "a success made of an unknown outcome": of_store(UnknownIsSuccess, "I-11"),
    "a message given up that could not be called": of_store(GivesUpEarly, "I-25"),
    "a key made by chance": of_provider(RandomKey, "I-15"),
    "a third of jobs skipped": of_store(AThirdSkipped, "I-25"),
    "failing at the first deferral": of_store(FailsAtFirstDeferral, "I-25"),
    "canceling rows nobody canceled": of_store(CancelsUnasked, "I-25"),
    "expiring early": of_store(ExpiresEarly, "I-25"),
    "dropping receipts after a 2xx": of_store(DropsReceipts, "I-30"),
    "claiming ten times the slots": of_store(TenTimesTheSlots, "I-14"),
    "never replaying": of_store(NeverReplays, "I-10"),
    "replaying only half": of_store(ReplaysHalf, "I-10"),
    "erasing the audit log": of_store(ErasesTheAuditLog, "I-42"),
    "wrong destination": of_provider(WrongDestination, "destination"),
    "empty content": of_provider(EmptyContent, "content"),
    "one-time codes that are kept": of_store(CodesAreKept, "X-23"),
    "one-time codes erased before they are sent": of_store(CodesAreErasedEarly, "X-23"),
    "ignoring order keys": of_store(IgnoresOrderKeys, "order"),
    "a claim without a look at opt-outs": of_store(WithoutSuppressions, "I-34", SUPPRESS=0.5, OPT_OUT=0.5, DEFER=0.2),
    "a claim that forgets categories": of_store(CategoriesAreForgotten, "I-34", OPT_OUT=0.5, DEFER=0.2),
    "a claim that forgets bounces": of_store(BouncesAreForgotten, "I-34"),
    "a required category that can be refused": of_store(RequiredIsRefused, "I-25", OPT_OUT=0.5, DEFER=0.2),
    "everybody suppressed because somebody is": of_store(SuppressesTheWrongOne, "I-25"),
    "a set frozen without a look at opt-outs": of_store(OptOutsAreNotLookedUp, "I-25"),
    "guardians that are not found": of_store(RelationsAreForgotten, "I-25"),
    "holders of a role in another unit": of_store(RolesOfAllUnits, "I-25"),
    "groups inside groups that are forgotten": of_store(NestedGroupsAreForgotten, "I-25"),
    "settings of units that are ignored": of_store(UnitsSayNothing, "I-25", "I-16"),
    "channels of settings that are ignored": of_store(ChannelsOfSettingsAreForgotten, "I-25"),
    "addresses that are not verified": of_store(UnverifiedIsGoodEnough, "I-25", "destination"),
    "one address of several": of_store(FirstAddressOnly, "I-25"),
    "a history without those who are in a set": of_store(HistoryIsForgotten, "history"),
    "lines of inboxes that are counted twice": of_store(LinesAreCountedTwice, "inbox"),
    "sets that are read anew": of_store(SetsAreReadAnew, "I-06", STALL=0.2, CRASH_AFTER=0.2),
    "an edit that leaks into a retry": of_store(EditsLeakIntoRetries, "I-06", ADDRESS_EDIT=0.5, DEFER=0.5),
    "recipients that are skipped between pages": paged(PagesAreSkipped, "I-25"),
    "a large set that is done after one step": paged(DoneAfterOneStep, "I-25"),
    "a page that is lost before its manifest": Bug(blobs=PagesAreLost, found_by=frozenset({"I-25"}), paged=True),
    "outcomes dropped before the store has them": Bug(
        caller=DropsOutcomes, found_by=frozenset({"I-12"}), rates={Fault.STORE_ERROR: 0.2}
    ),
    "a plan that deactivates and does not ensure": of_process(DeactivatesOnly, "I-25", SOURCE=0.2, REMINDER=0.2),
    "half of a plan": of_automation(PlansByHalf, "plan", SOURCE=0.2),
    "occurrences under keys made by chance": of_process(KeysByChance, "I-01", "I-08", "I-18"),
    "no repairs at all": of_process(NeverRepairs, "I-25", EVENT_LOST=0.9, SOURCE=0.2),
    "repairs under other keys than those of events": of_process(
        RepairsUnderOtherKeys, "I-01", "I-08", "I-18", EVENT_LOST=0.9, SOURCE=0.2
    ),
    "thresholds that stand still": msgspec.structs.replace(
        of_process(ThresholdsStandStill, "I-25", SOURCE=0.3), policy=FiringPolicy.FALSE_TO_TRUE
    ),
    "every plan that is an edge": msgspec.structs.replace(
        of_process(EveryPlanIsAnEdge, "I-01", SOURCE=0.2, EVENT_TWICE=0.8), policy=FiringPolicy.FALSE_TO_TRUE
    ),
    "taking back what a person has canceled": of_automation(
        TakesBackACancel, "I-18", "I-01", OCCURRENCE=0.2, SOURCE=0.2
    ),
    "a claim of what is on hold": of_automation(HoldsAreForgotten, "I-19", OCCURRENCE=0.2),
    "a claim of what is due later": of_automation(DueAtOnce, "I-18", "I-19"),
    "a claim of what another worker hands over": of_automation(TakesWhatIsHeld, "I-18", "I-17", "I-19", STALL=0.2),
    "handing over by settings as they were": of_process(SettingsAreReadOnce, "I-01", "I-25", REMINDER=0.2),
    "reminders that find nobody": of_process(NobodyIsThere, "I-25"),
    "a hand-over under a key of its own each time": of_process(HandsOverAnew, "I-01", "I-08"),
}

CAUGHT_AT: Final = Path(__file__).parent / "planted.json"
SEEDS_MAX: Final = 100
CHOICE: Final = 3
"""Seeds that catch a bug, of which the shortest run is noted: some run to the end of their world's patience."""


def search(bug: Bug, seeds: Iterable[int]) -> int | None:
    """Return the first of these seeds that catches a bug."""
    return next((seed for seed in seeds if bug.is_caught_by(bug.run(seed))), None)


def shortest(bug: Bug, seeds: Iterable[int]) -> int | None:
    """Return the seed of the shortest run among the first few that catch a bug: it is run at every commit."""
    caught = (report for report in map(bug.run, seeds) if bug.is_caught_by(report))
    first = list(islice(caught, CHOICE))
    return min(first, key=lambda report: report.seconds).seed if first else None


def main() -> int:
    """Say how many seeds each bug needs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS_MAX)
    parser.add_argument("--bug", choices=BUGS, help="this bug only")
    parser.add_argument("--write", action="store_true", help="note the seeds in planted.json")
    given = parser.parse_args()
    noted = cast(dict[str, int], json.loads(CAUGHT_AT.read_text())) if CAUGHT_AT.exists() else {}
    for name in [given.bug] if given.bug else BUGS:
        caught_at = shortest(BUGS[name], range(1, given.seeds + 1))
        sys.stdout.write(f"{name}: {caught_at or f'not caught in {given.seeds} seeds'}\n")
        sys.stdout.flush()
        if caught_at is not None:
            noted[name] = caught_at
    if given.write:
        CAUGHT_AT.write_text(json.dumps({name: noted[name] for name in BUGS if name in noted}, indent=2) + "\n")
    return int(any(name not in noted for name in BUGS))


if __name__ == "__main__":
    sys.exit(main())

"""Counts what happened in the runs: a simulation in which no reply was lost proves nothing about lost replies.

Counted by name are every fault that struck, every move between two states, and every case in which an invariant could
have been broken. What must be met in 5,000 runs stands in `EXPECTED`; what was not met is a failure of the simulation.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from clarion.testing.simulation.option import Fault

RUNS_FOR_ALL: Final = 5000
"""With fewer runs a rare case may be missed by chance; with as many, a missing case means that it cannot happen."""

# Without Uncertain → FailedFinal, a refusal that is recorded after its lease: it takes a refusal, a stall at that very
# record and no crash before its end, which 5,000 runs may not deal. `contracts/late_replies.py` shows it.
EDGES: Final = (
    "Created → Sending",
    "Created → Canceled",
    "Created → Expired",
    "RetryReady → Sending",
    "RetryReady → Canceled",
    "RetryReady → Expired",
    "RetryReady → Uncertain",
    "Sending → SentToProvider",
    "Sending → RetryReady",
    "Sending → FailedFinal",
    "Sending → Uncertain",
    "Sending → Delivered",
    "Uncertain → RetryReady",
    "Uncertain → Uncertain",
    "Uncertain → SentToProvider",
    "Uncertain → Delivered",
    "FailedFinal → RetryReady",
    "SentToProvider → Delivered",
    "SentToProvider → Opened",
    "SentToProvider → Bounced",
    "Delivered → Opened",
    "Opened → Complained",
    "Ready → Processing",
    "Ready → Canceled",
    "Processing → Ready",
    "Processing → Done",
    "Processing → Skipped",
    "Processing → Failed",
    "Processing → Canceled",
)
"""Moves of outgoing rows and of scheduler rows; names of states are not shared between the two."""

# Without a row that was canceled and that only the claim finds so: the janitor sweeps it up before its retry is due.
# `contracts/canceling.py` shows it, and the planted bug whose claim forgets a cancel.
CASES: Final = (
    "I-03: ensured again",
    "I-04: other payload under a used key",
    "I-06: generated after an address edit",
    "I-08: call",
    "I-09: second delivery of a type that prefers it",
    "I-09: call repeated within the window",
    "I-10: replay within the window",
    "I-10: replay of a type that prefers a duplicate",
    "I-12: run without faults",
    "I-12: uncertain by an unknown outcome",
    "I-12: uncertain by an expired lease",
    "I-13: left uncertain",
    "I-13: given up and still uncertain",
    "I-15: same bytes again",
    "I-15: same bytes after a new template",
    "I-16: opened to rows that had waited behind it",
    "I-16: canceled with its broadcast",
    "I-17: result of an outlived claim",
    "I-17: stage finished too late",
    "I-19: claim rescued",
    "I-19: stage rescued",
    "I-23: rescued too often",
    "I-24: accepted after a lost reply",
    "I-28: job finished with rows of an earlier worker",
    "I-31: receipt that changed nothing",
    "I-32: receipt waits for its row",
    "I-33: receipt settles an uncertain send",
    "F-54: graceful stop came to its end",
)

EXPECTED: Final = (*(f"fault: {kind}" for kind in Fault), *(f"edge: {edge}" for edge in EDGES), *CASES)


class Coverage:
    """Counts by name."""

    def __init__(self) -> None:
        """Start with nothing met."""
        self.counts: Counter[str] = Counter()

    def met(self, name: str) -> None:
        """Count one more."""
        self.counts[name] += 1


def missing(counts: Mapping[str, int]) -> list[str]:
    """Name what was expected and never met."""
    return [name for name in EXPECTED if not counts.get(name)]

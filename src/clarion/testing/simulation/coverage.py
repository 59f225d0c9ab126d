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

EDGES: Final = (
    *(f"Created → {to}" for to in ("Sending", "Canceled", "Expired", "Suppressed")),
    *(f"RetryReady → {to}" for to in ("Sending", "Canceled", "Expired", "Suppressed", "Uncertain")),
    "RetryReady → Delivered",
    *(f"Sending → {to}" for to in ("SentToProvider", "RetryReady", "FailedFinal", "Uncertain")),
    *(f"Sending → {to}" for to in ("Delivered", "Opened", "Bounced", "Complained")),
    *(f"Uncertain → {to}" for to in ("RetryReady", "Uncertain", "SentToProvider")),
    *(f"Uncertain → {to}" for to in ("Delivered", "Opened", "Complained")),
    "FailedFinal → RetryReady",
    *(f"SentToProvider → {to}" for to in ("Blocked", "Delivered", "Opened", "Bounced", "Complained")),
    *(f"Blocked → {to}" for to in ("Delivered", "Opened", "Bounced", "Complained")),
    *(f"Delivered → {to}" for to in ("Opened", "Bounced", "Complained")),
    *(f"Opened → {to}" for to in ("Bounced", "Complained")),
    "Bounced → Complained",
    *(f"Ready → {to}" for to in ("Processing", "Canceled")),
    *(f"Processing → {to}" for to in ("Ready", "Done", "Skipped", "Failed", "Canceled")),
)
"""Moves of outgoing rows and of scheduler rows; names of states are not shared between the two."""

_SHOWN: Final = ("SentToProvider", "Blocked", "Delivered", "Opened", "Bounced", "Complained")

NOT_HERE: Final = {
    "no rule of this world finds a message not supported": (
        *(f"{state} → NotSupported" for state in ("Created", "RetryReady")),
        *(f"NotSupported → {to}" for to in _SHOWN),
    ),
    "every message of this world can be made and called": ("Created → FailedFinal", "RetryReady → FailedFinal"),
    "providers of this world report only what they accepted, and nothing denies that (I-13)": (
        *(f"{state} → {to}" for state in ("FailedFinal", "Expired", "Canceled", "Suppressed") for to in _SHOWN),
    ),
    "a message that is uncertain is rarely reported as bounced before anything else": ("Uncertain → Bounced",),
    "a message that is blocked is rarely reported as such before its call is recorded": (
        *(f"{state} → Blocked" for state in ("RetryReady", "Sending", "Uncertain")),
    ),
    "a replay waits for seconds, in which this is rarely what is heard first": (
        *(f"RetryReady → {to}" for to in ("SentToProvider", "Opened", "Bounced", "Complained")),
    ),
    "a refusal is rarely recorded after its lease; `contracts/late_replies.py` shows it": ("Uncertain → FailedFinal",),
    "no stage skips a job before it is claimed": ("Ready → Skipped",),
    "nobody starts a failed job again or cancels it in this world": ("Failed → Ready", "Failed → Canceled"),
}
"""Moves of the tables that are not expected here, by the reason: this world cannot make them, or hardly does."""

# Without a result of a claim that was taken over, which `contracts/late_replies.py` shows, and a required category that
# somebody refused and gets all the same, which the planted bug shows: both are met, but hardly in a few hundred runs.
# Without a row that was canceled and that only the claim finds so: the janitor sweeps it up before its retry is due.
# `contracts/canceling.py` shows it, and the planted bug whose claim forgets a cancel.
CASES: Final = (
    "I-03: ensured again",
    "I-04: other payload under a used key",
    "I-06: generated after an address edit",
    "I-06: set in pages",
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
    "I-14: all slots taken",
    "I-15: same bytes again",
    "I-15: same bytes after a new template",
    "I-16: opened to rows that had waited behind it",
    "I-16: canceled with its broadcast",
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
    "X-23: code erased",
    "order: two messages for one recipient",
    "people: changed while it was decided",
    "people: left out because of an opt-out",
    "people: named by a setting",
    "people: nobody to send it to",
    "people: two addresses of one person",
)

# Without an end that comes too late, one that finishes what a lost worker handed over, a hold after failures, and a
# second edge of a threshold: all are met, but hardly in a few hundred runs. `contracts/due.py` shows them.
OF_AUTOMATION: Final = (
    *(f"edge: occurrence Pending → {to}" for to in ("Processing", "Deactivated", "Canceled")),
    *(f"edge: occurrence Processing → {to}" for to in ("Completed", "Deactivated", "Pending")),
    "edge: occurrence Deactivated → Pending",
    "automation: another send time",
    "automation: deactivated and ensured in one",
    "automation: event told again",
    "automation: lease of an occurrence ended",
    "automation: let go by release_occurrence",
    "automation: on hold by hold_occurrence",
    "automation: plan overtaken",
    "automation: reconciliation found something",
    "automation: reminder that had to come",
    "automation: setting changed under a due occurrence",
    "automation: source went away, found by apply_plans",
    "automation: source went away, found by finish_due",
)
"""What is met in runs with automation. Nothing fails for good there, and nothing but a person cancels."""

EXPECTED: Final = (*(f"fault: {kind}" for kind in Fault), *(f"edge: {edge}" for edge in EDGES), *CASES, *OF_AUTOMATION)


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

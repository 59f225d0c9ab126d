"""What a check is, what it may look at, and what it hands back.

The checks are in `invariant`, `stage_invariant` and `truth_invariant` (after every commit), `calling` (at every call),
`ending`, `ordering` and `audited` (at the end).
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Final, NamedTuple, cast

from clarion.domain.call import Replay
from clarion.domain.identity import Channel
from clarion.testing.simulation.coverage import Coverage
from clarion.testing.simulation.directory import Directory
from clarion.testing.simulation.entitled import Message, Window
from clarion.testing.simulation.ledger import Ledger
from clarion.testing.simulation.option import JobPlan
from clarion.testing.simulation.scene import Change, OutgoingRow, Scene
from clarion.testing.simulation.truth import Truth

TOLERANCE: Final = 2
"""Microseconds by which the store's clock and ours may round apart."""


class Violation(NamedTuple):
    """One invariant that did not hold, by its number in docs/reference/invariants.md."""

    invariant: str
    text: str

    def __str__(self) -> str:
        """Put the number first."""
        return f"{self.invariant}: {self.text}"


class Evidence(NamedTuple):
    """All that a check may look at: the database, the truth, and what providers promise."""

    scene: Scene
    ledger: Ledger
    truth: Truth
    coverage: Coverage
    replay: Callable[[str], Replay]  # by account
    directory: Directory
    poison: frozenset[str] = frozenset()  # correlation ids of jobs that no worker survives
    stormy: bool = False  # whether workers crash so often that a harmless job can lose six of them

    def plan_of(self, row: OutgoingRow) -> JobPlan | None:
        """Return what a client asked for when it asked for this row; None where nobody did."""
        job = self.scene.job_of(row)
        number = None if job is None else self.scene.number_of(job)
        return None if number is None else self.truth.plans.get(number)

    def window_of(self, row: OutgoingRow) -> Window:
        """Return the time in which it was decided that there is a row."""
        job = self.scene.job_of(row)
        return Window(*self.scene.frozen.get(0 if job is None else job.id, (0.0, self.scene.made_at[row.id])))

    def message_of(self, row: OutgoingRow) -> Message | None:
        """Say whom a row is for and where it goes; None where the world knows nobody of whom that is true."""
        who, where = self.directory.whose(row.recipient_id_hash), self.directory.where(row.destination_index)
        return None if who is None or where is None else Message(who, Channel(row.channel), where)


Check = Callable[[Change, Evidence], Iterator[Violation]]
"""Judges one commit."""


def lease_violation(change: Change, what: str, until: int | None) -> Iterator[Violation]:
    """I-19: a lease is the store's own time and the length that was asked for."""
    lease = cast(timedelta, change.deed.given["lease"])
    expected = change.at + lease // timedelta(microseconds=1)
    if until is None or abs(until - expected) > TOLERANCE:
        yield Violation("I-19", f"the lease of {what} ends at {until} and not at {expected}")

"""The type of a state machine: one table of legal moves, and the questions that are asked of it.

A record's table stands in the file of its noun (`outgoing.py`, `campaign.py`, ...) and is the only statement of its
moves: writes are checked against it, the tests walk it, the diagrams in `docs/reference/states.md` are drawn from it
and the CHECK constraints of the schema are compared with it.

A table knows states only. A condition that depends on other data of the row (who canceled it, how many attempts it
had) is named in the move's note and decided by a pure function beside the table or by the statement that makes the
move. Nothing here reads or writes anything.
"""

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

from clarion.errors import IllegalMove


class Cause(StrEnum):
    """What brings a move about."""

    CLAIM = "claim"  # a worker takes the row, under a lease
    RECORD = "record"  # the holder of the claim writes what came of it
    RESCUE = "rescue"  # the lease ran out before anything was recorded
    RULE = "rule"  # a check before the work finds that there is nothing to do, or no way to do it
    ENSURE = "ensure"  # the same occurrence was asked for again
    REQUEST = "request"  # a person, or a program for one, asks for the next step
    CANCEL = "cancel"  # a person or the system calls it off
    REPLAY = "replay"  # the provider, or the policy of the notification type, allows the same call again
    LATE_REPLY = "late reply"  # the reply of an outlived claim proves that nothing was sent
    EVIDENCE = "evidence"  # a late reply, a webhook or a look-up shows what the provider did
    AUDITED = "audited"  # a person decides, with a reason, and the audit log keeps it


# Work that is over may still be corrected by what the world shows or by a person who answers for it, by nothing else.
_CORRECTIONS = frozenset({Cause.EVIDENCE, Cause.AUDITED})

S = TypeVar("S", bound=StrEnum)


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """One legal move: what may bring it about, and on what condition beyond the two states."""

    by: tuple[Cause, ...]
    note: str = ""


def by(*causes: Cause, note: str = "") -> Move:
    """Write a move the way that a table reads: by whom, and when."""
    return Move(by=causes, note=note)


class Machine(msgspec.Struct, Generic[S], frozen=True, kw_only=True):
    """The states in which a record may begin and the moves that it may make; every state is a key of the table."""

    name: str
    initial: frozenset[S]
    table: Mapping[S, Mapping[S, Move]]

    def may(self, *, from_: S, to: S) -> bool:
        """Tell whether the table has this move."""
        return to in self.table[from_]

    def require(self, *, from_: S, to: S) -> None:
        """Raise IllegalMove unless the table has this move."""
        if not self.may(from_=from_, to=to):
            legal = ", ".join(self.table[from_]) or "no other state"
            raise IllegalMove(f"{self.name} cannot move from {from_} to {to}; from {from_} it may move to {legal}")

    @property
    def final(self) -> frozenset[S]:
        """States that are left only by evidence or by an audited act, if at all."""
        return frozenset(
            state for state, exits in self.table.items() if all(_CORRECTIONS.issuperset(m.by) for m in exits.values())
        )

    def sources(self, cause: Cause) -> frozenset[S]:
        """States that this cause can move a record out of."""
        return frozenset(from_ for from_, _, move in self.moves() if cause in move.by)

    def targets(self, cause: Cause) -> frozenset[S]:
        """States that this cause can move a record into."""
        return frozenset(to for _, to, move in self.moves() if cause in move.by)

    def reachable(self, starts: Collection[S]) -> frozenset[S]:
        """States that a record can be in after it was in one of these, these included."""
        seen: set[S] = set()
        ahead = list(starts)
        while ahead:
            state = ahead.pop()
            if state not in seen:
                seen.add(state)
                ahead.extend(self.table[state])
        return frozenset(seen)

    def moves(self) -> Iterator[tuple[S, S, Move]]:
        """Walk the table in the order in which it is written."""
        for from_, exits in self.table.items():
            for to, move in exits.items():
                yield from_, to, move

    def mermaid(self, *, without: Collection[Cause] = ()) -> str:
        """Draw the table as a Mermaid state diagram, leaving out what happens by these causes."""
        lines = ["stateDiagram-v2"]
        drawn = set(self.initial)
        lines += [f"    [*] --> {state}" for state in self.table if state in self.initial]
        for from_, to, move in self.moves():
            causes = [cause for cause in move.by if cause not in without]
            if causes:
                lines.append(f"    {from_} --> {to} : {' or '.join(causes)}")
                drawn |= {from_, to}
        lines += [f"    {state} --> [*]" for state in self.table if state in self.final & drawn]
        return "\n".join(lines)

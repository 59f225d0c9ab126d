"""The ledger: what providers were really asked and what they really did, whatever anybody heard of it.

It is the truth that the database is judged by. A row is known here by its message and channel: a person has one address
on a channel at a time, so no two rows of a message share one. Written by `outside`, read by the invariants.
"""

from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from clarion.domain.identity import Channel


class RowName(NamedTuple):
    """How the outside knows a row."""

    message_id: UUID
    channel: Channel


class Fate(StrEnum):
    """What became of a call at the provider."""

    OPEN = "open"
    ACCEPTED = "accepted"
    REPEATED = "repeated"  # accepted before under this key: answered, and not delivered again
    REFUSED = "refused"  # and the caller was told, or would have been
    LOST = "lost"


class LedgerCall:
    """One call."""

    def __init__(
        self, *, row: RowName, key: str, account: str, attempt: int, content: bytes, destination: str, at: float
    ) -> None:
        """Write a call down when its bytes leave."""
        self.row = row
        self.key = key
        self.account = account
        self.attempt = attempt
        self.content = content
        self.destination = destination
        self.at = at
        self.fate = Fate.OPEN
        self.heard = False  # whether its caller got a reply that leaves nothing uncertain

    @property
    def proven_refused(self) -> bool:
        """Whether the provider did not take it and said so."""
        return self.fate is Fate.REFUSED


class Ledger:
    """Every call of a run."""

    def __init__(self) -> None:
        """Start empty."""
        self.calls: list[LedgerCall] = []
        self._of: dict[RowName, list[LedgerCall]] = {}

    def write(self, call: LedgerCall) -> None:
        """Add a call."""
        self.calls.append(call)
        self._of.setdefault(call.row, []).append(call)

    def of(self, row: RowName) -> list[LedgerCall]:
        """Return the calls of a row in their order."""
        return self._of.get(row, [])

    def refused(self, row: RowName) -> bool:
        """Tell whether a provider turned a call of a row down."""
        return any(call.fate is Fate.REFUSED for call in self.of(row))

    def deliveries(self, row: RowName) -> int:
        """Count how often the recipient got the message."""
        return sum(call.fate is Fate.ACCEPTED for call in self.of(row))

    def accepted(self, row: RowName) -> bool:
        """Tell whether the provider has the message."""
        return self.deliveries(row) > 0

    def first_within(self, call: LedgerCall, *, window: float) -> LedgerCall | None:
        """Find the delivery that a provider with this window takes a call for a repetition of."""
        for earlier in self.calls:
            same = earlier.key == call.key and earlier.account == call.account
            if same and earlier.fate is Fate.ACCEPTED and call.at - earlier.at < window:
                return earlier
        return None

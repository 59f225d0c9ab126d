"""The ledger: what providers were really asked and what they really did, whatever anybody heard of it.

It is the truth that the database is judged by. A row is known here by its message, its channel and what stands for the
address, since a person may be reached at several. Written by `outside`, read by the invariants.
"""

from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

from clarion.domain.call import CallOutcome, Unknown
from clarion.domain.identity import Channel
from clarion.domain.outgoing import OutgoingStatus
from clarion.testing.simulation.notes import Asked


class RowName(NamedTuple):
    """How the outside knows a row."""

    message_id: UUID
    channel: Channel
    key_hash: str


class Fate(StrEnum):
    """What became of a call at the provider."""

    OPEN = "open"
    ACCEPTED = "accepted"
    REPEATED = "repeated"  # accepted before under this key: answered, and not delivered again
    REFUSED = "refused"  # and the caller was told, or would have been; as with the next two
    DEFERRED = "deferred"
    MISCONFIGURED = "misconfigured"
    LOST = "lost"


NOT_TAKEN: Final = frozenset({Fate.REFUSED, Fate.DEFERRED, Fate.MISCONFIGURED})


class Receipt:
    """One report that a provider sent, and when a door took it."""

    def __init__(
        self,
        *,
        row: RowName,
        event_id: str,
        status: OutgoingStatus,
        provider_message_id: str,
        names_ours: bool,
        destination: str,
        suppresses: bool,
    ) -> None:
        """Write a receipt down when it leaves."""
        self.row = row
        self.event_id = event_id
        self.status = status
        self.provider_message_id = provider_message_id
        self.names_ours = names_ours  # whether it names the message by our id
        self.destination = destination
        self.suppresses = suppresses  # whether nothing goes there any more after it
        self.offered_at: float | None = None  # when it was first brought to a door
        self.suppression: Asked | None = None  # what it does to its destination, once it was offered
        self.taken_at: float | None = None  # when a door first said that it has it


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
        self.reply: CallOutcome | None = None  # what its caller was told; None where it gave up, or was told nonsense
        self.is_broken = False  # whether its caller was told nonsense

    @property
    def proven_refused(self) -> bool:
        """Whether the provider did not take it and said so."""
        return self.fate in NOT_TAKEN

    @property
    def heard(self) -> bool:
        """Whether its caller got a reply that leaves nothing uncertain."""
        return self.reply is not None and not isinstance(self.reply, Unknown)


class Ledger:
    """Every call of a run."""

    def __init__(self) -> None:
        """Start empty."""
        self.calls: list[LedgerCall] = []
        self.receipts: list[Receipt] = []
        self._of: dict[RowName, list[LedgerCall]] = {}

    def write(self, call: LedgerCall) -> None:
        """Add a call."""
        self.calls.append(call)
        self._of.setdefault(call.row, []).append(call)

    def of(self, row: RowName) -> list[LedgerCall]:
        """Return the calls of a row in their order."""
        return self._of.get(row, [])

    def receipts_of(self, row: RowName) -> list[Receipt]:
        """Return the receipts of a row that were sent."""
        return [one for one in self.receipts if one.row == row]

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

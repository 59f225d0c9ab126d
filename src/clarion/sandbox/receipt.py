"""What the sandbox says later about a call that it accepted. Pure: the file is `ledger`'s, the wire `report`'s."""

from datetime import datetime
from typing import Final, Self

import msgspec

from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.suppression import Signal

_BESIDES: Final = "/"
"""Between a status and what is said besides. A file of an older program has statuses alone."""


class Receipt(msgspec.Struct, frozen=True):
    """What is said later about a call that was accepted."""

    status: OutgoingStatus
    happened_at: datetime
    signal: Signal | None = None

    @property
    def said(self) -> str:
        """Status and signal as one word, by which a call's receipts are told apart."""
        return self.status if self.signal is None else f"{self.status}{_BESIDES}{self.signal}"

    @classmethod
    def read(cls, said: str, happened_at: datetime) -> Self:
        """Take that word apart."""
        status, _, signal = said.partition(_BESIDES)
        return cls(OutgoingStatus(status), happened_at, Signal(signal) if signal else None)


class WaitingReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """What is still to be said about a call."""

    id: int
    call_id: int
    receipt: Receipt
    tenant_id: str
    idempotency_key: str

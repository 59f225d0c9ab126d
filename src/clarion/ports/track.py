"""The store as it takes in what providers report: kept raw first, applied in batches later."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol, Self
from uuid import UUID

import msgspec

from clarion.domain import reply
from clarion.domain.outgoing import RANK, OutgoingStatus
from clarion.domain.suppression import Signal
from clarion.errors import BrokenInvariant


class ProviderEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a provider, verified: about which message, by our key or by the provider's id, and what it shows."""

    account: str
    event_id: str
    status: OutgoingStatus
    message_id: UUID | None = None
    recipient_key_hash: str | None = None
    provider_message_id: str | None = None
    signal: Signal | None = None
    happened_at: datetime
    raw: str

    def __post_init__(self) -> None:
        """Refuse a state that no event can show before it is stored: later, applying it would fail every time."""
        if self.status not in RANK:
            raise BrokenInvariant(f"an event shows {self.status}, which is no state that evidence can show")

    def storable(self) -> Self:
        """Keep of what the provider said what can be stored; its id as it was recorded, so that the two are one.

        The event's own id is left as it is: events that become alike by cutting would be taken for one.
        """
        return msgspec.structs.replace(
            self,
            provider_message_id=reply.storable_id(self.provider_message_id),
            raw=reply.storable(self.raw, bytes_max=reply.RAW_BYTES_MAX),
        )


class TrackStore(Protocol):
    """Receipts."""

    async def keep_events(self, tenant_id: str, events: Sequence[ProviderEvent]) -> int:
        """Store events that are new by (account, event id); return how many were.

        Of the provider's id and the raw text what can be stored is kept (X-30).
        """
        ...

    async def apply_events(self, *, limit: int, actor: str) -> int:
        """Merge kept events into their rows, as `after_receipt` rules; return how many were applied.

        Whoever bounced, complained or answered STOP is suppressed in the same transaction, at the destination that the
        event is about (I-34); START lifts what STOP made and nothing else.

        An event whose row is not known yet, or is yet to be called, waits and holds up no other (F-38, F-49).
        """
        ...

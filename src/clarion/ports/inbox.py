"""The store of inboxes: their lines, what their readers make of them, and how many there are.

A line comes to exist by `EnsureStore.ensure_user_messages`, which enters and counts it in the same transaction. An
inbox is named by the hash of whoever it belongs to. Every change of a line changes the counts of its inbox with it.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

import msgspec

from clarion.domain.inbox import Counts, LineState, Marking


class InboxLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line and how it stands; what it says is sealed, and found by `find_contents`."""

    id: int
    bucket: int
    partition_key: str
    row_key: str
    message_id: UUID
    job_row_key: str
    event_type: str
    category: str | None
    created_at: datetime
    expires_at: datetime | None
    state: LineState


class InboxCount(Counts, frozen=True, kw_only=True):
    """How many lines an inbox has; with `has_expired` some of them have expired and are to be swept first."""

    has_expired: bool = False


class InboxStore(Protocol):
    """Reading inboxes, and what their readers do."""

    async def list_inbox(
        self, tenant_id: str, recipient_id_hash: str, *, after: str = "", limit: int = 50
    ) -> Sequence[InboxLine]:
        """List the lines that have not expired, archived or not, in the order of their row keys, behind `after`."""
        ...

    async def find_contents(self, tenant_id: str, lines: Collection[tuple[int, int]]) -> dict[int, bytes]:
        """Return what lines say, by their ids, sealed as it is stored; a line is named by its bucket and id."""
        ...

    async def count_inbox(self, tenant_id: str, recipient_id_hash: str) -> InboxCount:
        """Return the counts of an inbox, without looking at its lines."""
        ...

    async def mark_lines(
        self, tenant_id: str, recipient_id_hash: str, message_ids: Collection[UUID], marking: Marking
    ) -> set[UUID]:
        """Mark the lines of these messages; return which there are, marked now or before. An expired one is none."""
        ...

    async def mark_inbox(self, tenant_id: str, recipient_id_hash: str, marking: Marking) -> Counts:
        """Mark all lines of an inbox, however many, and return its counts."""
        ...

    async def sweep_inbox(self, tenant_id: str, recipient_id_hash: str, *, limit: int) -> int:
        """Count out so many expired lines of an inbox; return how many."""
        ...

    async def sweep_inboxes(self, *, limit: int) -> int:
        """Count out so many expired lines, of any inboxes, those that expired first; return how many."""
        ...

    async def enter_lines(self, *, limit: int) -> int:
        """Enter so many lines that a program made which knew of no counts; return how many."""
        ...

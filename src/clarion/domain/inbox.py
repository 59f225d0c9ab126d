"""A user message: one line in one recipient's in-app inbox.

Its row key starts with the source's time, never the time of writing, so a generator's retry finds the row it made.
`content` is sealed; it is what the recipient sees and is not compared.
"""

from datetime import datetime
from typing import ClassVar
from uuid import UUID

import msgspec


class UserMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One notification in one inbox."""

    GIVEN: ClassVar[tuple[str, ...]] = ("message_id", "recipient_id_hash", "job_row_key", "event_type")

    bucket: int
    partition_key: str
    row_key: str
    message_id: UUID
    recipient_id_hash: str
    job_row_key: str
    event_type: str
    category: str | None = None
    expires_at: datetime | None = None
    content: bytes | None = None
    correlation_id: str
    traceparent: str | None = None
    id: int | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What is unique within the tenant."""
        return (str(self.bucket), self.partition_key, self.row_key)

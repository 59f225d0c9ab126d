"""The idempotency guard: who was first with a caller's key, and at which coordinates.

Written in the transaction of the job and its scheduler row. Its unique key decides a race; whoever comes second reads
the first one's time and so computes the same row key. After retention a tombstone remains (`retired_at`), so that an
old key can be refused and never sends twice.
"""

from datetime import datetime
from typing import ClassVar, Final, Self

import msgspec

from clarion.domain.fingerprint import Fingerprint
from clarion.domain.key import month_bucket
from clarion.domain.notification import NotificationJob, NotificationScheduler

IDEMPOTENCY_KEY_MAX: Final = 255
"""Characters of a caller's key: room for a guid and a few words, and short enough for every log and index."""


class IdempotencyGuard(msgspec.Struct, frozen=True, kw_only=True):
    """One use of one key for one operation."""

    GIVEN: ClassVar[tuple[str, ...]] = ("payload_hash",)

    operation: str
    key_hash: str
    payload_hash: Fingerprint
    job_partition_key: str
    job_row_key: str
    source_at: datetime
    retired_at: datetime | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What is unique within the tenant."""
        return (self.operation, self.key_hash)


class JobEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A notification job with what is committed together with it.

    `scheduler` is None where another artifact's scheduler row does the work (a campaign's history anchor).
    """

    job: NotificationJob
    scheduler: NotificationScheduler | None = None
    guard: IdempotencyGuard | None = None

    def at(self, guard: IdempotencyGuard) -> Self:
        """Move the entry to the coordinates of the guard that is stored: whoever comes second takes the first one's."""
        job = msgspec.structs.replace(
            self.job,
            row_key=guard.job_row_key,
            message_id=self.job.message_id
            if self.job.row_key == guard.job_row_key
            else None,  # it derives from the key
            source_at=guard.source_at,
            bucket=month_bucket(guard.source_at),
        )
        scheduler = self.scheduler and msgspec.structs.replace(self.scheduler, artifact_rk=guard.job_row_key)
        return msgspec.structs.replace(self, job=job, scheduler=scheduler, guard=guard)

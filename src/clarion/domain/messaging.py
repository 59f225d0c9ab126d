"""A messaging job: a campaign, a wave of it or a report, whose large content lies in a blob.

The row carries the content's fingerprint; a blob that does not match it is a conflict and nothing is sent.
"""

from datetime import datetime
from enum import StrEnum
from typing import ClassVar
from uuid import UUID

import msgspec

from clarion.domain.fingerprint import Fingerprint


class MessagingKind(StrEnum):
    """What a messaging job is for."""

    CAMPAIGN = "Campaign"
    REPORT = "Report"
    WAVE = "Wave"


class MessagingJob(msgspec.Struct, frozen=True, kw_only=True):
    """One large payload; the parent of its outgoing rows, which take bucket and key version from it."""

    GIVEN: ClassVar[tuple[str, ...]] = (
        "kind",
        "source",
        "run_key",
        "template_key",
        "asked_template_version",
        "content_hash",
    )

    guid: UUID
    kind: MessagingKind
    source: str
    run_key: str
    template_key: str | None = None
    asked_template_version: int | None = None
    template_version: int | None = None
    content_hash: Fingerprint
    source_at: datetime
    bucket: int
    key_version: int
    correlation_id: str
    traceparent: str | None = None
    id: int | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What is unique within the tenant."""
        return (str(self.guid),)

"""What lies in the blob of a messaging job, as JSON: what all of its messages are merged from, and what a report wrote.

The pipeline reads the part that every content has; what a report wrote besides is for whoever opens its link. Pure.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from clarion.domain.hint import Hints
from clarion.domain.report_choice import ReportForm

DATA_BYTES_MAX: Final = 256 * 1024
"""What all messages of a job are merged from: a table that somebody reads in a mail, not a file."""


class MessagingContent(msgspec.Struct, frozen=True, kw_only=True):
    """What the messages of a messaging job are merged from; `entity` is what it is about, as templates read it."""

    data: Mapping[str, object] = {}
    entity: Mapping[str, object] = {}
    hints: Hints | None = None


class WrittenReport(MessagingContent, frozen=True, kw_only=True):
    """One run's report as it was written, whoever asks again: its period, its text, and what tells of it.

    `link_until` is when the link to it ends, where it goes out by one.
    """

    name: str
    report: str
    notification_type: str
    template_version: int
    start_at: datetime
    end_at: datetime
    form: ReportForm
    lines: int
    output: str
    written_at: datetime
    link_until: datetime | None = None


_SHARED: Final = msgspec.json.Decoder(MessagingContent)
_WRITTEN: Final = msgspec.json.Decoder(WrittenReport)


def encode(content: MessagingContent) -> bytes:
    """Write a content as it is stored."""
    return msgspec.json.encode(content)


def read_shared(stored: bytes) -> MessagingContent:
    """Read what messages are merged from; the text of a report is not read."""
    return _SHARED.decode(stored)


def read_report(stored: bytes) -> WrittenReport:
    """Read a written report."""
    return _WRITTEN.decode(stored)

"""The shapes of what people look after: uncertain messages, retries, support cases, the audit log (see `wire`)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final, Literal
from uuid import UUID

import msgspec

from clarion.client.wire import ROW_ID_MAX, At, PageQuery, Reason
from clarion.domain.identity import Channel

EVERY_CASE: Final = "All"
"""Of the support cases; without a word about it those are listed that are open, at both doors."""


class UncertainLine(msgspec.Struct, frozen=True, kw_only=True):
    """A message of which nobody knows whether it arrived."""

    id: int
    version: int
    message_id: UUID
    channel: Channel
    account: str | None
    reason: str | None
    since_at: At


class UncertainPage(msgspec.Struct, frozen=True, kw_only=True):
    """Uncertain messages, the longest stored first."""

    items: tuple[UncertainLine, ...]
    next_cursor: str | None


class RetryRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person's word that a message shall be sent again, as they saw it."""

    version: Annotated[int, msgspec.Meta(ge=1, le=ROW_ID_MAX, description="of the message when the person looked")]
    reason: Reason


class Retried(msgspec.Struct, frozen=True, kw_only=True):
    """The message waits to be sent again."""

    id: int


class RetryNotificationRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person's word that a notification that failed shall be tried again."""

    reason: Reason


class RetriedNotification(msgspec.Struct, frozen=True, kw_only=True):
    """The notification goes on where it failed."""

    job_id: UUID


class SupportCase(msgspec.Struct, frozen=True, kw_only=True):
    """One cause of trouble, and how often it was seen."""

    case_id: UUID
    kind: str
    status: str
    about: Annotated[str, msgspec.Meta(description="what it is about, by the name or the id that people know")] = ""
    record: str
    record_key: str
    details: Mapping[str, object]
    seen_count: int
    correlation_id: str
    first_seen_at: At | None
    last_seen_at: At | None
    resolved_at: Annotated[datetime, msgspec.Meta(tz=True, description="last; it may be open again")] | None
    resolved_by: str | None
    resolution: str | None


class SupportCaseQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which page of the support cases, of which state."""

    status: Annotated[
        Literal["Open", "Resolved", "All"], msgspec.Meta(description="only cases in this state; All for both")
    ] = "Open"


class SupportCasePage(msgspec.Struct, frozen=True, kw_only=True):
    """Support cases, in the order of their ids."""

    items: tuple[SupportCase, ...]
    next_cursor: str | None


class ResolveRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a case ended."""

    resolution: Reason


class AuditLine(msgspec.Struct, frozen=True, kw_only=True):
    """One act of a person or a support tool."""

    seq: int
    at: At
    actor: str
    act: str
    subject: str
    reason: str | None
    details: Mapping[str, object]
    hash: Annotated[str, msgspec.Meta(description="of this entry and the hash of the one before it")]


class AuditPage(msgspec.Struct, frozen=True, kw_only=True):
    """The audit log, newest first."""

    items: tuple[AuditLine, ...]
    next_cursor: str | None

"""Rows that only a store has: what it keeps about records beyond what an ensure compares or hands back.

Field names are column names, so that a test can read the same rows from any store. Pure values.
"""

from datetime import date, datetime
from uuid import UUID

import msgspec

from clarion.domain.attempt import AttemptStatus
from clarion.domain.identity import Lane
from clarion.domain.outgoing import OutgoingStatus, UncertainPolicy
from clarion.domain.suppression import Signal

Key = tuple[str, ...]


class QueueEntry(msgspec.Struct, frozen=True, kw_only=True):
    """How an outgoing row waits, goes out and comes back.

    `pinned` is the account of its flow, '' for none. `in_line` says that its due time was moved because another row of
    its order key goes first, so whoever closes that one may make this one due.
    """

    pk: str
    rk: str
    lane: Lane
    route: str
    broadcast: str
    pinned: str = ""
    order_key: str | None
    due_at: datetime | None
    lease_until: datetime | None = None
    expires_at: datetime | None
    cancel_at: datetime | None = None
    claim_token: UUID | None = None
    account: str | None = None
    attempts: int = 0
    not_called: int = 0
    replays: int = 0
    replay_authorised: bool = False
    first_unknown_at: datetime | None = None
    settle_at: datetime | None = None
    provider_message_id: str | None = None
    content_hash: str | None = None
    reason: str | None = None
    reason_class: str = ""
    in_line: bool = False
    uncertain_policy: UncertainPolicy = UncertainPolicy.PREFER_LOSS
    attempts_max: int | None = None
    person_version_id: int | None = None
    locale: str | None = None
    tz_id: str | None = None
    category: str | None = None
    traceparent: str | None

    @property
    def key(self) -> Key:
        """The row that waits."""
        return (self.pk, self.rk)


class Transition(msgspec.Struct, frozen=True, kw_only=True):
    """One change of an outgoing row's state."""

    outgoing_id: int
    version: int
    from_status: OutgoingStatus
    to_status: OutgoingStatus
    at: datetime
    actor: str
    reason: str | None

    @property
    def key(self) -> Key:
        """What is unique."""
        return (str(self.outgoing_id), str(self.version))


class DeliveryAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One provider call, as far as it is known."""

    outgoing_id: int
    attempt: int
    claim_token: UUID
    account: str
    status: AttemptStatus
    provider_message_id: str | None = None
    reason: str | None = None
    content_hash: str | None = None
    latency_ms: int | None = None
    at: datetime
    correlation_id: str
    traceparent: str | None

    @property
    def key(self) -> Key:
        """What is unique."""
        return (str(self.outgoing_id), str(self.attempt))


class WebhookEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One provider event as it was received, and when it was applied."""

    account: str
    event_id: str
    status: OutgoingStatus
    message_id: UUID | None
    recipient_key_hash: str | None
    provider_message_id: str | None
    signal: Signal | None = None
    happened_at: datetime
    raw: str
    received_at: datetime
    applied_at: datetime | None = None
    subject: str | None = None

    @property
    def key(self) -> Key:
        """What is unique within the tenant."""
        return (self.account, self.event_id)


class FlowCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many rows of a campaign's flow are in a state; `reason_class` is '' unless they are counted by reason."""

    lane: Lane
    route: str
    broadcast: str
    pinned: str
    status: OutgoingStatus
    reason_class: str
    n: int

    @property
    def key(self) -> Key:
        """What is unique within the tenant."""
        return (self.lane, self.route, self.broadcast, self.pinned, self.status, self.reason_class)


class PlanSerial(msgspec.Struct, frozen=True, kw_only=True):
    """How many plans were carried out for a source."""

    source_type: str
    source: str
    serial: int

    @property
    def key(self) -> Key:
        """The source."""
        return (self.source_type, self.source)


class InboxState(msgspec.Struct, frozen=True, kw_only=True):
    """What its reader made of a line, as it is stored."""

    recipient_id_hash: str
    row_key: str
    bucket: int
    user_message_id: int
    mark: int
    seen_at: datetime | None
    read_at: datetime | None
    archived_at: datetime | None
    expires_at: datetime | None
    swept: bool

    @property
    def key(self) -> Key:
        """What is unique within the tenant."""
        return (self.recipient_id_hash, self.row_key)


class InboxCount(msgspec.Struct, frozen=True, kw_only=True):
    """One inbox: its counters, and what was done to all its lines."""

    recipient_id_hash: str
    lines: int
    unseen: int
    unread: int
    archived: int
    archived_unseen: int
    archived_unread: int
    mark: int
    seen_mark: int
    read_mark: int
    unread_mark: int
    archived_mark: int
    unarchived_mark: int
    all_seen_at: datetime | None
    all_read_at: datetime | None
    all_archived_at: datetime | None

    @property
    def key(self) -> Key:
        """Whose inbox."""
        return (self.recipient_id_hash,)


class InInbox(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a line of `user_message` is entered in its inbox and counted."""

    id: int
    row_key: str
    recipient_id_hash: str
    in_inbox: bool

    @property
    def key(self) -> Key:
        """The line."""
        return (self.recipient_id_hash, self.row_key)


class SourceRow(msgspec.Struct, frozen=True, kw_only=True):
    """A source as it is stored, without its dates."""

    source_type: str
    source: str
    entity_guid: UUID
    business_unit: UUID | None
    active: bool
    content: bytes
    content_hash: str
    row_version: int
    changed_at: datetime

    @property
    def key(self) -> Key:
        """What is unique within the tenant."""
        return (self.source_type, self.source)


class SourceDay(msgspec.Struct, frozen=True, kw_only=True):
    """A date of an active source."""

    source_type: str
    source: str
    name: str
    day: date

    @property
    def key(self) -> Key:
        """What is unique within the tenant."""
        return (self.source_type, self.source, self.name)


class PlannedSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A reminder setting, and how far its sources were planned."""

    guid: UUID
    source_type: str
    setting: str
    version: int
    planned_version: int
    plan_at: datetime | None
    plan_cursor: str
    plan_token: int
    changed_by: str
    changed_at: datetime

    @property
    def key(self) -> Key:
        """What is unique within the tenant."""
        return (str(self.guid),)


class RepairRow(msgspec.Struct, frozen=True, kw_only=True):
    """How far the reconciliation of a type of source has come."""

    source_type: str
    watermark_at: datetime
    round_at: datetime | None
    cursor: str | None
    due_at: datetime
    next_at: datetime
    token: int

    @property
    def key(self) -> Key:
        """What is unique within the tenant."""
        return (self.source_type,)

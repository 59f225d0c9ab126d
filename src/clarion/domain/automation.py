"""Automation: the due occurrence of a reminder or a report, and the states of its scheduler row.

Nothing here reads or writes anything. The keys of an occurrence live in `key.py`, the Ensure contract in `dispatch`.
"""

from datetime import date, datetime
from enum import StrEnum
from typing import ClassVar

import msgspec

from clarion.domain.comparison import differing
from clarion.domain.ensured import Outcome
from clarion.domain.fingerprint import Fingerprint
from clarion.domain.machine import Cause, Machine, by


class AutomationStatus(StrEnum):
    """Where an occurrence stands; `Skipped` is no state but an outcome in the `dispatch_result` of a Completed row."""

    PENDING = "Pending"
    PROCESSING = "Processing"
    COMPLETED = "Completed"
    FAILED = "Failed"
    DEACTIVATED = "Deactivated"
    CANCELED = "Canceled"


class CanceledBy(StrEnum):
    """Who canceled an occurrence: the system may take that back, a person's word stands."""

    PERSON = "person"
    SYSTEM = "system"


AUTOMATION_SCHEDULER = Machine(
    name="AutomationScheduler",
    initial=frozenset({AutomationStatus.PENDING}),
    table={
        AutomationStatus.PENDING: {
            AutomationStatus.PENDING: by(Cause.ENSURE, note="new send time"),
            AutomationStatus.PROCESSING: by(Cause.CLAIM),
            AutomationStatus.DEACTIVATED: by(Cause.RULE, note="its setting or source no longer asks for it"),
            AutomationStatus.CANCELED: by(Cause.CANCEL),
        },
        AutomationStatus.PROCESSING: {
            AutomationStatus.COMPLETED: by(Cause.RECORD),
            AutomationStatus.FAILED: by(Cause.RECORD, note="a handler's permanent error"),
            AutomationStatus.PENDING: by(
                Cause.RECORD, Cause.RESCUE, note="transient failure or expired lease: one more retry, then support hold"
            ),
            AutomationStatus.DEACTIVATED: by(Cause.RULE, note="its setting or source no longer asks for it"),
            AutomationStatus.CANCELED: by(Cause.CANCEL),
        },
        AutomationStatus.COMPLETED: {},
        AutomationStatus.FAILED: {AutomationStatus.PENDING: by(Cause.ENSURE)},
        AutomationStatus.DEACTIVATED: {AutomationStatus.PENDING: by(Cause.ENSURE)},
        AutomationStatus.CANCELED: {
            AutomationStatus.PENDING: by(Cause.ENSURE, note="canceled by the system; a person's cancel stays")
        },
    },
)


def reactivates(status: AutomationStatus, *, canceled_by: CanceledBy | None) -> bool:
    """Tell whether an ensure brings a compatible row of this status back to Pending (I-07, I-21)."""
    if status is AutomationStatus.PENDING:
        return False  # it is already there: ensure may give it a new send time, which reactivates nothing
    if status is AutomationStatus.CANCELED and canceled_by is not CanceledBy.SYSTEM:
        return False  # a row that does not say who canceled it is taken for a person's
    return status in AUTOMATION_SCHEDULER.sources(Cause.ENSURE)


class AutomationType(StrEnum):
    """Which producer an occurrence belongs to."""

    REMINDER = "Reminder"
    REPORT_SUBSCRIPTION = "ReportSubscription"


class TriggerType(StrEnum):
    """What made an occurrence due."""

    DATE_BASED = "DateBased"
    THRESHOLD_CONDITION = "ThresholdCondition"
    RECURRING = "Recurring"
    SCHEDULED_RUN = "ScheduledRun"
    MANUAL_RUN = "ManualRun"


# What InputHash covers: the occurrence itself, never its send time, zone, template, channels or recipients.
INPUT_FIELDS = (
    "setting",
    "source_type",
    "source",
    "trigger_key",
    "target_date",
    "offset_days",
    "metric",
    "threshold_value",
    "firing_policy",
    "scope",
    "business_unit",
    "primary_entity",
    "notification_type",
)

# When it is due; a new send time keeps the occurrence.
TIMING_FIELDS = ("scheduled_at", "local_date", "local_time", "tz_id", "tzdata_version")


class AutomationScheduler(msgspec.Struct, frozen=True, kw_only=True):
    """One due occurrence: the row that workers poll, kept small.

    `run_now_at` is when a person made it due, whatever its plan says; `end_reason` why it ended without anybody being
    told.
    """

    GIVEN: ClassVar[tuple[str, ...]] = ("automation_type", *INPUT_FIELDS, "input_hash")

    scheduler_key: str
    automation_type: AutomationType
    trigger_type: TriggerType
    setting: str
    source_type: str
    source: str
    trigger_key: str
    target_date: date | None = None
    offset_days: int | None = None
    metric: str | None = None
    threshold_value: str | None = None
    firing_policy: str | None = None
    scope: str | None = None
    business_unit: str | None = None
    primary_entity: str
    notification_type: str
    input_hash: Fingerprint
    scheduled_at: datetime
    local_date: date | None = None
    local_time: str | None = None
    tz_id: str | None = None
    tzdata_version: str | None = None
    status: AutomationStatus = AutomationStatus.PENDING
    version: int = 1
    lease_until: datetime | None = None
    retry_count: int = 0
    next_retry_at: datetime | None = None
    failure_reason: str | None = None
    on_support_hold: bool = False
    run_now_at: datetime | None = None
    end_reason: str | None = None
    canceled_by: CanceledBy | None = None
    dispatch_result: str | None = None
    trace_blob: str | None = None
    key_version: int
    correlation_id: str
    traceparent: str | None = None
    id: int | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What is unique within the tenant."""
        return (self.scheduler_key,)

    @property
    def due_at(self) -> datetime:
        """When it may be claimed, a retry that it waits for included; lists are in this order."""
        planned_at = self.run_now_at or self.scheduled_at
        return planned_at if self.next_retry_at is None else max(planned_at, self.next_retry_at)


class AutomationJob(msgspec.Struct, frozen=True, kw_only=True):
    """The trace of an occurrence in its entity's history; never scanned for work."""

    GIVEN: ClassVar[tuple[str, ...]] = ("automation_type", "notification_type", "input_hash")

    partition_key: str
    row_key: str
    automation_type: AutomationType
    notification_type: str
    input_hash: Fingerprint
    key_version: int
    correlation_id: str
    traceparent: str | None = None
    id: int | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What is unique within the tenant."""
        return (self.partition_key, self.row_key)


CONFLICT_HELD = "another occurrence was asked for under its key"
"""Why a row is on hold that an ensure was in conflict with."""


def settled(given: AutomationScheduler, found: AutomationScheduler) -> tuple[Outcome, AutomationScheduler]:
    """Decide what an ensure makes of a row that is already there: the outcome, and the row as it must then be.

    One that contradicts it holds it back while it is pending, so that nobody is told what may be wrong (I-04).
    """
    fields = differing(given, found)
    if fields is None:
        return Outcome.NEWER, found
    if fields:
        if found.status is not AutomationStatus.PENDING or found.on_support_hold:
            return Outcome.CONFLICT, found
        return Outcome.CONFLICT, msgspec.structs.replace(
            found, on_support_hold=True, failure_reason=CONFLICT_HELD, version=found.version + 1
        )
    timing = {name: getattr(given, name) for name in TIMING_FIELDS}
    if reactivates(found.status, canceled_by=found.canceled_by):
        # Diagnostics, attempts and old coordinates stay: support must still see what went before.
        return Outcome.REACTIVATED, msgspec.structs.replace(
            found,
            **timing,
            status=AutomationStatus.PENDING,
            canceled_by=None,
            next_retry_at=None,
            run_now_at=None,
            end_reason=None,
            version=found.version + 1,
        )
    movable = found.status is AutomationStatus.PENDING and not found.on_support_hold
    if movable and any(getattr(found, name) != value for name, value in timing.items()):
        return Outcome.FOUND, msgspec.structs.replace(found, **timing, version=found.version + 1)
    return Outcome.FOUND, found


def remade(given: AutomationScheduler, found: AutomationScheduler) -> AutomationScheduler | None:
    """Give an occurrence that was not handed over another input under its key, for a plan that knows of both.

    A source that moved to another business unit keeps its occurrence, which is told of as what it is now. A row on hold
    stays on hold; one that a worker has, that is over, or that a person canceled is left as it is: None.
    """
    if found.status is not AutomationStatus.PENDING and not reactivates(found.status, canceled_by=found.canceled_by):
        return None
    replaced = {name: getattr(given, name) for name in (*INPUT_FIELDS, *TIMING_FIELDS, "input_hash", "trigger_type")}
    waits = found.status is AutomationStatus.PENDING
    return msgspec.structs.replace(
        found,
        **replaced,
        status=AutomationStatus.PENDING,
        canceled_by=None,
        next_retry_at=found.next_retry_at if waits else None,
        run_now_at=found.run_now_at if waits else None,
        end_reason=None,
        version=found.version + 1,
    )

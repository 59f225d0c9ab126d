"""Notification: a notification event's job, and the stages and states of its scheduler row.

Nothing here reads or writes anything. The keys of a job live in `key.py`, the Ensure contract in `dispatch`.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar, Final
from uuid import UUID

import msgspec

from clarion.domain.fingerprint import Fingerprint
from clarion.domain.identity import Lane
from clarion.domain.key import outgoing_pk
from clarion.domain.machine import Cause, Machine, by
from clarion.domain.skip import SkipRule


class Stage(StrEnum):
    """What is to be done for the job next: decide who and whether, then make the rows."""

    SCHEDULE = "schedule"
    GENERATE = "generate"


STAGE_LEASE: Final = timedelta(seconds=60)
"""How long a worker may hold a job's stage: many times what a batch takes, so that only a dead worker's is rescued."""

RESCUES_MAX: Final = 5
"""A job that loses more workers than this is taken for poison: it fails with a support case (I-23)."""

PAYLOAD_BYTES_MAX: Final = 64 * 1024
"""Recipients and merge data of a direct send; anything larger is content, which goes into a blob."""

PRODUCED_BYTES_MAX: Final = 384 * 1024
"""Of what a producer of ours asks for: a thousand recipients by name take up to 300 kB beside the data of a source."""


class NotificationStatus(StrEnum):
    """Where the present stage of a job stands."""

    READY = "Ready"
    PROCESSING = "Processing"
    DONE = "Done"
    SKIPPED = "Skipped"
    FAILED = "Failed"
    CANCELED = "Canceled"


NOTIFICATION_SCHEDULER = Machine(
    name="NotificationScheduler",
    initial=frozenset({NotificationStatus.READY}),
    table={
        NotificationStatus.READY: {
            NotificationStatus.PROCESSING: by(Cause.CLAIM),
            NotificationStatus.SKIPPED: by(Cause.RULE),
            NotificationStatus.CANCELED: by(Cause.CANCEL),
        },
        NotificationStatus.PROCESSING: {
            NotificationStatus.DONE: by(Cause.RECORD, note="the last stage is finished"),
            NotificationStatus.READY: by(
                Cause.RECORD, Cause.RESCUE, note="the next stage, a retry, or the lease ran out"
            ),
            NotificationStatus.SKIPPED: by(Cause.RULE),
            NotificationStatus.FAILED: by(
                Cause.RECORD, Cause.RESCUE, note="a permanent error, or rescued too often: a support case opens"
            ),
            NotificationStatus.CANCELED: by(Cause.CANCEL),
        },
        NotificationStatus.DONE: {},
        NotificationStatus.SKIPPED: {},
        NotificationStatus.FAILED: {
            NotificationStatus.READY: by(Cause.AUDITED),
            NotificationStatus.CANCELED: by(Cause.AUDITED, note="so that nobody brings it back"),
        },
        NotificationStatus.CANCELED: {},
    },
)


class ArtifactType(StrEnum):
    """What a scheduler row is pending for."""

    NOTIFICATION_JOB = "NotificationJob"
    MESSAGING_JOB = "MessagingJob"


Artifact = tuple[ArtifactType, str, str]
"""What a scheduler row is pending for, with both of its keys."""


def artifact_of(partition_key: str, row_key: str, messaging_job: str | None) -> Artifact:
    """Say what the scheduler row of a job is pending for: the messaging job whose content it tells of, or the job."""
    if messaging_job is not None:
        return ArtifactType.MESSAGING_JOB, messaging_job, messaging_job
    return ArtifactType.NOTIFICATION_JOB, partition_key, row_key


class NotificationJob(msgspec.Struct, frozen=True, kw_only=True):
    """One notification event: what to send, to whom, about what. Its row key is unique per tenant by itself.

    `message_id` is in the answer to a direct send to one recipient. With several recipients, or a group, each message
    has its own id, on its row, and the job has none. It is not compared, because it derives from what is.
    The payload of a `one_time_code` is erased when it is over. The business unit is in the payload too; it stands
    here for what cannot open that.
    `messaging_job` is the guid, as it stands in keys, of the messaging job whose content this job tells of: the parent
    of its outgoing rows, and what its scheduler row is pending for.
    """

    GIVEN: ClassVar[tuple[str, ...]] = (
        "partition_key",
        "event_type",
        "operation",
        "source_type",
        "source",
        "automation_key",
        "run_key",
        "template_key",
        "asked_template_version",
        "payload_hash",
        "messaging_job",
    )

    partition_key: str
    row_key: str
    guid: UUID
    message_id: UUID | None = None
    event_type: str
    operation: str
    source_type: str | None = None
    source: str | None = None
    automation_key: str | None = None
    run_key: str | None = None
    template_key: str | None = None
    asked_template_version: int | None = None
    template_version: int | None = None
    payload_hash: Fingerprint
    payload: bytes | None = None
    one_time_code: bool = False
    recipients: str | None = None
    business_unit: UUID | None = None
    messaging_job: str | None = None
    source_at: datetime
    bucket: int
    key_version: int
    actor: str | None = None
    correlation_id: str
    traceparent: str | None = None
    id: int | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What is unique within the tenant."""
        return (self.row_key,)

    @property
    def content_of(self) -> UUID | None:
        """The messaging job whose content it tells of; None where its own payload is all there is."""
        return None if self.messaging_job is None else UUID(self.messaging_job)

    @property
    def outgoing_pk(self) -> str:
        """The partition key of its outgoing rows."""
        return outgoing_pk(job_rk=self.row_key, messaging_job_guid=self.content_of)

    @property
    def artifact(self) -> Artifact:
        """What its scheduler row is pending for."""
        return artifact_of(self.partition_key, self.row_key, self.messaging_job)


class NotificationScheduler(msgspec.Struct, frozen=True, kw_only=True):
    """One pending job. Its key is the dispatch key: one row for an artifact and an event type, ever.

    `cursor` says how far a stage has come that gives its row back between two steps; the stage alone reads it.
    """

    GIVEN: ClassVar[tuple[str, ...]] = ()

    artifact_type: ArtifactType
    artifact_pk: str
    artifact_rk: str
    event_type: str
    lane: Lane
    stage: Stage = Stage.SCHEDULE
    status: NotificationStatus = NotificationStatus.READY
    version: int = 1
    due_at: datetime | None = None
    lease_until: datetime | None = None
    retry_count: int = 0
    rescue_count: int = 0
    reason: str | None = None
    rule: SkipRule | None = None
    diagnostics: str | None = None
    cursor: str | None = None
    correlation_id: str
    traceparent: str | None = None
    id: int | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What is unique within the tenant."""
        return (self.artifact_type, self.artifact_pk, self.artifact_rk, self.event_type)

    @property
    def skipped_by(self) -> SkipRule | None:
        """The rule by which the whole job went to nobody; None where it went on, waits or failed."""
        match self.status:
            case NotificationStatus.SKIPPED:
                return self.rule or SkipRule.OTHER  # it was skipped by a program that kept no rules
            case NotificationStatus.CANCELED:
                return SkipRule.CANCELED
            case _:
                return None


def rescued(row: NotificationScheduler, *, rescues_max: int) -> tuple[NotificationStatus, str | None]:
    """Rule a row whose worker was lost: ready again or, past the bound, failed; and why, if it failed (I-23)."""
    rescues = row.rescue_count + 1
    to, reason = NotificationStatus.READY, None
    if rescues > rescues_max:
        to, reason = NotificationStatus.FAILED, f"rescued {rescues} times: every worker that took it was lost"
    NOTIFICATION_SCHEDULER.require(from_=row.status, to=to)
    return to, reason

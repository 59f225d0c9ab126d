"""Claims and results: what the queue hands to a worker, and what the worker hands back.

A claim carries everything that its call needs, so that no I/O and no wait stands between the claim and the call
(I-14): destination and merge data sealed, template by key and version, which the worker has in memory.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Self
from uuid import UUID

import msgspec

from clarion.domain import reply
from clarion.domain.call import Accepted, CallOutcome
from clarion.domain.identity import Channel, Lane
from clarion.domain.notification import NotificationJob, NotificationScheduler, NotificationStatus, Stage
from clarion.domain.outgoing import UncertainPolicy
from clarion.domain.skip import SkipRule

SOON: Final = timedelta(seconds=60)
"""How near an earlier row's retry must be for later ones of its order key to wait for it."""

IN_LINE_FIRST: Final = timedelta(seconds=1)
"""When the first row of a line looks again whether it may go. Whoever closes the row ahead makes it due at once, unless
the two happen at the same time and neither sees the other. It is one poll, the most that any lost wake-up costs."""

IN_LINE_LATER: Final = timedelta(seconds=60)
"""When the rows behind the first look again. They are woken one by one, and need not look every second: a line of a
thousand would be claimed again and again, and hold up all else in its flow."""


class Gate(StrEnum):
    """Whether a broadcast's rows may be claimed."""

    OPEN = "Open"
    PAUSED = "Paused"
    CANCELED = "Canceled"


class StageClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A pending job taken under a lease; the scheduler row's version is the token of the claim."""

    tenant_id: str
    scheduler: NotificationScheduler
    job: NotificationJob

    @property
    def hold(self) -> tuple[int, int]:
        """What the rows that are made under this claim name it by: the scheduler row's id and version."""
        return self.scheduler.id or 0, self.scheduler.version

    def ended(
        self,
        to: NotificationStatus,
        *,
        stage: Stage,
        reason: str | None = None,
        rule: SkipRule | None = None,
        delay: timedelta = timedelta(),
        cursor: str | None = None,
    ) -> "StageResult":
        """Say how the stage, or a step of it, ended that this claim was taken for; `rule` goes with `Skipped`."""
        scheduler_id, version = self.hold
        return StageResult(
            scheduler_id=scheduler_id,
            version=version,
            to=to,
            stage=stage,
            reason=reason,
            rule=rule,
            delay=delay,
            cursor=cursor,
        )


class StageResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a stage ended. Ready means the given stage next, after `delay`; a retry counts, a next stage does not.

    A `cursor` says how far the stage has come, for its next step; without one the place stays that of before. Whoever
    has come on is no poison, so the workers that were lost before are forgotten (I-23).
    """

    scheduler_id: int
    version: int
    to: NotificationStatus
    stage: Stage
    delay: timedelta = timedelta()
    is_retry: bool = False
    reason: str | None = None
    rule: SkipRule | None = None
    diagnostics: str | None = None
    cursor: str | None = None


class FlowHead(msgspec.Struct, frozen=True, kw_only=True):
    """A flow that has a row due; `account` is empty unless the flow is pinned to one."""

    flow_id: int
    tenant_id: str
    lane: Lane
    route: str
    broadcast: str
    account: str


class Discovery(msgspec.Struct, frozen=True, kw_only=True):
    """Flows with work now, and how long until the next row of any flow falls due (None: none is waiting)."""

    heads: tuple[FlowHead, ...]
    next_due_in: timedelta | None


class LowMark(msgspec.Struct, frozen=True, kw_only=True):
    """The last row that a worker claimed of a flow: everything before it is taken, so the scan starts behind it."""

    due_at: datetime
    id: int


class FlowQuota(msgspec.Struct, frozen=True, kw_only=True):
    """How many rows to claim of a flow, through which account."""

    flow_id: int
    quota: int
    account: str
    low: LowMark | None = None


class ClaimedMessage(msgspec.Struct, frozen=True, gc=False):
    """One row in `Sending` under this worker's token, with all that its call needs.

    `payload` is the parent job's sealed data (bound to `job_guid`); where the parent is a messaging job, its content
    lies in a blob, and `blob_hash` is the fingerprint of that. `ciphertext` is the sealed destination (bound to
    the address version), `profile` the sealed profile of its person version (bound to `profile_hash`), if it has one.
    `was_due_at` and `id` make the flow's next low mark.
    `not_called` says how often it was claimed before and could not be called.
    `unknown_for` is how long ago, by the store's clock when it was claimed, the first call was made of which nobody
    knows; None where there is none such.
    The order of the fields is that of the columns in PostgreSQL's claim: it makes these by the thousand.
    """

    id: int
    bucket: int
    tenant_id: str
    flow_id: int
    message_id: UUID
    channel: Channel
    attempt_no: int | None
    attempts: int
    not_called: int
    account: str
    was_due_at: datetime
    content_hash: str | None
    replay_authorised: bool
    unknown_for: timedelta | None
    correlation_id: str
    traceparent: str | None
    recipient_id_hash: str
    key_hash: str
    address_serial: int
    ciphertext: bytes
    job_guid: UUID
    event_type: str
    template_key: str | None
    template_version: int | None
    payload: bytes | None
    blob_hash: str | None
    attempts_max: int | None
    locale: str | None
    tz_id: str | None
    person_version_id: int | None
    profile_hash: str | None
    profile: bytes | None
    created_at: datetime
    claim_token: UUID


class CallResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What came of one claimed row's call. `delay` is for outcomes that lead to `RetryReady`."""

    id: int
    bucket: int
    claim_token: UUID
    attempt: int
    outcome: CallOutcome
    delay: timedelta = timedelta()
    final: bool = False  # a deferral whose attempts are used up ends in FailedFinal
    content_hash: str | None = None
    latency_ms: int | None = None

    def storable(self) -> Self:
        """Keep of what the provider said what can be stored."""
        said: str | None
        if isinstance(self.outcome, Accepted):
            field, said = "provider_message_id", self.outcome.provider_message_id
            kept = reply.storable_id(said)
        else:
            field, said = "reason", self.outcome.reason
            kept = reply.storable(said, bytes_max=reply.REASON_BYTES_MAX)
        if kept == said:
            return self
        return msgspec.structs.replace(self, outcome=msgspec.structs.replace(self.outcome, **{field: kept}))


class UncertainSend(msgspec.Struct, frozen=True, kw_only=True):
    """A row in `Uncertain` that nobody has decided about yet."""

    id: int
    bucket: int
    tenant_id: str
    version: int
    account: str
    message_id: UUID
    channel: Channel
    attempts: int
    attempts_max: int | None = None  # how many calls its type allows, where it says so
    unanswered: int  # of the attempts, those that waited for an answer in vain; the others were lost with their worker
    uncertain_policy: UncertainPolicy
    replays: int
    unknown_for: timedelta
    is_over: bool  # canceled, or out of time


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of an uncertain send: replayed through the same account, or left as it is, with the reason why."""

    id: int
    bucket: int
    version: int
    replay: bool
    counts_as_duplicate: bool = False
    reason: str
    delay: timedelta = timedelta()

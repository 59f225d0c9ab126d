"""The scene: what the database holds, what a commit changed in it, and what the run has promised so far.

Plain values read by `watch` and judged by `invariant`; instants are microseconds since 1970, as SQLite stores them.
"""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from clarion.domain.automation import AutomationStatus
from clarion.domain.call import Call, CallOutcome
from clarion.domain.claim import Gate
from clarion.domain.identity import Channel
from clarion.domain.notification import NotificationStatus, Stage
from clarion.domain.outgoing import OutgoingStatus, UncertainPolicy
from clarion.testing.simulation.ledger import LedgerCall, RowName
from clarion.testing.simulation.loop import Process


class OutgoingRow(NamedTuple):
    """One outgoing row, as far as the invariants look at it."""

    id: int
    tenant_id: str
    pk: str
    rk: str
    message_id: str
    channel: str
    status: str
    version: int
    due_at: int | None
    lease_until: int | None
    expires_at: int | None
    cancel_at: int | None
    claim_token: str | None
    account: str | None
    attempts: int
    first_unknown_at: int | None
    reason: str | None
    uncertain_policy: str
    settle_at: int | None
    replays: int
    recipient_id_hash: str
    key_hash: str
    destination_index: str
    broadcast: str

    @property
    def name(self) -> RowName:
        """How the outside knows it."""
        return RowName(UUID(self.message_id), Channel(self.channel), self.key_hash)

    @property
    def key(self) -> str:
        """The idempotency key that every call of it must carry."""
        return f"{self.message_id}:{self.channel}:{self.key_hash}"

    @property
    def state(self) -> OutgoingStatus:
        """Its state as the domain names it."""
        return OutgoingStatus(self.status)

    @property
    def policy(self) -> UncertainPolicy:
        """What its type prefers where nobody can know whether it arrived: a loss or a duplicate."""
        return UncertainPolicy(self.uncertain_policy)


class SchedulerRow(NamedTuple):
    """One scheduler row."""

    id: int
    tenant_id: str
    artifact_rk: str
    lane: str
    stage: str
    status: str
    version: int
    due_at: int | None
    lease_until: int | None
    retry_count: int
    rescue_count: int
    reason: str | None
    correlation_id: str

    @property
    def state(self) -> NotificationStatus:
        """Its state as the domain names it."""
        return NotificationStatus(self.status)

    @property
    def at_stage(self) -> Stage:
        """Its stage as the domain names it."""
        return Stage(self.stage)


class JobRow(NamedTuple):
    """One notification job."""

    id: int
    tenant_id: str
    row_key: str
    guid: str
    event_type: str
    payload_hash: str
    template_version: int | None
    recipients: str | None
    has_data: int


class OccurrenceRow(NamedTuple):
    """One occurrence that waits to fall due, or is over."""

    id: int
    tenant_id: str
    key: str
    status: str
    version: int
    scheduled_at: int
    lease_until: int | None
    retry_count: int
    next_retry_at: int | None
    run_now_at: int | None
    on_hold: int
    canceled_by: str | None
    failure_reason: str | None
    end_reason: str | None
    setting: str
    source_type: str
    source: str
    input_hash: str

    @property
    def state(self) -> AutomationStatus:
        """Its state as the domain names it."""
        return AutomationStatus(self.status)

    @property
    def due_at(self) -> int:
        """When it can be claimed, by the store's clock."""
        return max(self.run_now_at or self.scheduled_at, self.next_retry_at or 0)


class TransitionRow(NamedTuple):
    """One line of an outgoing row's history."""

    rowid: int
    outgoing_id: int
    version: int
    from_status: str
    to_status: str
    at: int
    actor: str
    reason: str | None


class AttemptRow(NamedTuple):
    """One call as the store knows it."""

    outgoing_id: int
    attempt: int
    status: str
    claim_token: str
    provider_message_id: str | None


class ReceiptRow(NamedTuple):
    """One receipt as it was taken in."""

    tenant_id: str
    account: str
    event_id: str
    status: str
    message_id: str | None
    recipient_key_hash: str | None
    provider_message_id: str | None
    applied_at: int | None


class Books(NamedTuple):
    """What is judged at the end only."""

    attempts: list[AttemptRow]
    receipts: list[ReceiptRow]


class Deed(NamedTuple):
    """One call of a store's method: who, what, with which arguments, and what came of it."""

    process: Process | None
    method: str
    given: Mapping[str, object]
    answer: object

    def __str__(self) -> str:
        """Say who did what."""
        return f"{self.process or 'the world'}: {self.method}"


class Change(NamedTuple):
    """What one commit changed: rows before (None for a new one) and after, and the lines that it wrote."""

    at: int
    seconds: float
    deed: Deed
    outgoing: list[tuple[OutgoingRow | None, OutgoingRow]]
    schedulers: list[tuple[SchedulerRow | None, SchedulerRow]]
    jobs: list[tuple[JobRow | None, JobRow]]
    transitions: list[TransitionRow]
    occurrences: list[tuple[OccurrenceRow | None, OccurrenceRow]]

    @property
    def store_seconds(self) -> float:
        """When it was, in seconds by the store's clock."""
        return self.at / 1_000_000


class Claim:
    """One claim of one row: who holds it since when, whether its call was made, and what was written down of it."""

    def __init__(
        self, *, row_id: int, token: str, process: Process | None, task: object, at: float, store_at: float
    ) -> None:
        """Note a claim when it is committed."""
        self.row_id = row_id
        self.token = token
        self.process = process
        self.task = task  # the pump that holds it
        self.at = at
        self.store_at = store_at  # seconds by the store's clock
        self.returned_at: float | None = None
        self.called = False
        self.call: LedgerCall | None = None  # once its bytes have left
        self.call_task: object = None
        self.begun_at: float | None = None  # when its adapter was entered
        self.ended_at: float | None = None  # and left, with or without a reply
        self.recorded: CallOutcome | None = None
        self.recorded_at: float | None = None
        self.rescued_at: float | None = None  # when its lease had ended and it was taken for lost
        self.order: tuple[object, ...] | None = None  # whose messages it must keep its place among, once that is known


class Scene:
    """Everything that is true now, and everything that was promised."""

    def __init__(self) -> None:
        """Start with an empty database."""
        self.outgoing: dict[int, OutgoingRow] = {}
        self.schedulers: dict[int, SchedulerRow] = {}
        self.jobs: dict[int, JobRow] = {}
        self.occurrences: dict[str, OccurrenceRow] = {}  # by key
        self.thresholds: dict[tuple[str, ...], tuple[int, int]] = {}  # by key: whether it is met, and which edge
        # Claims of occurrences that their process has not ended: by key and process and version, when, by both clocks.
        self.due_claims: dict[tuple[str, Process | None], dict[int, tuple[float, float]]] = {}
        self.event_claims: dict[tuple[int, int], float] = {}  # event and version → when it was claimed
        self.events: dict[int, tuple[str, str]] = {}  # event → type and id of its source
        self.reminders: dict[str, int] = {}  # row key of the job of a reminder → number of its plan
        self.inbox: Counter[tuple[str, str, str]] = Counter()
        self.cases: dict[str, str] = {}  # case id → kind
        self.history: dict[int, list[TransitionRow]] = {}
        self.claims: dict[tuple[int, str], Claim] = {}
        self.audited: Counter[int] = Counter()
        self.duplicates: Counter[int] = Counter()  # replays that a policy chose, by row
        self.store_made_at: dict[int, float] = {}  # row → when it was made, in seconds by the store's clock
        self.store_moved_at: dict[int, float] = {}  # row → when its state last moved, by the store's clock
        self.answered_for: Counter[int] = Counter()  # calls that a person or a policy has answered for, by row
        self.audited_at: dict[int, float] = {}  # row → when a person last had it retried
        self.canceled_at: dict[str, float] = {}  # guid of a job → when a person canceled it
        self.edited_at: dict[str, float] = {}  # recipient hash → when the address was last edited
        self.published_at: dict[str, float] = {}  # template key → when it was last published anew
        self.staged_at: dict[tuple[int, Process | None], float] = {}  # scheduler row, process → its last claim there
        self.made_at: dict[int, float] = {}  # row → when it was made
        self.begun_at: dict[int, float] = {}  # scheduler row → its first claim at the stage that makes messages
        self.listed: Counter[tuple[int, str]] = Counter()  # job and recipient, as noted for the history of people
        self.moved_at: dict[int, float] = {}  # row → when its state last moved
        self.frozen: dict[int, tuple[float, float]] = {}  # job → the window in which its recipients were decided
        self.gate = Gate.OPEN  # of the broadcast
        self.gate_was_canceled = False

    def job_of(self, row: OutgoingRow) -> JobRow | None:
        """Return the job that a row belongs to."""
        return next((job for job in self.jobs.values() if job.row_key == row.pk), None)

    def number_of(self, job: JobRow) -> int | None:
        """Return the number of the plan that a job was made for, by what ties both together; None where it has none."""
        if job.row_key in self.reminders:
            return self.reminders[job.row_key]
        scheduler = self.scheduler_of(job)
        prefix, _, number = (scheduler.correlation_id if scheduler else "").partition("-")
        return int(number) if prefix == "job" else None

    def scheduler_of(self, job: JobRow) -> SchedulerRow | None:
        """Return the scheduler row of a job."""
        return next((one for one in self.schedulers.values() if one.artifact_rk == job.row_key), None)

    def is_canceled(self, row: OutgoingRow) -> bool:
        """Tell whether a person canceled a row's job, and nobody took that back for the row."""
        job = self.job_of(row)
        canceled_at = None if job is None else self.canceled_at.get(job.guid)
        return canceled_at is not None and self.audited_at.get(row.id, -1.0) < canceled_at

    def rows_of(self, job: JobRow) -> list[OutgoingRow]:
        """Return the outgoing rows of a job."""
        return [row for row in self.outgoing.values() if row.pk == job.row_key]

    def claims_of(self, row: OutgoingRow) -> list[Claim]:
        """Return every claim of a row, the first one first."""
        return [claim for claim in self.claims.values() if claim.row_id == row.id]

    def row_of(self, call: Call) -> OutgoingRow | None:
        """Return the row that a call is for: by its key or, if that is none of ours, by message and channel."""
        mine = [
            row
            for row in self.outgoing.values()
            if (row.message_id, row.channel) == (str(call.message_id), call.channel)
        ]
        return next((row for row in mine if row.key == call.idempotency_key), mine[0] if mine else None)

    def row_named(self, name: RowName) -> OutgoingRow | None:
        """Return the row that the outside calls so."""
        return next((row for row in self.outgoing.values() if row.name == name), None)

    def allowed(self, row: OutgoingRow) -> int:
        """Say how often a row's recipient may get it: once, and once more for each retry that somebody answers for."""
        return 1 + self.audited[row.id] + min(1, self.duplicates[row.id])

"""The watch: looks at the database after every commit, keeps the scene, and has the invariants judge what changed.

It stands between a process and the store: `observe` makes the call and, in the same instant (the store runs inline, so
nobody comes between), reads what is there now. Reads tables directly by `watch.sql`; writes nothing.
"""

import asyncio
import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import Final, NamedTuple, cast

from clarion.adapters.stores.query import load
from clarion.adapters.stores.sqlite.session import Session, Transaction
from clarion.domain.automation import AutomationStatus
from clarion.domain.call import NotCalled
from clarion.domain.claim import CallResult, ClaimedMessage, Settlement, StageResult
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.notification import Stage
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.recipient import MANIFEST_BEGINS
from clarion.ports.store import Store
from clarion.testing.simulation import (
    broadcast,
    invariant,
    occurrence_coverage,
    occurrence_invariant,
    stage_invariant,
    truth_invariant,
)
from clarion.testing.simulation.loop import PROCESS
from clarion.testing.simulation.scene import (
    AttemptRow,
    Books,
    Change,
    Claim,
    Deed,
    JobRow,
    OccurrenceRow,
    OutgoingRow,
    ReceiptRow,
    SchedulerRow,
    TransitionRow,
)
from clarion.testing.simulation.verdict import Evidence, Violation

Method = Callable[..., Awaitable[object]]


class Waiting(NamedTuple):
    """Whether automation has something to do: now, and when what failed is tried again or somebody lets it go."""

    now: bool
    later: bool


RECEIPT_WAITS: Final = "I-32: receipt waits for its row"

_QUERIES: Final = load("clarion.testing.simulation", "watch.sql")


class Watch:
    """Sees every call of the store."""

    def __init__(
        self,
        session: Session,
        evidence: Evidence,
        *,
        store_now: Callable[[], int],
        seconds: Callable[[], float],
        fail: Callable[[Violation], None],
        trace: Callable[[str], None],
    ) -> None:
        """Read through a session of the store; tell `fail` what is wrong."""
        self._session = session
        self._evidence = evidence
        self._store_now = store_now
        self._seconds = seconds
        self._fail = fail
        self._trace = trace
        self._changes = 0
        self._seen_line = 0

    async def observe(self, name: str, method: Method, args: Sequence[object], options: dict[str, object]) -> object:
        """Make one call of the store and judge what it did."""
        answer = await method(*args, **options)
        if name == "record_outgoing":
            given = _signature(name).bind(None, *args, **options).arguments
            self._recorded(cast(Sequence[CallResult], given["results"]))
        changes = self._session.connection.total_changes  # on this connection since it was opened
        if changes != self._changes:
            self._changes = changes
            given = _signature(name).bind(None, *args, **options).arguments
            with self._session.reading() as reading:
                change = self._read(reading, Deed(PROCESS.get(), name, given, answer))
            self._judge(change)
        elif name.startswith("ensure_") and isinstance(answer, list):
            found = cast(list[Ensured[object]], answer)
            if found and all(one.outcome is Outcome.FOUND for one in found):
                self._evidence.coverage.met("I-03: ensured again")
        if name == "apply_events" and not self._evidence.coverage.counts[RECEIPT_WAITS]:
            with self._session.reading() as reading:
                if any(row[-1] is None for row in reading.rows(_QUERIES["list_receipts"])):
                    self._evidence.coverage.met(RECEIPT_WAITS)
        self._hear(name, args, answer)
        return answer

    def _hear(self, name: str, args: Sequence[object], answer: object) -> None:
        """Take down what a process was told, also where nothing changed."""
        if name == "finish_stage":
            self._count_late_stages(cast(Sequence[StageResult], args[0]), cast(set[int], answer))
        if name == "record_outgoing":
            self._count_late_results(cast(Sequence[CallResult], args[0]))
        if self._evidence.truth.reminding is not None:
            occurrence_coverage.hear(name, args, answer, seconds=self._seconds(), evidence=self._evidence)
        if name == "claim_outgoing":
            self._returned(cast(list[ClaimedMessage], answer))

    def _count_late_stages(self, results: Sequence[StageResult], moved: set[int]) -> None:
        """Count stages that were finished after another worker had taken them over, also where nothing changed."""
        if any(one.scheduler_id not in moved for one in results):
            self._evidence.coverage.met("I-17: stage finished too late")

    def _count_late_results(self, results: Sequence[CallResult]) -> None:
        """Count results of claims after which there was another one, also where nothing changed."""
        rows = self._evidence.scene.outgoing
        if any(one.id in rows and rows[one.id].claim_token != str(one.claim_token) for one in results):
            self._evidence.coverage.met("I-17: result of an outlived claim")

    def books(self) -> Books:
        """Read what is judged at the end only."""
        with self._session.reading() as reading:
            return Books(
                attempts=[AttemptRow._make(row) for row in reading.rows(_QUERIES["list_attempts"])],
                receipts=[ReceiptRow._make(row) for row in reading.rows(_QUERIES["list_receipts"])],
            )

    def _judge(self, change: Change) -> None:
        """Have every invariant look at what changed."""
        self._note(change)
        self._note_windows(change)
        broadcast.note(change, self._evidence)
        occurrence_invariant.note(change, self._evidence)
        self._tell(change)
        checks = (
            *occurrence_invariant.CHECKS,
            *stage_invariant.CHECKS,
            *invariant.CHECKS,
            *broadcast.CHECKS,
            *truth_invariant.CHECKS,
        )
        for check in checks:
            for violation in check(change, self._evidence):
                self._fail(violation)

    def _read(self, reading: Transaction, deed: Deed) -> Change:
        """Bring the scene up to date, and say what changed in it."""
        scene = self._evidence.scene
        outgoing = {row.id: row for row in map(OutgoingRow._make, reading.rows(_QUERIES["list_outgoing"]))}
        schedulers = {row.id: row for row in map(SchedulerRow._make, reading.rows(_QUERIES["list_schedulers"]))}
        jobs = {row.id: row for row in map(JobRow._make, reading.rows(_QUERIES["list_jobs"]))}
        occurrences = self._occurrences(reading)
        lines = [TransitionRow._make(row) for row in reading.rows(_QUERIES["list_transitions"], seen=self._seen_line)]
        if lines:
            self._seen_line = lines[-1].rowid
        change = Change(
            at=self._store_now(),
            seconds=self._seconds(),
            deed=deed,
            outgoing=[
                (scene.outgoing.get(row.id), row) for row in outgoing.values() if scene.outgoing.get(row.id) != row
            ],
            schedulers=[
                (scene.schedulers.get(row.id), row)
                for row in schedulers.values()
                if scene.schedulers.get(row.id) != row
            ],
            jobs=[(scene.jobs.get(row.id), row) for row in jobs.values() if scene.jobs.get(row.id) != row],
            transitions=lines,
            occurrences=[
                (scene.occurrences.get(key), row)
                for key, row in occurrences.items()
                if scene.occurrences.get(key) != row
            ],
        )
        for kept, now in ((scene.outgoing, outgoing), (scene.schedulers, schedulers), (scene.jobs, jobs)):
            if any(row_id not in now for row_id in kept):
                self._fail(Violation("I-02", f"{deed} removed a row"))
        if scene.occurrences.keys() - occurrences.keys():
            self._fail(Violation("I-02", f"{deed} removed an occurrence"))
        scene.outgoing, scene.schedulers, scene.jobs, scene.occurrences = outgoing, schedulers, jobs, occurrences
        scene.inbox = Counter(cast(list[tuple[str, str, str]], reading.rows(_QUERIES["list_inbox"])))
        if deed.method == "finish_stage":
            scene.listed = Counter(cast(list[tuple[int, str]], reading.rows(_QUERIES["list_recipient_jobs"])))
        scene.cases = {str(case_id): str(kind) for case_id, kind, *_ in reading.rows(_QUERIES["list_cases"])}
        for line in lines:
            scene.history.setdefault(line.outgoing_id, []).append(line)
        return change

    def _occurrences(self, reading: Transaction) -> dict[str, OccurrenceRow]:
        """Read what falls due, in a run with automation."""
        if self._evidence.truth.reminding is None:
            return {}
        self._evidence.scene.thresholds = {
            tuple(map(str, row[:5])): (int(row[5]), int(row[6])) for row in reading.rows(_QUERIES["list_thresholds"])
        }
        found = map(OccurrenceRow._make, reading.rows(_QUERIES["list_occurrences"]))
        return {row.key: row for row in found}

    def waiting(self) -> Waiting:
        """Say what automation still has to do by itself."""
        now = self._store_now()
        with self._session.reading() as reading:
            events = cast(list[tuple[str, int | None]], reading.rows(_QUERIES["list_open_events"]))
            ((unplanned,),) = reading.rows(_QUERIES["count_unplanned"])
        rows = list(self._evidence.scene.occurrences.values())
        taken = any(row.state is AutomationStatus.PROCESSING for row in rows)
        due = [
            row.due_at
            for row in rows
            if row.state is AutomationStatus.PENDING and not row.on_hold and (row.run_now_at or row.scheduled_at) <= now
        ]
        due += [at or 0 for _, at in events]
        return Waiting(
            now=taken or bool(unplanned) or any(at <= now for at in due),
            later=any(at > now for at in due) or any(row.on_hold for row in rows),
        )

    def _note(self, change: Change) -> None:
        """Write down what this commit promises for later: claims, retries somebody answers for, cancels."""
        scene, deed = self._evidence.scene, change.deed
        for old, new in change.outgoing:
            moved = old is not None and old.status != new.status
            if old is None:
                scene.store_made_at[new.id], scene.made_at[new.id] = change.store_seconds, change.seconds
            if old is None or old.version != new.version:
                scene.store_moved_at[new.id], scene.moved_at[new.id] = change.store_seconds, change.seconds
            if moved and new.status == OutgoingStatus.SENDING and new.claim_token is not None:
                scene.claims[new.id, new.claim_token] = Claim(
                    row_id=new.id,
                    token=new.claim_token,
                    process=deed.process,
                    task=asyncio.current_task(),
                    at=change.seconds,
                    store_at=change.store_seconds,
                )
            if moved and deed.method == "rescue_outgoing" and new.claim_token is not None:
                scene.claims[new.id, new.claim_token].rescued_at = change.seconds
            if moved and new.status == OutgoingStatus.RETRY_READY and deed.method == "retry_outgoing":
                scene.audited[new.id] += 1
                scene.audited_at[new.id] = change.seconds
            if moved and new.status == OutgoingStatus.RETRY_READY and deed.method == "settle_uncertain":
                settlements = cast(Sequence[Settlement], deed.given["settlements"])
                scene.duplicates[new.id] += any(one.id == new.id and one.counts_as_duplicate for one in settlements)
        if deed.method == "cancel_job" and deed.answer is True:
            scene.canceled_at[str(deed.given["job_guid"])] = change.seconds

    def _note_windows(self, change: Change) -> None:
        """Write down in which time the recipients of a job were decided: since its claim by whoever froze them.

        A set in pages is decided page by page, by whoever had a claim of the job: since the first of them.
        """
        scene, deed = self._evidence.scene, change.deed
        for before, after in change.schedulers:
            if deed.method == "claim_stage" and before is not None and before.version != after.version:
                scene.staged_at[after.id, deed.process] = change.seconds
                if after.at_stage is Stage.GENERATE:
                    scene.begun_at.setdefault(after.id, change.seconds)
        if deed.method == "apply_events":
            applied = {one.event_id for one in self.books().receipts if one.applied_at is not None}
            for receipt in self._evidence.ledger.receipts:
                if receipt.suppression is not None and receipt.event_id in applied:
                    receipt.suppression.done_at = receipt.suppression.done_at or change.seconds
        for known, job in change.jobs:
            if job.recipients is not None and (known is None or known.recipients is None):
                scheduler = scene.scheduler_of(job)
                place = 0 if scheduler is None else scheduler.id
                since = scene.staged_at.get((place, deed.process), 0.0)
                if job.recipients.startswith(MANIFEST_BEGINS):
                    since = scene.begun_at.get(place, 0.0)
                scene.frozen[job.id] = (since, change.seconds)

    def _recorded(self, results: Sequence[CallResult]) -> None:
        """Note what workers have written down of their claims."""
        for result in results:
            claim = self._evidence.scene.claims.get((result.id, str(result.claim_token)))
            if claim is not None and claim.recorded is None:
                claim.recorded, claim.recorded_at = result.outcome, self._seconds()
                claim.called = claim.called or isinstance(result.outcome, NotCalled)  # its one call is used up

    def _returned(self, claimed: Sequence[ClaimedMessage]) -> None:
        """Note which claims came back to their worker, and when: the calls must follow at once (I-14)."""
        for message in claimed:
            claim = self._evidence.scene.claims.get((message.id, str(message.claim_token)))
            if claim is None or claim.returned_at is not None:
                self._fail(Violation("I-08", f"row {message.id} was handed out under a claim that is not its own"))
            else:
                claim.returned_at = self._seconds()

    def _tell(self, change: Change) -> None:
        """Write what a commit did into the trace."""
        for old, new in change.outgoing:
            if old is None or old.status != new.status:
                self._trace(f"{change.deed}: row {new.id} {old.status if old else 'new'} → {new.status} ({new.reason})")
        for was, row in change.occurrences:
            self._trace(
                f"{change.deed}: {row.key} {was.status if was else 'new'} → {row.status} at version {row.version}"
                f" ({row.end_reason or row.failure_reason})"
            )
        for before, after in change.schedulers:
            if before is None or (before.status, before.stage) != (after.status, after.stage):
                self._trace(
                    f"{change.deed}: job {after.id} {before.status if before else 'new'} → {after.stage} {after.status}"
                )


@cache
def _signature(name: str) -> inspect.Signature:
    """Return the names of a method's arguments as the port has them."""
    return inspect.signature(getattr(Store, name))

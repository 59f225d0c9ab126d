"""Outgoing rows on the move: every change of state but the claim itself, decided here and written in sets.

A method reads whole rows, moves them one after the other by the table of legal moves, and writes what came of it: the
rows, one transition line for each move, the attempts, the counts of campaigns, the support cases, and a due time for
whoever waited in line behind a row that was closed. Nobody else writes while it does (see `session`), so what was read
still stands. Writes `outgoing_message`, `transition`, `delivery_attempt`, `flow` and `support_case`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Self
from uuid import UUID

import msgspec

from clarion.adapters.stores.query import load
from clarion.adapters.stores.sqlite import codec
from clarion.adapters.stores.sqlite.ensure.record import write_cases
from clarion.adapters.stores.sqlite.session import Transaction
from clarion.domain.attempt import DELIVERY_ATTEMPT, AttemptStatus
from clarion.domain.outgoing import OPEN, OUTGOING_MESSAGE, OutgoingStatus, merge
from clarion.domain.support import SupportCase

_SQL: Final = load(__package__, "move.sql")


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A row to read: whether it comes into doubt, and which claim speaks of it ('' for none that can hold it)."""

    id: int
    is_doubtful: bool = False
    claim_token: str | None = None


class Row(msgspec.Struct):
    """One outgoing row as it was read, changed as it moves; fields in the order of the statement that reads them.

    Instants are as the database stores them. `next_id` is the first row that waits in line behind this one, `tried` its
    attempts as JSON; those and the fields between them are there as far as they were asked for.
    """

    id: int
    bucket: int
    tenant_id: str
    pk: str
    rk: str
    message_id: str
    status: OutgoingStatus
    version: int
    flow_id: int
    due_at: int | None
    lease_until: int | None
    settle_at: int | None
    expires_at: int | None
    cancel_at: int | None
    cancel_actor: str | None
    claim_token: str | None
    account: str | None
    attempts: int
    not_called: int
    replays: int
    replay_authorised: int
    first_unproven_at: int | None
    provider_message_id: str | None
    content_hash: str | None
    reason: str | None
    reason_class: str
    order_key: str | None
    correlation_id: str
    traceparent: str | None
    source: str
    next_id: int | None
    claimed_at: int | None
    pinned_flow_id: int | None
    open_flow_id: int | None
    tried: str | None

    def written(self) -> tuple[object, ...]:
        """Give what a move may have changed, in the order of the statement that writes it."""
        return (
            self.id,
            self.status,
            self.version,
            self.flow_id,
            self.due_at,
            self.lease_until,
            self.settle_at,
            self.cancel_at,
            self.cancel_actor,
            self.attempts,
            self.not_called,
            self.replays,
            self.replay_authorised,
            self.first_unproven_at,
            self.provider_message_id,
            self.content_hash,
            self.reason,
            self.reason_class,
        )


class Attempt(msgspec.Struct):
    """One provider call, as far as it is known; fields in the order of the statements that read and write it."""

    outgoing_id: int
    bucket: int
    tenant_id: str
    attempt: int
    claim_token: str
    account: str
    status: AttemptStatus
    provider_message_id: str | None
    reason: str | None
    content_hash: str | None
    latency_ms: int | None
    correlation_id: str
    traceparent: str | None

    @classmethod
    def known(cls, row: Row) -> list[Self]:
        """Read a row's attempts, in their order."""
        tried: list[list[Any]] = msgspec.json.decode(row.tried) if row.tried else []
        return sorted((cls(*values) for values in tried), key=lambda one: one.attempt)

    def settle(self, status: AttemptStatus) -> None:
        """Say what became of an attempt of unknown outcome; any other stays as it is."""
        if self.status == AttemptStatus.UNKNOWN and status != AttemptStatus.UNKNOWN:
            DELIVERY_ATTEMPT.require(from_=AttemptStatus.UNKNOWN, to=status)
            self.status = status


class Moves:
    """What one method does to outgoing rows, gathered and then written at once."""

    def __init__(self, transaction: Transaction, *, actor: str) -> None:
        """Move rows inside a transaction in the name of an actor."""
        self.transaction = transaction
        self._actor = actor
        self._changed: dict[int, Row] = {}
        self._accepted: set[int] = set()
        self._lines: list[tuple[object, ...]] = []
        self._closed: dict[str, list[Row]] = defaultdict(list)
        self._attempts: dict[tuple[int, int], Attempt] = {}
        self._dropped: dict[tuple[int, int], Attempt] = {}
        self._cases: dict[str, list[SupportCase]] = defaultdict(list)

    def read(self, wanted: Iterable[Wanted]) -> dict[int, Row]:
        """Read rows by their ids; those that are not there are left out."""
        given = codec.as_json([(one.id, one.is_doubtful, one.claim_token) for one in wanted])
        rows = {row[0]: Row(*row) for row in self.transaction.rows(_SQL["read_rows"], rows=given)}
        doubtful = [row for row in rows.values() if row.claimed_at is not None and row.status == OutgoingStatus.SENDING]
        self._pin([row for row in doubtful if row.pinned_flow_id is None])
        return rows

    def change(self, row: Row) -> None:
        """Have a row written whose fields were changed, but not its state."""
        self._changed[row.id] = row

    def move(
        self, row: Row, to: OutgoingStatus, *, reason: str | None = None, reason_class: str = "", flow_id: int = 0
    ) -> None:
        """Make one legal move; a due time, doubt or authorisation that belongs to the new state is set after it."""
        from_ = OutgoingStatus(row.status)
        OUTGOING_MESSAGE.require(from_=from_, to=to)
        self._count(row, -1)
        if from_ in OPEN and to not in OPEN and row.order_key is not None:
            self._closed[row.order_key].append(row)
        row.status, row.version = to, row.version + 1
        row.due_at = row.lease_until = row.settle_at = None
        row.replay_authorised = 0
        row.reason, row.reason_class = reason, reason_class
        row.flow_id = flow_id or row.flow_id
        self._count(row, +1)
        self._accepted.discard(row.id)
        # Who called it off is who canceled it, whoever finds it.
        actor = row.cancel_actor or self._actor if to is OutgoingStatus.CANCELED else self._actor
        self._lines.append((row.tenant_id, row.bucket, row.id, row.version, from_, to, actor, reason))
        self._changed[row.id] = row

    def accept(self, row: Row) -> None:
        """Make the move that nearly every row in flight makes."""
        is_first = row.id not in self._changed
        self.move(row, OutgoingStatus.SENT_TO_PROVIDER)
        if is_first:
            self._accepted.add(row.id)

    def show(self, row: Row, evidence: OutgoingStatus, *, reason: str | None = None) -> None:
        """Merge evidence into a row by rank; it never moves a row backwards, nor one that was never sent."""
        current = OutgoingStatus(row.status)
        if row.attempts and merge(current=current, evidence=evidence) is not current:
            self.move(row, evidence, reason=reason)

    def doubt(self, row: Row, *, reason: str) -> None:
        """Move a row in flight to `Uncertain`, into the flow that is pinned to its account."""
        self.move(row, OutgoingStatus.UNCERTAIN, reason=reason, flow_id=row.pinned_flow_id or row.flow_id)
        row.settle_at = self.transaction.now
        if row.first_unproven_at is None:
            row.first_unproven_at = row.claimed_at

    def unpin(self, row: Row) -> None:
        """Take a row that is no longer in doubt to the flow that is pinned to no account; its state does not change."""
        self._count(row, -1)
        row.flow_id, row.first_unproven_at = row.open_flow_id or row.flow_id, None
        self._count(row, +1)

    def new_attempt(self, row: Row, status: AttemptStatus, *, number: int) -> Attempt:
        """Make the attempt of a row's last claim."""
        attempt = Attempt(
            outgoing_id=row.id,
            bucket=row.bucket,
            tenant_id=row.tenant_id,
            attempt=number,
            claim_token=row.claim_token or "",
            account=row.account or "",
            status=status,
            provider_message_id=None,
            reason=None,
            content_hash=None,
            latency_ms=None,
            correlation_id=row.correlation_id,
            traceparent=row.traceparent,
        )
        self.keep(attempt)
        return attempt

    def keep(self, attempt: Attempt) -> None:
        """Have an attempt written as it stands when all is written."""
        self._attempts[attempt.outgoing_id, attempt.attempt] = attempt

    def drop(self, attempt: Attempt) -> None:
        """Have an attempt removed that was never made."""
        self._attempts.pop((attempt.outgoing_id, attempt.attempt), None)
        self._dropped[attempt.outgoing_id, attempt.attempt] = attempt

    def report(self, row: Row, case_of: Callable[..., SupportCase], reason: str, **what: str) -> None:
        """Open the support case of some trouble with a row."""
        message_id = UUID(row.message_id)
        case = case_of(row.tenant_id, message_id=message_id, reason=reason, correlation_id=row.correlation_id, **what)
        self._cases[row.tenant_id].append(case)

    def write(self) -> None:
        """Write all that was gathered: rows, attempts and lines are one statement each."""
        transaction = self.transaction
        self._write_rows()
        if self._attempts:
            attempts = [msgspec.structs.astuple(attempt) for attempt in self._attempts.values()]
            transaction.rows(_SQL["write_attempts"], attempts=codec.as_json(attempts))
        if self._dropped:
            dropped = [(one.bucket, one.outgoing_id, one.attempt) for one in self._dropped.values()]
            transaction.rows(_SQL["delete_attempts"], attempts=codec.as_json(dropped))
        write_lines(transaction, self._lines)
        for tenant_id, cases in sorted(self._cases.items()):
            write_cases(transaction, tenant_id, cases)

    def _pin(self, rows: Sequence[Row]) -> None:
        """Make the pinned flows of rows that come into doubt, where they are the first of their flow and account."""
        if not rows:
            return
        flows = list(dict.fromkeys((row.flow_id, row.account) for row in rows))
        given = codec.as_json(flows)
        self.transaction.rows(_SQL["insert_pinned_flows"], flows=given)
        found = [flow_id for (flow_id,) in self.transaction.rows(_SQL["read_pinned_flows"], flows=given)]
        pinned = dict(zip(flows, found, strict=True))
        for row in rows:
            row.pinned_flow_id = pinned[row.flow_id, row.account]

    def _write_rows(self) -> None:
        """Write the rows that changed, and wake those whose turn has come."""
        alone = [rows[0].next_id for rows in self._closed.values() if len(rows) == 1]
        several = {key: len(rows) for key, rows in self._closed.items() if len(rows) > 1}
        woken = [(row_id,) for row_id in alone if row_id is not None and row_id not in self._changed]
        if woken or len(self._accepted) < len(self._changed):
            written = [*(row.written() for row in self._changed.values()), *woken]
            self.transaction.rows(_SQL["write_rows"], rows=codec.as_json(written))
        elif self._changed:
            accepted = [(row.id, row.provider_message_id, row.content_hash) for row in self._changed.values()]
            self.transaction.rows(_SQL["accept_rows"], rows=codec.as_json(accepted))
        if several:
            wake_in_line(self.transaction, several)

    def _count(self, row: Row, n: int) -> None:
        """Count a row where it stands, if it is a campaign's."""
        if row.source:
            self.transaction.counts[row.tenant_id, row.flow_id, row.status, row.reason_class] += n


def wake_in_line(transaction: Transaction, closed: Mapping[str, int]) -> None:
    """Make as many rows of each order key due as were closed, of those that wait in line."""
    transaction.rows(_SQL["wake_in_line"], keys=codec.as_json(list(closed.items())))


def write_lines(transaction: Transaction, lines: Sequence[tuple[object, ...]]) -> None:
    """Write transition lines: tenant, bucket, row, version, from, to, actor, reason."""
    if lines:
        transaction.rows(_SQL["write_transitions"], lines=codec.as_json(lines))

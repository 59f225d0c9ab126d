"""The ledger of outgoing rows: rows locked and read, and rulings written with all that belongs to them.

Nothing else changes the state of a row, but for the plain claim of each engine and PostgreSQL's plain acceptance.
Writes `outgoing_message`, `transition`, `delivery_attempt`, `flow`, `flow_count` and `support_case`, each in sets.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from operator import itemgetter
from typing import Final
from uuid import UUID

import msgspec

from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.support import write_cases_of_tenants
from clarion.adapters.stores.shared.transaction import Row, Transaction
from clarion.domain import trouble
from clarion.domain.attempt import Attempt
from clarion.domain.claim import IN_LINE_FIRST
from clarion.domain.outgoing import OUTGOING_MESSAGE, OutgoingStatus
from clarion.domain.queue_row import LockedRow, Ruling, Trouble
from clarion.domain.ruling import lets_go
from clarion.domain.support import SupportCase

_SQL: Final = Statements("queue/ledger.sql")

Place = tuple[int, int]
"""Where a row is: its bucket and its id."""
Ruled = tuple[LockedRow, Ruling]
CountKey = tuple[str, int, str, str]
"""Tenant, flow, status and reason class: what a campaign's rows are counted by."""


class Located(msgspec.Struct, frozen=True):
    """A row that was found, before it is read under its lock."""

    bucket: int
    id: int

    @property
    def place(self) -> Place:
        """Where it is."""
        return (self.bucket, self.id)


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What a claim writes of the rows that it takes; `accounts` by the row's id."""

    token: UUID
    lease: timedelta
    accounts: Mapping[int, str]


class FoundFlow(msgspec.Struct, frozen=True):
    """The flow that is like another one and pinned to an account."""

    flow_id: int
    account: str
    found_id: int


async def lock_rows(transaction: Transaction, places: Collection[Place]) -> list[LockedRow]:
    """Lock rows in the common order and read them as they are now; those that are not there are left out."""
    return await transaction.fetch(LockedRow, _SQL["lock_rows"], rows=sorted(places)) if places else []


async def read_attempts(transaction: Transaction, places: Collection[Place]) -> Mapping[int, list[Attempt]]:
    """Read the attempts of locked rows, by the row's id, each in their order."""
    attempts: dict[int, list[Attempt]] = defaultdict(list)
    if places:
        for one in await transaction.fetch(Attempt, _SQL["read_attempts"], rows=sorted(places)):
            attempts[one.outgoing_id].append(one)
    return attempts


async def write_rulings(
    transaction: Transaction, ruled: Sequence[Ruled], *, actor: str, claim: Claim | None = None
) -> None:
    """Write what was ruled of locked rows, each at most once: one statement for each table that is concerned."""
    flows = await _flows_after(transaction, ruled)
    moved = [one for one in ruled if one[1].steps]
    if claim is not None:
        taken = [row for row, ruling in moved if ruling.to is OutgoingStatus.SENDING]
        await take_rows(transaction, [(row.bucket, row.id) for row in taken], claim=claim)
    if rows := [
        _written(row, ruling, flows.get(row.id, row.flow_id), actor)
        for row, ruling in moved
        if ruling.steps[-1].to is not OutgoingStatus.SENDING
    ]:
        await transaction.execute(_SQL["move_rows"], rows=rows)
    if noted := [_noted(*one, actor) for one in ruled if not one[1].steps and _says_anything(*one)]:
        await transaction.execute(_SQL["note_rows"], rows=noted, look_again=IN_LINE_FIRST)
    await _write_attempts(transaction, ruled)
    if moved:
        await write_lines(transaction, [line for one in moved for line in _lines(*one, actor)])
        await wake_in_line(transaction, (row.order_key for row, ruling in moved if lets_go(row, ruling)))
        await change_counts(transaction, _counts(moved, flows))
    cases = [(row.tenant_id, _case(row, ruling, what)) for row, ruling in ruled for what in ruling.troubles]
    await write_cases_of_tenants(transaction, cases)


async def take_rows(transaction: Transaction, places: Sequence[Place], *, claim: Claim) -> None:
    """Put rows into flight under a claim."""
    if places:
        rows = [(bucket, row_id, claim.accounts[row_id]) for bucket, row_id in places]
        await transaction.execute(_SQL["take_rows"], rows=rows, token=claim.token, lease=claim.lease)


async def write_lines(transaction: Transaction, lines: Sequence[Row]) -> None:
    """Write transition lines: tenant, bucket, row, version, from, to, actor, reason."""
    if lines:
        await transaction.execute(_SQL["write_lines"], lines=lines)


async def wake_in_line(transaction: Transaction, order_keys: Iterable[str | None]) -> None:
    """Make the next row of each order key due whose row before it lets it go."""
    keys = sorted({key for key in order_keys if key is not None})
    if keys and (woken := await transaction.fetch(Located, _SQL["lock_next_in_line"], keys=keys)):
        await transaction.execute(_SQL["wake_rows"], rows=woken)


async def change_counts(transaction: Transaction, counts: Mapping[CountKey, int]) -> None:
    """Count a campaign's rows where they stand now."""
    if changed := sorted((*key, n) for key, n in counts.items() if n):
        await transaction.execute(_SQL["change_counts"], counts=changed)


async def _flows_after(transaction: Transaction, ruled: Sequence[Ruled]) -> Mapping[int, int]:
    """Find the flow that each row goes to which is pinned to its account, or freed from it; make those that are new."""
    wanted = {
        row.id: (row.flow_id, (row.account or "") if ruling.pins else "")
        for row, ruling in ruled
        if ruling.pins or ruling.frees
    }
    if not wanted:
        return {}
    flows = sorted(set(wanted.values()))
    found = await _find_flows(transaction, flows)
    if missing := [flow for flow in flows if flow not in found]:
        await transaction.execute(_SQL["insert_flows_of_account"], flows=missing)
        found |= await _find_flows(transaction, missing)
    return {row_id: found[flow] for row_id, flow in wanted.items()}


async def _find_flows(transaction: Transaction, flows: Sequence[tuple[int, str]]) -> dict[tuple[int, str], int]:
    found = await transaction.fetch(FoundFlow, _SQL["find_flows_of_account"], flows=flows)
    return {(one.flow_id, one.account): one.found_id for one in found}


def _written(row: LockedRow, ruling: Ruling, flow_id: int, actor: str) -> Row:
    """Give what `move_rows` writes of a row."""
    to, reason = ruling.steps[-1]
    return (
        row.bucket,
        row.id,
        to,
        len(ruling.steps),
        flow_id,
        ruling.delay,
        ruling.settles,
        actor if ruling.is_called_off else None,
        int(ruling.is_taken_back),
        int(ruling.is_not_called),
        ruling.is_forgiven,
        int(ruling.is_duplicate),
        ruling.is_authorised,
        ruling.frees,
        ruling.pins,
        ruling.provider_message_id,
        ruling.content_hash,
        reason,
        ruling.reason_class,
    )


def _says_anything(row: LockedRow, ruling: Ruling) -> bool:
    """Tell whether there is something to write of a row that keeps its state.

    There always is of one in line: a wake-up passes over a row that is held, so whoever held it has it look again soon.
    """
    has_proof = ruling.provider_message_id is not None or ruling.content_hash is not None
    return has_proof or ruling.is_called_off or ruling.in_line or row.in_line


def _noted(row: LockedRow, ruling: Ruling, actor: str) -> Row:
    """Give what `note_rows` writes of a row."""
    called_off_by = actor if ruling.is_called_off else None
    in_line_for = ruling.delay if ruling.in_line else None
    return (row.bucket, row.id, ruling.provider_message_id, ruling.content_hash, called_off_by, in_line_for)


async def _write_attempts(transaction: Transaction, ruled: Sequence[Ruled]) -> None:
    """Write attempts as they were ruled, and take away those that were none."""
    dropped = [(row.bucket, row.id, ruling.dropped_attempt) for row, ruling in ruled if ruling.dropped_attempt]
    if dropped:
        buckets, ids = (sorted(set(map(itemgetter(place), dropped))) for place in (0, 1))
        await transaction.execute(_SQL["delete_attempts"], buckets=buckets, ids=ids, attempts=dropped)
    if attempts := [attempt for _, ruling in ruled for attempt in ruling.attempts]:
        await transaction.execute(_SQL["write_attempts"], attempts=attempts)


def _lines(row: LockedRow, ruling: Ruling, actor: str) -> Iterable[Row]:
    """Tell a ruling step by step, each of them legal. A cancel is the act of whoever called the row off."""
    status, version = row.status, row.version
    for to, reason in ruling.steps:
        OUTGOING_MESSAGE.require(from_=status, to=to)
        version += 1
        by = row.cancel_actor or actor if to is OutgoingStatus.CANCELED else actor
        yield (row.tenant_id, row.bucket, row.id, version, status, to, by, reason)
        status = to


def _counts(moved: Sequence[Ruled], flows: Mapping[int, int]) -> Mapping[CountKey, int]:
    """Count what moved of campaigns; nothing else is counted."""
    counts: Counter[CountKey] = Counter()
    for row, ruling in moved:
        if row.has_broadcast:
            counts[row.tenant_id, row.flow_id, row.status, row.reason_class] -= 1
            after = (row.tenant_id, flows.get(row.id, row.flow_id), ruling.steps[-1].to, ruling.reason_class)
            counts[after] += 1
    return counts


def _case(row: LockedRow, ruling: Ruling, what: Trouble) -> SupportCase:
    return trouble.troubled_message(
        what,
        row.tenant_id,
        pk=row.pk,
        account=row.account or "",
        message_id=row.message_id,
        reason=ruling.reason or "",
        correlation_id=row.correlation_id,
    )

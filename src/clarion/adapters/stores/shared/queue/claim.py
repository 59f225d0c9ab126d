"""What a claim does to rows that are not plainly to be sent, and to those that it picked with them.

The engines pick due rows, each in its own way, and take them at once if all are plain. Else the rows are ruled here,
one by one: sent, ended, or put in line behind another row of their order key.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final, NamedTuple

import msgspec

from clarion.adapters.stores.shared.queue.ledger import Claim, Located, Place, lock_rows, write_rulings
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain.claim import SOON, ClaimedMessage, Gate
from clarion.domain.outgoing import DUE, OutgoingStatus
from clarion.domain.ruling import UNCHANGED, at_claims
from clarion.domain.suppression import Cause, Scope

_SQL: Final = Statements("queue/claim.sql")


class Picked(NamedTuple):
    """A row that was due, as its call needs it, in the version that was read.

    It is plain if nothing can speak against sending it: it was not called off, is not out of time, nobody suppressed
    it, and no other row of its order key is open.
    """

    message: ClaimedMessage
    version: int
    is_plain: bool


class _Suppressed(msgspec.Struct, frozen=True):
    id: int
    scope: str
    cause: Cause


class _Gate(msgspec.Struct, frozen=True):
    flow_id: int
    gate: Gate


async def rule_picked(
    transaction: Transaction, picked: Sequence[Picked], *, lease: timedelta, actor: str
) -> list[ClaimedMessage]:
    """Rule rows that were picked, unless something has happened to them since; return those that are now `Sending`."""
    messages = {(one.message.bucket, one.message.id): one for one in picked}
    flows = sorted({one.message.flow_id for one in picked})
    gates = {one.flow_id: one.gate for one in await transaction.fetch(_Gate, _SQL["lock_gates"], flows=flows)}
    locked = await lock_rows(transaction, messages)
    rows = [row for row in locked if row.status in DUE and row.version == messages[row.bucket, row.id].version]
    ids, places = {row.id for row in rows}, [(row.bucket, row.id) for row in rows]
    found = await transaction.fetch(Located, _SQL["find_rows_behind"], rows=places, soon=SOON) if places else []
    suppressions = await _find_suppressions(transaction, places) if places else {}
    ruled = at_claims(rows, gates=gates, behind={one.id for one in found}, suppressions=suppressions)
    ruled += [(row, UNCHANGED) for row in locked if row.id not in ids]
    accounts = {one.message.id: one.message.account for one in picked}
    claim = Claim(token=picked[0].message.claim_token, lease=lease, accounts=accounts)
    await write_rulings(transaction, ruled, actor=actor, claim=claim)
    sent = {row.id for row, ruling in ruled if ruling.steps and ruling.steps[-1].to is OutgoingStatus.SENDING}
    return [one.message for one in picked if one.message.id in sent]


async def _find_suppressions(transaction: Transaction, places: Sequence[Place]) -> Mapping[int, Sequence[Scope]]:
    """Find what is suppressed of the recipients and destinations of rows, by the row's id."""
    scopes: dict[int, list[Scope]] = defaultdict(list)
    for one in await transaction.fetch(_Suppressed, _SQL["find_suppressions_of_rows"], rows=places):
        scopes[one.id].append((one.scope, one.cause))
    return scopes

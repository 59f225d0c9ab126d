"""Claiming: flows with work are discovered, due rows taken out of them, as docs/explanation/claiming.md says.

Three statements for any number of flows and rows: pick, take, write the lines. Where something that was picked is not
plainly to be sent, `shared.queue.claim` rules it, which takes a few more.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Final, NamedTuple
from uuid import UUID

from clarion.adapters.stores.query import load
from clarion.adapters.stores.shared.queue import ledger
from clarion.adapters.stores.shared.queue.claim import Picked, rule_picked
from clarion.adapters.stores.shared.transaction import Row, finished
from clarion.adapters.stores.sqlite import codec
from clarion.adapters.stores.sqlite.clock import MICROSECOND, microseconds
from clarion.adapters.stores.sqlite.session import Transaction
from clarion.domain.claim import ClaimedMessage, Discovery, FlowHead, FlowQuota, LowMark
from clarion.domain.identity import Lane
from clarion.domain.outgoing import OutgoingStatus
from clarion.ports.ensure import ITEMS_MAX

_SQL: Final = load(__package__, "claim.sql")

_LOWEST: Final = (-(2**63), 0)
"""Below every due time that can be stored, where a flow has no low mark."""


_FIELDS: Final = len(ClaimedMessage.__struct_fields__)
"""The columns of a picked row that its call needs. Behind them stand those of `_Row`."""


class _Row(NamedTuple):
    """What is written of a picked row that is plainly to be sent, in the order of the columns."""

    version: int
    status: str
    reason_class: str
    has_broadcast: int
    is_plain: int


def discover_flows(transaction: Transaction, *, routes: Collection[str], lows: Mapping[int, LowMark]) -> Discovery:
    """Find the flows of these routes that have a row due behind their low mark, behind an open gate."""
    flows = transaction.records(
        FlowHead, _SQL["find_flows"], routes=codec.as_json(sorted(set(routes))), lanes=codec.as_json(list(Lane))
    )
    marks = [(flow.flow_id, *_mark(lows.get(flow.flow_id))) for flow in flows]
    due = dict(transaction.rows(_SQL["find_heads"], flows=codec.as_json(marks)))
    now = transaction.now
    heads = [flow for place, flow in enumerate(flows) if due[place] is not None and due[place] <= now]
    later = [due_at for due_at in due.values() if due_at is not None and due_at > now]
    return Discovery(heads=tuple(heads), next_due_in=(min(later) - now) * MICROSECOND if later else None)


def claim_outgoing(
    transaction: Transaction, quotas: Sequence[FlowQuota], *, token: UUID, lease: timedelta, actor: str
) -> list[ClaimedMessage]:
    """Take due rows, at most each flow's quota; return those that are now `Sending`."""
    messages, rows = _pick(transaction, quotas, token=token)
    if not all(row.is_plain for row in rows):
        picked = [Picked(one, row.version, bool(row.is_plain)) for one, row in zip(messages, rows, strict=True)]
        return finished(rule_picked(transaction, picked, lease=lease, actor=actor))
    sending = OutgoingStatus.SENDING
    lines: list[Row] = []
    counts: Counter[ledger.CountKey] = Counter()
    for one, row in zip(messages, rows, strict=True):
        lines.append((one.tenant_id, one.bucket, one.id, row.version + 1, row.status, sending, actor, None))
        if row.has_broadcast:
            counts[one.tenant_id, one.flow_id, row.status, row.reason_class] -= 1
            counts[one.tenant_id, one.flow_id, sending, ""] += 1
    claim = ledger.Claim(token=token, lease=lease, accounts={one.id: one.account for one in messages})
    finished(ledger.take_rows(transaction, [(one.bucket, one.id) for one in messages], claim=claim))
    finished(ledger.write_lines(transaction, lines))
    finished(ledger.change_counts(transaction, counts))
    return messages


def _pick(
    transaction: Transaction, quotas: Sequence[FlowQuota], *, token: UUID
) -> tuple[list[ClaimedMessage], list[_Row]]:
    """Pick the rows of all flows; a flow that is named twice is picked from as it is named last."""
    wanted = list({quota.flow_id: quota for quota in quotas}.values())
    given = [(quota.flow_id, quota.quota, quota.account, *_mark(quota.low)) for quota in wanted]
    columns, rows = transaction.table(
        _SQL["pick_messages"],
        quotas=codec.as_json(given),
        quota_max=min(ITEMS_MAX, max((quota.quota for quota in wanted), default=0)),
        now=transaction.now,
        token=str(token),
    )
    read = codec.reader(ClaimedMessage, columns[:_FIELDS])
    picked = rows[:ITEMS_MAX]
    return [read(row[:_FIELDS]) for row in picked], [_Row(*row[_FIELDS:]) for row in picked]


def _mark(low: LowMark | None) -> tuple[int, int]:
    """Give a low mark as it is compared."""
    return _LOWEST if low is None else (microseconds(low.due_at), low.id)

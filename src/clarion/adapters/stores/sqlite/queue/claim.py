"""Claiming: flows with work are discovered, due rows taken out of them, as docs/explanation/claiming.md says.

Three statements for any number of flows and rows: pick, claim, write the lines; a fourth where a row was closed that
others wait in line behind. Writes `outgoing_message` and `transition`, and counts what moved of a campaign.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import msgspec

from clarion.adapters.stores.query import load
from clarion.adapters.stores.shared.queue import ledger
from clarion.adapters.stores.shared.transaction import Row, finished
from clarion.adapters.stores.sqlite import codec
from clarion.adapters.stores.sqlite.clock import MICROSECOND, microseconds
from clarion.adapters.stores.sqlite.session import Transaction
from clarion.domain.claim import SOON, ClaimedMessage, Discovery, FlowHead, FlowQuota, LowMark
from clarion.domain.outgoing import OUTGOING_MESSAGE, OutgoingStatus, called_off, out_of_time
from clarion.ports.ensure import ITEMS_MAX

_SQL: Final = load(__package__, "claim.sql")

_LOWEST: Final = (-(2**63), 0)
"""Below every due time that can be stored, where a flow has no low mark."""


class _Picked(msgspec.Struct):
    """What ruling needs to know of a picked row, in the order in which it stands behind the claim's own columns."""

    broadcast: str
    version: int
    status: OutgoingStatus
    reason_class: str
    order_key: str | None
    cancel_at: int | None
    cancel_actor: str | None
    expires_at: int | None
    is_blocked: int

    def rule(self, now: int, *, may_have_arrived: bool) -> tuple[OutgoingStatus, str | None]:
        """Decide what becomes of the row, and why; one that must wait for its order stays where it is."""
        from_ = OutgoingStatus(self.status)
        to: OutgoingStatus
        reason: str | None
        if self.cancel_at is not None:
            to, reason = called_off(may_have_arrived=may_have_arrived)
        elif self.expires_at is not None and self.expires_at <= now:
            to, reason = out_of_time(may_have_arrived=may_have_arrived)
        elif self.is_blocked:
            return from_, None
        else:
            to, reason = OutgoingStatus.SENDING, None
        OUTGOING_MESSAGE.require(from_=from_, to=to)
        return to, reason


_RULING: Final = len(_Picked.__struct_fields__)


def discover_flows(transaction: Transaction, *, routes: Collection[str], lows: Mapping[int, LowMark]) -> Discovery:
    """Find the flows of these routes that have a row due behind their low mark, behind an open gate."""
    flows = transaction.records(FlowHead, _SQL["find_flows"], routes=codec.as_json(sorted(set(routes))))
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
    columns, picked = _pick(transaction, quotas)
    now, claimed = transaction.now, list[ClaimedMessage]()
    ruled: list[tuple[object, ...]] = []
    lines: list[Row] = []
    closed: set[str] = set()
    counts: Counter[ledger.CountKey] = Counter()
    for row in picked:
        found = _Picked(*row[-_RULING:])
        values = dict(zip(columns, row[:-_RULING], strict=True))
        to, reason = found.rule(now, may_have_arrived=values["unknown_for"] is not None)
        ruled.append((values["id"], to, values["account"], reason))
        if to == found.status:
            continue
        by = found.cancel_actor or actor if to is OutgoingStatus.CANCELED else actor
        line = (values["tenant_id"], values["bucket"], values["id"], found.version + 1, found.status, to, by, reason)
        lines.append(line)
        _count(counts, values["tenant_id"], values["flow_id"], found, to)
        if to is OutgoingStatus.SENDING:
            claimed.append(_claimed(values, token))
        elif found.order_key is not None:
            closed.add(found.order_key)
    _write(transaction, ruled, token=token, lease_until=now + lease // MICROSECOND)
    finished(ledger.write_lines(transaction, lines))
    finished(ledger.wake_in_line(transaction, closed))
    finished(ledger.change_counts(transaction, counts))
    return claimed


def _write(transaction: Transaction, ruled: Sequence[tuple[object, ...]], *, token: UUID, lease_until: int) -> None:
    """Write what was ruled, in the short way where all rows go out through one account."""
    ways = {(to, account) for _, to, account, _ in ruled}
    match list(ways):
        case []:
            return
        case [(OutgoingStatus.SENDING, str(account))]:
            ids = codec.as_json([row_id for row_id, *_ in ruled])
            transaction.rows(_SQL["take_messages"], ids=ids, token=str(token), account=account, lease_until=lease_until)
        case _:
            given = codec.as_json(ruled)
            transaction.rows(_SQL["claim_messages"], ruled=given, token=str(token), lease_until=lease_until)


def _pick(transaction: Transaction, quotas: Sequence[FlowQuota]) -> tuple[codec.Columns, list[tuple[Any, ...]]]:
    """Pick the rows of all flows; a flow that is named twice is picked from as it is named last."""
    wanted = list({quota.flow_id: quota for quota in quotas}.values())
    given = [(quota.flow_id, quota.quota, quota.account, *_mark(quota.low)) for quota in wanted]
    columns, rows = transaction.table(
        _SQL["pick_messages"],
        quotas=codec.as_json(given),
        quota_max=min(ITEMS_MAX, max((quota.quota for quota in wanted), default=0)),
        now=transaction.now,
        soon=SOON // MICROSECOND,
    )
    return columns[:-_RULING], rows[:ITEMS_MAX]


def _mark(low: LowMark | None) -> tuple[int, int]:
    """Give a low mark as it is compared."""
    return _LOWEST if low is None else (microseconds(low.due_at), low.id)


def _count(counts: Counter[ledger.CountKey], tenant_id: str, flow_id: int, found: _Picked, to: OutgoingStatus) -> None:
    """Count a campaign's row where it has moved to."""
    if found.broadcast:
        counts[tenant_id, flow_id, found.status, found.reason_class] -= 1
        counts[tenant_id, flow_id, to, ""] += 1


def _claimed(values: dict[str, Any], token: UUID) -> ClaimedMessage:
    """Make the claim of a row from what was picked with it."""
    values["attempts"] += 1
    return codec.converted(ClaimedMessage, values, claim_token=token)

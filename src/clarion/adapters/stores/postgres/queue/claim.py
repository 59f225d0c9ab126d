"""Claiming messages: which flows have work, and taking rows out of them.

The plain claim is one statement, without a transaction around it. Where something that it picked is not plainly to be
sent, nothing is written by it, and `shared.queue.claim` rules. How much to take of which flow is decided elsewhere
(`domain.share`).
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

import asyncpg

from clarion.adapters.stores.postgres import codec
from clarion.adapters.stores.postgres.session import Transaction
from clarion.adapters.stores.shared.queue.claim import Picked
from clarion.adapters.stores.shared.statement import Statements
from clarion.domain.claim import ClaimedMessage, Discovery, FlowHead, FlowQuota, LowMark
from clarion.domain.identity import Channel, Lane
from clarion.errors import BrokenInvariant

_SQL: Final = Statements("claim.sql", package=__package__)

_COLUMNS: Final = (*ClaimedMessage.__struct_fields__[:-1], "version", "is_plain")
_CHANNEL: Final = _COLUMNS.index("channel")
_GUID_FORM: Final = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
"""The parent of a row is a messaging job if its key is a guid."""

_read_head: Final = codec.reader(FlowHead)


async def discover_flows(
    transaction: Transaction, *, routes: Collection[str], lows: Mapping[int, LowMark]
) -> Discovery:
    """Find the flows of these routes that have a row due behind their low mark, behind an open gate."""
    wanted, marks = sorted(set(routes)), sorted(lows.items())
    rows = await transaction.rows(
        _SQL["discover_flows"],
        routes=wanted,
        wanted=wanted,
        lanes=list(Lane),
        lows=[(flow_id, low.due_at, low.id) for flow_id, low in marks],
        marked=[flow_id for flow_id, _ in marks],
    )
    later = [row["due_in"] for row in rows if row["due_in"] > timedelta()]
    return Discovery(
        heads=tuple(_read_head(row) for row in rows if row["due_in"] <= timedelta()),
        next_due_in=min(later, default=None),
    )


async def claim_plain(
    transaction: Transaction, quotas: Sequence[FlowQuota], *, token: UUID, lease: timedelta, actor: str
) -> list[Picked]:
    """Pick due rows, at most each flow's quota, and take them if all are plain; in the order of the quotas."""
    wanted = [
        (one.flow_id, one.quota, one.account, *((None, None) if one.low is None else (one.low.due_at, one.low.id)))
        for one in quotas
    ]
    rows = await transaction.rows(
        _SQL["claim_plain"], quotas=wanted, token=token, lease=lease, actor=actor, guid_form=_GUID_FORM
    )
    return _in_order(rows, quotas, token=token)


async def find_claimed(
    transaction: Transaction, quotas: Sequence[FlowQuota], *, token: UUID, lease: timedelta
) -> list[ClaimedMessage]:
    """Return what a claim has taken whose reply was lost."""
    found = await transaction.rows(_SQL["find_claimed"], token=token, lease=lease, guid_form=_GUID_FORM)
    return [one.message for one in _in_order(found, quotas, token=token)]


def _in_order(rows: Sequence[asyncpg.Record], quotas: Sequence[FlowQuota], *, token: UUID) -> list[Picked]:
    """Read rows, in the order of the quotas and of each flow's queue."""
    if rows and tuple(rows[0].keys()) != _COLUMNS:
        raise BrokenInvariant("the columns of a claim are not in the order of its fields")
    places = {quota.flow_id: place for place, quota in enumerate(quotas)}
    picked = [_picked(row, token) for row in rows]
    picked.sort(key=lambda one: (places[one.message.flow_id], one.message.was_due_at, one.message.id))
    return picked


def _picked(row: asyncpg.Record, token: UUID) -> Picked:
    """Read one row: its columns are the fields in their order, but for the channel, which has a type of ours."""
    values = list(row)
    values[_CHANNEL] = codec.member(Channel, values[_CHANNEL])
    values[-2:] = [token]  # the last two columns are read below; the message ends with the claim's token
    return Picked(ClaimedMessage(*values), row["version"], row["is_plain"])

"""Claiming messages: which flows have work, and taking rows out of them.

Reads `flow`, `broadcast`, `address_version` and the parents' tables; the claim writes `outgoing_message`, `transition`
and `flow_count`. How much to take of which flow is decided elsewhere (`domain.share`).
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID

import asyncpg

from clarion.adapters.stores.postgres import codec
from clarion.adapters.stores.query import load
from clarion.domain.claim import SOON, ClaimedMessage, Discovery, FlowHead, FlowQuota, LowMark
from clarion.domain.identity import Channel, Lane
from clarion.errors import BrokenInvariant

if TYPE_CHECKING:
    from clarion.adapters.stores.postgres.session import Connection

_SQL: Final = load(__package__, "claim.sql")

_COLUMNS: Final = ClaimedMessage.__struct_fields__[:-1]
_CHANNEL: Final = _COLUMNS.index("channel")


async def discover_flows(
    connection: "Connection", *, routes: Collection[str], lows: Mapping[int, LowMark]
) -> Discovery:
    """Find the flows of these routes that have a row due behind their low mark, behind an open gate."""
    marks = sorted(lows.items())
    rows = await connection.fetch(
        _SQL["discover_flows"].sql,
        sorted(set(routes)),
        [flow_id for flow_id, _ in marks],
        [low.due_at for _, low in marks],
        [low.id for _, low in marks],
    )
    later = [row["due_in"] for row in rows if row["due_in"] > timedelta()]
    return Discovery(
        heads=tuple(_head(row) for row in rows if row["due_in"] <= timedelta()),
        next_due_in=min(later, default=None),
    )


async def claim_outgoing(
    connection: "Connection", quotas: Sequence[FlowQuota], *, token: UUID, lease: timedelta, actor: str
) -> list[ClaimedMessage]:
    """Take due rows, at most each flow's quota; in the order of the quotas, and of each flow's queue."""
    rows = await connection.fetch(
        _SQL["claim_outgoing"].sql,
        [quota.flow_id for quota in quotas],
        [quota.quota for quota in quotas],
        [quota.account for quota in quotas],
        [None if quota.low is None else quota.low.due_at for quota in quotas],
        [None if quota.low is None else quota.low.id for quota in quotas],
        token,
        lease,
        actor,
        SOON,
    )
    return _in_order(rows, quotas, token=token)


async def find_claimed(
    connection: "Connection", quotas: Sequence[FlowQuota], *, token: UUID, lease: timedelta
) -> list[ClaimedMessage]:
    """Return what a claim has taken whose reply was lost."""
    return _in_order(await connection.fetch(_SQL["find_claimed"].sql, token, lease), quotas, token=token)


def _in_order(rows: Sequence[asyncpg.Record], quotas: Sequence[FlowQuota], *, token: UUID) -> list[ClaimedMessage]:
    """Read claims, in the order of the quotas and of each flow's queue."""
    if rows and tuple(rows[0].keys()) != _COLUMNS:
        raise BrokenInvariant("the columns of a claim are not in the order of its fields")
    places = {quota.flow_id: place for place, quota in enumerate(quotas)}
    claimed = [_claimed(row, token) for row in rows]
    claimed.sort(key=lambda message: (places[message.flow_id], message.was_due_at, message.id))
    return claimed


def _head(row: asyncpg.Record) -> FlowHead:
    return FlowHead(
        flow_id=row["flow_id"],
        tenant_id=row["tenant_id"],
        lane=codec.member(Lane, row["lane"]),
        route=row["route"],
        broadcast=row["broadcast"],
        account=row["account"],
    )


def _claimed(row: asyncpg.Record, token: UUID) -> ClaimedMessage:
    """Read one claim: its columns are the fields in their order, but for the channel, which has a type of ours."""
    values = list(row)
    values[_CHANNEL] = codec.member(Channel, values[_CHANNEL])
    values.append(token)
    return ClaimedMessage(*values)

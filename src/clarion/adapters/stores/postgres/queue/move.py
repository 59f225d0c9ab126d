"""Moves of messages that are neither claim nor record: rows are locked, judged in Python, and moved by one statement.

A caller locks its rows with a statement of its own, in the common order or skipping what is locked, reads them as
`Locked`, and hands its moves to `write_moves`. Every move is checked against the domain's table. Writes
`outgoing_message`, `transition` and `flow_count`.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID

import msgspec

from clarion.adapters.stores.postgres import codec
from clarion.adapters.stores.query import load
from clarion.domain.outgoing import OPEN, OUTGOING_MESSAGE, OutgoingStatus

if TYPE_CHECKING:
    from clarion.adapters.stores.postgres.session import Connection

_SQL: Final = load(__package__, "move.sql")


class Locked(msgspec.Struct, frozen=True, kw_only=True):
    """A row that this transaction has locked, as it is now."""

    tenant_id: str
    bucket: int
    id: int
    status: OutgoingStatus
    version: int
    flow_id: int
    reason_class: str
    order_key: str | None
    attempts: int
    cancel_actor: str | None
    claim_token: UUID | None
    account: str | None
    correlation_id: str
    traceparent: str | None
    message_id: UUID
    is_unproven: bool


read_locked: Final = codec.reader(Locked)


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One change of state, and why."""

    to: OutgoingStatus
    reason: str | None


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a locked row: one step or, by several receipts at once, more; and what else is stored with it."""

    row: Locked
    steps: tuple[Step, ...]
    delay: timedelta | None = None
    pin: str | None = None
    first_unproven_at: datetime | None = None
    authorised: bool = False
    forgiven: bool = False
    replays: int = 0
    called_off: str | None = None
    provider_message_id: str | None = None


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a row's story."""

    row: Locked
    version: int
    from_: OutgoingStatus
    step: Step


async def write_moves(connection: "Connection", moves: Sequence[Move], *, actor: str) -> None:
    """Write moves of locked rows, with their lines, their counters and whoever was in line behind them."""
    if not moves:
        return
    lines = [line for move in moves for line in _lines(move)]
    closed = Counter(move.row.order_key for move in moves if _closes(move))
    keys = [key for key in closed if key is not None]
    await connection.execute(
        _SQL["move_outgoing"].sql,
        [move.row.bucket for move in moves],
        [move.row.id for move in moves],
        [move.row.status for move in moves],
        [move.row.flow_id for move in moves],
        [move.row.reason_class for move in moves],
        [move.steps[-1].to for move in moves],
        [len(move.steps) for move in moves],
        [move.delay for move in moves],
        [move.steps[-1].reason for move in moves],
        [move.pin for move in moves],
        [move.first_unproven_at for move in moves],
        [move.authorised for move in moves],
        [move.replays for move in moves],
        [move.provider_message_id for move in moves],
        keys,
        [closed[key] for key in keys],
        [move.called_off for move in moves],
        [move.forgiven for move in moves],
        [line.row.tenant_id for line in lines],
        [line.row.bucket for line in lines],
        [line.row.id for line in lines],
        [line.version for line in lines],
        [line.from_ for line in lines],
        [line.step.to for line in lines],
        [line.step.reason for line in lines],
        [_teller(line, actor) for line in lines],
    )


def _lines(move: Move) -> list[Line]:
    """Tell a move step by step, each of them legal."""
    lines: list[Line] = []
    status = move.row.status
    for count, step in enumerate(move.steps, 1):
        OUTGOING_MESSAGE.require(from_=status, to=step.to)
        lines.append(Line(row=move.row, version=move.row.version + count, from_=status, step=step))
        status = step.to
    return lines


def _teller(line: Line, actor: str) -> str:
    """Name whoever made a move; a cancel is the act of whoever called the row off, not of whoever carries it out."""
    return line.row.cancel_actor or actor if line.step.to is OutgoingStatus.CANCELED else actor


def _closes(move: Move) -> bool:
    """Tell whether a row that was waiting or in flight is so no more."""
    return move.row.status in OPEN and move.steps[-1].to not in OPEN

"""The heartbeats of the processes that work. Writes `worker`, which belongs to no tenant."""

from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain.worker import KEPT_FOR, AccountState, Heartbeat, Worker
from clarion.ports.insights import WORKERS_MAX

_SQL: Final = Statements("worker.sql")


class _Row(msgspec.Struct, frozen=True):
    """One row; the lists are JSON."""

    worker_id: UUID
    name: str
    program: str
    channels: str
    accounts: str
    started_at: datetime
    seen_at: datetime
    now: datetime


async def note_heartbeat(transaction: Transaction, heartbeat: Heartbeat) -> None:
    """Write what a process says of itself, and sweep what is left of processes that were lost long ago."""
    await transaction.execute(_SQL["sweep_workers"], kept_for=KEPT_FOR)
    await transaction.execute(
        _SQL["write_heartbeat"],
        worker_id=heartbeat.worker_id,
        name=heartbeat.name,
        program=heartbeat.program,
        channels=msgspec.json.encode(heartbeat.channels).decode(),
        accounts=msgspec.json.encode(heartbeat.accounts).decode(),
    )


async def end_worker(transaction: Transaction, worker_id: UUID) -> None:
    """Take back what a process said of itself: it has stopped."""
    await transaction.execute(_SQL["end_worker"], worker_id=worker_id)


async def list_workers(transaction: Transaction) -> list[Worker]:
    """Return the last heartbeats, those heard of last first."""
    rows = await transaction.fetch(_Row, _SQL["list_workers"], limit=WORKERS_MAX)
    return [
        Worker(
            heartbeat=Heartbeat(
                worker_id=row.worker_id,
                name=row.name,
                program=row.program,
                channels=msgspec.json.decode(row.channels, type=tuple[str, ...]),
                accounts=msgspec.json.decode(row.accounts, type=tuple[AccountState, ...]),
            ),
            started_at=row.started_at,
            seen_at=row.seen_at,
            now=row.now,
        )
        for row in rows
    ]

"""Ensuring outgoing messages: the hot path of every campaign, three statements a batch and a fourth for conflicts.

The rows are made on the server from the parent, the address versions and the flows; what travels is the batch. Writes
`flow`, `outgoing_message` and `support_case`, and holds the scheduler row while it inserts.
"""

from typing import TYPE_CHECKING, Final

import asyncpg
import msgspec

from clarion.adapters.stores import answer
from clarion.adapters.stores.postgres import codec
from clarion.adapters.stores.postgres.ensure.record import write_cases
from clarion.adapters.stores.query import load
from clarion.domain.ensured import Ensured
from clarion.domain.identity import Channel
from clarion.domain.outgoing import OutgoingBatch, OutgoingItem, OutgoingMessage, OutgoingStatus
from clarion.errors import BrokenInvariant, ClarionError
from clarion.ports.ensure import hold_lost, unknown_address, unknown_parent

if TYPE_CHECKING:
    from clarion.adapters.stores.postgres.session import Connection

_SQL: Final = load(__package__, "outgoing.sql")


async def ensure_outgoing_messages(
    connection: "Connection", tenant_id: str, batch: OutgoingBatch
) -> list[Ensured[OutgoingMessage]]:
    """Insert the rows that are absent while the hold holds, and compare those that are there."""
    created = await _insert(connection, tenant_id, batch)
    rows = await _read(connection, tenant_id, batch)
    if len(rows) < len(batch.items):
        raise await _why_missing(connection, tenant_id, batch)
    stored: dict[answer.Key, OutgoingMessage] = {}
    given: list[OutgoingMessage] = []
    for item, row in zip(batch.items, rows, strict=True):
        found = _message(row, pk=batch.pk)
        stored[found.key] = found
        given.append(_given(item, found))
    fresh = {key for key in stored if key[-1] in created}
    verdicts = answer.compare(tenant_id, given, stored=stored, created=fresh)
    await write_cases(connection, tenant_id, verdicts.cases)
    return verdicts.answers


async def _insert(connection: "Connection", tenant_id: str, batch: OutgoingBatch) -> set[str]:
    """Make the flows and the rows that are absent; return the row keys that were made."""
    items = batch.items
    routes = list({item.route: None for item in items})
    await connection.execute(_SQL["insert_flows"].sql, tenant_id, batch.lane, batch.source, routes)
    hold_id, hold_version = batch.hold or (None, None)
    made = await connection.fetch(
        _SQL["insert_outgoing_messages"].sql,
        tenant_id,
        batch.pk,
        batch.messaging_job,
        [item.address_id for item in items],
        [item.message_id for item in items],
        [item.route for item in items],
        [item.attempt_no for item in items],
        [item.order_key for item in items],
        [item.due_at for item in items],
        [item.expires_at for item in items],
        batch.lane,
        batch.source,
        hold_id,
        hold_version,
    )
    return {row[0] for row in made}


async def _read(connection: "Connection", tenant_id: str, batch: OutgoingBatch) -> list[asyncpg.Record]:
    """Read the stored row of each item that has one, in the order of the batch."""
    rows = await connection.fetch(
        _SQL["read_outgoing_messages"].sql,
        tenant_id,
        batch.pk,
        batch.messaging_job,
        [item.address_id for item in batch.items],
        [item.attempt_no for item in batch.items],
    )
    return sorted(rows, key=lambda row: row["place"])


def _message(row: asyncpg.Record, *, pk: str) -> OutgoingMessage:
    """Read one row; written out, because this is done for every recipient of every campaign."""
    return OutgoingMessage(
        bucket=row["bucket"],
        pk=pk,
        rk=row["rk"],
        message_id=row["message_id"],
        address_id=row["address_id"],
        channel=codec.member(Channel, row["channel"]),
        attempt_no=row["attempt_no"],
        status=codec.member(OutgoingStatus, row["status"]),
        version=row["version"],
        correlation_id=row["correlation_id"],
        id=row["id"],
    )


def _given(item: OutgoingItem, found: OutgoingMessage) -> OutgoingMessage:
    """Give the row as this item would have made it: its key, parent and channel are those of the row it found."""
    return msgspec.structs.replace(found, message_id=item.message_id, address_id=item.address_id)


async def _why_missing(connection: "Connection", tenant_id: str, batch: OutgoingBatch) -> ClarionError:
    """Tell why a row was neither made nor there; raising it takes back what else the batch made."""
    row = await connection.fetchrow(
        _SQL["explain_missing_messages"].sql,
        tenant_id,
        batch.pk,
        batch.messaging_job,
        [item.address_id for item in batch.items],
        *(batch.hold or (None, None)),
    )
    if row is None or not row["has_parent"]:
        return unknown_parent(batch.pk)
    if batch.hold is not None and not row["holds"]:
        return hold_lost()
    if row["unknown_address"] is not None:
        return unknown_address(row["unknown_address"])
    return BrokenInvariant("an outgoing message was neither made nor there, though nothing stood in its way")

"""Ensuring outgoing messages: the hot path of every campaign, three statements a set and a fourth for conflicts.

The rows are made in the database from their parents, the address versions and the flows; what travels is the set.
Writes `flow`, `outgoing_message` and `support_case`, and counts what it made for a campaign.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec

from clarion.adapters.stores.query import load
from clarion.adapters.stores.shared import answer
from clarion.adapters.stores.shared.queue.ledger import CountKey, change_counts
from clarion.adapters.stores.shared.support import write_cases
from clarion.adapters.stores.shared.transaction import finished
from clarion.adapters.stores.sqlite import codec
from clarion.adapters.stores.sqlite.clock import microseconds
from clarion.adapters.stores.sqlite.session import Transaction
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.outgoing import OutgoingItem, OutgoingMessage, OutgoingStatus
from clarion.errors import BrokenInvariant
from clarion.ports.ensure import unknown_address, unknown_parent

_SQL: Final = load(__package__, "outgoing.sql")

_COLUMNS: Final = (
    "id",
    "bucket",
    "pk",
    "rk",
    "message_id",
    "address_id",
    "channel",
    "attempt_no",
    "status",
    "version",
    "correlation_id",
)
"""What is read of a row, in this order; behind it stand its flow and what an item's row derives from."""


def ensure_outgoing_messages(
    transaction: Transaction, tenant_id: str, items: Sequence[OutgoingItem]
) -> list[Ensured[OutgoingMessage]]:
    """Insert the rows that are absent and whose hold stands, and compare those that are there."""
    flows = list({(item.lane, item.route, item.broadcast): None for item in items})
    transaction.rows(_SQL["insert_flows"], tenant_id=tenant_id, flows=codec.as_json(flows))
    given = codec.as_json([_parameter(item) for item in items])
    made = {row[0] for row in transaction.rows(_SQL["insert_outgoing_messages"], tenant_id=tenant_id, items=given)}
    rows = transaction.rows(_SQL["read_outgoing_messages"], tenant_id=tenant_id, items=given)
    records = [_record(item, row) for item, row in zip(items, rows, strict=True)]
    _count(transaction, tenant_id, items, rows, made=made)
    return _answers(transaction, tenant_id, items, records, made=made)


def _parameter(item: OutgoingItem) -> tuple[object, ...]:
    """Give an item as the statements unpack it, by place: names would be most of what travels."""
    hold_id, hold_version = item.hold or (None, None)
    return (
        item.pk,
        item.messaging_job is not None,
        hold_id,
        hold_version,
        item.lane,
        item.broadcast,
        item.route,
        item.address_id,
        item.recipient_id_hash,
        item.channel,
        item.message_id,
        item.attempt_no,
        item.order_key,
        item.due_at and microseconds(item.due_at),
        item.expires_at and microseconds(item.expires_at),
        item.uncertain_policy,
    )


def _record(item: OutgoingItem, row: tuple[Any, ...]) -> OutgoingMessage:
    """Make the record of an item's row; of one that is not there, the record as it would have been."""
    *stored, _, bucket, correlation_id, rk = row
    if bucket is None:
        raise unknown_parent(item.pk)
    if rk is None:
        raise unknown_address(item.address_id)
    if stored[0] is not None:
        return codec.record(OutgoingMessage, _COLUMNS, stored)
    if item.hold is None:
        raise BrokenInvariant("an outgoing message was neither made nor there, though nothing stood in its way")
    return OutgoingMessage(
        bucket=bucket,
        pk=item.pk,
        rk=rk,
        message_id=item.message_id,
        address_id=item.address_id,
        channel=item.channel,
        attempt_no=item.attempt_no,
        correlation_id=correlation_id,
    )


def _count(
    transaction: Transaction,
    tenant_id: str,
    items: Sequence[OutgoingItem],
    rows: Sequence[tuple[Any, ...]],
    *,
    made: Collection[int],
) -> None:
    """Count the rows that were made for a campaign, each once however often the set names it."""
    flows = {row[0]: row[len(_COLUMNS)] for item, row in zip(items, rows, strict=True) if item.broadcast}
    made_in = [flow_id for row_id, flow_id in flows.items() if row_id in made]
    counts: Counter[CountKey] = Counter((tenant_id, flow_id, OutgoingStatus.CREATED, "") for flow_id in made_in)
    finished(change_counts(transaction, counts))


def _answers(
    transaction: Transaction,
    tenant_id: str,
    items: Sequence[OutgoingItem],
    records: Sequence[OutgoingMessage],
    *,
    made: Collection[int],
) -> list[Ensured[OutgoingMessage]]:
    """Compare what is there with what was asked for; what is not there lost its hold."""
    there = [(item, record) for item, record in zip(items, records, strict=True) if record.id is not None]
    verdicts = answer.compare(
        tenant_id,
        # The row as an item would have made it: its key, parent and channel are those of the row it found.
        [msgspec.structs.replace(row, message_id=item.message_id, address_id=item.address_id) for item, row in there],
        stored={record.key: record for _, record in there},
        created={record.key for _, record in there if record.id in made},
    )
    finished(write_cases(transaction, tenant_id, verdicts.cases))
    answers = iter(verdicts.answers)
    return [
        Ensured(outcome=Outcome.SUPERSEDED, record=record) if record.id is None else next(answers) for record in records
    ]

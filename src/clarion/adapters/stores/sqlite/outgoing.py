"""The insert of outgoing messages on SQLite. Writes `outgoing_message` and `flow_count`."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from clarion.adapters.stores.shared.outgoing import Origins
from clarion.adapters.stores.shared.queue.ledger import CountKey, change_counts
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Row, Transaction
from clarion.domain.outgoing import OutgoingItem, OutgoingMessage, OutgoingStatus

_SQL: Final = Statements("outgoing.sql", package=__package__)


async def insert_messages(
    transaction: Transaction, tenant_id: str, items: Sequence[OutgoingItem], origins: Origins
) -> Sequence[OutgoingMessage]:
    """Insert the rows that are absent and whose hold stands; return them."""
    made = await transaction.fetch(
        OutgoingMessage,
        _SQL["insert_outgoing_messages"],
        tenant_id=tenant_id,
        items=[_row(item, origins) for item in items],
    )
    flows = {(item.pk, item.address_id, item.attempt_no): origins.flow(item) for item in items if item.broadcast}
    counts: Counter[CountKey] = Counter()
    for row in made:
        if flow_id := flows.get((row.pk, row.address_id, row.attempt_no)):
            counts[tenant_id, flow_id, OutgoingStatus.CREATED, ""] += 1
    await change_counts(transaction, counts)
    return made


def _row(item: OutgoingItem, origins: Origins) -> Row:
    """Give an item with all that its row derives from, in the order of the statement's columns."""
    parent = origins.parent(item)
    hold_id, hold_version = item.hold or (None, None)
    return (
        parent.bucket,
        parent.pk,
        parent.correlation_id,
        parent.traceparent,
        origins.flow(item),
        bool(item.broadcast),
        hold_id,
        hold_version,
        item.address_id,
        item.recipient_id_hash,
        item.channel,
        item.message_id,
        item.attempt_no,
        item.order_key,
        item.due_at,
        item.expires_at,
        item.uncertain_policy,
    )

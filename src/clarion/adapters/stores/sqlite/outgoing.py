"""The insert of outgoing messages on SQLite. Writes `outgoing_message` and `flow_count`."""

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from clarion.adapters.stores.shared.outgoing import Origins
from clarion.adapters.stores.shared.queue.ledger import CountKey, change_counts
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction, Value
from clarion.domain.outgoing import OutgoingItem, OutgoingMessage, OutgoingStatus

_SQL: Final = Statements("outgoing.sql", package=__package__)


async def insert_messages(
    transaction: Transaction, tenant_id: str, items: Sequence[OutgoingItem], origins: Origins
) -> Sequence[OutgoingMessage]:
    """Insert the rows that are absent and whose hold stands; return them."""
    insert = _SQL["insert_outgoing_messages"]
    columns = [column.name for parameter in insert.parameters for column in parameter.columns]
    own = attrgetter(*(name for name in columns if name in OutgoingItem.__struct_fields__))
    rows = [(*_origin(item, origins), *own(item)) for item in items]
    made = await transaction.fetch(OutgoingMessage, insert, tenant_id=tenant_id, items=rows)
    flows = {(item.pk, item.address_id, item.attempt_no): origins.flow(item) for item in items if item.broadcast}
    counts: Counter[CountKey] = Counter()
    for row in made:
        if flow_id := flows.get((row.pk, row.address_id, row.attempt_no)):
            counts[tenant_id, flow_id, OutgoingStatus.CREATED, ""] += 1
    await change_counts(transaction, counts)
    return made


def _origin(item: OutgoingItem, origins: Origins) -> tuple[Value, ...]:
    """Give what an item's row derives from, in the order of the statement's first columns."""
    parent = origins.parent(item)
    hold_id, hold_version = item.hold or (None, None)
    trace = (parent.correlation_id, parent.traceparent)
    return (parent.bucket, parent.pk, *trace, origins.flow(item), bool(item.broadcast), hold_id, hold_version)

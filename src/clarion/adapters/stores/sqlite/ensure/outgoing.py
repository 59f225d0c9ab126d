"""Ensuring outgoing messages: the hot path of every campaign, three statements a batch and a fourth for conflicts.

The rows are made in the database from the parent, the address versions and the flows; what travels is the batch. Writes
`flow`, `outgoing_message` and `support_case`.
"""

from typing import Final

import msgspec

from clarion.adapters.stores import answer
from clarion.adapters.stores.query import load
from clarion.adapters.stores.sqlite import codec
from clarion.adapters.stores.sqlite.ensure.record import write_cases
from clarion.adapters.stores.sqlite.session import Parameter, Transaction
from clarion.domain.ensured import Ensured
from clarion.domain.outgoing import OutgoingBatch, OutgoingItem, OutgoingMessage
from clarion.errors import BrokenInvariant, ClarionError
from clarion.ports.ensure import hold_lost, unknown_address, unknown_parent

_SQL: Final = load(__package__, "outgoing.sql")


def ensure_outgoing_messages(
    transaction: Transaction, tenant_id: str, batch: OutgoingBatch
) -> list[Ensured[OutgoingMessage]]:
    """Insert the rows that are absent while the hold holds, and compare those that are there."""
    parameters = _parameters(tenant_id, batch)
    transaction.rows(_SQL["insert_flows"], **parameters)
    made = {row[0] for row in transaction.rows(_SQL["insert_outgoing_messages"], **parameters)}
    rows = transaction.records(OutgoingMessage, _SQL["read_outgoing_messages"], **parameters)
    if len(rows) < len(batch.items):
        raise _why_missing(transaction, batch, parameters)
    verdicts = answer.compare(
        tenant_id,
        [_given(item, found) for item, found in zip(batch.items, rows, strict=True)],
        stored={found.key: found for found in rows},
        created={found.key for found in rows if found.id in made},
    )
    write_cases(transaction, tenant_id, verdicts.cases)
    return verdicts.answers


def _parameters(tenant_id: str, batch: OutgoingBatch) -> dict[str, Parameter]:
    """Give what the statements of a batch share; each takes what it names."""
    hold_id, hold_version = batch.hold or (None, None)
    return {
        "tenant_id": tenant_id,
        "pk": batch.pk,
        "notification_job": batch.notification_job,
        "messaging_job": None if batch.messaging_job is None else str(batch.messaging_job),
        "lane": batch.lane.value,
        "source": batch.source,
        "hold_id": hold_id,
        "hold_version": hold_version,
        "routes": codec.as_json(list({item.route: None for item in batch.items})),
        "items": codec.parameter(batch.items),
    }


def _given(item: OutgoingItem, found: OutgoingMessage) -> OutgoingMessage:
    """Give the row as this item would have made it: its key, parent and channel are those of the row it found."""
    return msgspec.structs.replace(found, message_id=item.message_id, address_id=item.address_id)


def _why_missing(transaction: Transaction, batch: OutgoingBatch, parameters: dict[str, Parameter]) -> ClarionError:
    """Tell why a row was neither made nor there; raising it takes back what else the batch made."""
    ((has_parent, is_held, place),) = transaction.rows(_SQL["explain_missing_messages"], **parameters)
    if not has_parent:
        return unknown_parent(batch.pk)
    if not is_held:
        return hold_lost()
    if isinstance(place, int):
        return unknown_address(batch.items[place].address_id)
    return BrokenInvariant("an outgoing message was neither made nor there, though nothing stood in its way")

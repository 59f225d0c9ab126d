"""The lines of entities' histories: written by whatever they tell of, in its transaction. Writes `entity_history`."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain.entity_event import EntityHistory
from clarion.ports.ensure import bounded
from clarion.ports.insights import PAGE_MAX

_SQL: Final = Statements("entity_history.sql")

_BEHIND_ALL: Final = (datetime.max.replace(tzinfo=UTC), "")
"""A place that every line is older than."""


async def write_history(transaction: Transaction, tenant_id: str, lines: Sequence[EntityHistory]) -> None:
    """Write lines of entities' histories."""
    await write_lines(transaction, [(tenant_id, line) for line in bounded(lines)])


async def write_lines(transaction: Transaction, lines: Sequence[tuple[str, EntityHistory]]) -> None:
    """Write lines of several tenants; of two under one key the later in the set stands."""
    given = {(tenant_id, line.entity_guid, line.row_key): line for tenant_id, line in lines}
    if given:
        rows = [
            (*key, line.kind, line.subject, line.cause, line.at, line.text, line.correlation_id)
            for key, line in given.items()
        ]
        await transaction.execute(_SQL["write_history"], lines=rows)


async def list_history(
    transaction: Transaction,
    tenant_id: str,
    entity_guid: UUID,
    *,
    subject: str | None = None,
    after: tuple[datetime, str] | None = None,
    limit: int,
) -> list[EntityHistory]:
    """Return lines of an entity's history, all or those about one subject, the newest first, behind a place."""
    before_at, before_key = after or _BEHIND_ALL
    return await transaction.fetch(
        EntityHistory,
        _SQL["list_history" if subject is None else "list_history_of_subject"],
        **({} if subject is None else {"subject": subject}),
        tenant_id=tenant_id,
        entity_guid=entity_guid,
        before_at=before_at,
        before_key=before_key,
        limit=min(limit, PAGE_MAX),
    )

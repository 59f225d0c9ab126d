"""What has the sources of reminder settings planned anew, beside a change to the setting itself.

Writes `reminder_setting`. What is pending keeps its local date and time, and the planner moves it to the instant that
these have come to mean.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.ports.ensure import ITEMS_MAX

_SQL: Final = Statements("replan.sql")

PAGE: Final = 500
"""A tenant has some dozens of settings."""


class _Key(msgspec.Struct, frozen=True):
    tenant_id: str
    guid: UUID


async def replan_tenant(transaction: Transaction, tenant_id: str) -> None:
    """Have the sources of all settings of a tenant planned anew: local times mean other instants there now."""
    after = UUID(int=0)
    while True:
        found = await transaction.fetch(
            _Key, _SQL["find_settings_of_tenant"], tenant_id=tenant_id, after=after, limit=PAGE
        )
        await _replan(transaction, found)
        if len(found) < PAGE:
            return
        after = found[-1].guid


async def replan_other_editions(transaction: Transaction, tzdata_version: str, *, limit: int) -> int:
    """Have those settings planned anew that were planned by another edition of the time zone database."""
    found = await transaction.fetch(
        _Key, _SQL["find_settings_of_other_editions"], tzdata_version=tzdata_version, limit=min(limit, ITEMS_MAX)
    )
    await _replan(transaction, found)
    return len(found)


async def _replan(transaction: Transaction, found: Sequence[_Key]) -> None:
    for one in sorted(found, key=lambda one: (one.tenant_id, one.guid)):
        await transaction.execute(_SQL["replan_setting"], tenant_id=one.tenant_id, guid=one.guid)

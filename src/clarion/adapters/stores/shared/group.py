"""Groups of people.

Writes `audience_group` and `group_member`.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction

_SQL: Final = Statements("group.sql")


async def put_group(transaction: Transaction, tenant_id: str, *, guid: UUID, name: str, members: Sequence[str]) -> None:
    """Insert or replace a group and its members, by recipient hash."""
    hashes = sorted(set(members))
    await transaction.execute(_SQL["put_group"], tenant_id=tenant_id, guid=guid, name=name)
    await transaction.execute(_SQL["delete_members"], tenant_id=tenant_id, guid=guid, members=hashes)
    await transaction.execute(_SQL["insert_members"], tenant_id=tenant_id, guid=guid, members=hashes)

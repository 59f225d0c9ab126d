"""Who is in an audience: groups with the groups inside them, holders of roles, members of units, relatives of a thing.

Reads only, page by page: a page costs what its own recipients cost, however many are before or behind it.
"""

from typing import Final

import msgspec

from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain.audience import GROUP_DEPTH_MAX, Audience

_SQL: Final = Statements("audience.sql")


class _Recipient(msgspec.Struct, frozen=True):
    recipient_id_hash: str


async def find_audience(
    transaction: Transaction, tenant_id: str, audience: Audience, *, after: str = "", limit: int
) -> list[str]:
    """Return the recipient hashes of everybody in any part of an audience behind one, sorted, each once."""
    rows = await transaction.fetch(
        _Recipient,
        _SQL["find_audience"],
        tenant_id=tenant_id,
        groups=sorted(audience.groups),
        roles=sorted(audience.roles),
        units=sorted(audience.units),
        relations=sorted(audience.relations),
        depth_max=GROUP_DEPTH_MAX,
        after=after,
        limit=limit,
    )
    return [row.recipient_id_hash for row in rows]

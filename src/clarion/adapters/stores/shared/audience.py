"""Who is in an audience: groups with the groups inside them, holders of roles, members of units, relatives of a thing.

Reads only, page by page: a page costs what its own recipients cost, however many are before or behind it.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain.audience import GROUP_DEPTH_MAX, Audience
from clarion.ports.ensure import bounded

_SQL: Final = Statements("audience.sql")


class _Recipient(msgspec.Struct, frozen=True):
    n: int
    recipient_id_hash: str


async def find_audience(
    transaction: Transaction, tenant_id: str, audience: Audience, *, after: str = "", limit: int
) -> list[str]:
    """Return the recipient hashes of everybody in any part of an audience behind one, sorted, each once."""
    (found,) = await _find(transaction, tenant_id, [audience], after=after, limit=limit)
    return found


async def find_audiences(
    transaction: Transaction, tenant_id: str, audiences: Sequence[Audience], *, limit: int
) -> list[list[str]]:
    """Return the first recipient hashes of each of these audiences, sorted, each once."""
    return await _find(transaction, tenant_id, bounded(audiences), after="", limit=limit) if audiences else []


async def _find(
    transaction: Transaction, tenant_id: str, audiences: Sequence[Audience], *, after: str, limit: int
) -> list[list[str]]:
    rows = await transaction.fetch(
        _Recipient,
        _SQL["find_audiences"],
        tenant_id=tenant_id,
        groups=[(n, one) for n, audience in enumerate(audiences) for one in audience.groups],
        roles=[(n, *one) for n, audience in enumerate(audiences) for one in audience.roles],
        units=[(n, one) for n, audience in enumerate(audiences) for one in audience.units],
        relations=[(n, *one) for n, audience in enumerate(audiences) for one in audience.relations],
        depth_max=GROUP_DEPTH_MAX,
        after=after,
        limit=limit,
    )
    found: list[list[str]] = [[] for _ in audiences]
    for row in rows:
        found[row.n].append(row.recipient_id_hash)
    return found

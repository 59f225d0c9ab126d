"""A change of who belongs somewhere: people added and removed by hash, while everybody else stays.

The same for groups, business units and roles, which give the statements for their own table.
"""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

import msgspec

from clarion.adapters.stores.shared.audit import append_audit
from clarion.adapters.stores.shared.statement import Statement, Statements
from clarion.adapters.stores.shared.transaction import Argument, Transaction, Value
from clarion.domain import act
from clarion.domain.group import Member, MemberChange
from clarion.ports.ensure import ITEMS_MAX, bounded

_SQL: Final = Statements("member.sql")


class Hash(msgspec.Struct, frozen=True):
    """A row that was changed, by whose it is."""

    recipient_id_hash: str


class Count(msgspec.Struct, frozen=True):
    """How many there are."""

    n: int


class Guid(msgspec.Struct, frozen=True):
    """What is there, by its guid."""

    guid: UUID


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where people belong: the statements that add and remove there, what they are given, and its name in the log."""

    add: Statement
    remove: Statement
    given: Mapping[str, Value]
    subject: str


async def change(
    transaction: Transaction,
    tenant_id: str,
    place: Place,
    *,
    add: Sequence[str],
    remove: Sequence[str],
    actor: str | None,
) -> MemberChange:
    """Remove and add people, audited where anybody came or went; the caller holds the lock of the place."""
    coming, going = sorted(set(bounded(add))), sorted(set(bounded(remove)))
    given: dict[str, Argument] = {"tenant_id": tenant_id, **place.given}
    removed = await transaction.fetch(Hash, place.remove, members=going, **given) if going else []
    added = await transaction.fetch(Hash, place.add, members=coming, **given) if coming else []
    unknown = await count_unknown(transaction, tenant_id, coming)
    if actor is not None and (added or removed):
        done = act.change_members(
            place.subject,
            added=[row.recipient_id_hash for row in added],
            removed=[row.recipient_id_hash for row in removed],
            actor=actor,
        )
        await append_audit(transaction, tenant_id, done)
    return MemberChange(
        added=len(added),
        removed=len(removed),
        unchanged=len(coming) + len(going) - len(added) - len(removed),
        unknown=unknown,
    )


async def count_unknown(transaction: Transaction, tenant_id: str, hashes: Sequence[str]) -> int:
    """Count those who are no person that is known."""
    if not hashes:
        return 0
    (known,) = await transaction.fetch(Count, _SQL["count_known"], tenant_id=tenant_id, hashes=hashes)
    return len(hashes) - known.n


async def page(
    transaction: Transaction, tenant_id: str, listing: Statement, *, guid: UUID, after: str, limit: int
) -> list[Member]:
    """Return who belongs to a place, page by page, by the statement that lists the hashes of its kind of place."""
    found = await transaction.fetch(Hash, listing, tenant_id=tenant_id, guid=guid, after=after, limit=at_most(limit))
    if not found:
        return []
    hashes = [row.recipient_id_hash for row in found]
    return await transaction.fetch(Member, _SQL["name_people"], tenant_id=tenant_id, hashes=hashes)


def at_most(limit: int) -> int:
    """Bound a page: a larger one than a set would keep others waiting."""
    return min(limit, ITEMS_MAX)

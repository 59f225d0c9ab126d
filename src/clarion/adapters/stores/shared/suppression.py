"""Suppressions and preferences: put, lifted, set and listed, and looked up for a decision.

Writes `suppression` and, through `audit`, `audit_log`. What a claim asks is in `queue.claim`, and what providers report
is applied by `receipts`.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from clarion.adapters.stores.shared.audit import append_audits
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Overtaken, Row, Transaction
from clarion.domain import act
from clarion.domain.address import AddressVersion
from clarion.domain.suppression import Cause, Change, Suppression, SuppressionKey, category_of, note_of, stored_after
from clarion.ports.ensure import bounded
from clarion.ports.insights import PAGE_MAX
from clarion.ports.suppression import PreferencesSet, SuppressionPlace

_SQL: Final = Statements("suppression.sql")

_BEHIND_ALL: Final = SuppressionPlace(created_at=datetime(9999, 1, 1, tzinfo=UTC), subject="", scope="")
"""A place that no row comes behind."""


_Place = tuple[str, str, str]
"""Tenant, subject and scope: what a row is found by."""


class Stored(Suppression, frozen=True, kw_only=True):
    """A row with its tenant."""

    tenant_id: str

    @property
    def place(self) -> _Place:
        """What it is found by."""
        return (self.tenant_id, self.subject, self.scope)


class _Key(msgspec.Struct, frozen=True):
    subject: str
    scope: str


class _Found(_Key, frozen=True):
    cause: Cause


async def put_suppressions(
    transaction: Transaction,
    tenant_id: str,
    items: Sequence[Suppression],
    *,
    actor: str,
    reason: str | None = None,
) -> list[SuppressionKey]:
    """Suppress these, each audited; return those that are new, or that a stronger cause has taken over."""
    changed = await write_suppressions(transaction, [(tenant_id, one) for one in bounded(items)], actor=actor)
    acts = [act.suppress(one.subject, scope=one.scope, cause=one.cause, reason=reason, actor=actor) for one in changed]
    await append_audits(transaction, tenant_id, acts)
    return [one.key for one in changed]


async def write_suppressions(
    transaction: Transaction, items: Sequence[tuple[str, Suppression]], *, actor: str
) -> list[Suppression]:
    """Write these, each for its tenant, without a line in any audit log; return those that are new, or taken over.

    Of several of one key the strongest counts. A row that is there stays, unless a weaker cause has made it. In the
    order of their keys, so that two who write the same wait for each other.
    """
    wanted: dict[_Place, Suppression] = {}
    for tenant_id, one in items:
        there = wanted.get((tenant_id, *one.key))
        if there is None or one.cause.takes_over(there.cause):
            wanted[tenant_id, *one.key] = one
    stored = {one.place: one for one in await lock_suppressions(transaction, wanted)}
    new = sorted(wanted.keys() - stored.keys())
    if new:
        rows = [_row(place, wanted[place]) for place in new]
        made = await transaction.fetch(_Key, _SQL["insert_suppressions"], actor=actor, items=rows)
        if len(made) < len(new):
            raise Overtaken  # somebody else has made one since we looked, maybe for another cause
    stronger = sorted(place for place, row in stored.items() if wanted[place].cause.takes_over(row.cause))
    if stronger:
        rows = [_row(place, wanted[place]) for place in stronger]
        await transaction.execute(_SQL["take_over_suppressions"], actor=actor, items=rows)
    return [wanted[place] for place in sorted([*new, *stronger])]


async def lift_suppressions(
    transaction: Transaction,
    tenant_id: str,
    keys: Collection[SuppressionKey],
    *,
    actor: str,
    reason: str | None = None,
) -> list[SuppressionKey]:
    """Suppress these no more, each audited; return those that were suppressed."""
    stored = await lock_suppressions(transaction, [(tenant_id, *key) for key in bounded(sorted(set(keys)))])
    await delete_suppressions(transaction, stored)
    acts = [act.lift(one.subject, scope=one.scope, cause=one.cause, reason=reason, actor=actor) for one in stored]
    await append_audits(transaction, tenant_id, acts)
    return [one.key for one in stored]


async def lock_suppressions(transaction: Transaction, places: Collection[_Place]) -> list[Stored]:
    """Lock those of these rows that are there, in the common order, and read them as they are now."""
    return await transaction.fetch(Stored, _SQL["lock_suppressions"], keys=sorted(places)) if places else []


async def delete_suppressions(transaction: Transaction, stored: Sequence[Stored]) -> None:
    """Delete rows that are locked."""
    if stored:
        tenants, subjects = sorted({one.tenant_id for one in stored}), sorted({one.subject for one in stored})
        keys = [one.place for one in stored]
        await transaction.execute(_SQL["delete_suppressions"], tenants=tenants, subjects=subjects, keys=keys)


async def set_preferences(
    transaction: Transaction,
    tenant_id: str,
    recipient_id_hash: str,
    changes: Sequence[Change],
    *,
    cause: Cause = Cause.PREFERENCE,
    actor: str,
    reason: str | None = None,
) -> PreferencesSet:
    """Set preferences of one recipient, audited; of two who do so at once one waits for the other."""
    await transaction.lock(f"clarion preferences {tenant_id} {recipient_id_hash}")
    found = await find_suppressions(transaction, tenant_id, [recipient_id_hash])
    put, lifted = stored_after(found.get(recipient_id_hash, {}), bounded(changes))
    locked = await lock_suppressions(transaction, [(tenant_id, recipient_id_hash, scope) for scope in lifted])
    await delete_suppressions(transaction, locked)
    note = None if reason is None else note_of(reason)
    rows = [Suppression(subject=recipient_id_hash, scope=scope, cause=cause, note=note) for scope in put]
    made = await write_suppressions(transaction, [(tenant_id, row) for row in rows], actor=actor)
    done = PreferencesSet(put=frozenset(one.scope for one in made), lifted=frozenset(one.scope for one in locked))
    acts = [
        act.set_preferences(
            recipient_id_hash,
            category,
            put=[scope for scope in done.put if category_of(scope) == category],
            lifted=[scope for scope in done.lifted if category_of(scope) == category],
            cause=cause,
            reason=reason,
            actor=actor,
        )
        for category in sorted(set(map(category_of, done.put | done.lifted)))
    ]
    await append_audits(transaction, tenant_id, acts)
    return done


async def list_suppressions(
    transaction: Transaction,
    tenant_id: str,
    *,
    subjects: Collection[str] | None = None,
    cause: Cause | None = None,
    before: SuppressionPlace | None = None,
    limit: int = 50,
) -> list[Suppression]:
    """Return suppressions, the newest first, from behind `before` on: of these subjects, and of this cause."""
    place = msgspec.structs.asdict(before or _BEHIND_ALL)
    page = {"tenant_id": tenant_id, "limit": min(limit, PAGE_MAX), **place}
    if subjects is not None:
        wanted = sorted(set(subjects))
        return await transaction.fetch(Suppression, _SQL["list_suppressions_of"], subjects=wanted, cause=cause, **page)
    if cause is not None:
        return await transaction.fetch(Suppression, _SQL["list_suppressions_by_cause"], cause=cause, **page)
    return await transaction.fetch(Suppression, _SQL["list_suppressions"], **page)


async def find_suppressed_addresses(
    transaction: Transaction, tenant_id: str, subjects: Collection[str]
) -> dict[str, AddressVersion]:
    """Return the newest address version of each destination index; what is none, or is nobody's, is left out."""
    wanted = sorted(set(subjects))
    found = await transaction.fetch(
        AddressVersion, _SQL["find_suppressed_addresses"], tenant_id=tenant_id, subjects=wanted
    )
    return {one.destination_index: one for one in found}


async def find_suppressions(
    transaction: Transaction, tenant_id: str, subjects: Collection[str]
) -> dict[str, dict[str, Cause]]:
    """Return the scopes under which these subjects get nothing, with their causes; others are left out."""
    scopes: dict[str, dict[str, Cause]] = defaultdict(dict)
    wanted = sorted(set(subjects))
    for row in await transaction.fetch(_Found, _SQL["find_suppressions"], tenant_id=tenant_id, subjects=wanted):
        scopes[row.subject][row.scope] = row.cause
    return dict(scopes)


def _row(place: _Place, item: Suppression) -> Row:
    return (*place, item.cause, item.note)

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
from clarion.adapters.stores.shared.transaction import Overtaken, Transaction
from clarion.domain import act
from clarion.domain.suppression import Cause, Change, Suppression, SuppressionKey, category_of, stored_after
from clarion.ports.ensure import bounded
from clarion.ports.insights import PAGE_MAX
from clarion.ports.suppression import PreferencesSet, SuppressionPlace

_SQL: Final = Statements("suppression.sql")

_BEHIND_ALL: Final = SuppressionPlace(created_at=datetime(9999, 1, 1, tzinfo=UTC), subject="", scope="")
"""A place that no row comes behind."""


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
    changed = await write_suppressions(transaction, tenant_id, items, actor=actor)
    acts = [act.suppress(one.subject, scope=one.scope, cause=one.cause, reason=reason, actor=actor) for one in changed]
    await append_audits(transaction, tenant_id, acts)
    return [one.key for one in changed]


async def write_suppressions(
    transaction: Transaction, tenant_id: str, items: Sequence[Suppression], *, actor: str
) -> list[Suppression]:
    """Write these without a line in the audit log; return those that are new, or taken over, by subject and scope.

    Of several of one key the strongest counts. A row that is there stays, unless a weaker cause has made it.
    """
    wanted: dict[SuppressionKey, Suppression] = {}
    for one in bounded(items):
        there = wanted.get(one.key)
        if there is None or one.cause.takes_over(there.cause):
            wanted[one.key] = one
    stored = {one.key: one for one in await _lock(transaction, tenant_id, wanted)}
    new = [wanted[key] for key in sorted(wanted.keys() - stored.keys())]
    if new:
        made = await transaction.fetch(
            _Key, _SQL["insert_suppressions"], tenant_id=tenant_id, actor=actor, items=_rows(new)
        )
        if len(made) < len(new):
            raise Overtaken  # somebody else has made one since we looked, maybe for another cause
    stronger = [wanted[key] for key, row in stored.items() if wanted[key].cause.takes_over(row.cause)]
    if stronger:
        await transaction.execute(
            _SQL["take_over_suppressions"], tenant_id=tenant_id, actor=actor, items=_rows(stronger)
        )
    return sorted([*new, *stronger], key=lambda one: one.key)


async def lift_suppressions(
    transaction: Transaction,
    tenant_id: str,
    keys: Collection[SuppressionKey],
    *,
    actor: str,
    reason: str | None = None,
) -> list[SuppressionKey]:
    """Suppress these no more, each audited; return those that were suppressed."""
    stored = await _lock(transaction, tenant_id, bounded(sorted(set(keys))))
    await delete_suppressions(transaction, tenant_id, stored)
    acts = [act.lift(one.subject, scope=one.scope, cause=one.cause, reason=reason, actor=actor) for one in stored]
    await append_audits(transaction, tenant_id, acts)
    return [one.key for one in stored]


async def delete_suppressions(transaction: Transaction, tenant_id: str, stored: Sequence[Suppression]) -> None:
    """Delete rows that are locked."""
    if stored:
        subjects = sorted({one.subject for one in stored})
        keys = [one.key for one in stored]
        await transaction.execute(_SQL["delete_suppressions"], tenant_id=tenant_id, subjects=subjects, keys=keys)


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
    locked = await _lock(transaction, tenant_id, [(recipient_id_hash, scope) for scope in sorted(lifted)])
    await delete_suppressions(transaction, tenant_id, locked)
    rows = [Suppression(subject=recipient_id_hash, scope=scope, cause=cause, note=reason) for scope in sorted(put)]
    made = await write_suppressions(transaction, tenant_id, rows, actor=actor)
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
    before: SuppressionPlace | None = None,
    limit: int = 50,
) -> list[Suppression]:
    """Return suppressions, the newest first, of these subjects where any are named, from behind `before` on."""
    place = msgspec.structs.asdict(before or _BEHIND_ALL)
    page = {"tenant_id": tenant_id, "limit": min(limit, PAGE_MAX), **place}
    if subjects is None:
        return await transaction.fetch(Suppression, _SQL["list_suppressions"], **page)
    return await transaction.fetch(Suppression, _SQL["list_suppressions_of"], subjects=sorted(set(subjects)), **page)


async def find_suppressions(
    transaction: Transaction, tenant_id: str, subjects: Collection[str]
) -> dict[str, dict[str, Cause]]:
    """Return the scopes under which these subjects get nothing, with their causes; others are left out."""
    scopes: dict[str, dict[str, Cause]] = defaultdict(dict)
    wanted = sorted(set(subjects))
    for row in await transaction.fetch(_Found, _SQL["find_suppressions"], tenant_id=tenant_id, subjects=wanted):
        scopes[row.subject][row.scope] = row.cause
    return dict(scopes)


async def _lock(transaction: Transaction, tenant_id: str, keys: Collection[SuppressionKey]) -> list[Suppression]:
    """Lock those of these rows that are there, in the common order, and read them as they are now."""
    if not keys:
        return []
    return await transaction.fetch(Suppression, _SQL["lock_suppressions"], tenant_id=tenant_id, keys=sorted(keys))


def _rows(items: Sequence[Suppression]) -> list[tuple[str, str, str, str | None]]:
    return [(one.subject, one.scope, one.cause, one.note) for one in items]

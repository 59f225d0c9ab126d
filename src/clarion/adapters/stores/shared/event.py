"""Events: ensured, claimed with the tenants taking turns, finished by version, rescued, retried and listed.

Writes `entity_event`, `event_turn` and `support_case`. What sources make of a change is in `source`.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from clarion.adapters.stores.shared.audit import append_audit
from clarion.adapters.stores.shared.ensure import Table, ensure, insert_absent
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.support import write_cases_of_tenants
from clarion.adapters.stores.shared.transaction import Argument, Row, Transaction, first
from clarion.domain import act, reply, trouble
from clarion.domain.ensured import Ensured
from clarion.domain.entity_event import ENTITY_EVENT, EntityEvent, EventStatus, rescued
from clarion.ports.ensure import ITEMS_MAX, bounded
from clarion.ports.insights import PAGE_MAX
from clarion.ports.source import EventClaim, EventEnd

_SQL: Final = Statements("event.sql")
_EVENTS: Final = Table(EntityEvent, _SQL, "entity_events")

WALK_MAX: Final = 500
"""Tenants that one claim looks at: a look takes some ten microseconds. The next claim begins behind them."""

_METRICS_BYTES_MAX: Final = 4096
"""As for every diagnostic (docs/reference/schema.md)."""

_BEHIND_ALL: Final = (datetime(9999, 1, 1, tzinfo=UTC), 2**63 - 1)
"""A place that no event comes behind."""


class _Event(EntityEvent, frozen=True, kw_only=True):
    """An event and whose it is."""

    tenant_id: str


class _Moved(msgspec.Struct, frozen=True):
    id: int


class _Turn(msgspec.Struct, frozen=True):
    after_tenant: str


class _Waiting(msgspec.Struct, frozen=True):
    tenant_id: str
    is_due: bool


class _Due(msgspec.Struct, frozen=True):
    place: int
    due_at: datetime
    id: int


async def ensure_events(
    transaction: Transaction, tenant_id: str, events: Sequence[EntityEvent]
) -> list[Ensured[EntityEvent]]:
    """Store events unless they are there; each waits to be handled."""
    return await ensure(transaction, tenant_id, events, _EVENTS)


async def insert_events(transaction: Transaction, tenant_id: str, events: Sequence[EntityEvent]) -> None:
    """Store events of a transaction that makes what they tell of."""
    await insert_absent(transaction, tenant_id, events, _EVENTS)


async def claim_events(transaction: Transaction, *, limit: int, lease: timedelta) -> list[EventClaim]:
    """Take events that wait to be handled, of each tenant about as many as of every other, the oldest first."""
    ENTITY_EVENT.require(from_=EventStatus.READY, to=EventStatus.PROCESSING)
    left = min(limit, ITEMS_MAX)
    (turn,) = await transaction.fetch(_Turn, _SQL["read_event_turn"])
    tenants, behind = await _tenants_in_turn(transaction, turn.after_tenant, limit=left)
    ranked: list[tuple[int, int, _Event]] = []
    rank = 0
    while left and tenants:
        part = -(-left // len(tenants))
        due = await transaction.fetch(_Due, _SQL["lock_due_events"], tenants=tenants, part=part)
        by_tenant: list[list[_Due]] = [[] for _ in tenants]
        for one in sorted(due, key=lambda one: (one.due_at, one.id)):
            by_tenant[one.place - 1].append(one)
        wanted = [(rank + nth, place, one.id) for place, some in enumerate(by_tenant) for nth, one in enumerate(some)]
        chosen = sorted(wanted)[:left]
        if not chosen:
            break
        ids = [event_id for _, _, event_id in chosen]
        taken = {row.id: row for row in await transaction.fetch(_Event, _SQL["take_events"], ids=ids, lease=lease)}
        ranked += [(nth, place, taken[event_id]) for nth, place, event_id in chosen if event_id in taken]
        left -= len(chosen)
        rank += part
        tenants = [tenant for tenant, some in zip(tenants, by_tenant, strict=True) if len(some) == part]
    if behind != turn.after_tenant:
        await transaction.execute(_SQL["put_event_turn"], after=behind)
    return [EventClaim(tenant_id=one.tenant_id, event=_plain(one)) for _, _, one in ranked]


async def finish_events(transaction: Transaction, ends: Sequence[EventEnd]) -> set[int]:
    """Move claimed events on where the claim still stands; one that fails opens its support case."""
    for end in bounded(ends):
        ENTITY_EVENT.require(from_=EventStatus.PROCESSING, to=end.to)
    given = {end.event_id: end for end in reversed(ends)}
    if not given:
        return set()
    rows = [_given(given[event_id]) for event_id in sorted(given)]
    moved = {one.id for one in await transaction.fetch(_Moved, _SQL["finish_events"], ends=rows)}
    failed = sorted(moved & {one.event_id for one in given.values() if one.to is EventStatus.FAILED})
    if failed:
        events = await transaction.fetch(_Event, _SQL["read_events"], ids=failed)
        cases = [(one.tenant_id, trouble.failed_event(one.tenant_id, one, reason=one.reason or "")) for one in events]
        await write_cases_of_tenants(transaction, cases)
    return moved


async def rescue_events(transaction: Transaction, *, limit: int, rescues_max: int) -> int:
    """Return expired claims to Ready, rescue_count + 1; past the bound to Failed with a support case (I-23)."""
    rows = await transaction.fetch(_Event, _SQL["lock_expired_events"], limit=min(limit, ITEMS_MAX))
    if not rows:
        return 0
    ruled = [(row, *rescued(row, rescues_max=rescues_max)) for row in sorted(rows, key=lambda row: row.id or 0)]
    await transaction.execute(_SQL["rescue_events"], rows=[(row.id, to, reason) for row, to, reason in ruled])
    cases = [
        (row.tenant_id, trouble.failed_event(row.tenant_id, row, reason=reason or ""))
        for row, to, reason in ruled
        if to is EventStatus.FAILED
    ]
    await write_cases_of_tenants(transaction, cases)
    return len(rows)


async def retry_event(transaction: Transaction, tenant_id: str, event_guid: UUID, *, actor: str, reason: str) -> bool:
    """Have a failed event handled again on a person's word; audited; False where it has not failed."""
    ENTITY_EVENT.require(from_=EventStatus.FAILED, to=EventStatus.READY)
    done = act.retry_event(event_guid, reason=reason, actor=actor)
    if not await transaction.execute(
        _SQL["retry_event"], tenant_id=tenant_id, event_guid=event_guid, reason=f"retried by {actor}"
    ):
        return False
    await append_audit(transaction, tenant_id, done)
    return True


async def find_event(transaction: Transaction, tenant_id: str, event_guid: UUID) -> EntityEvent | None:
    """Return an event, or None."""
    asked = [(event_guid,)]
    return first(await transaction.fetch(EntityEvent, _SQL["read_entity_events"], tenant_id=tenant_id, items=asked))


async def list_events(
    transaction: Transaction,
    tenant_id: str,
    *,
    entity: tuple[str, UUID] | None = None,
    status: EventStatus | None = None,
    after: tuple[datetime, int] | None = None,
    limit: int,
) -> list[EntityEvent]:
    """Return events, the newest first, of one entity or of all, behind a place."""
    before_at, before = after or _BEHIND_ALL
    page: dict[str, Argument] = {
        "tenant_id": tenant_id,
        "before_at": before_at,
        "before": before,
        "limit": min(limit, PAGE_MAX),
    }
    if entity is not None:
        page |= {"entity_type": entity[0], "entity_guid": entity[1], "status": status}
        return await transaction.fetch(EntityEvent, _SQL["list_entity_events_of"], **page)
    if status is not None:
        return await transaction.fetch(EntityEvent, _SQL["list_entity_events_by_status"], status=status, **page)
    return await transaction.fetch(EntityEvent, _SQL["list_entity_events"], **page)


async def _tenants_in_turn(transaction: Transaction, after: str, *, limit: int) -> tuple[list[str], str]:
    """Name the next tenants with an event that is due, and the one behind which the next claim begins."""
    walked = await transaction.fetch(_Waiting, _SQL["find_waiting_tenants"], after=after, most=WALK_MAX)
    ended = len(walked) < WALK_MAX
    if ended and after:
        again = await transaction.fetch(_Waiting, _SQL["find_waiting_tenants"], after="", most=WALK_MAX)
        walked += [one for one in again if one.tenant_id <= after]
    due = [one.tenant_id for one in walked if one.is_due][:limit]
    if due:
        return due, due[-1]
    return due, after if ended else walked[-1].tenant_id


def _given(end: EventEnd) -> Row:
    """Write an end as it is stored; what people read of it may come from a plugin, and is bounded."""
    reason = None if end.reason is None else reply.storable(end.reason, bytes_max=reply.REASON_BYTES_MAX)
    metrics = end.metrics if end.metrics is None or len(end.metrics.encode()) <= _METRICS_BYTES_MAX else None
    return (end.tenant_id, end.event_id, end.version, end.to, end.delay, reason, metrics)


def _plain(row: _Event) -> EntityEvent:
    return EntityEvent(**{name: getattr(row, name) for name in EntityEvent.__struct_fields__})

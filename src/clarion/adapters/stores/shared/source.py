"""Sources: put with the events that tell of them, looked up, listed, and scanned by reconciliations.

Writes `source_record`, `source_day` and, through `event`, `entity_event`. What a put makes of a source is decided in
`domain.source`.

A scan that begins waits for the changes that are under way in its tenant, and sees them: each of them holds a lock that
the scan must have for a moment. So whoever has scanned since an instant knows every change from before the scan, also
one whose transaction began earlier and was committed late.
"""

from collections.abc import Collection, Sequence
from datetime import date, datetime
from typing import Final, assert_never
from uuid import UUID

import msgspec

from clarion.adapters.stores.shared import event
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Argument, Overtaken, Transaction
from clarion.domain.entity_event import EntityEvent, change_event
from clarion.domain.source import SourceRecord, after_put
from clarion.errors import InvalidInput
from clarion.ports.ensure import ITEMS_MAX, bounded
from clarion.ports.insights import PAGE_MAX
from clarion.ports.source import SourceAnswer, SourcePage, SourceScan

_SQL: Final = Statements("source.sql")

_Key = tuple[str, str]
"""The type of a source and its id."""


class _Row(msgspec.Struct, frozen=True):
    """A row without the dates, which are a table of their own."""

    source_type: str
    source: str
    entity_guid: UUID
    business_unit: UUID | None
    active: bool
    content: bytes
    content_hash: str
    row_version: int
    changed_at: datetime


class _Day(msgspec.Struct, frozen=True):
    source: str
    name: str
    day: date


class _Made(msgspec.Struct, frozen=True):
    source: str


class _Now(msgspec.Struct, frozen=True):
    at: datetime


class _InChanged(msgspec.Struct, frozen=True, tag="changed"):
    """A place among those that changed, up to when the scan began."""

    until: datetime
    at: datetime
    source: str


class _InDays(msgspec.Struct, frozen=True, tag="days"):
    """A place among the dates of the window."""

    day: date
    source: str = ""
    name: str = ""


class _InAll(msgspec.Struct, frozen=True, tag="all"):
    """A place among all sources."""

    source: str


_Place = _InChanged | _InDays | _InAll


async def put_sources(
    transaction: Transaction, tenant_id: str, sources: Sequence[SourceRecord], *, actor: str, correlation_id: str
) -> list[SourceAnswer]:
    """Store sources as they are given, each change with its event; of one that is given twice the last word counts."""
    given = {(one.source_type, one.source): one for one in bounded(sources)}
    if not given:
        return []
    await transaction.share(_scanned(tenant_id))
    stored = await _lock(transaction, tenant_id, given)
    (now,) = await transaction.fetch(_Now, _SQL["read_change_time"])
    changes = {key: change for key, one in given.items() if (change := after_put(one, stored.get(key))) is not None}
    await _write(
        transaction, tenant_id, [changes[key][0] for key in sorted(changes)], known=stored.keys(), changed_at=now.at
    )
    events = {
        key: change_event(tenant_id, after, change, at=now.at, actor=actor, correlation_id=correlation_id)
        for key, (after, change) in changes.items()
    }
    if events:
        await event.insert_events(transaction, tenant_id, list(events.values()))
    return [_answer((one.source_type, one.source), stored, events) for one in sources]


async def find_sources(
    transaction: Transaction, tenant_id: str, source_type: str, sources: Collection[str]
) -> dict[str, SourceRecord]:
    """Return these sources, by id; the unknown are left out, those that were removed are not."""
    wanted = bounded(sorted(set(sources)))
    if not wanted:
        return {}
    named = {"tenant_id": tenant_id, "source_type": source_type, "sources": wanted}
    rows = await transaction.fetch(_Row, _SQL["find_sources"], **named)
    return {one.source: one for one in await _with_days(transaction, tenant_id, source_type, rows)}


async def list_sources(
    transaction: Transaction, tenant_id: str, source_type: str, *, after: str = "", limit: int
) -> list[SourceRecord]:
    """Return the sources of a type that are there, by id."""
    rows = await _list(transaction, tenant_id, source_type, after=after, limit=min(limit, PAGE_MAX))
    return await _with_days(transaction, tenant_id, source_type, rows)


async def scan_sources(transaction: Transaction, tenant_id: str, scan: SourceScan) -> SourcePage:
    """Return a page of active sources within the bounds of a scan: first those that changed, then those by a date."""
    if scan.limit > ITEMS_MAX:
        scan = msgspec.structs.replace(scan, limit=ITEMS_MAX)
    place = _place(scan.after) if scan.after else None
    rows: Sequence[_Row]
    cursor: _Place | None
    match place or await _begin(transaction, tenant_id, scan):
        case _InChanged() as changed:
            rows, cursor = await _scan_changed(transaction, tenant_id, scan, changed)
        case _InDays() as days:
            rows, cursor = await _scan_days(transaction, tenant_id, scan, days)
        case _InAll(source=after):
            rows = await _list(transaction, tenant_id, scan.source_type, after=after, limit=scan.limit)
            cursor = _InAll(rows[-1].source) if len(rows) == scan.limit else None
        case unknown:
            assert_never(unknown)
    wanted = [row for row in rows if row.active and (scan.units is None or row.business_unit in scan.units)]
    return SourcePage(
        records=await _with_days(transaction, tenant_id, scan.source_type, wanted),
        cursor=None if cursor is None else msgspec.json.encode(cursor).decode(),
    )


async def _lock(transaction: Transaction, tenant_id: str, keys: Collection[_Key]) -> dict[_Key, SourceRecord]:
    """Lock those that are there, all callers in the same order, and read them as they are now."""
    rows = await transaction.fetch(_Row, _SQL["lock_sources"], tenant_id=tenant_id, keys=sorted(keys))
    return {(row.source_type, row.source): _record(row) for row in rows}


async def _write(
    transaction: Transaction,
    tenant_id: str,
    records: Sequence[SourceRecord],
    *,
    known: Collection[_Key],
    changed_at: datetime,
) -> None:
    """Write sources and their dates, those that are known over what is locked."""
    if not records:
        return
    new = [one for one in records if (one.source_type, one.source) not in known]
    old = [one for one in records if (one.source_type, one.source) in known]
    at: dict[str, Argument] = {"tenant_id": tenant_id, "at": changed_at}
    if new:
        made = await transaction.fetch(_Made, _SQL["insert_sources"], items=new, **at)
        if len(made) < len(new):
            raise Overtaken  # somebody else has made one since we looked
    if old:
        await transaction.execute(_SQL["change_sources"], items=old, **at)
        for source_type in sorted({one.source_type for one in old}):
            await transaction.execute(
                _SQL["delete_source_days"],
                tenant_id=tenant_id,
                source_type=source_type,
                sources=[one.source for one in old if one.source_type == source_type],
            )
    days = [(one.source_type, one.source, name, day) for one in records for name, day in one.days]
    if days:
        await transaction.execute(_SQL["insert_source_days"], tenant_id=tenant_id, items=days)


def _answer(key: _Key, stored: dict[_Key, SourceRecord], events: dict[_Key, EntityEvent]) -> SourceAnswer:
    """Say what putting one came to; the version of one that is not there is 0."""
    if (made := events.get(key)) is not None:
        version = made.source_version or 0
        return SourceAnswer(source=key[1], row_version=version, changed=True, event_guid=made.event_guid)
    there = stored.get(key)
    return SourceAnswer(source=key[1], row_version=0 if there is None else there.row_version, changed=False)


async def _begin(transaction: Transaction, tenant_id: str, scan: SourceScan) -> _Place:
    """Choose where a scan begins; where it asks for changes, after those that are under way."""
    if scan.changed_since is not None:
        await transaction.lock(_scanned(tenant_id))
        (now,) = await transaction.fetch(_Now, _SQL["read_change_time"])
        return _InChanged(until=now.at, at=scan.changed_since, source="")
    return _InAll("") if scan.due_from is None else _InDays(scan.due_from)


async def _scan_changed(
    transaction: Transaction, tenant_id: str, scan: SourceScan, place: _InChanged
) -> tuple[Sequence[_Row], _Place | None]:
    rows = await transaction.fetch(
        _Row,
        _SQL["scan_changed_sources"],
        tenant_id=tenant_id,
        source_type=scan.source_type,
        after_at=place.at,
        after=place.source,
        until=place.until,
        limit=scan.limit,
    )
    if len(rows) == scan.limit:
        return rows, _InChanged(until=place.until, at=rows[-1].changed_at, source=rows[-1].source)
    return rows, None if scan.due_from is None else _InDays(scan.due_from)


async def _scan_days(
    transaction: Transaction, tenant_id: str, scan: SourceScan, place: _InDays
) -> tuple[Sequence[_Row], _Place | None]:
    days = await transaction.fetch(
        _Day,
        _SQL["scan_source_days"],
        tenant_id=tenant_id,
        source_type=scan.source_type,
        after_day=place.day,
        after=place.source,
        after_name=place.name,
        until=scan.due_until or date.max,
        limit=scan.limit,
    )
    if not days:
        return [], None
    named = {"tenant_id": tenant_id, "source_type": scan.source_type, "sources": sorted({one.source for one in days})}
    found = {row.source: row for row in await transaction.fetch(_Row, _SQL["find_sources"], **named)}
    rows = [found[source] for source in dict.fromkeys(one.source for one in days) if source in found]
    last = days[-1]
    return rows, _InDays(last.day, last.source, last.name) if len(days) == scan.limit else None


async def _list(
    transaction: Transaction, tenant_id: str, source_type: str, *, after: str, limit: int
) -> Sequence[_Row]:
    named = {"tenant_id": tenant_id, "source_type": source_type}
    return await transaction.fetch(_Row, _SQL["list_sources"], after=after, limit=limit, **named)


async def _with_days(
    transaction: Transaction, tenant_id: str, source_type: str, rows: Sequence[_Row]
) -> list[SourceRecord]:
    """Give rows of one type their dates, in the order of their names."""
    if not rows:
        return []
    named = {"tenant_id": tenant_id, "source_type": source_type, "sources": [row.source for row in rows]}
    days: dict[str, list[tuple[str, date]]] = {}
    for one in await transaction.fetch(_Day, _SQL["find_source_days"], **named):
        days.setdefault(one.source, []).append((one.name, one.day))
    return [msgspec.structs.replace(_record(row), days=tuple(sorted(days.get(row.source, ())))) for row in rows]


def _record(row: _Row) -> SourceRecord:
    return SourceRecord(**msgspec.structs.asdict(row))


def _place(cursor: str) -> _Place:
    try:
        place: _Place = msgspec.json.decode(cursor, type=_Place)
    except msgspec.DecodeError:
        raise InvalidInput(
            "it is no cursor of a scan", field="after", hint="begin the scan anew, without one"
        ) from None
    return place


def _scanned(tenant_id: str) -> str:
    return f"clarion sources {tenant_id}"

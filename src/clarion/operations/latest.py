"""Lists of notifications, each with its result; and the list of the latest, with its filters.

A result is not stored: it follows from the messages, which change long after their job was made. So a filter is asked
of one page of jobs after the other, newest first, and a request looks at a bounded number of them. A page that ends
early says how far back it looked and has the cursor to go on. A time is no such filter: it is where the list begins and
ends.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from clarion.client import wire
from clarion.domain.result import Result, Standing, overall
from clarion.domain.seal import TenantKeys
from clarion.operations import page
from clarion.operations.whom import find_asked_for, find_names
from clarion.ports.insights import PAGE_MAX, InsightStore, JobLine

LOOKED_MAX: Final = 2000
"""Jobs that one request looks at for a filter: 100 ms on SQLite and 280 ms on PostgreSQL, with a million jobs."""


async def lines_of(
    store: InsightStore,
    keys: TenantKeys,
    jobs: Sequence[JobLine],
    *,
    standings: Mapping[UUID, Standing] | None = None,
    whole: bool,
) -> tuple[wire.NotificationLine, ...]:
    """Give jobs as lines of a list, with what came of each and whom a single one is for.

    Where that was not decided, because it waits or was skipped or canceled before, it is whom the sender named.
    """
    if standings is None:
        standings = await store.find_standings(keys.tenant_id, [job.guid for job in jobs])
    names = await find_names(store, keys, {job.guid: job.recipient for job in jobs}, whole=whole)
    undecided = [job.guid for job in jobs if job.guid in standings and not standings[job.guid].recipients]
    asked_for = await find_asked_for(store, keys, undecided, whole=whole)
    names |= {guid: named[0] for guid, named in asked_for.items() if len(named) == 1}
    return tuple(
        wire.NotificationLine(
            job_id=job.guid,
            type=job.event_type,
            recipients=standings[job.guid].recipients or len(asked_for.get(job.guid, ())),
            recipient=names.get(job.guid),
            result=overall(standings[job.guid]),
            status=standings[job.guid].work,
            accepted_at=job.source_at,
        )
        for job in jobs
        if job.guid in standings
    )


async def latest(
    store: InsightStore, keys: TenantKeys, query: wire.NotificationQuery, *, whole: bool
) -> wire.NotificationPage:
    """List a tenant's notifications, the newest first, those that the filters let through."""
    filters = {"type": query.type, "result": query.result, "since": query.since_at, "until": query.until_at}
    name = " ".join(["notifications", *(f"{key}={value}" for key, value in filters.items() if value is not None)])
    after = _read(name, query.cursor) or (None if query.until_at is None else (query.until_at, UUID(int=0)))
    size = PAGE_MAX if query.type is not None or query.result is not None else query.limit + 1
    found: list[JobLine] = []
    standings: dict[UUID, Standing] = {}
    looked, searched_to_at = 0, None
    while True:
        jobs = await store.list_latest_jobs(keys.tenant_id, after=after, limit=size)
        asked_for = [job for job in jobs if _is_asked_for(job, query)]
        standings |= await store.find_standings(keys.tenant_id, [job.guid for job in asked_for])
        found += [job for job in asked_for if query.result in (None, _result(standings.get(job.guid)))]
        shown, following = page.cut(name, found, query.limit, _place)
        if following is not None or len(jobs) < size or _is_before(jobs[-1], query.since_at):
            break
        after, looked = (jobs[-1].source_at, jobs[-1].guid), looked + len(jobs)
        if looked >= LOOKED_MAX:
            following, searched_to_at = page.write(name, _place(jobs[-1])), jobs[-1].source_at
            break
    items = await lines_of(store, keys, shown, standings=standings, whole=whole)
    return wire.NotificationPage(items=items, next_cursor=following, searched_to_at=searched_to_at)


def _place(job: JobLine) -> str:
    return page.moment(job.source_at, job.guid)


def _read(name: str, cursor: str | None) -> tuple[datetime, UUID] | None:
    """Read where the page before ended."""
    if (place := page.read_moment(name, cursor)) is None:
        return None
    with page.taken_apart():
        return place[0], UUID(place[1])


def _result(standing: Standing | None) -> Result | None:
    return None if standing is None else overall(standing)


def _is_before(job: JobLine, at: datetime | None) -> bool:
    return at is not None and job.source_at < at


def _is_asked_for(job: JobLine, query: wire.NotificationQuery) -> bool:
    return (
        query.type in (None, job.event_type)
        and not _is_before(job, query.since_at)
        and (query.until_at is None or job.source_at < query.until_at)
    )
